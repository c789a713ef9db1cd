"""Which language a text is in, and what its words become."""

import json

import numpy as np
import pytest

from helios.errors import IndexFormatError
from helios.index.function_words import count_missing, telling_terms
from helios.index.languages import BEFORE, Analysis, recognise
from helios.index.lexical import Postings, Statistics, VisibleNodes, terms_of, write_postings
from helios.index.visible import Numbering, VisiblePostings

GERMAN, FRENCH, SPANISH = (Analysis((code,)) for code in ("de", "fr", "es"))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Who designed the Forth Bridge?", "en"),
        ("Wer hat die Forth Bridge entworfen?", "de"),
        ("Qui a construit le viaduc de Garabit ?", "fr"),
        ("¿Quién diseñó el puente?", "es"),
        ("谁设计了Forth Bridge?", "zh"),
        ("東京タワーはどこですか", "ja"),
        ("서울은 어디에 있습니까?", "ko"),
        ("Beijing (北京) is the capital of China.", "en"),
        ("Habedank 31", ""),
        ("", ""),
    ],
)
def test_language_of_a_text(text, language):
    assert recognise(text) == language


@pytest.mark.parametrize(
    ("analysis", "forms"),
    [
        (GERMAN, "Haus Hauses Häuser Haeuser Häusern"),
        (GERMAN, "Straße Strasse Straßen"),
        (GERMAN, "Auftrag Aufträge Aufträgen Auftrags"),
        (FRENCH, "journal journaux"),
        (FRENCH, "bateau bateaux"),
        (FRENCH, "élève élèves eleve"),
        (SPANISH, "animal animales"),
        (SPANISH, "luz luces"),
        (SPANISH, "camión camiones"),
        (Analysis(), "river rivers"),
    ],
)
def test_forms_of_a_word_are_one_term(analysis, forms):
    assert len(set(analysis.terms(forms))) == 1


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("红楼梦", ["红楼", "楼梦"]),
        ("2024年5月3日", ["2024", "年", "5", "月", "3", "日"]),
        ("北京 Beijing's", ["北京", "beijing", "s"]),
        ("ガス", ["ガス"]),
        ("한국은행", ["한국", "국은", "은행"]),
    ],
)
def test_pairs_of_characters_where_no_blanks_part_words(text, terms):
    assert terms_of(text) == terms


def test_before_there_was_a_choice_a_run_of_characters_was_a_term():
    assert BEFORE.terms("红楼梦 rivers") == ["红楼梦", "river"]


def test_words_of_chinese_that_say_nothing_part_a_question():
    assert telling_terms("红楼梦的作者是谁？") == ["红楼", "楼梦", "作者"]
    assert telling_terms("谁？") == ["谁"]


def test_languages_of_a_fair_share_of_texts():
    german = ["Die Brücke ist aus Stahl und steht über dem Fluss"] * 5
    english = ["The bridge is of steel and stands over the river"] * 5
    assert Analysis.of_texts([*german, *english]).languages == ("de", "en")
    assert Analysis.of_texts([*german * 10, english[0]]).languages == ("de",)
    assert Analysis.of_texts(["31", "Habedank"]).languages == ("en",)


def postings_of(texts, directory, analysis) -> VisiblePostings:
    write_postings(texts, directory, segment_count=0, analysis=analysis)
    postings = Postings(directory)
    empty, all_nodes = np.zeros(0, np.int64), np.arange(postings.node_count)
    numbering = Numbering.of([empty], [all_nodes], [0], [postings.node_count], whole=True)
    return VisiblePostings([postings], numbering, Statistics([VisibleNodes.all(postings)]))


def test_an_index_says_how_its_terms_were_made(tmp_path):
    assert postings_of(["Häuser"], tmp_path, GERMAN).analysis == GERMAN
    assert postings_of(["Häuser"], tmp_path / "again", GERMAN).terms("Haus").terms == ("haus",)
    path = tmp_path / "statistics.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in record.items() if name != "analysis"}))
    assert Postings(tmp_path).analysis == BEFORE
    path.write_text(json.dumps(record | {"analysis": {"languages": "de"}}))
    with pytest.raises(IndexFormatError, match="damaged: no analysis"):
        Postings(tmp_path)


def test_a_compound_is_found_in_its_two_parts(tmp_path):
    postings = postings_of(["Aufträge der Restaurierung", "Der Saal der Zünfte"], tmp_path, GERMAN)
    assert postings.terms("Restaurierungsaufträge").terms == ("restaurierung", "auftrag")
    assert postings.terms("Zünftesaal").terms == ("zunft", "saal")
    assert postings.terms("Zünftesaal").missing == 0
    assert postings.terms("Schaumagazin").terms == ()


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Who built the Forth Bridge in 1890?", 5),  # who, built, the, in, 1890
        ("Wer hat die Forth Bridge gebaut?", 0),
        ("Wer hat die Forth Bridge 1890 gebaut?", 1),
        ("谁设计了Forth Bridge?", 0),
    ],
)
def test_words_of_another_language_are_not_missing(question, missing):
    assert count_missing(question, {"forth", "bridge"}, Analysis(("en",))) == missing


def test_an_old_index_counts_every_word_as_it_did():
    assert count_missing("Wer hat die Forth Bridge gebaut?", {"forth", "bridge"}, BEFORE) == 4


def test_pairs_across_two_known_words_are_not_missing():
    chinese = Analysis(("zh",))
    known = {"红楼", "楼梦", "作者"}
    assert count_missing("红楼梦作者是谁？", known, chinese) == 0
    assert count_missing("红楼梦作者的母亲是谁？", known, chinese) == 1

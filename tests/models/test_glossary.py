"""Other languages word by word in English: which language, which words, and the places of what is read."""

import re
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.models.base import find_base_model
from helios.models.encoder import MiniLMEncoder
from helios.models.glossary import (
    LANGUAGES,
    NAMES,
    Glossary,
    gloss,
    glossaries_digest,
    glossary,
    language_of,
    stem_of,
    tokens_of,
)
from helios.models.headed import PlainTokenizer
from helios.models.vocabulary import Vocabulary

WORDS = re.compile(r"\w+")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Welcher Lieferant hat die meisten Bestellungen?", "de"),
        ("Rechnungsnummer ; Kunde ; Betrag", "de"),
        ("Quel est le montant total des factures ?", "fr"),
        ("¿Cuántos pedidos hay sin entregar?", "es"),
        ("哪位老师教的学生最多", "zh"),
        ("Which supplier has the most orders?", "en"),
        ("Order ; Customer ; Amount", "en"),
        ("1962 International Cross Country Championships. Rank: 3 ; Team: Gaston Roelants", "en"),
        ("Panevėžys 1962", ""),
        ("", ""),
        ("東京の人口は何人ですか", "ja"),
    ],
)
def test_the_language_is_that_of_most_words_that_tell_one(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wie viele Lieferungen sind verspätet?", {"many", "late"}),
        ("Combien de factures sont impayées ?", {"many", "unpaid"}),
        ("¿Cuántas facturas hay?", {"many", "invoice"}),
        ("多少学生", {"many", "student"}),
    ],
)
def test_a_question_is_read_in_english(text: str, words: set[str]) -> None:
    glossed = gloss(text)
    assert glossed is not None
    read = glossed.text.lower()
    assert all(word in read for word in words), read


def test_english_and_languages_without_a_glossary_stay_as_they_are() -> None:
    for text in (
        "How many deliveries were late?",
        "東京の人口は何人ですか",
        "Hur många beställningar är öppna?",
        "1 + 1",
        "",
    ):
        assert gloss(text) is None, text


def test_what_is_read_stands_at_the_words_own_place() -> None:
    text = "Wer ist der Trainer von Gisbert?"
    read = gloss(text)
    assert read is not None
    shown = [(read.text[a:b], text[slice(*read.span(a, b))]) for a, b in (m.span() for m in WORDS.finditer(read.text))]
    assert ("coach", "Trainer") in shown
    assert ("Gisbert", "Gisbert") in shown


def test_a_phrase_is_one_word_and_an_elided_article_another() -> None:
    french = Glossary.of_lines("fr", ["combien de\thow many", "combien\thow much", "l\tthe", "an\tyear"])
    assert [piece.english for piece in french.pieces("Combien de lions ?")] == ["how many"]
    assert [piece.english for piece in french.pieces("combien l'an, section l")] == ["how much", "the", "year"]


def test_compounds_are_read_by_their_parts() -> None:
    german = Glossary.of_lines("de", ["lieferung\tdelivery\tliefer", "termin\tdate\ttermin"])
    assert [piece.english for piece in german.pieces("Lieferungstermin")] == ["delivery date"]
    assert german.find("lieferungen") == "delivery"


def test_words_of_chinese_are_parted_with_the_longest_first() -> None:
    chinese = Glossary.of_lines("zh", ["学生\tstudent", "学\tlearn", "生\tborn", "多少\thow many"])
    assert [piece.english for piece in chinese.pieces("多少学生王")] == ["how many", "student", "王"]


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_packaged_lists_are_well_formed(code: str) -> None:
    """One line a word, small letters, its English, and the stem that the stemmer gives it today."""
    text = resources.files("helios.models").joinpath("glossaries", f"{code}.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    assert len(rows) > 5000
    assert len({row[0] for row in rows}) == len(rows)
    assert all(row[0] == row[0].lower().strip() and row[1].strip() for row in rows)
    for word, _, *stem in rows[::97]:
        if stem and code in NAMES:
            assert stem == [stem_of(code, word)]


@given(st.text(max_size=60), st.sampled_from(LANGUAGES))
def test_spans_never_leave_the_text_and_never_go_back(text: str, language: str) -> None:
    tokenizer = Vocabulary.of(find_base_model().folder).tokenizer
    (tokens,) = tokens_of(tokenizer, [text], language)
    assert len(tokens.ids) == len(tokens.offsets)
    before = 0
    for start, end in tokens.offsets:
        assert before <= start <= end <= len(text)
        before = start


def test_an_answer_in_another_language_is_cut_from_the_text_itself() -> None:
    text = "Die Besprechung beginnt um acht Uhr in der Bibliothek."
    (tokens,) = PlainTokenizer(find_base_model()).tokens([text])
    covered = {text[start:end] for start, end in tokens.offsets}
    assert "Bibliothek" in covered


def test_the_encoder_reads_a_word_as_its_english_only_where_the_index_says_so() -> None:
    plain = MiniLMEncoder.load(adapter="none")
    glossed = plain.with_glossary(glossaries_digest())
    assert plain.with_glossary(None) is plain
    assert "glossary" not in plain.record
    assert glossed.record == plain.record | {"glossary": glossaries_digest()}
    german, english = "Wie viele Rechnungen sind offen?", "How many invoices are open?"
    same = plain.encode_question(english).vectors @ plain.encode_question(german).vectors.T
    read = glossed.encode_question(english).vectors @ glossed.encode_question(german).vectors.T
    assert read.max(axis=1).mean() > same.max(axis=1).mean() + 0.1
    assert (glossed.encode_question(english).vectors == plain.encode_question(english).vectors).all()


def test_places_of_words_are_not_said_of_texts_read_by_other_lists() -> None:
    encoder = MiniLMEncoder.load(adapter="none")
    assert encoder.with_glossary(glossaries_digest()).places_words("Wer ist der Trainer?")
    assert not encoder.with_glossary("0123456789abcdef").places_words("Wer ist der Trainer?")
    assert encoder.with_glossary("0123456789abcdef").places_words("Who is the coach?")
    assert glossary("de").knows("rechnung")


def test_codes_and_addresses_are_not_read_word_by_word() -> None:
    text = "Die Rechnung MUT-HAUS-12 ging an info@schule-am-see.de, siehe www.schule-am-see.de"
    read = gloss(text)
    assert read is not None
    for own in ("MUT-HAUS-12", "info@schule-am-see.de,", "www.schule-am-see.de"):
        assert own in read.text


def test_letters_with_loose_accents_are_the_same_words() -> None:
    text = "Wie viele Übungen sind für später geplant?"
    whole, parted = gloss(text), gloss(unicodedata.normalize("NFD", text))
    assert whole is not None and parted is not None
    assert parted.text == whole.text


def test_a_form_with_an_accent_is_found_by_its_stem_before_another_word_without_it() -> None:
    german = Glossary.of_lines("de", ["auftragen\tapply", "auftrag\torder\tauftrag"])
    assert german.find("aufträgen") == "order"
    assert german.find("auftragen") == "apply"


def test_threads_get_the_stems_that_one_thread_gets() -> None:
    words = [
        f"{word}{ending}" for word in ("lieferung", "abfahrt", "bestell") for ending in ("en", "er", "ungen", "te")
    ]
    alone = [stem_of.__wrapped__("de", word) for word in words]
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: [stem_of.__wrapped__("de", word) for word in words], range(400)):
            assert found == alone


@pytest.mark.parametrize(
    "text",
    [
        "Die Rechnung " + "a_" * 200 + "x ist offen",
        "Die Rechnung " + "ab-" * 2000 + " ist offen",
        "Wer ist " + "a.b" * 3000 + "?",
        "多少学生在图书馆里看书" * 3000,
    ],
)
def test_no_text_takes_long(text: str, within) -> None:
    """In proportion to its characters: 1 s for 33,000 would be slow on any machine."""
    with within(1, clock=time.process_time):
        assert gloss(text) is not None

"""The text of a node: every character belongs to the piece that it came from."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.models.text import NodeText, passage_text, plain_segment, segment_text, sentence_ends
from helios.types import Passage, Segment, SegmentId

WORDS = st.text('ab .!?"(Ä1', max_size=12)


def segment(title="Title", section="Section", header=("Year", "Office"), cells=("1789", "Vice President")) -> Segment:
    return Segment(SegmentId("t", 0), title, section, header, cells)


def pieces(node: NodeText) -> list[tuple[str, str]]:
    return [(piece.where, node.text[piece.start : piece.end]) for piece in node.pieces]


def test_a_row():
    node = segment_text(segment())
    assert node.text == "Title, Section. Year: 1789 ; Office: Vice President"
    assert pieces(node) == [
        ("title", "Title"),
        ("section", "Section"),
        ("header:0", "Year"),
        ("cell:0", "1789"),
        ("header:1", "Office"),
        ("cell:1", "Vice President"),
    ]
    assert node.where(node.text.index("President")) == "cell:1"
    assert node.where(node.text.index(";")) == ""
    assert node.where(len(node.text)) == ""


@given(title=WORDS, section=WORDS, cells=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_a_row_without_pieces_is_the_same_text(title, section, cells):
    header, values = zip(*cells, strict=True)
    one = segment(title, section, header, values)
    assert plain_segment(one) == segment_text(one).text


def test_a_row_without_a_section_and_with_empty_cells():
    node = segment_text(segment(section="", cells=("", "x")))
    assert node.text == "Title. Year:  ; Office: x"
    assert pieces(node) == [("title", "Title"), ("header:0", "Year"), ("header:1", "Office"), ("cell:1", "x")]


def test_a_passage_is_cut_into_sentences():
    node = passage_text(Passage("p", "Basel", 'It lies on the Rhine. "Big," they say! Was it 3.5 km? yes it was.'))
    assert pieces(node) == [
        ("title", "Basel"),
        ("sentence:0", "It lies on the Rhine. "),
        ("sentence:1", '"Big," they say! '),
        ("sentence:2", "Was it 3.5 km? yes it was."),
    ]


def test_chinese_sentences_end_without_blanks():
    node = passage_text(Passage("p", "长江", "长江是亚洲最长的河流。它流经上海。"))
    assert pieces(node)[1:] == [("sentence:0", "长江是亚洲最长的河流。"), ("sentence:1", "它流经上海。")]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Smith met Mr. J. K. Rowling.", "She left No. 5 at 10.", "The U.S. Army came.", "No.", "It was Sept. 4."],
        ["Born in the U.S.", "He left.", "It ended (at last.)", "Next came 12.", "Plans: A, B, C.", "The end."],
        ["Durchgangsarzt ist Dr. Haberstroh.", "Zugesagt am 1. Mai im 2. Stock.", "Es gab 12.", "Über uns: Nr. 7."],
        ["The pool is open until 5 p.m.", "Dogs wait outside.", "See Plan B.", "Nobody may enter.", "Eat vitamin C."],
        ["Wir sehen uns am 12.", "Treffpunkt ist der Hof.", "Der 2. Mai."],
        ["La bomba nº 2 se quemó.", "Él vino.", "¿Quién?", "¡La Sra. Gómez!"],
        ["M. Dupont et Mme. Curie.", "Écrit à la p. 12.", "À voir."],
    ],
)
def test_full_stops_of_abbreviations_end_no_sentence(sentences):
    text = " ".join(sentences)
    ends = [0, *sentence_ends(text), len(text)]
    assert [text[start:end].rstrip() for start, end in pairwise(ends)] == sentences


def test_sentences_are_found_in_time_proportional_to_the_text(within):
    with within(2.0):
        sentence_ends("a.b. A" * 20_000 + ". " * 20_000 + "x" * 100_000 + ". No. 1" * 10_000 + "." + '"' * 50_000)


def test_an_empty_passage():
    assert pieces(passage_text(Passage("p", "", ""))) == []


@given(title=WORDS, text=WORDS.map(lambda words: words * 3))
def test_sentences_are_the_whole_text(title, text):
    node = passage_text(Passage("p", title, text))
    sentences = [words for where, words in pieces(node) if where.startswith("sentence")]
    assert "".join(sentences) == text
    assert node.text == f"{title}. {text}"


@given(title=WORDS, section=WORDS, rows=st.lists(st.tuples(WORDS, WORDS), max_size=4))
def test_cells_are_found_at_their_place(title, section, rows):
    node = segment_text(segment(title, section, tuple(name for name, _ in rows), tuple(cell for _, cell in rows)))
    found = dict(pieces(node))
    assert found.get("title", "") == title
    assert found.get("section", "") == section
    for column, (name, cell) in enumerate(rows):
        assert found.get(f"header:{column}", "") == name
        assert found.get(f"cell:{column}", "") == cell

"""Citations are read again from the store; what is not there is dropped and named."""

import pytest

from helios.models.text import sentences_of
from helios.reading.base import Answer, Citation, Support
from helios.reading.citations import checked, cited_source, holds
from helios.types import SegmentId


@pytest.fixture(scope="module")
def corpus(engine):
    return engine.corpus


@pytest.fixture(scope="module")
def cell(corpus) -> Citation:
    table = corpus.tables[0]
    text = table.rows[0][0]
    return Citation(text, SegmentId(table.table_id, 0), 0, start=0, end=len(text))


@pytest.fixture(scope="module")
def sentence(corpus) -> Citation:
    passage = corpus.passages[0]
    number, text = list(sentences_of(passage))[-1]
    return Citation(text[2:9], passage_id=passage.passage_id, sentence=number, start=2, end=9)


def answer(text: str, *citations: Citation) -> Answer:
    return Answer("?", text, citations, reader="test")


def test_true_citations_are_kept(corpus, cell, sentence):
    result = checked(answer(cell.text, cell, sentence), corpus)
    assert result.citations == (cell, sentence)
    assert result.support is Support.CHECKED
    assert not result.dropped


def test_a_list_is_checked_item_by_item(corpus):
    table = corpus.tables[0]
    first, second = (
        Citation(text, SegmentId(table.table_id, row), 0, end=len(text))
        for row, text in enumerate(cells[0] for cells in table.rows[:2])
    )
    listed = f"{first.text}, {second.text}"
    assert checked(answer(listed, first, second), corpus).support is Support.CHECKED
    assert checked(answer(listed, first, first), corpus).support is Support.CITED
    assert checked(answer(f"{listed}, more", first, second), corpus).support is Support.CITED


def test_a_title_can_be_cited(corpus):
    passage = corpus.passages[0]
    citation = Citation(passage.title, passage_id=passage.passage_id, start=0, end=len(passage.title))
    assert checked(answer(passage.title, citation), corpus).support is Support.CHECKED


def test_an_answer_that_stands_in_no_citation_is_cited_but_not_checked(corpus, cell):
    assert checked(answer("forty-two and a half", cell), corpus).support is Support.CITED


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": "something else"}, "does not say 'something else'"),
        ({"column": 99}, "not in the corpus"),
        ({"column": -1}, "not in the corpus"),
        ({"segment_id": SegmentId("no such table", 0)}, "not in the corpus"),
        ({"segment_id": "row"}, "not in the corpus"),
        ({"text": "", "end": 0}, "cites no words"),
    ],
)
def test_false_citations_are_dropped_with_the_reason(corpus, cell, change, reason):
    if change.get("segment_id") == "row":
        change = {"segment_id": SegmentId(cell.segment_id.table_id, 10_000)}
    false = Citation(**{name: getattr(cell, name) for name in Citation.__dataclass_fields__} | change)
    result = checked(answer(cell.text, false), corpus)
    assert not result.citations
    assert result.support is Support.UNSUPPORTED
    assert reason in result.dropped[0]


def test_a_passage_that_is_not_there(corpus, sentence):
    assert cited_source(Citation("x", passage_id="no such passage", sentence=0), corpus) is None
    assert cited_source(Citation("x", passage_id=sentence.passage_id, sentence=999), corpus) is None


def test_abstentions_stay_abstentions(corpus):
    result = Answer.abstain("?", "no evidence", reader="test")
    assert checked(result, corpus) is result
    assert result.abstained
    assert result.support is Support.ABSTAINED


@pytest.mark.parametrize("fields", [{}, {"segment_id": SegmentId("t", 0)}, {"passage_id": "p", "column": 1}])
def test_a_citation_is_of_one_place(fields):
    with pytest.raises(ValueError, match="citation"):
        Citation("x", **fields)


def test_holding_is_word_by_word():
    assert holds("born in New York City .", "new york city")
    assert not holds("born in Yorkshire", "York")
    assert not holds("anything", "!")

"""The reader of passages, with the packaged weights: what a text says in answer, where, and how sure it is."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.errors import ModelError
from helios.models.base import find_base_model
from helios.models.card import CARD
from helios.reading.passages import (
    FEATURES,
    FILE,
    MAX_TOKENS,
    WEIGHTS,
    PassageReader,
    ReadSpan,
    WindowTokeniser,
    merged,
    one_amount,
    trimmed,
)
from helios.types import Evidence, EvidenceEdge, Origin, Passage, Segment, SegmentId

RULES = "Guests may park in the yard behind the house. Parking is limited to 40 minutes. Dogs are welcome on a lead."
MINUTES = "The minutes of the last meeting were read. The treasurer reported a balance of 2,310 pounds."


def evidence_of(question: str, *texts: str) -> Evidence:
    edges = tuple(
        EvidenceEdge(rank, 1.0 / rank, 0.5 / rank, Origin.LINKED, None, Passage(f"p{rank}", f"Sheet {rank}", text))
        for rank, text in enumerate(texts, start=1)
    )
    return Evidence(question, edges, present=0.5)


def read(reader: PassageReader, question: str, evidence: Evidence):
    return reader.read(question, evidence, reader.passages(question, evidence, edges=10))


@pytest.fixture(scope="module")
def reader() -> PassageReader:
    return PassageReader.load()


def test_words_of_the_passage_that_answers(reader):
    question = "how long can we leave the car there?"
    evidence = evidence_of(question, MINUTES, RULES)
    answers = read(reader, question, evidence)
    assert "40 minutes" in answers[0].text
    assert [one.confidence for one in answers] == sorted((one.confidence for one in answers), reverse=True)
    assert len({one.text.lower() for one in answers}) == len(answers)
    citation = answers[0].citation()
    assert citation.passage_id == "p2"
    assert RULES.split(". ")[citation.sentence or 0][citation.start : citation.end] == answers[0].text
    for one in answers:
        assert 0 < one.confidence < 1
        assert len(one.features) == len(FEATURES)


def test_a_text_that_does_not_answer_is_believed_less(reader):
    question = "how long can we leave the car there?"
    told = [read(reader, question, evidence_of(question, text))[0].confidence for text in (RULES, MINUTES)]
    assert told[0] > 2 * told[1]


def test_nothing_is_read_without_a_passage(reader):
    row = Segment(SegmentId("t", 0), "Cars", "", ("Car", "Place"), ("Mini", "yard"))
    edges = (EvidenceEdge(1, 1.0, 0.5, Origin.LINKED, row, None),)
    assert read(reader, "where is the Mini?", Evidence("where is the Mini?", edges)) == []


def test_a_long_text_is_cut_and_every_token_knows_its_characters():
    tokeniser = WindowTokeniser(find_base_model())
    text = "Parking is limited to 40 minutes. " * 100
    (window,) = tokeniser.of("how long?", [text])
    assert len(window.ids) == MAX_TOKENS
    assert text[slice(*window.spans[0].tolist())] == "Parking"
    assert window.first + len(window.spans) + 1 == len(window.ids)


@given(start=st.integers(0, 20), length=st.integers(0, 20))
def test_no_answer_begins_or_ends_with_a_mark(start, length):
    text = "  Room 4, at noon. Ask, please!  "
    span = trimmed(ReadSpan(start, start + length, -1.0, 0.0), text)
    said = text[span.start : span.end]
    assert said == text[start : start + length].strip(" \t\n.,;:!?")
    assert start <= span.start <= span.end


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("£1,640 fitted, a new one £2,310", "£1,640 fitted"),
        ("35 days and month-end copies for thirteen months", "35 days"),
        ("between 10 and 15 days", "between 10 and 15 days"),
        ("5 years and 6 months", "5 years and 6 months"),
        ("two hours and a half", "two hours and a half"),
        ("30p a mile", "30p a mile"),
    ],
)
def test_one_amount_is_asked_for(said, kept):
    """What is said of a second one is left out; a number that goes on with the first stays."""
    found = one_amount(ReadSpan(0, len(said), 0.0, 0.0), said)
    assert said[found.start : found.end] == kept


def test_spans_that_overlap_are_one_answer():
    spans = [ReadSpan(10, 20, -1.0, 0.0), ReadSpan(7, 20, -2.0, 0.0), ReadSpan(30, 32, -3.0, 0.0)]
    first, second = merged(spans)
    assert (first.start, first.end, second.start) == (10, 20, 30)
    assert -1.0 < first.chance < 0.0
    assert second == spans[2]


def test_weights_that_cannot_be_used(tmp_path):
    folder = tmp_path / "weights"
    shutil.copytree(WEIGHTS, folder)
    record = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(record | {"values": {}}))
    with pytest.raises(ModelError, match="lacks the confidence"):
        PassageReader.load(folder)
    (folder / CARD).write_text(json.dumps(record))
    (folder / FILE).write_bytes(b"damaged")
    with pytest.raises(ModelError, match="damaged"):
        PassageReader.load(folder)

"""Which reader's answer is given: by chances that follow what the readers and the evidence say."""

import json
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.errors import ModelError
from helios.models.card import CARD
from helios.reading.base import Answer
from helios.reading.choice import FEATURES, SILENT, WEIGHTS, Choice, Reading, choice_features
from helios.types import Evidence, EvidenceEdge, Link, Origin, Passage, Segment, SegmentId

QUESTION = "what does a cat booster cost?"
ROW = Segment(SegmentId("prices", 3), "Prices", "", ("Service", "Price"), ("Cat booster", "£58"))
TEXT = Passage("p", "Plan", "Members pay £12.25 a month for a cat.")


def evidence(*, passage: Passage | None = TEXT, link: float = 0.2) -> Evidence:
    links = (Link(0, 0, 3, link),) if passage is not None else ()
    return Evidence(QUESTION, (EvidenceEdge(1, 1.0, 0.6, Origin.LINKED, ROW, passage, links),), present=0.7)


def said(**confidences: tuple[str, float]) -> dict[Reading, Answer]:
    return {Reading[name]: Answer(QUESTION, text, confidence=sure) for name, (text, sure) in confidences.items()}


@pytest.fixture(scope="module")
def choice() -> Choice:
    return Choice.load()


@given(low=st.floats(0.02, 0.9), more=st.floats(0.01, 0.08))
def test_the_surer_a_reader_the_likelier_its_answer(choice, low, more):
    for reading in Reading:
        one, other = (choice.chances(QUESTION, evidence(), said(**{reading.name: ("£58", sure)}))[reading]
                      for sure in (low, low + more))  # fmt: skip
        assert 0 < one < other < 1


def test_readers_that_agree_are_believed_more(choice):
    alone = choice.chances(QUESTION, evidence(), said(TABLE=("£58", 0.4), SPAN=("a month", 0.2)))
    together = choice.chances(QUESTION, evidence(), said(TABLE=("£58", 0.4), SPAN=("£58", 0.2)))
    assert together[Reading.TABLE] > alone[Reading.TABLE]
    assert together[Reading.SPAN] > alone[Reading.SPAN]


def test_a_text_linked_for_sure_speaks_for_what_two_readers_of_texts_find_in_it(choice):
    answers = said(TABLE=("£58", 0.6), SPAN=("£12.25", 0.6), PASSAGE=("£12.25", 0.3))
    faint, sure = (choice.chances(QUESTION, evidence(link=link), answers) for link in (0.1, 1.0))
    assert sure[Reading.SPAN] - sure[Reading.TABLE] > faint[Reading.SPAN] - faint[Reading.TABLE] > 0
    assert sure[Reading.PASSAGE] > faint[Reading.PASSAGE]


def test_features_are_what_is_known():
    answers = said(TABLE=("£58", 0.5), PASSAGE=("£58 .", 0.5))
    found = dict(zip(FEATURES, choice_features(QUESTION, evidence(link=0.5), answers, Reading.TABLE), strict=True))
    assert found["own"] == found["second_other"] == pytest.approx(0.0)
    assert found["first_other"] == SILENT
    assert (found["agrees_first"], found["agrees_second"], found["paired"]) == (0.0, 1.0, 1.0)
    assert found["first_other_linked"] == pytest.approx(SILENT * 0.5)
    german = choice_features("Was kostet die Impfung für die Katze?", evidence(passage=None), answers, Reading.TABLE)
    assert dict(zip(FEATURES, german, strict=True)) | {} == {
        **found, "foreign": 1.0, "paired": 0.0, "link": 0.0, "own_linked": 0.0, "first_other_linked": 0.0,
        "second_other_linked": 0.0, "third_other_linked": 0.0,
    }  # fmt: skip


def test_weights_that_cannot_be_used(choice, tmp_path):
    folder = tmp_path / "choice"
    shutil.copytree(WEIGHTS, folder)
    record = json.loads((folder / CARD).read_text())
    del record["values"]["tables"]["weights"]["link"]
    (folder / CARD).write_text(json.dumps(record))
    with pytest.raises(ModelError, match="link"):
        Choice.load(folder)
    assert replace(choice) == Choice.load()

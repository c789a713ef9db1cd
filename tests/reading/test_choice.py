"""Which answer is given: by chances that follow what the readers and the evidence say."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.errors import ModelError
from helios.reading.base import Answer, Citation
from helios.reading.choice import (
    FEATURES,
    LAST,
    READ,
    SILENT,
    TREES,
    WEIGHTS,
    Choice,
    Reading,
    Said,
    add_read,
    candidates_of,
    choice_features,
)
from helios.reading.rivals import RIVALS, Rival
from helios.types import Evidence, EvidenceEdge, Link, Origin, Passage, Segment, SegmentId

QUESTION = "what does a cat booster cost?"
ROW = Segment(SegmentId("prices", 3), "Prices", "", ("Service", "Price"), ("Cat booster", "£58"))
TEXT = Passage("p", "Plan", "Members pay £12.25 a month for a cat.")


def evidence(*, passage: Passage | None = TEXT, link: float = 0.2) -> Evidence:
    links = (Link(0, 0, 3, link),) if passage is not None else ()
    return Evidence(QUESTION, (EvidenceEdge(1, 1.0, 0.6, Origin.LINKED, ROW, passage, links),), present=0.7)


def told(text: str, sure: float, *, done: str = "Price", cites: SegmentId | None = None) -> Said:
    citations = () if cites is None else (Citation(text, segment_id=cites, column=1),)
    return Said(Answer(QUESTION, text, citations, sure), Rival(text, done, "Service Cat booster", "Prices"))


def said(**answers: tuple[Said, ...]) -> dict[Reading, tuple[Said, ...]]:
    return {Reading[name]: found for name, found in answers.items()}


@pytest.fixture(scope="module")
def choice() -> Choice:
    return Choice.load()


def test_equal_answers_are_one_and_the_first_ones_come_first():
    found = candidates_of(
        said(TABLE=(told("£58", 0.5), told("£60", 0.45)), SPAN=(told("a month", 0.2), told("£58 .", 0.1)))
    )
    assert [one.text for one in found] == ["£58", "a month", "£60"]
    assert set(found[0].by) == {Reading.TABLE, Reading.SPAN}
    assert found[0].place_of(Reading.SPAN) == 1
    assert found[0].odds_of(Reading.TABLE) == pytest.approx(0.0)
    assert (found[1].place_of(Reading.TABLE), found[1].odds_of(Reading.TABLE)) == (LAST, SILENT)
    assert candidates_of(said(SPAN=(told("", 0.9),))) == []


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0.01, 0.99)), max_size=8))
def test_every_answer_is_a_candidate_once(answers):
    found = candidates_of(said(TABLE=tuple(told(text, sure) for text, sure in answers), SPAN=(told("a", 0.5),)))
    assert sorted(one.text for one in found) == sorted({"a", *(text for text, _ in answers)})


def test_features_are_what_is_known():
    found = candidates_of(
        said(TABLE=(told("£58", 0.5, cites=SegmentId("prices", 3)),), PASSAGE=(told("£12.25", 0.2), told("£58", 0.1)))
    )
    rows = choice_features(QUESTION, evidence(link=0.5), found)
    assert rows.shape == (2, len(FEATURES))
    known = dict(zip(FEATURES, rows[0].tolist(), strict=True))
    assert known["tables_odds"] == pytest.approx(0.0)
    assert (known["passages_place"], known["passages_behind"] < 0, known["spans_odds"]) == (1, True, SILENT)
    assert (known["readers"], known["first_of"], known["ahead"] > 0) == (2, 1, True)
    assert (known["rank"], known["cited"], known["link"], known["paired"]) == (1, 1, 0.5, 1)
    assert (known["digits"], known["number_first"], known["capital"]) == (1, 1, 0)
    german = choice_features("Was kostet die Impfung für die Katze?", evidence(passage=None), found)[0]
    known = dict(zip(FEATURES, german.tolist(), strict=True))
    assert (known["foreign"], known["paired"], known["link"]) == (1, 0, 0)


def test_what_was_not_read_is_taken_for_the_least():
    rows = np.zeros((3, len(FEATURES)), np.float32)
    add_read(rows, np.array([2.0, -1.0], np.float32))
    odds, chance, ahead = (rows[:, FEATURES.index(name)] for name in READ)
    assert odds.tolist() == [2, -1, -1]
    assert np.exp(chance[:2]).sum() == pytest.approx(1 - np.exp(0 - np.logaddexp.reduce([2.0, -1.0, 0.0])))
    assert ahead.tolist() == [3, -3, -3]


def test_an_answer_that_fits_the_question_is_likelier_than_one_that_does_not(choice):
    answers = said(TABLE=(told("£58", 0.5), told("Cat booster", 0.45, done="Service")))
    fits, other = choice.chances(QUESTION, evidence(passage=None), candidates_of(answers))
    assert 0 < other < fits < 1
    assert choice.chances(QUESTION, evidence(), []) == []


def test_more_answers_than_are_read(choice):
    many = tuple(told(f"£{number}", 0.1) for number in range(RIVALS + 5))
    chances = choice.chances(QUESTION, evidence(), candidates_of(said(TABLE=many)))
    assert len(chances) == RIVALS + 5
    assert all(0 < chance < 1 for chance in chances)


def test_weights_that_cannot_be_used(tmp_path):
    folder = tmp_path / "choice"
    shutil.copytree(WEIGHTS, folder)
    text = (folder / TREES).read_text()
    (folder / TREES).write_text(text.replace(FEATURES[0], "unknown", 1))
    with pytest.raises(ModelError, match="damaged|unknown|changed"):
        Choice.load(folder)
    (folder / TREES).unlink()
    with pytest.raises(ModelError):
        Choice.load(folder)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("which carrier took it?", 0),
        ("what is the carrier's code?", 1),
        ("Nummer der Rechnung", 1),
        ("订单的编号是多少", 1),
    ],
)
def test_codes_are_told_from_what_they_stand_for(question, asked):
    code = Said(Answer(question, "PGN", (), 0.5), Rival("PGN", "carrier", "", ""), reference=-1)
    name = Said(Answer(question, "Pigeon", (), 0.4), Rival("Pigeon", "name", "", ""), reference=1)
    features = choice_features(question, evidence(), candidates_of(said(TABLE=(code, name))))
    assert features[:, FEATURES.index("reference")].tolist() == [-1, 1]
    assert features[:, FEATURES.index("code")].tolist() == [asked, asked]


def test_a_code_is_given_with_its_name_unless_a_code_was_asked_for():
    code = told("PGN", 0.5, cites=SegmentId("orders", 1))
    named = replace(code.answer, text="Pigeon (PGN)")
    table = (replace(code, reference=-1, named=named), told("Pigeon", 0.4))
    (found, _) = candidates_of(said(SPAN=(told("PGN", 0.6, cites=SegmentId("orders", 1)),), TABLE=table))
    assert found.said("which carrier took it?").text == "Pigeon (PGN)"
    assert found.said("which carrier took the highest number of parcels?").text == "Pigeon (PGN)"
    for asked in ("what is the carrier's code?", "abbreviation of the carrier"):
        assert found.said(asked).text == "PGN"
    elsewhere = candidates_of(said(SPAN=(told("PGN", 0.6, cites=SegmentId("letters", 2)),), TABLE=table))
    counted = candidates_of(said(QUERY=(replace(told("PGN", 0.6), computed=True),), TABLE=table))
    for other in (elsewhere, counted, candidates_of(said(SPAN=(told("PGN", 0.6),)))):
        assert other[0].said("which carrier took it?").text == "PGN"

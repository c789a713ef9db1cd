"""EM and F1: SQuAD's definitions by hand and as properties, and what abstentions count."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.errors import EvaluationError
from helios.evaluation.answers import answer_measures, measure_answer, measure_answers, with_answers
from helios.evaluation.evaluate import EvaluationReport
from helios.evaluation.measures import exact_match, f1
from helios.evaluation.questions import Question
from helios.reading.base import Answer, Support

WORDS = st.lists(st.sampled_from(["red", "green", "blue", "1998", "Paris", "the", "of"]), max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "overlap"),
    [
        ("The Cat!", ("cat",), True, 1.0),
        ("31 May 1948", ("May 31 , 1948",), False, 1.0),
        ("$ 37 billion", ("37 billion",), True, 1.0),
        ("New York City", ("New York",), False, 0.8),
        ("blue", ("red", "Blue"), True, 1.0),
        ("blue blue", ("blue",), False, 2 / 3),
        ("", ("cat",), False, 0.0),
        ("the", ("a",), True, 1.0),
    ],
)
def test_by_hand(prediction, answers, exact, overlap):
    assert exact_match(prediction, answers) is exact
    assert f1(prediction, answers) == pytest.approx(overlap)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_f1_is_a_share_and_one_where_the_match_is_exact(prediction, answers):
    assert 0.0 <= f1(prediction, answers) <= 1.0
    if exact_match(prediction, answers):
        assert f1(prediction, answers) == 1.0


@given(WORDS, WORDS)
def test_f1_is_symmetric_and_blind_to_order(one, other):
    assert f1(one, [other]) == pytest.approx(f1(other, [one]))
    assert f1(one, [other]) == pytest.approx(f1(" ".join(reversed(one.split())), [other]))


@given(WORDS, st.sampled_from(string.punctuation), st.booleans())
def test_case_articles_blanks_and_punctuation_do_not_count(text, mark, upper):
    changed = f"  the {text.upper() if upper else text}  {mark} "
    assert exact_match(changed, [text])
    assert f1(changed, [text]) == 1.0


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3), WORDS)
def test_another_accepted_answer_never_lowers(prediction, answers, more):
    assert f1(prediction, [*answers, more]) >= f1(prediction, answers)


def question(number: int, *answers: str) -> Question:
    return Question(str(number), f"question {number}", answers)


ANSWERS = {
    "question 0": Answer("question 0", "Paris", support=Support.CHECKED, reader="test"),
    "question 1": Answer("question 1", "New York City", support=Support.UNSUPPORTED, reader="test"),
    "question 2": Answer.abstain("question 2", "nothing found", reader="test"),
}
QUESTIONS = [question(0, "Paris"), question(1, "New York"), question(2, "the")]


def test_an_abstention_is_wrong_even_where_the_answer_has_no_words():
    result = measure_answer(QUESTIONS[2], ANSWERS["question 2"])
    assert (result.exact_match, result.f1) == (False, 0.0)


def test_means_over_all_questions_and_over_the_answered():
    done: list[int] = []
    results = measure_answers(ANSWERS.__getitem__, QUESTIONS, progress=done.append)
    means = {row.name: (row.mean, row.count) for row in answer_measures(results, samples=20)}
    assert done == [1, 2, 3]
    assert means["EM"] == (pytest.approx(1 / 3), 3)
    assert means["F1"] == (pytest.approx(1.8 / 3), 3)
    assert means["answered"] == (pytest.approx(2 / 3), 3)
    assert means["supported"] == (pytest.approx(1 / 2), 2)
    assert means["EM of answered"] == (pytest.approx(1 / 2), 2)


def test_they_join_the_report_of_retrieval():
    report = with_answers(EvaluationReport("helios", (), {"p50": 1.0}, {}, ()), measure_answers(ANSWERS.get, QUESTIONS))
    assert report["EM"] == pytest.approx(1 / 3)
    assert set(report.latency_ms) == {"p50", "reading p50", "reading p90", "reading p95", "reading p99"}


def test_no_questions():
    with pytest.raises(EvaluationError, match="no questions"):
        measure_answers(ANSWERS.get, [])


def test_nothing_answered():
    results = measure_answers(lambda text: ANSWERS["question 2"], QUESTIONS)
    assert [row.name for row in answer_measures(results, samples=5)] == [
        "EM", "F1", "answered", "abstained", "degraded"
    ]  # fmt: skip

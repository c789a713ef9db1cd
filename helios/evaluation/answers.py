"""EM and F1 of answers (SQuAD's definitions), and how many answers are given and supported.

A question that the reader does not answer counts as wrong in EM and F1: abstaining never raises them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from helios.errors import EvaluationError
from helios.evaluation import measures
from helios.evaluation.evaluate import PERCENTILES, EvaluationReport, MeasureResult, bootstrap_interval
from helios.evaluation.questions import Question
from helios.reading.base import Answer, Support

Ask = Callable[[str], Answer]
"""A question's text to its answer, citations checked."""


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """One question's answer and its figures."""

    question_id: str
    answer: Answer
    exact_match: bool
    f1: float
    latency_ms: float


def measure_answers(
    ask: Ask, questions: Sequence[Question], *, progress: Callable[[int], None] | None = None
) -> tuple[AnswerResult, ...]:
    """Answer and measure every question; EvaluationError for no questions at all."""
    if not questions:
        raise EvaluationError("there are no questions to evaluate")
    results = []
    for done, question in enumerate(questions, start=1):
        started = time.perf_counter()
        answer = ask(question.text)
        latency_ms = (time.perf_counter() - started) * 1000
        results.append(measure_answer(question, answer, latency_ms=latency_ms))
        if progress is not None:
            progress(done)
    return tuple(results)


def measure_answer(question: Question, answer: Answer, *, latency_ms: float = 0.0) -> AnswerResult:
    """Exact match and F1 of one answer; both 0 for an abstention."""
    if answer.abstained:
        return AnswerResult(question.question_id, answer, False, 0.0, latency_ms)
    exact = measures.exact_match(answer.text, question.answers)
    return AnswerResult(question.question_id, answer, exact, measures.f1(answer.text, question.answers), latency_ms)


def answer_measures(
    results: Sequence[AnswerResult], *, samples: int = 1000, seed: int = 0
) -> tuple[MeasureResult, ...]:
    """Means from 0 to 1 with intervals: EM, F1, answered, abstained, supported and EM (of those answered), degraded."""
    answered = [row for row in results if not row.answer.abstained]
    columns = {
        "EM": [float(row.exact_match) for row in results],
        "F1": [row.f1 for row in results],
        "answered": [float(not row.answer.abstained) for row in results],
        "abstained": [float(row.answer.abstained) for row in results],
        "degraded": [float(row.answer.degraded) for row in results],
        "supported": [float(row.answer.support in (Support.CHECKED, Support.CITED)) for row in answered],
        "EM of answered": [float(row.exact_match) for row in answered],
    }
    return tuple(_mean(name, values, samples, seed) for name, values in columns.items() if values)


def with_answers(report: EvaluationReport, results: Sequence[AnswerResult], *, seed: int = 0) -> EvaluationReport:
    """A retrieval report with the measures of the answers after its own, the reader's latencies, and what was spent."""
    latencies = [row.latency_ms for row in results]
    reading = {f"reading p{p}": float(np.percentile(latencies, p)) for p in PERCENTILES}
    return replace(
        report,
        measures=(*report.measures, *answer_measures(results, seed=seed)),
        latency_ms={**report.latency_ms, **reading},
        spent=spent([row.answer for row in results]),
    )


def spent(answers: Sequence[Answer]) -> dict[str, float]:
    """Calls and tokens a question: median, mean and most; empty where no language model was asked."""
    columns = {"calls": [answer.calls for answer in answers], "tokens": [answer.tokens for answer in answers]}
    return {
        f"{name} {kind}": float(found(values))
        for name, values in columns.items()
        if any(values)
        for kind, found in (("p50", np.median), ("mean", np.mean), ("max", np.max))
    }


def _mean(name: str, values: Sequence[float], samples: int, seed: int) -> MeasureResult:
    low, high = bootstrap_interval(values, samples=samples, seed=seed)
    return MeasureResult(name, float(np.mean(values)), low, high, len(values))

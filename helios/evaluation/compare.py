"""A system against a run that was kept: the same questions, one by one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from helios.errors import EvaluationError
from helios.evaluation.edges import EdgeId, RankedEdge
from helios.evaluation.evaluate import EvaluationReport, MeasureResult, bootstrap_interval, measure_question
from helios.evaluation.questions import Question
from helios.evaluation.runs import read_run
from helios.index.reader import Corpus


def compared(
    report: EvaluationReport, questions: Sequence[Question], run: Path, corpus: Corpus, *, depth: int = 50,
    seed: int = 0,
) -> tuple[MeasureResult, ...]:  # fmt: skip
    """By how much each measure of a report is above that of a kept run, with intervals of a paired bootstrap.

    Of both lists the first `depth` edges count.

    EvaluationError where the run lacks a question, or names an edge that the corpus does not have.
    """
    rankings = read_run(run).rankings
    gains: dict[str, list[float]] = {}
    for row, question in zip(report.questions, questions, strict=True):
        if question.question_id not in rankings:
            raise EvaluationError(f"{run}: has no list for question {question.question_id!r}")
        ranking = rankings[question.question_id]
        edges = [_with_texts(edge_id, score, corpus, run) for edge_id, score in ranking[:depth]]
        other = measure_question(question, edges, latency_ms=0.0, depth=depth)
        for name, value in other.values.items():
            if name in row.values:
                gains.setdefault(name, []).append(row.values[name] - value)
    return tuple(
        MeasureResult(name, float(np.mean(values)), *bootstrap_interval(values, seed=seed), len(values))
        for name, values in gains.items()
    )


def _with_texts(edge_id: EdgeId, score: float, corpus: Corpus, run: Path) -> RankedEdge:
    try:
        segment = None if edge_id.segment_id is None else corpus.segment(corpus.segment_number(edge_id.segment_id))
        passage = None if edge_id.passage_id is None else corpus.passages.get(edge_id.passage_id)
    except KeyError as error:
        raise EvaluationError(f"{run}: is of another corpus: {error.args[0]}") from None
    return RankedEdge(segment, passage, score)

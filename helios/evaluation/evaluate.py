"""Ask every question, measure every ranked list, sum up (HELIOS 5.1)."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from helios.errors import EvaluationError
from helios.evaluation import measures
from helios.evaluation.edges import EdgeId, RankedEdge
from helios.evaluation.questions import Question
from helios.evaluation.runs import Run

CUTOFFS = (2, 5, 10, 20, 50)
TABLE_CUTOFFS = (1, 5, 10, 50)
PERCENTILES = (50, 90, 95, 99)
RESAMPLED = 50_000
"""Values that are drawn at once, about."""

Search = Callable[[str], Sequence[RankedEdge]]
"""A question's text to its ranked edges, best first."""


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One question's figures; a measure that its gold does not allow is missing from `values`."""

    question_id: str
    values: Mapping[str, float]
    latency_ms: float
    ranking: tuple[tuple[EdgeId, float], ...]
    answer_rank: int | None


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """A mean over `count` questions, from 0 to 1, with its bootstrap interval of 95 %."""

    name: str
    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Everything one evaluation found."""

    name: str
    measures: tuple[MeasureResult, ...]
    latency_ms: Mapping[str, float]
    counts: Mapping[str, int]
    questions: tuple[QuestionResult, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    spent: Mapping[str, float] = field(default_factory=dict)
    """Calls and tokens of a language model for a question; empty where none was asked."""

    def __getitem__(self, name: str) -> float:
        """The mean of a measure by its name, such as `nDCG@50`."""
        means = {measure.name: measure.mean for measure in self.measures}
        return means[name]

    def run(self) -> Run:
        """The ranked lists as a TREC run."""
        return Run(self.name, {row.question_id: row.ranking for row in self.questions})


def evaluate(
    search: Search,
    questions: Sequence[Question],
    *,
    name: str = "helios",
    depth: int = 50,
    tokenizer: measures.Tokenizer = measures.word_spans,
    warmup: int = 3,
    samples: int = 1000,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> EvaluationReport:
    """Search and measure every question; `depth` is how many edges of a list are looked at.

    The first `warmup` questions are asked once beforehand, so that latencies are those of a warm system.
    `progress` hears how many questions are done. Raises EvaluationError for no questions at all.
    """
    if not questions:
        raise EvaluationError("there are no questions to evaluate")
    for question in questions[:warmup]:
        search(question.text)
    rows = []
    for done, question in enumerate(questions, start=1):
        started = time.perf_counter()
        edges = search(question.text)
        latency_ms = (time.perf_counter() - started) * 1000
        rows.append(measure_question(question, edges[:depth], latency_ms=latency_ms, depth=depth, tokenizer=tokenizer))
        if progress is not None:
            progress(done)
    return summarise(rows, questions, name=name, samples=samples, seed=seed, config=config or {})


def measure_question(
    question: Question,
    edges: Sequence[RankedEdge],
    *,
    latency_ms: float,
    depth: int = 50,
    tokenizer: measures.Tokenizer = measures.word_spans,
) -> QuestionResult:
    """Every measure that the question's gold allows."""
    ranked = [edge.edge_id for edge in edges]
    cutoffs = [k for k in CUTOFFS if k <= depth]
    answer_rank = measures.answer_rank(edges, question.answers)
    values = {f"AR@{k}": float(answer_rank is not None and answer_rank <= k) for k in cutoffs}
    within = measures.answer_within_tokens(edges, question.answers, tokenizer=tokenizer)
    values["HITS@4K"] = float(within)
    if question.gold_edges:
        values[f"nDCG@{depth}"] = measures.ndcg(ranked, question.gold_edges, k=depth)
        if linked := measures.linked_gold(question.gold_edges):
            values[f"nDCG@{depth} linked"] = measures.ndcg(ranked, linked, k=depth)
        for k in cutoffs:
            values[f"edge R@{k}"] = measures.gold_edge_recall(ranked, question.gold_edges, k=k)
    if question.table_id is not None:
        rank = measures.table_rank(ranked, question.table_id)
        for k in (k for k in TABLE_CUTOFFS if k <= depth):
            values[f"table R@{k}"] = float(rank is not None and rank <= k)
    ranking = tuple((edge_id, edge.score) for edge_id, edge in zip(ranked, edges, strict=True))
    return QuestionResult(question.question_id, values, latency_ms, ranking, answer_rank)


def summarise(
    rows: Sequence[QuestionResult],
    questions: Sequence[Question],
    *,
    name: str,
    samples: int = 1000,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
) -> EvaluationReport:
    """Means with intervals, latency percentiles and counts."""
    names = dict.fromkeys(measure for row in rows for measure in row.values)
    results = tuple(
        _mean(measure, [row.values[measure] for row in rows if measure in row.values], samples, seed)
        for measure in names
    )
    latencies = np.array([row.latency_ms for row in rows])
    latency = {f"p{p}": float(np.percentile(latencies, p)) for p in PERCENTILES}
    latency["mean"] = float(latencies.mean())
    return EvaluationReport(name, results, latency, _counts(rows, questions), tuple(rows), config or {})


def bootstrap_interval(
    values: Sequence[float], *, samples: int = 1000, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Percentile interval of the mean over resampled questions; same seed, same interval."""
    array = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    at_once = max(1, RESAMPLED // len(array))
    sizes = [min(at_once, samples - done) for done in range(0, samples, at_once)]
    means = np.concatenate([array[rng.integers(len(array), size=(size, len(array)))].mean(axis=1) for size in sizes])
    tail = (1 - level) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return float(low), float(high)


def _mean(name: str, values: Sequence[float], samples: int, seed: int) -> MeasureResult:
    low, high = bootstrap_interval(values, samples=samples, seed=seed)
    return MeasureResult(name, float(np.mean(values)), low, high, len(values))


def _counts(rows: Iterable[QuestionResult], questions: Sequence[Question]) -> dict[str, int]:
    return {
        "questions": len(questions),
        "without_gold_edges": sum(not question.gold_edges for question in questions),
        "without_gold_table": sum(question.table_id is None for question in questions),
        "answers_without_words": sum(not any(map(measures.normalise, q.answers)) for q in questions),
        "without_results": sum(not row.ranking for row in rows),
    }

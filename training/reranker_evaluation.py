"""How good a reranker's order is on lists that the engine found: the dev measures of `training.reranker`."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.reranker_lessons import Candidate, Lesson, Role

WEIGHTS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0)
"""Weights of the reranker beside retrieval that are tried; 0 is the order of retrieval."""
ALONE = 1e6
"""A weight at which retrieval does not count any more."""
DEPTH = 50
SEEDS = 10
"""Nodes that expansion begins from (HELIOS 4.2, b)."""


@dataclass(frozen=True, slots=True)
class ListMeasures:
    """Means over questions, of one order, from 0 to 1."""

    answer_at_2: float
    ndcg: float
    recall_at_seeds: float

    def chosen(self, role: Role) -> float:
        """What decides: for edges AR@2 and nDCG@50 alike, for nodes the gold nodes among the seeds."""
        return (self.answer_at_2 + self.ndcg) / 2 if role == "edge" else self.recall_at_seeds


def measure_orders(lessons: Sequence[Lesson], values: Sequence[NDArray[np.float32]], role: Role) -> dict[str, float]:
    """Measures of the best mixing weight, that weight, and the measures of retrieval's order.

    `values` are the reranker's logits of each lesson's first candidates; the others are as good as they were found.
    """
    by_weight = {weight: mean_measures(_orders(lessons, values, weight)) for weight in WEIGHTS}
    best = max(WEIGHTS, key=lambda weight: by_weight[weight].chosen(role))
    found, before = by_weight[best], by_weight[0.0]
    alone = mean_measures(_orders(lessons, values, ALONE))
    return {
        "score": found.chosen(role),
        "weight": best,
        "list accuracy": list_accuracy(lessons, values),
        "AR@2": found.answer_at_2,
        f"nDCG@{DEPTH}": found.ndcg,
        f"gold R@{SEEDS}": found.recall_at_seeds,
        "alone AR@2": alone.answer_at_2,
        f"alone nDCG@{DEPTH}": alone.ndcg,
        "retrieval AR@2": before.answer_at_2,
        f"retrieval nDCG@{DEPTH}": before.ndcg,
        f"retrieval gold R@{SEEDS}": before.recall_at_seeds,
    }


def mean_measures(orders: Iterable[tuple[Lesson, Sequence[Candidate]]]) -> ListMeasures:
    """The mean over lessons, each with its candidates in some order."""
    rows = [
        (
            float(any(candidate.has_answer for candidate in order[:2])),
            _ndcg(lesson, order),
            len({c.gold for c in order[:SEEDS] if c.gold >= 0}) / lesson.gold_count,
        )
        for lesson, order in orders
    ]
    answer, ndcg, recall = np.mean(rows, axis=0).tolist()
    return ListMeasures(answer, ndcg, recall)


def list_accuracy(lessons: Sequence[Lesson], values: Sequence[NDArray[np.float32]]) -> float:
    """Share of the lists with gold in them whose best gold candidate scores above all wrong ones."""
    hits = []
    for lesson, scores in zip(lessons, values, strict=True):
        read = list(zip(lesson.candidates, scores.tolist(), strict=False))
        gold = [score for candidate, score in read if candidate.gold >= 0]
        wrong = [score for candidate, score in read if candidate.gold < 0 and not candidate.has_answer]
        if gold and wrong:
            hits.append(max(gold) > max(wrong))
    return float(np.mean(hits)) if hits else 0.0


def _orders(
    lessons: Sequence[Lesson], values: Sequence[NDArray[np.float32]], weight: float
) -> Iterable[tuple[Lesson, Sequence[Candidate]]]:
    for lesson, scores in zip(lessons, values, strict=True):
        gains = np.zeros(len(lesson.candidates))
        gains[: len(scores)] = scores - scores.mean() if len(scores) else 0.0  # as search centres them (`pair_reading`)
        mixed = np.array([candidate.score for candidate in lesson.candidates]) + weight * gains
        yield lesson, [lesson.candidates[i] for i in np.argsort(-mixed, kind="stable")]


def _ndcg(lesson: Lesson, order: Sequence[Candidate]) -> float:
    ranks: dict[int, int] = {}
    for rank, candidate in enumerate(order[:DEPTH], start=1):
        if candidate.gold >= 0:
            ranks.setdefault(candidate.gold, rank)
    ideal = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(lesson.gold_count, DEPTH) + 1))
    return math.fsum(1 / math.log2(rank + 1) for rank in ranks.values()) / ideal

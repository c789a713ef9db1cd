"""What plans are worth beside the ranking: a conditional logit over the edges of a question.

One slope for the ranking's own scores and one weight for every feature of a row; the weights are written in units of
the slope, so that a bonus adds to the log-odds of the ranking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from helios.graph import Subgraph
from helios.retrieval.refinement.bonus import BONUS_FEATURES, RowBonus
from training.errors import TrainingError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BonusLesson:
    """The edges of one question: scores (E), features of their rows (E, BONUS_FEATURES), and which are gold (E)."""

    scores: Floats
    features: Floats
    gold: NDArray[np.bool_]


def bonus_lesson(subgraph: Subgraph, rows: dict[int, Floats], gold: NDArray[np.bool_]) -> BonusLesson:
    """A lesson from a subgraph and the features of the rows that plans chose."""
    nothing = np.zeros(len(BONUS_FEATURES))
    found = [nothing if s.edge.segment is None else rows.get(s.edge.segment, nothing) for s in subgraph.edges]
    return BonusLesson(np.array([s.score for s in subgraph.edges]), np.array(found), gold)


def train_row_bonus(lessons: Sequence[BonusLesson], *, decay: float) -> RowBonus:
    """Maximise the mean log-probability of the gold edges; questions without gold, or with nothing else, say nothing.

    Raises TrainingError if no question is left.
    """
    useful = [lesson for lesson in lessons if lesson.gold.any() and not lesson.gold.all()]
    if not useful:
        raise TrainingError("the row bonus needs questions with gold edges among what retrieval found")
    start = np.append(1.0, np.zeros(len(BONUS_FEATURES)))
    found: Any = minimize(_loss, start, args=(useful, decay), jac=True, method="L-BFGS-B")
    slope = max(float(found.x[0]), 0.1)
    return RowBonus(found.x[1:] / slope)


def _loss(weights: Floats, lessons: Sequence[BonusLesson], decay: float) -> tuple[float, Floats]:
    """The negative mean log-probability of gold with a penalty for leaving (1, 0, ...), and its gradient."""
    away = weights - np.append(1.0, np.zeros(len(weights) - 1))
    loss, gradient = decay * float(away @ away), 2 * decay * away
    for lesson in lessons:
        sums = weights[0] * lesson.scores + lesson.features @ weights[1:]
        likely = np.exp(sums - sums.max())
        likely /= likely.sum()
        gold = np.where(lesson.gold, likely, 0.0)
        loss -= float(np.log(gold.sum() + 1e-12)) / len(lessons)
        error = (likely - gold / (gold.sum() + 1e-12)) / len(lessons)
        gradient += np.append(error @ lesson.scores, error @ lesson.features)
    return loss, gradient

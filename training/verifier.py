"""The recipe for the verifier: a calibrated regression that tells evidence from noise among retrieved edges.

An edge is evidence when it is gold, or when it names a gold row whose passage is not asked for. Only train
questions are learned from; the same lessons give the same weights.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.errors import EvaluationError
from helios.retrieval.refinement.scorer import VERIFIER_FEATURES, Verifier


@dataclass(frozen=True, slots=True)
class VerifierLesson:
    """Features (edges, VERIFIER_FEATURES) of one question's edges and which of them are evidence (edges)."""

    features: NDArray[np.float64]
    evidence: NDArray[np.bool_]


def train_verifier(lessons: Iterable[VerifierLesson], *, decay: float = 1e-3, steps: int = 30) -> Verifier:
    """Fit by Newton steps on all edges, which leaves the probabilities calibrated in the mean.

    Raises EvaluationError if there is no evidence, or nothing else.
    """
    found = list(lessons)
    if not found:
        raise EvaluationError("the verifier needs questions with edges")
    rows = np.concatenate([lesson.features for lesson in found])
    wanted = np.concatenate([lesson.evidence for lesson in found]).astype(np.float64)
    if not 0 < wanted.mean() < 1:
        raise EvaluationError("the verifier needs edges that are evidence and edges that are not")
    design = np.column_stack([rows, np.ones(len(rows))])
    weights = np.zeros(design.shape[1])
    weights[-1] = np.log(wanted.mean() / (1 - wanted.mean()))
    ridge = decay * np.append(np.ones(len(VERIFIER_FEATURES)), 0.0)
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-(design @ weights)))
        gradient = design.T @ (chance - wanted) / len(wanted) + ridge * weights
        curvature = (design.T * (chance * (1 - chance))) @ design / len(wanted) + np.diag(ridge + 1e-9)
        move = np.linalg.solve(curvature, gradient)
        weights -= move
        if np.abs(move).max() < 1e-8:
            break
    return Verifier(weights[:-1], float(weights[-1]))


def calibration_error(verifier: Verifier, lessons: Iterable[VerifierLesson], *, bins: int = 10) -> float:
    """The mean distance between predicted and observed shares of evidence, over bins of equal count."""
    found = list(lessons)
    chances = np.concatenate([verifier.probabilities(lesson.features) for lesson in found])
    wanted = np.concatenate([lesson.evidence for lesson in found])
    order = np.argsort(chances)
    gaps = [abs(chances[part].mean() - wanted[part].mean()) for part in np.array_split(order, bins) if len(part)]
    return float(np.mean(gaps))

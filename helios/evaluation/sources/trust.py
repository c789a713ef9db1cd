"""Does a confidence mean what it says? Tenths of what was said against what was right, over what was answered.

Every measure counts queries alike, whether they would be shown as an answer or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 500
"""How many times the answers are drawn to say what error chance makes."""
Pair = tuple[float, bool]
"""What was said (0 where there was no query), and whether it was right."""


@dataclass(frozen=True, slots=True)
class Tenth:
    """Questions whose confidence lies in one tenth."""

    low: float
    count: int
    said: float
    """Mean confidence."""
    right: float
    """Share that was right."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How far a confidence can be trusted."""

    tenths: tuple[Tenth, ...]
    """From the surest, without those that are empty."""
    calibration_error: float
    """Mean distance between said and right over tenths, each weighted by its questions (ECE)."""
    error_by_chance: float
    """What that error would be in the mean if everything that was said held: few questions alone make some."""
    precision_of_half: float
    """Share of right ones among the surest half of all questions."""
    answered_at_88: float
    """The largest share of questions, the surest first, of which at least 88 % are right."""


def trust(pairs: Sequence[Pair]) -> Trust:
    """Figures over all questions; ValueError for none."""
    if not pairs:
        raise ValueError("no questions")
    said, right = np.array([one for one, _ in pairs]), np.array([one for _, one in pairs], float)
    place = np.minimum(9, (said * 10 + 1e-9).astype(int))
    tenths = [
        Tenth(k / 10, int(here.sum()), float(said[here].mean()), float(right[here].mean()))
        for k in range(9, -1, -1)
        if (here := place == k).any()
    ]
    draws = (np.random.default_rng(0).random((DRAWS, len(said))) < said).astype(float)
    order = np.argsort(-said, kind="stable")
    precision = np.cumsum(right[order]) / np.arange(1, len(pairs) + 1)
    last = np.append(np.diff(said[order]) != 0, True)
    enough = np.flatnonzero((precision >= 0.88) & last)
    return Trust(
        tuple(tenths), _error(right - said, place), float(np.mean([_error(draw - said, place) for draw in draws])),
        float(precision[(len(pairs) + 1) // 2 - 1]),
        float((enough[-1] + 1) / len(pairs)) if len(enough) else 0.0,
    )  # fmt: skip


def _error(beyond: NDArray[np.float64], place: NDArray[np.int64]) -> float:
    """The calibration error of what was right less what was said (N), by tenths (N)."""
    return float(np.abs(np.bincount(place, beyond, minlength=10)).sum() / len(beyond))

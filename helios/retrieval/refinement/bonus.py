"""What the plans of a question are worth to the rows that they choose, in the log-odds of the ranking.

A regression fitted on train questions beside the ranking's own scores (`training.row_bonus`), so that it only gives
what the ranking does not know already.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.retrieval.refinement.columns import Kind
from helios.retrieval.refinement.planning import FEATURES, Plan

BONUS = Path(__file__).parent / "weights" / "rows.json"
BONUS_FEATURES = ("strength", "order", "hint", "head", "share", "votes")
_UNLIKELY = 0.02
"""Probability of a plan up to which it says nothing for its rows."""
_HINT, _HEAD = FEATURES.index("hint"), FEATURES.index("head_share")


def bonus_features(plans: Sequence[Plan], chances: NDArray[np.float64]) -> dict[int, NDArray[np.float64]]:
    """(BONUS_FEATURES) of every segment that a plan chooses; `chances` are the plans' probabilities (plans).

    `strength` grows with the probability of the row's best plan; `order`, `hint` and `head` are the strength where
    that plan compares nothing but the order of rows, where the header has a word that the cue hints at, and where
    the word after the cue stands in the header. `share` and `votes` are of all plans, by probability and by count.
    """
    choosing: dict[int, list[int]] = {}
    for number, plan in enumerate(plans):
        for segment in plan.segments:
            choosing.setdefault(segment, []).append(number)
    total = max(1e-9, float(chances.sum()))
    found = {}
    for segment, numbers in choosing.items():
        best = max(numbers, key=lambda number: float(chances[number]))
        plan = plans[best]
        strength = max(0.0, float(np.log((chances[best] + _UNLIKELY / 2) / _UNLIKELY)))
        marks = (1.0, float(plan.column.kind is Kind.ORDER), plan.features[_HINT], plan.features[_HEAD])
        shares = (float(chances[numbers].sum()) / total, len(numbers) / len(plans))
        found[segment] = np.array([*(strength * mark for mark in marks), *shares])
    return found


@dataclass(frozen=True, slots=True)
class RowBonus:
    """Weights (BONUS_FEATURES), in log-odds of the ranking."""

    weights: NDArray[np.float64]

    @classmethod
    def load(cls, path: Path | None = None) -> "RowBonus":
        """The shipped weights, or those of a file; ModelError if they do not fit."""
        path = path or BONUS
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(np.array([float(found["weights"][name]) for name in BONUS_FEATURES]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{path}: not the weights of a row bonus ({error})") from None

    def save(self, path: Path, **about: Any) -> None:
        """Write the weights by name, with what they were trained on."""
        path.parent.mkdir(parents=True, exist_ok=True)
        named = dict(zip(BONUS_FEATURES, (round(float(w), 6) for w in self.weights), strict=True))
        path.write_text(json.dumps({"weights": named, **about}, indent=2) + "\n", encoding="utf-8")

    def of(self, plans: Sequence[Plan], chances: NDArray[np.float64]) -> dict[int, float]:
        """What each segment that a plan chooses gains; never less than nothing."""
        found = bonus_features(plans, chances)
        return {segment: max(0.0, float(values @ self.weights)) for segment, values in found.items()}

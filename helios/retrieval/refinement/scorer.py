"""How likely a plan chooses the right row, and how likely an edge is evidence: two small trained models.

Both come from `training.aggregation` and `training.verifier`; their files say what they were trained on.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.trees import Trees
from helios.retrieval.refinement.planning import FEATURES

PLANS = Path(__file__).parent / "weights" / "plans.txt"
VERIFIER = Path(__file__).parent / "weights" / "verifier" / "verifier.json"


@dataclass(frozen=True, slots=True)
class PlanScorer:
    """A small boosted forest over a plan's features."""

    trees: Trees

    @classmethod
    def load(cls, path: Path | None = None) -> "PlanScorer":
        """The shipped forest, or that of a file; ModelError if it cannot be read or has other features."""
        trees = Trees.read(path or PLANS)
        if trees.features != FEATURES:
            raise ModelError(f"{path or PLANS}: was trained on other features; train it again with helios train")
        return cls(trees)

    def scores(self, features: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """The probability of each plan (plans), to choose a gold row."""
        if not features:
            return np.zeros(0)
        return self.trees.probabilities(np.asarray(features, np.float32))


VERIFIER_FEATURES = ("gap", "gain", "star_rank", "star_gap", "star_size", "link", "alone")


@dataclass(frozen=True, slots=True)
class Verifier:
    """A calibrated regression on an edge's place in its star and on what its passage adds."""

    weights: NDArray[np.float64]
    bias: float

    @classmethod
    def load(cls, path: Path | None = None) -> "Verifier":
        """The shipped weights, or those of a file; ModelError if they do not fit."""
        path = path or VERIFIER
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            weights = np.array([float(found["weights"][name]) for name in VERIFIER_FEATURES])
            return cls(weights, float(found["bias"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{path}: not a verifier ({error})") from None

    def save(self, path: Path, **about: Any) -> None:
        """Write the weights by name, with what they were trained on."""
        path.parent.mkdir(parents=True, exist_ok=True)
        named = dict(zip(VERIFIER_FEATURES, (round(float(w), 6) for w in self.weights), strict=True))
        path.write_text(json.dumps({"weights": named, "bias": round(self.bias, 6), **about}, indent=2) + "\n")

    def probabilities(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of every edge (edges) to be evidence, from its features (edges, VERIFIER_FEATURES)."""
        found: NDArray[np.float64] = 1 / (1 + np.exp(-(features @ self.weights + self.bias)))
        return found

"""The learned ranking: gradient-boosted trees over the features of edges.

Trees read scores from several sources and how an edge stands among its rivals, and cost a millisecond a question.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.card import ModelCard, read_card
from helios.models.trees import Trees

FloatArray = NDArray[np.float32]
SHIPPED = Path(__file__).parent / "weights"
TREES = "trees.txt"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What turns the trees' sums into log-odds."""

    slope: float = 1.0
    intercept: float = 0.0


@dataclass(frozen=True, slots=True)
class EdgeRanker:
    """Trees whose sums become the log-odds that an edge is evidence."""

    trees: Trees
    calibration: Calibration = Calibration()

    def score(self, features: FloatArray) -> FloatArray:
        """For each row of (C, features) the log-odds: above 0 the edge is more likely evidence than not."""
        sums = self.trees.sums(features).astype(np.float32)
        return np.float32(self.calibration.slope) * sums + np.float32(self.calibration.intercept)

    @classmethod
    def load(cls, folder: Path, *, role: str, features: tuple[str, ...]) -> tuple["EdgeRanker", ModelCard]:
        """Read a folder and its card; ModelError if it is missing, damaged or of other features than the given ones."""
        card = read_card(folder, role)
        card.check(folder, features=list(features))
        trees = Trees.read(folder / TREES)
        if trees.features != features:
            raise ModelError(f"{folder / TREES}: these trees were grown on other features than their card names")
        try:
            return cls(trees, Calibration(**card.values["calibration"])), card
        except (KeyError, TypeError) as error:
            raise ModelError(f"{folder}: its card does not hold the calibration of a {role} ({error})") from error

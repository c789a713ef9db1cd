"""The fused score of an edge and what it is worth as log-odds, before any learned ranking or without one.

Its weights were chosen on train questions, and BM25's parameters with them; the scale was fitted beside them. All of it
is one small model (`weights/fused/card.json`), which the rankings learned above it name as what they need.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.index.search import Fusion
from helios.models.card import read_card

FloatArray = NDArray[np.float32]
SHIPPED = Path(__file__).parent / "weights" / "fused"
ROLE = "fused score"


@dataclass(frozen=True, slots=True)
class FusedScale:
    """Log-odds that an edge is evidence, from its rank and how far its fused score is below the question's best."""

    intercept: float
    gap: float
    """For one unit of distance to the best, divided by the root of the best score: long questions have large gaps."""
    rank: float
    """For the logarithm of the rank, counted from 1."""

    def log_odds(self, fused: FloatArray, ranks: NDArray[np.int64], *, best: float) -> FloatArray:
        """Of edges with these fused scores (C) and ranks, counted from 0, where the question's best score is `best`."""
        gaps = (np.float32(best) - fused) / np.float32(np.sqrt(max(best, 1.0)))
        scores = self.intercept + self.gap * gaps + self.rank * np.log1p(ranks)
        return np.asarray(scores, np.float32)


@dataclass(frozen=True, slots=True)
class FusedModel:
    """The fused score with its scale."""

    fusion: Fusion
    scale: FusedScale

    @property
    def name(self) -> dict[str, float]:
        """What models that learn from fused scores need: the weights, by name."""
        fusion = self.fusion
        return {name: getattr(fusion, name) for name in ("segment", "star", "lexical", "k1", "b")}

    @classmethod
    def load(cls, folder: Path | None = None) -> "FusedModel":
        """The packaged one, or that of a folder; ModelError if it is missing or damaged."""
        values = read_card(folder or SHIPPED, ROLE).values
        try:
            return cls(Fusion(**values["fusion"]), FusedScale(**values["scale"]))
        except (KeyError, TypeError) as error:
            raise ModelError(
                f"{folder or SHIPPED}: its card does not hold the numbers of a {ROLE} ({error})"
            ) from error

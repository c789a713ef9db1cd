"""The ranker of candidate answers: gradient-boosted trees over `helios.reading.features`, and how sure it is."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.card import read_card
from helios.models.trees import Trees
from helios.reading.features import FEATURES, READ_FEATURES

FloatArray = NDArray[np.float32]
WEIGHTS = Path(__file__).parent / "weights"
ROLE = "reader"
TREES = "ranker.txt"


@dataclass(frozen=True, slots=True)
class Calibration:
    """From scores to chances, fitted on held-out questions."""

    temperature: float = 1.0
    """Scores are divided by this before they become shares of one."""
    slope: float = 1.0
    intercept: float = 0.0
    """The chance of an answer is the logistic function of intercept + slope · log-odds of its share."""


class AnswerRanker:
    """Scores candidates; holds no state, so threads may share it."""

    def __init__(self, trees: Trees, calibration: Calibration) -> None:
        self.trees = trees
        self.calibration = calibration
        self._columns = [FEATURES.index(name) for name in trees.features]

    @classmethod
    def load(cls, folder: Path | None = None, *, encoder: str | None = None) -> "AnswerRanker":
        """The packaged weights, or those of a folder; ModelError for damaged or foreign files.

        `encoder` is the fingerprint of the one whose similarities it will see.
        """
        folder = folder or WEIGHTS
        card = read_card(folder, ROLE)
        if encoder is not None:
            card.check(folder, encoder=encoder)
        trees = Trees.read(folder / TREES)
        unknown = [name for name in trees.features if name not in FEATURES]
        if unknown:
            raise ModelError(f"{folder}: was trained on {unknown[0]!r}, which this version lacks; train it again")
        try:
            return cls(trees, Calibration(**card.values["calibration"]))
        except (KeyError, TypeError) as error:
            raise ModelError(f"{folder}: its card lacks the calibration ({error}); train it again") from error

    def score(self, features: FloatArray) -> FloatArray:
        """One score a candidate (N) from (N, F); higher is better."""
        return self.trees.sums(features[:, self._columns]).astype(np.float32)

    @property
    def reads_passages(self) -> bool:
        """Whether it was trained beside a reader of passages."""
        return any(FEATURES[column] in READ_FEATURES for column in self._columns)

    def shares(self, scores: FloatArray) -> FloatArray:
        """Scores (N) of one question's candidates as shares of one."""
        return shares_of(scores, self.calibration.temperature)

    def confidence(self, share: float) -> float:
        """The chance that an answer with this share is right."""
        return chance(share, self.calibration)


def shares_of(scores: FloatArray, temperature: float) -> FloatArray:
    """The softmax of scores (N) over a temperature."""
    scaled = np.exp((scores - scores.max(initial=-np.inf)) / temperature)
    shares: FloatArray = (scaled / scaled.sum()).astype(np.float32)
    return shares


def chance(share: float, calibration: Calibration) -> float:
    """The calibrated chance of a share of one."""
    share = min(max(share, 1e-6), 1 - 1e-6)
    odds = calibration.intercept + calibration.slope * float(np.log(share / (1 - share)))
    return float(1 / (1 + np.exp(-odds)))

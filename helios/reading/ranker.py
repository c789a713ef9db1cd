"""The ranker of candidate answers: gradient-boosted trees over `helios.reading.features`, and how sure it is."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.reading.features import FEATURES, SPAN_FEATURES

FloatArray = NDArray[np.float32]
WEIGHTS = Path(__file__).parent / "weights"
TREES, SETTINGS, SPANS = "ranker.txt", "ranker.json", "spans.safetensors"


@dataclass(frozen=True, slots=True)
class Calibration:
    """From scores to chances, fitted on held-out questions."""

    temperature: float = 1.0
    """Scores are divided by this before they become shares of one."""
    slope: float = 1.0
    intercept: float = 0.0
    """The chance of an answer is the logistic function of intercept + slope · log-odds of its share."""


class AnswerRanker:
    """Scores candidates; safe to share between threads."""

    def __init__(self, trees: lightgbm.Booster, calibration: Calibration, *, encoder: str = "") -> None:
        self.trees = trees
        self.calibration = calibration
        self.encoder = encoder
        """Fingerprint of the encoder whose similarities the trees were trained on."""
        self._columns = [FEATURES.index(name) for name in trees.feature_name()]

    @classmethod
    def load(cls, folder: Path | None = None) -> "AnswerRanker":
        """Read what `save` wrote, by default the packaged weights; ModelError for damaged or foreign files."""
        folder = folder or WEIGHTS
        try:
            settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
            calibration = Calibration(**settings["calibration"])
            encoder = str(settings["encoder"])
            trees = lightgbm.Booster(model_file=folder / TREES)
        except (OSError, ValueError, KeyError, TypeError, lightgbm.basic.LightGBMError) as error:
            raise ModelError(f"{folder}: no readable extractive reader ({TREES}, {SETTINGS}): {error}") from error
        unknown = [name for name in trees.feature_name() if name not in FEATURES]
        if unknown:
            raise ModelError(f"{folder}: was trained on {unknown[0]!r}, which this version lacks; train it again")
        return cls(trees, calibration, encoder=encoder)

    def save(self, folder: Path) -> None:
        """Write the trees and the calibration."""
        folder.mkdir(parents=True, exist_ok=True)
        self.trees.save_model(folder / TREES)
        settings: dict[str, Any] = {"calibration": asdict(self.calibration), "encoder": self.encoder}
        (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    def score(self, features: FloatArray) -> FloatArray:
        """One score a candidate (N) from (N, F); higher is better."""
        if not len(features):
            return np.zeros(0, np.float32)
        return np.asarray(self.trees.predict(features[:, self._columns], num_threads=1), np.float32)

    @property
    def reads_spans(self) -> bool:
        """Whether it was trained beside a span model."""
        return any(FEATURES[column] in SPAN_FEATURES for column in self._columns)

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

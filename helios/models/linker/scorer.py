"""The scorer: two gradient-boosted tree models, the second sees what the first thinks of the other cells."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from helios.errors import ModelError
from helios.models.linker.features import FIRST_FEATURES, SECOND_FEATURES
from helios.models.trees import NEVER, Trees

Array = npt.NDArray[Any]
_SURE = 6.5
"""The first scorer stops adding trees for a pair whose log-odds lie further from 0."""


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """Thresholds that belong to the trained models."""

    threshold: float
    """Least final score of a link; what scores lower is NIL."""
    first_threshold: float
    """Candidates below this first score are dropped before the second scorer."""


class Scorer:
    """First and second model with their settings."""

    def __init__(self, first: Trees | None, second: Trees | None, settings: ScorerSettings) -> None:
        self._first = first
        self._second = second
        self.settings = settings

    def first(self, features: Array) -> Array:
        """float32[N] from features [N, len(FIRST_FEATURES)]."""
        return _predict(self._first, features, stop_beyond=_SURE)

    def second(self, features: Array) -> Array:
        """float32[N] from features [N, len(SECOND_FEATURES)]."""
        return _predict(self._second, features)

    def save(self, folder: Path) -> None:
        """Write `first.txt`, `second.txt` and `scorer.json`."""
        if self._first is None or self._second is None:
            raise ModelError("an untrained linker scorer cannot be saved; train it first")
        folder.mkdir(parents=True, exist_ok=True)
        self._first.save(folder / "first.txt")
        self._second.save(folder / "second.txt")
        (folder / "scorer.json").write_text(json.dumps(asdict(self.settings), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def untrained(cls) -> "Scorer":
        """A scorer that gives every pair 0.5 and drops none: for the candidates before there is a model."""
        return cls(None, None, ScorerSettings(0.0, 0.0))

    @classmethod
    def load(cls, folder: Path) -> "Scorer":
        """Read what `save` wrote; ModelError if a file is missing, damaged or of another feature set."""
        try:
            settings = ScorerSettings(**json.loads((folder / "scorer.json").read_text(encoding="utf-8")))
            first, second = Trees.read(folder / "first.txt"), Trees.read(folder / "second.txt")
        except (OSError, ValueError, TypeError) as error:
            raise ModelError(f"{folder}: linker scorer cannot be read ({error})") from error
        for model, names in ((first, FIRST_FEATURES), (second, SECOND_FEATURES)):
            if model.features != names:
                raise ModelError(f"{folder}: linker scorer was trained on other features; train it again")
        return cls(first, second, settings)


def _predict(model: Trees | None, features: Array, *, stop_beyond: float = NEVER) -> Array:
    if not len(features):
        return np.zeros(0, dtype=np.float32)
    if model is None:
        return np.full(len(features), 0.5, dtype=np.float32)
    return model.probabilities(features, stop_beyond=stop_beyond).astype(np.float32)

"""The learned ranking of edges: gradient-boosted trees over the features of `helios.retrieval.features`.

Trees read scores from several sources and how an edge stands among its rivals, and cost a millisecond a question.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError

if TYPE_CHECKING:
    import lightgbm

FloatArray = NDArray[np.float32]
SHIPPED = Path(__file__).parent / "weights" / "edge-ranker"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What turns the trees' sums into log-odds."""

    slope: float = 1.0
    intercept: float = 0.0


@dataclass(frozen=True, slots=True)
class EdgeRanker:
    """Trees and the names of the features that they were trained on, in order."""

    trees: "lightgbm.Booster"
    features: tuple[str, ...]
    calibration: Calibration = Calibration()

    def score(self, features: FloatArray) -> FloatArray:
        """For each row of (C, features) the log-odds that the edge is evidence: above 0 it rather is than not."""
        if len(features) == 0:
            return np.zeros(0, np.float32)
        sums = np.asarray(self.trees.predict(features, num_threads=1), np.float32)
        return np.float32(self.calibration.slope) * sums + np.float32(self.calibration.intercept)

    def save(self, folder: Path, *, card: dict[str, object]) -> None:
        """Write `trees.txt` and `card.json` (where the trees come from)."""
        folder.mkdir(parents=True, exist_ok=True)
        self.trees.save_model(folder / "trees.txt")
        card = {"features": list(self.features), "calibration": asdict(self.calibration), **card}
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, *, features: tuple[str, ...]) -> "EdgeRanker":
        """Read what `save` wrote; ModelError if it is missing, damaged or of other features than the given ones."""
        import lightgbm

        try:
            card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
            trained_on, calibration = tuple(card["features"]), Calibration(**card["calibration"])
            trees = lightgbm.Booster(model_file=folder / "trees.txt")
        except (OSError, ValueError, KeyError, TypeError, lightgbm.basic.LightGBMError) as error:
            raise ModelError(
                f"{folder}: no ranking that `helios train` wrote ({type(error).__name__}: {error})"
            ) from error
        if trained_on != features:
            raise ModelError(f"{folder}: was trained on other features than this version computes; train it again")
        return cls(trees, features, calibration)


def find_ranker(configured: str | None, *, features: tuple[str, ...]) -> EdgeRanker | None:
    """The configured folder's ranker, the shipped one for None, none for "none"."""
    if configured == "none":
        return None
    if configured is not None:
        return EdgeRanker.load(Path(configured).expanduser(), features=features)
    return EdgeRanker.load(SHIPPED, features=features) if SHIPPED.is_dir() else None

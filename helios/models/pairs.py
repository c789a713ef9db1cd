"""The pair model of node expansion: gradient-boosted trees over the features of `helios.retrieval.pairs`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError

if TYPE_CHECKING:
    import lightgbm

FloatArray = NDArray[np.float32]
SHIPPED = Path(__file__).parent / "weights" / "pair-model"
TREES = "trees.txt"
DRAFT_TREES = 20


@dataclass(frozen=True, slots=True)
class PairModel:
    """Trees that know the names of their features."""

    trees: "lightgbm.Booster"

    def score(self, features: FloatArray) -> FloatArray:
        """For each row of (C, features) the log-odds that the pair is evidence."""
        if len(features) == 0:
            return np.zeros(0, np.float32)
        return np.asarray(self.trees.predict(features, raw_score=True, num_threads=1), np.float32)

    def contenders(self, features: FloatArray, count: int) -> NDArray[np.int64]:
        """Numbers of the `count` rows that the first trees alone score best, ascending: the others hardly ever win.

        On 150 dev questions the best ten of 4,300 pairs were always among 1,000, for half the time of scoring all.
        """
        if len(features) <= count:
            return np.arange(len(features))
        drafts = self.trees.predict(features, raw_score=True, num_threads=1, num_iteration=DRAFT_TREES)
        return np.sort(np.argpartition(-np.asarray(drafts), count)[:count])

    def save(self, folder: Path) -> None:
        """Write `trees.txt`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.trees.save_model(folder / TREES)

    @classmethod
    def load(cls, folder: Path | str | None, *, features: tuple[str, ...]) -> "PairModel":
        """Read what `save` wrote, None for the weights in the package; ModelError for other features than the given."""
        import lightgbm

        folder = SHIPPED if folder is None else Path(folder).expanduser()
        try:
            trees = lightgbm.Booster(model_file=folder / TREES)
            card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
            raise ModelError(f"{folder}: no readable pair model ({error})") from error
        if tuple(card.get("settings", {}).get("features", ())) != features:
            raise ModelError(f"{folder}: was trained on other features than this version computes; train it again")
        return cls(trees)

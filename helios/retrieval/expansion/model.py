"""The pair model of node expansion: gradient-boosted trees over the features of pairs that the graph lacks."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.models.card import read_card
from helios.models.trees import Trees

FloatArray = NDArray[np.float32]
SHIPPED = Path(__file__).parent / "weights"
ROLE = "expander"
TREES = "trees.txt"
DRAFT_TREES = 20


@dataclass(frozen=True, slots=True)
class PairModel:
    """Trees that know the names of their features; holds no state, so threads may share it."""

    trees: Trees

    def score(self, features: FloatArray) -> FloatArray:
        """For each row of (C, features) the log-odds that the pair is evidence."""
        return self.trees.sums(features).astype(np.float32)

    def contenders(self, features: FloatArray, count: int) -> NDArray[np.int64]:
        """Numbers of the `count` rows that the first trees alone score best, ascending: the others hardly ever win.

        On 150 dev questions the best ten of 4,300 pairs were always among 1,000, for half the time of scoring all.
        """
        if len(features) <= count:
            return np.arange(len(features))
        drafts = self.trees.sums(features, trees=DRAFT_TREES)
        return np.sort(np.argpartition(-drafts, count)[:count])

    @classmethod
    def load(cls, folder: Path | str | None, *, features: tuple[str, ...], **needs: object) -> "PairModel":
        """Read a folder, None for the weights in the package; ModelError for other features than the given ones."""
        place = SHIPPED if folder is None else Path(folder).expanduser()
        read_card(place, ROLE).check(place, features=list(features), **needs)
        return cls(Trees.read(place / TREES))

"""Sums and maxima over many ranges of rows at once."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]


def running(values: FloatArray) -> FloatArray:
    """Sums of the first 0, 1, ..., L rows: (L + 1, ...); the sum of rows [a, b) is `r[b] - r[a]`."""
    sums: FloatArray = np.concatenate([np.zeros_like(values[:1], shape=(1, *values.shape[1:])), values.cumsum(axis=0)])
    return sums


class RangeMax:
    """Maxima of rows [first, last) of a matrix (L, Q); an empty range gives zeros."""

    def __init__(self, values: FloatArray) -> None:
        self._levels = [values]
        while (width := 1 << len(self._levels)) <= len(values):
            below = self._levels[-1]
            self._levels.append(np.maximum(below[: len(values) - width + 1], below[width // 2 :]))

    def __call__(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> FloatArray:
        """(N, Q) from N ranges."""
        result = np.zeros((len(first), self._levels[0].shape[1]), np.float32)
        levels = np.where(last > first, np.log2(np.maximum(1, last - first)).astype(np.int64), -1)
        for level in np.unique(levels[levels >= 0]):
            here = np.flatnonzero(levels == level)
            values, width = self._levels[level], 1 << int(level)
            result[here] = np.maximum(values[first[here]], values[last[here] - width])
        return result

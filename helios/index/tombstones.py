"""Deleted nodes of one part, and what they take from the statistics of its tokens.

A file `tombstones/PART-REVISION.npz` holds `nodes`, int64 ascending, and for every token number of the encoder that
some deleted node has, `tokens` int32 ascending and `counts` int32: how many deleted nodes have it. Format 1 wrote
`nodes` alone, as a .npy.
"""

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from helios.errors import IndexFormatError


@dataclass(frozen=True, slots=True, eq=False)
class Tombstones:
    """Deleted nodes (D) by their numbers in the part, and in how many of them each token stands (V of these)."""

    nodes: NDArray[np.int64]
    tokens: NDArray[np.int32]
    counts: NDArray[np.int32]

    @classmethod
    def none(cls) -> "Tombstones":
        """Nothing is deleted."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))

    @classmethod
    def read(cls, path: Path) -> "Tombstones":
        """Read a file; IndexFormatError if that fails or it says something impossible."""
        try:
            with path.open("rb") as file:
                found = np.load(file, allow_pickle=False)
                if isinstance(found, np.ndarray):
                    return cls(_checked(found, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
                tokens, counts = _checked(found["tokens"], np.int32), found["counts"]
                if tokens.shape != counts.shape or counts.dtype != np.int32 or np.any(counts < 0):
                    raise ValueError("tokens and their counts do not fit together")
                return cls(_checked(found["nodes"], np.int64), tokens, counts)
        except (
            OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error, SyntaxError, TokenError, TypeError,
            RuntimeError, OverflowError, MemoryError, struct.error,
        ) as error:  # fmt: skip
            raise IndexFormatError(f"{path}: cannot read the tombstones ({error})") from None

    def write(self, path: Path) -> None:
        """Write the file that `read` reads; the bytes depend on nothing else."""
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, nodes=self.nodes, tokens=self.tokens, counts=self.counts)

    def joined(self, nodes: NDArray[np.int64], frequencies: NDArray[np.int64]) -> "Tombstones":
        """These and more nodes, none of which is here yet; of those `frequencies` (vocabulary) have each token."""
        total = self.frequencies(len(frequencies)) + frequencies
        held = np.flatnonzero(total)
        return Tombstones(
            np.union1d(self.nodes, nodes).astype(np.int64), held.astype(np.int32), total[held].astype(np.int32)
        )

    def frequencies(self, vocabulary: int) -> NDArray[np.int64]:
        """In how many deleted nodes each token stands: (vocabulary); IndexFormatError for a token beyond it."""
        if len(self.tokens) and self.tokens[-1] >= vocabulary:
            raise IndexFormatError(
                f"the tombstones name token {self.tokens[-1]}, the encoder has {vocabulary}; run `helios index fsck`"
            )
        found = np.zeros(vocabulary, np.int64)
        np.add.at(found, self.tokens, self.counts)
        return found

    def __len__(self) -> int:
        return len(self.nodes)


def _checked(numbers: Any, kind: type) -> Any:
    """Ascending numbers of the right type, none below 0."""
    if numbers.ndim != 1 or numbers.dtype != np.dtype(kind):
        raise ValueError(f"{numbers.dtype}{list(numbers.shape)}, expected a list of {np.dtype(kind)}")
    if len(numbers) and (np.any(np.diff(numbers) <= 0) or numbers[0] < 0):
        raise ValueError("numbers must be unique, ascending and not below 0")
    return numbers

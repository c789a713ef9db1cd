"""The dense route: passages whose vector is near that of a mention in its column and table.

A vector is the mean of the encoder's token vectors. Knows texts only. P passages, M mentions, D dimensions.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from helios.errors import IndexFormatError
from helios.models.encoder import TokenEncoder

Array = npt.NDArray[Any]
TOP = 8
"""Passages found for one mention."""
_BLOCK = 16_384
"""Texts encoded, and compared, at a time."""


class DenseTitles:
    """Finds titles, with or without more text, by meaning: exact nearest neighbours by cosine."""

    def __init__(self, vectors_PD: Array, encoder: TokenEncoder) -> None:
        self._vectors_PD = vectors_PD
        self._encoder = encoder

    @classmethod
    def build(cls, titles: Sequence[str], folder: Path, encoder: TokenEncoder) -> "DenseTitles":
        """Encode titles in passage-number order into `folder` (float16, 2 D bytes each) and open it."""
        folder.mkdir(parents=True, exist_ok=True)
        vectors_PD = np.empty((len(titles), encoder.dimension), dtype=np.float16)
        for first in range(0, len(titles), _BLOCK):
            vectors_PD[first : first + _BLOCK] = mean_vectors(encoder, titles[first : first + _BLOCK])
        np.save(folder / "vectors.npy", vectors_PD)
        return cls.open(folder, encoder)

    @classmethod
    def open(cls, folder: Path, encoder: TokenEncoder) -> "DenseTitles":
        """Memory-map a built index; IndexFormatError if it is missing or of another dimension."""
        try:
            vectors_PD = np.load(folder / "vectors.npy", mmap_mode="r")
        except (OSError, ValueError) as error:
            raise IndexFormatError(f"{folder}: not an index of title vectors ({error}); prepare it again") from error
        if vectors_PD.shape[1] != encoder.dimension:
            raise IndexFormatError(
                f"{folder}: vectors of {vectors_PD.shape[1]} dimensions, the encoder has {encoder.dimension}; "
                "prepare it again"
            )
        return cls(vectors_PD, encoder)

    def find(self, mentions: Sequence[str]) -> list[Array]:
        """int32[≤ TOP] per mention: the passages with the nearest titles, the nearest first."""
        if not mentions or not len(self._vectors_PD):
            return [np.zeros(0, dtype=np.int32) for _ in mentions]
        queries_MD = mean_vectors(self._encoder, mentions)
        scores_MK = np.zeros((len(mentions), 0), dtype=np.float32)
        numbers_MK = np.zeros((len(mentions), 0), dtype=np.int32)
        for first, block_BD in self._blocks():
            scores_MB = queries_MD @ block_BD.T
            best_MK = np.argpartition(-scores_MB, min(TOP, scores_MB.shape[1]) - 1, axis=1)[:, :TOP]
            scores_MK = np.concatenate((scores_MK, np.take_along_axis(scores_MB, best_MK, axis=1)), axis=1)
            numbers_MK = np.concatenate((numbers_MK, (best_MK + first).astype(np.int32)), axis=1)
        order_MK = np.argsort(-scores_MK, axis=1, kind="stable")[:, :TOP]
        return list(np.take_along_axis(numbers_MK, order_MK, axis=1))

    def _blocks(self) -> Iterator[tuple[int, Array]]:
        for first in range(0, len(self._vectors_PD), _BLOCK):
            yield first, np.asarray(self._vectors_PD[first : first + _BLOCK], dtype=np.float32)


def mean_vectors(encoder: TokenEncoder, texts: Sequence[str]) -> Array:
    """Unit vectors float32 (n, D): the means of the texts' token vectors."""
    means = np.zeros((len(texts), encoder.dimension), dtype=np.float32)
    for number, tokens in enumerate(encoder.encode_documents(texts)):
        means[number] = tokens.vectors.mean(axis=0)
    norms: Array = np.linalg.norm(means, axis=1, keepdims=True)
    return np.asarray(means / np.maximum(norms, 1e-9))

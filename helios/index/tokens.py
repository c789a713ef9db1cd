"""The token store of one part: every node's token vectors, quantised, memory-mapped.

Files (N nodes, T tokens, D dimensions): `offsets` int64 (N + 1), `codes` uint16 (T), `scales` uint8 (T),
`residuals` uint8 (T, D · bits / 8), `frequencies` int32 (nodes that hold each token of the vocabulary),
`tokens.json`, and `pooled` int8 (P, D), the direction of the mean token vector of every passage, which older builds
lack. Codes are numbers of centroids of the codebook (`helios.index.quantiser`), which lies in a folder of its
own: parts share it. Nodes are numbered segments first, then passages.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import IndexFormatError
from helios.index.arrays import check_below, check_offsets, map_array
from helios.index.durable import read_record
from helios.index.maxsim import StoredTokens
from helios.index.quantiser import FloatArray, QuantisedVectors, Quantiser


def write_tokens(chunks: Sequence[Path], quantiser: Quantiser, directory: Path, *, encoder: dict[str, Any]) -> int:
    """Join chunks, in order, into the arrays of a token store; bounded by one chunk of memory.

    A chunk is an .npz of `counts` (tokens of each of its nodes), `frequencies`, `codes`, `scales`, `residuals` and, if
    the store is to have them, `pooled`.
    Returns the number of tokens.
    """
    directory.mkdir(parents=True, exist_ok=True)
    counts = [_load(chunk, "counts") for chunk in chunks]
    offsets = np.zeros(sum(map(len, counts)) + 1, np.int64)
    if counts:
        np.cumsum(np.concatenate(counts), out=offsets[1:])
    total = int(offsets[-1])
    shapes = {
        "codes": ((total,), np.uint16),
        "scales": ((total,), np.uint8),
        "residuals": ((total, quantiser.residual_bytes), np.uint8),
    }
    for name, (shape, dtype) in shapes.items():
        if total == 0:
            np.save(directory / f"{name}.npy", np.zeros(shape, dtype))
            continue
        joined = np.lib.format.open_memmap(directory / f"{name}.npy", "w+", dtype, shape)
        _fill(joined, (_load(chunk, name) for chunk in chunks))
        joined.flush()
    np.save(directory / "offsets.npy", offsets)
    pooled = [_load(chunk, "pooled") for chunk in chunks if _has(chunk, "pooled")]
    if chunks and len(pooled) == len(chunks):
        np.save(directory / "pooled.npy", np.concatenate(pooled))
    frequencies = [_load(chunk, "frequencies") for chunk in chunks]
    np.save(directory / "frequencies.npy", np.sum(frequencies, axis=0, dtype=np.int32))
    description = {
        "nodes": len(offsets) - 1,
        "tokens": total,
        "dimension": quantiser.dimension,
        "bits": quantiser.bits,
    }
    (directory / "tokens.json").write_text(json.dumps(description | {"encoder": encoder}, indent=2) + "\n")
    return total


def pooled_codes(vectors: Sequence[FloatArray], dimension: int) -> NDArray[np.int8]:
    """The directions of the mean token vectors of texts (n, D) as whole numbers: (texts, D)."""
    means = np.array([own.mean(axis=0) for own in vectors], np.float32).reshape(len(vectors), dimension)
    largest = np.maximum(np.abs(means).max(axis=1, keepdims=True), 1e-9)
    return np.asarray(np.rint(127.0 * means / largest), np.int8)


def _has(chunk: Path, name: str) -> bool:
    with np.load(chunk) as arrays:
        return name in arrays


def _load(chunk: Path, name: str) -> NDArray[Any]:
    with np.load(chunk) as arrays:
        array: NDArray[Any] = arrays[name]
    return array


def _fill(target: NDArray[Any], pieces: Iterable[NDArray[Any]]) -> None:
    start = 0
    for piece in pieces:
        target[start : start + len(piece)] = piece
        start += len(piece)


class TokenStore:
    """Memory-mapped token vectors of one part, which refer to the codebook of a folder."""

    def __init__(
        self, directory: Path, *, codebook: Path | None = None, opened: dict[Path, Quantiser] | None = None
    ) -> None:
        """`codebook` is its folder, this one by default; one that is `opened` already is shared."""
        try:
            description = read_record(directory / "tokens.json")
            self.encoder: dict[str, Any] = dict(description["encoder"])
            _, _, bits = self.encoder["name"], self.encoder["fingerprint"], int(description["bits"])
        except (KeyError, ValueError, TypeError) as error:
            raise IndexFormatError(f"{directory / 'tokens.json'}: damaged ({error}); build the index again") from None
        shared, place = {} if opened is None else opened, codebook or directory
        self.quantiser = shared.setdefault(place, shared.get(place) or Quantiser.open(place, bits=bits))
        self.offsets: NDArray[np.int64] = map_array(directory / "offsets.npy", np.int64)
        self.codes: NDArray[np.uint16] = map_array(directory / "codes.npy", np.uint16)
        self.scales: NDArray[np.uint8] = map_array(directory / "scales.npy", np.uint8, len(self.codes))
        self.frequencies: NDArray[np.int32] = np.zeros(0, np.int32)
        if len(self.offsets) > 1:  # of no nodes, a store holds a single 0
            self.frequencies = map_array(directory / "frequencies.npy", np.int32)
        width = self.quantiser.residual_bytes
        self.residuals: NDArray[np.uint8] = map_array(directory / "residuals.npy", np.uint8, len(self.codes), width)
        self.pooled: NDArray[np.int8] | None = None
        if (directory / "pooled.npy").is_file():
            self.pooled = map_array(directory / "pooled.npy", np.int8, None, self.quantiser.dimension)
        check_offsets(directory / "offsets.npy", self.offsets, len(self.codes))
        check_below(directory / "codes.npy", self.codes, len(self.quantiser.centroids_KD))
        check_below(directory / "frequencies.npy", self.frequencies, len(self.offsets))

    @property
    def node_count(self) -> int:
        return len(self.offsets) - 1

    @property
    def token_count(self) -> int:
        return len(self.codes)

    @property
    def stored(self) -> StoredTokens:
        """The arrays as kernels take them."""
        return StoredTokens(self.offsets, self.codes, self.residuals, self.scales, self.quantiser.scale_levels)

    def vectors(self, node: int) -> FloatArray:
        """The stored approximation of a node's token vectors: (tokens, D)."""
        return self.decode(int(self.offsets[node]), int(self.offsets[node + 1]))

    def decode(self, start: int, stop: int) -> FloatArray:
        """The stored approximation of tokens [start, stop): (stop - start, D)."""
        return self.quantiser.decode(self.quantised(start, stop))

    def quantised(self, start: int, stop: int) -> QuantisedVectors:
        """Codes, scales and residuals of tokens [start, stop)."""
        span = slice(start, stop)
        return QuantisedVectors(self.codes[span], self.scales[span], self.residuals[span])

"""Token vectors as a centroid plus a rotated, scaled residual of one or two bits a dimension.

A vector x (unit length, D dimensions) is stored as y = R x ≈ c + s · level[code], with R a random rotation
(so that residual dimensions look alike and Gaussian), c a near centroid (of a two-level tree), and s a scale of
its own. Levels are the Lloyd-Max levels of a unit Gaussian; scales are quantised to 256 levels. With 384 dimensions
a token takes 2 + 1 + 48 bytes at one bit and 2 + 1 + 96 at two.

Shape legend: T tokens, D dimensions, K centroids, Q query tokens (lanes), G groups of four residual bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from helios.errors import ConfigError, IndexFormatError
from helios.index.arrays import check_finite, check_offsets, map_array
from helios.index.products import products

FloatArray = NDArray[np.float32]
ByteArray = NDArray[np.uint8]

LEVELS = {
    1: np.array([-0.79788456, 0.79788456], np.float32),
    2: np.array([-1.51041, -0.45278, 0.45278, 1.51041], np.float32),
}
"""Reconstruction levels that minimise the squared error of a unit Gaussian (Lloyd-Max)."""
THRESHOLD = 0.98159
"""Where the two-bit quantiser changes from its inner to its outer level."""
MAX_CENTROIDS = 1 << 16
SCALES = 256
ARRAYS = ("rotation", "coarse", "cell_offsets", "centroids", "scale_levels")
BLOCK = 32768
"""Vectors quantised at once: enough to fill the cells of the centroid tree, small enough for 100 MB."""


@dataclass(frozen=True, slots=True)
class QuantisedVectors:
    """Codes (T) uint16, scales (T) uint8 and residuals (T, D · bits / 8) uint8 of T vectors."""

    codes: NDArray[np.uint16]
    scales: ByteArray
    residuals: ByteArray


@dataclass(frozen=True, slots=True)
class Quantiser:
    """The codebook of one part of an index: fitted once, then fixed."""

    rotation_DD: FloatArray
    coarse_AD: FloatArray
    cell_offsets: NDArray[np.int64]
    """Centroids of cell a are numbers [cell_offsets[a], cell_offsets[a + 1])."""
    centroids_KD: FloatArray
    scale_levels: FloatArray
    bits: int

    @property
    def dimension(self) -> int:
        return int(self.rotation_DD.shape[0])

    @property
    def residual_bytes(self) -> int:
        return self.dimension * self.bits // 8

    @classmethod
    def fit(
        cls, sample_TD: FloatArray, *, centroids: int, bits: int, seed: int = 0, iterations: int = 6
    ) -> "Quantiser":
        """Fit rotation, a tree of about `centroids` centroids, and scale levels to a sample of unit vectors."""
        if bits not in LEVELS:
            raise ValueError(f"bits must be 1 or 2, not {bits}")
        if centroids > MAX_CENTROIDS:
            raise ConfigError(
                f"advanced.encoder.centroids={centroids}: their numbers have 16 bits, set {MAX_CENTROIDS} or less"
            )
        rotation = random_rotation(sample_TD.shape[1], seed)
        rotated = np.ascontiguousarray(sample_TD @ rotation.T, dtype=np.float32)
        branching = max(1, round(centroids**0.5))
        coarse = _kmeans(rotated, branching, seed=seed + 1, iterations=iterations)
        members = _grouped(_nearest(rotated, coarse), len(coarse))
        cells = [
            _kmeans(rotated[rows], branching, seed=seed + 2, iterations=iterations) if len(rows) else coarse[[cell]]
            for cell, rows in enumerate(members)
        ]
        offsets = np.concatenate([[0], np.cumsum([len(cell) for cell in cells])]).astype(np.int64)
        unscaled = cls(rotation, coarse, offsets, np.concatenate(cells), np.ones(256, np.float32), bits)
        for centroid, rows in enumerate(_grouped(unscaled.nearest(rotated), len(unscaled.centroids_KD))):
            if len(rows):  # a mean is shorter than its direction: residuals from it are a tenth smaller
                unscaled.centroids_KD[centroid] = rotated[rows].mean(axis=0)
        residual = unscaled.centroids_KD[unscaled.nearest(rotated)]
        np.subtract(rotated, residual, out=residual)
        scales = np.sqrt(np.einsum("td,td->t", residual, residual) / unscaled.dimension)
        levels = np.maximum(np.quantile(scales, (np.arange(256) + 0.5) / 256), 1e-6)
        return replace(unscaled, scale_levels=levels.astype(np.float32))

    def nearest(self, rotated_TD: FloatArray) -> NDArray[np.int64]:
        """A near centroid for every (already rotated) vector: the best cell, then the best centroid of that cell."""
        chosen = np.empty(len(rotated_TD), np.int64)
        for cell, rows in enumerate(_grouped(_nearest(rotated_TD, self.coarse_AD), len(self.coarse_AD))):
            if len(rows):
                first, last = int(self.cell_offsets[cell]), int(self.cell_offsets[cell + 1])
                chosen[rows] = first + _nearest(rotated_TD[rows], self.centroids_KD[first:last])
        return chosen

    def encode(self, vectors_TD: FloatArray) -> QuantisedVectors:
        """Quantise unit vectors (T, D), block by block."""
        count = len(vectors_TD)
        codes = np.empty(count, np.uint16)
        scales = np.empty(count, np.uint8)
        residuals = np.empty((count, self.residual_bytes), np.uint8)
        edges = (self.scale_levels[1:] + self.scale_levels[:-1]) / 2
        for start in range(0, count, BLOCK):
            block = slice(start, min(count, start + BLOCK))
            rotated = vectors_TD[block] @ self.rotation_DD.T
            codes[block] = chosen = self.nearest(rotated)
            spread = np.empty(len(rotated), np.float32)
            pack_residuals(rotated, self.centroids_KD, chosen, self.bits, spread, residuals[block])
            scales[block] = np.searchsorted(edges, spread)
        return QuantisedVectors(codes, scales, residuals)

    def decode(self, quantised: QuantisedVectors) -> FloatArray:
        """The stored approximation of the original vectors, rotated back: (T, D)."""
        return products(self.decode_rotated(quantised), self.rotation_DD.T)

    def decode_rotated(self, quantised: QuantisedVectors) -> FloatArray:
        """The stored approximation as it is kept, rotated: (T, D)."""
        rotated = LEVELS[self.bits][_unpack(quantised.residuals, self.bits)]
        rotated *= self.scale_levels[quantised.scales][:, None]
        rotated += self.centroids_KD[quantised.codes]
        return rotated

    def residual_table(self, queries_QD: FloatArray) -> FloatArray:
        """(G, 16, Q): for each group of four residual bits and each pattern, its product with each (rotated) query."""
        per_group = 4 // self.bits
        patterns = np.arange(16)[:, None] >> (self.bits * np.arange(per_group))[None, :] & (2**self.bits - 1)
        levels = LEVELS[self.bits][patterns]
        grouped = queries_QD.reshape(len(queries_QD), -1, per_group)
        return np.ascontiguousarray(np.einsum("qgd,pd->gpq", grouped, levels), dtype=np.float32)

    def save(self, directory: Path) -> None:
        """Write the codebook's arrays into a directory."""
        for name, array in self.arrays().items():
            np.save(directory / f"{name}.npy", array)

    @classmethod
    def open(cls, directory: Path, *, bits: int) -> "Quantiser":
        """Map a codebook; IndexFormatError for files that are damaged or do not belong together."""
        if bits not in LEVELS:
            raise IndexFormatError(f"{directory}: damaged: residuals of {bits} bits; build the index again")
        places = {name: directory / f"{name}.npy" for name in ARRAYS}
        rotation = np.array(map_array(places["rotation"], np.float32, None, None))
        dimension = len(rotation)
        if rotation.shape != (dimension, dimension):
            raise IndexFormatError(
                f"{places['rotation']}: damaged: {rotation.shape} is no rotation; build the index again"
            )
        coarse = np.array(map_array(places["coarse"], np.float32, None, dimension))
        found = cls(
            rotation,
            coarse,
            np.array(map_array(places["cell_offsets"], np.int64, len(coarse) + 1)),
            map_array(places["centroids"], np.float32, None, dimension),
            np.array(map_array(places["scale_levels"], np.float32, SCALES)),
            bits,
        )
        check_offsets(places["cell_offsets"], found.cell_offsets, len(found.centroids_KD))
        for name in ("rotation", "coarse", "centroids", "scale_levels"):
            check_finite(places[name], found.arrays()[name])
        return found

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The codebook's arrays by the names of their files."""
        return {
            "rotation": self.rotation_DD,
            "coarse": self.coarse_AD,
            "cell_offsets": self.cell_offsets,
            "centroids": self.centroids_KD,
            "scale_levels": self.scale_levels,
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, bits: int) -> "Quantiser":
        """The codebook that `arrays` describes."""
        a = arrays
        return cls(a["rotation"], a["coarse"], a["cell_offsets"], a["centroids"], a["scale_levels"], bits)


def random_rotation(dimension: int, seed: int) -> FloatArray:
    """A random orthogonal matrix (D, D), the same for the same seed."""
    gaussian = np.random.default_rng(seed).standard_normal((dimension, dimension))
    q, r = np.linalg.qr(gaussian)
    return np.ascontiguousarray(q * np.sign(np.diag(r)), dtype=np.float32)


def centroid_count(tokens: int) -> int:
    """How many centroids a part with so many tokens gets: about 4·√tokens as a power of four, 16 to 16,384.

    A small part gets more, up to one for eight tokens and 4,096: its bounds would tell little apart with a few hundred.
    """
    if tokens <= 0:
        return 16
    wanted = max(4 * np.sqrt(tokens), min(tokens / 8, 4096))
    return int(np.clip(4 ** int(np.log2(wanted) / 2), 16, 16384))


def _kmeans(vectors_TD: FloatArray, count: int, *, seed: int, iterations: int) -> FloatArray:
    """Spherical k-means; a set smaller than `count` gets one centroid per vector at most."""
    import faiss

    count = min(count, max(1, len(vectors_TD)))
    kmeans = faiss.Kmeans(
        vectors_TD.shape[1], count, niter=iterations, seed=seed, spherical=True, min_points_per_centroid=1,
        max_points_per_centroid=2**31 - 1,
    )  # fmt: skip
    kmeans.train(vectors_TD)
    return np.array(kmeans.centroids, np.float32)


def _means(vectors_TD: FloatArray, chosen_T: NDArray[np.int64], centroids_KD: FloatArray) -> FloatArray:
    """The mean of the vectors that chose each centroid: shorter than 1, so that residuals are smaller."""
    sums = np.zeros_like(centroids_KD)
    np.add.at(sums, chosen_T, vectors_TD)
    counts = np.bincount(chosen_T, minlength=len(centroids_KD))[:, None]
    return np.where(counts > 0, sums / np.maximum(counts, 1), centroids_KD).astype(np.float32)


def _nearest(vectors_TD: FloatArray, centroids_KD: FloatArray) -> NDArray[np.int64]:
    """The centroid at the smallest distance."""
    half_squares = np.einsum("kd,kd->k", centroids_KD, centroids_KD) / 2
    return np.asarray(np.argmax(vectors_TD @ centroids_KD.T - half_squares, axis=1), np.int64)


def _grouped(cells_T: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """For each cell the positions that fell into it, ascending."""
    order = np.argsort(cells_T, kind="stable")
    return np.split(order, np.searchsorted(cells_T[order], np.arange(1, count)))


@njit(nogil=True, cache=True, boundscheck=False)
def pack_residuals(
    vectors_TD: np.ndarray, centroids_KD: np.ndarray, chosen_T: np.ndarray, bits: int, spread_T: np.ndarray,
    packed: np.ndarray,
) -> None:  # fmt: skip
    """Root mean square of each residual, and its level numbers: dimension d at bit d · bits of the row, low first."""
    dimension = vectors_TD.shape[1]
    per_byte = 8 // bits
    for t in range(vectors_TD.shape[0]):
        centroid = centroids_KD[chosen_T[t]]
        energy = np.float32(0.0)
        for d in range(dimension):
            difference = vectors_TD[t, d] - centroid[d]
            energy += difference * difference
        spread = np.float32(np.sqrt(energy / dimension))
        spread_T[t] = spread
        threshold = np.float32(THRESHOLD) * spread
        for byte in range(packed.shape[1]):
            value = 0
            for slot in range(per_byte):
                d = byte * per_byte + slot
                difference = vectors_TD[t, d] - centroid[d]
                code = 1 if difference > 0 else 0
                if bits == 2:
                    outer = abs(difference) > threshold
                    code = (3 if outer else 2) if code else (0 if outer else 1)
                value |= code << (slot * bits)
            packed[t, byte] = value


def _unpack(residuals: ByteArray, bits: int) -> NDArray[np.uint8]:
    """The level number of each dimension: (T, D)."""
    flags = np.unpackbits(residuals, axis=1, bitorder="little")
    if bits == 1:
        return flags
    return (flags[:, 0::2] | flags[:, 1::2] << 1).astype(np.uint8)

"""Token vectors as a centroid plus a rotated, scaled residual of one or two bits a dimension.

A vector x (unit length, D dimensions) is stored as y = R x ≈ c + s · level[code], with R a random rotation
(so that residual dimensions look alike and Gaussian), c the nearest centroid, and s a scale of its own.
Levels are the Lloyd-Max levels of a unit Gaussian; scales are quantised to 256 levels. With 384 dimensions
a token takes 2 + 1 + 48 bytes at one bit and 2 + 1 + 96 at two.

Shape legend: T tokens, D dimensions, K centroids, Q query tokens (lanes), G groups of four residual bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.errors import IndexFormatError

FloatArray = NDArray[np.float32]
ByteArray = NDArray[np.uint8]

LEVELS = {
    1: np.array([-0.79788456, 0.79788456], np.float32),
    2: np.array([-1.51041, -0.45278, 0.45278, 1.51041], np.float32),
}
"""Reconstruction levels that minimise the squared error of a unit Gaussian (Lloyd-Max)."""
THRESHOLD = 0.98159
"""Where the two-bit quantiser changes from its inner to its outer level."""
BLOCK = 4096
"""Vectors quantised at once, so that the work stays in the cache."""


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
        """Fit rotation, centroids (k-means on the sphere) and scale levels to a sample of unit vectors."""
        import faiss

        if bits not in LEVELS:
            raise ValueError(f"bits must be 1 or 2, not {bits}")
        dimension = sample_TD.shape[1]
        rotation = random_rotation(dimension, seed)
        rotated = np.ascontiguousarray(sample_TD @ rotation.T, dtype=np.float32)
        centroids = min(centroids, max(1, len(rotated)))
        kmeans = faiss.Kmeans(
            dimension, centroids, niter=iterations, seed=seed + 1, spherical=True,
            min_points_per_centroid=1, max_points_per_centroid=2**31 - 1, verbose=False,
        )  # fmt: skip
        kmeans.train(rotated)
        quantiser = cls(rotation, np.array(kmeans.centroids, np.float32), np.ones(256, np.float32), bits)
        probe = rotated[: 8 * BLOCK]
        nearest = quantiser._nearest_of()
        chosen = np.concatenate(
            [nearest(probe[start : start + BLOCK]) for start in range(0, len(probe), BLOCK)]
        )
        scales = np.sqrt(((probe - quantiser.centroids_KD[chosen]) ** 2).mean(axis=1))
        levels = np.quantile(scales, (np.arange(256) + 0.5) / 256).astype(np.float32)
        return cls(rotation, quantiser.centroids_KD, np.maximum(levels, 1e-6), bits)

    def _nearest_of(self) -> Callable[[FloatArray], NDArray[np.int64]]:
        """A function that gives the centroid of largest inner product for (already rotated) vectors.

        Products are made in bf16 where the processor has it: a centroid chosen wrongly among near equals costs
        nothing, since residuals are taken from the centroid that was chosen.
        """
        import torch

        from helios.models.runtime import supports_bf16

        kind = torch.bfloat16 if supports_bf16() else torch.float32
        table = torch.from_numpy(np.array(self.centroids_KD.T, np.float32)).to(kind)

        def nearest(rotated_TD: FloatArray) -> NDArray[np.int64]:
            products = torch.from_numpy(rotated_TD).to(kind) @ table
            best: NDArray[np.int64] = products.float().numpy().argmax(axis=1)  # eight times as fast as in bf16
            return best

        return nearest

    def encode(self, vectors_TD: FloatArray) -> QuantisedVectors:
        """Quantise unit vectors (T, D), a cache-sized block at a time."""
        count = len(vectors_TD)
        codes = np.empty(count, np.uint16)
        scales = np.empty(count, np.uint8)
        residuals = np.empty((count, self.residual_bytes), np.uint8)
        edges = (self.scale_levels[1:] + self.scale_levels[:-1]) / 2
        nearest = self._nearest_of()
        for start in range(0, count, BLOCK):
            block = slice(start, min(count, start + BLOCK))
            rotated = vectors_TD[block] @ self.rotation_DD.T
            chosen = nearest(rotated)
            rotated -= self.centroids_KD[chosen]
            spread = np.sqrt(np.einsum("td,td->t", rotated, rotated) / self.dimension)
            codes[block] = chosen
            scales[block] = np.searchsorted(edges, spread)
            residuals[block] = _pack(rotated, spread, self.bits)
        return QuantisedVectors(codes, scales, residuals)

    def decode(self, quantised: QuantisedVectors) -> FloatArray:
        """The stored approximation of the original vectors, rotated back: (T, D)."""
        steps = LEVELS[self.bits][_unpack(quantised.residuals, self.bits)]
        rotated = self.centroids_KD[quantised.codes] + self.scale_levels[quantised.scales][:, None] * steps
        return np.ascontiguousarray(rotated @ self.rotation_DD, dtype=np.float32)

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
        """Read a codebook; the centroids are memory-mapped."""
        try:
            return cls(
                np.load(directory / "rotation.npy"),
                np.load(directory / "centroids.npy", mmap_mode="r"),
                np.load(directory / "scale_levels.npy"),
                bits,
            )
        except (OSError, ValueError) as error:
            raise IndexFormatError(
                f"{directory}: no readable codebook ({error}); rebuild the index"
            ) from error

    def arrays(self) -> dict[str, FloatArray]:
        """The codebook's arrays by the names of their files."""
        return {
            "rotation": self.rotation_DD,
            "centroids": self.centroids_KD,
            "scale_levels": self.scale_levels,
        }


def random_rotation(dimension: int, seed: int) -> FloatArray:
    """A random orthogonal matrix (D, D), the same for the same seed."""
    gaussian = np.random.default_rng(seed).standard_normal((dimension, dimension))
    q, r = np.linalg.qr(gaussian)
    return np.ascontiguousarray(q * np.sign(np.diag(r)), dtype=np.float32)


def centroid_count(tokens: int) -> int:
    """How many centroids a part with so many tokens gets: about 2·√tokens as a power of two, 16 to 4,096.

    More would bound scores better, but finding the nearest of them would cost more than the encoder itself.
    """
    if tokens <= 0:
        return 16
    return int(np.clip(2 ** int(np.floor(np.log2(2 * np.sqrt(tokens)))), 16, 4096))


def _pack(residual_TD: FloatArray, scales_T: FloatArray, bits: int) -> ByteArray:
    """Bits of each dimension, least significant first: dimension d sits at bit d · bits of the row."""
    positive = residual_TD > 0
    if bits == 1:
        return np.packbits(positive, axis=1, bitorder="little")
    outer = np.abs(residual_TD) > THRESHOLD * scales_T[:, None]
    # codes 0..3 = outer negative, inner negative, inner positive, outer positive
    low = positive == outer
    pairs = np.stack([low, positive], axis=2).reshape(len(residual_TD), -1)
    return np.packbits(pairs, axis=1, bitorder="little")


def _unpack(residuals: ByteArray, bits: int) -> NDArray[np.uint8]:
    """The level number of each dimension: (T, D)."""
    flags = np.unpackbits(residuals, axis=1, bitorder="little")
    if bits == 1:
        return flags
    return (flags[:, 0::2] | flags[:, 1::2] << 1).astype(np.uint8)

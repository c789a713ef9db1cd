"""Small token stores with random vectors, for the tests of the kernels and of search."""

from collections.abc import Callable

import numpy as np
import pytest

from helios.index.quantiser import Quantiser
from helios.index.tokens import TokenStore, write_tokens

VOCABULARY = 50
DIMENSION = 32


@pytest.fixture(scope="session")
def unit_vectors() -> Callable[[np.random.Generator, int], np.ndarray]:
    """Random unit vectors (count, 32)."""

    def make(random: np.random.Generator, count: int) -> np.ndarray:
        vectors = random.standard_normal((count, DIMENSION)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return make


@pytest.fixture(scope="session")
def make_store(tmp_path_factory, unit_vectors) -> Callable[..., TokenStore]:
    """A store of nodes with so many tokens each, written in chunks of `chunk` nodes."""
    fitted: dict[int, Quantiser] = {}

    def make(lengths: list[int], *, bits: int = 2, seed: int = 0, chunk: int = 3) -> TokenStore:
        if bits not in fitted:
            fitted[bits] = Quantiser.fit(unit_vectors(np.random.default_rng(0), 600), centroids=16, bits=bits)
        directory = tmp_path_factory.mktemp("store")
        random = np.random.default_rng(seed)
        stored = fitted[bits].encode(unit_vectors(random, sum(lengths)))
        held = [np.unique(random.integers(VOCABULARY, size=length)) for length in lengths]
        ends = np.cumsum([0, *lengths])
        chunks = []
        for first in range(0, len(lengths), chunk):
            last = min(first + chunk, len(lengths))
            span = slice(ends[first], ends[last])
            chunks.append(directory / f"chunk-{first:04d}.npz")
            np.savez(
                chunks[-1],
                counts=np.array(lengths[first:last], np.int64),
                frequencies=np.bincount(np.concatenate(held[first:last]), minlength=VOCABULARY).astype(np.int32),
                codes=stored.codes[span],
                scales=stored.scales[span],
                residuals=stored.residuals[span],
            )
        encoder = {"name": "random", "fingerprint": "0"}
        assert write_tokens(chunks, fitted[bits], directory / "tokens", encoder=encoder) == sum(lengths)
        return TokenStore(directory / "tokens")

    return make

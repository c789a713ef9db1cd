"""Quantised vectors: what is stored is close to what was given, and tables give the same products as decoding."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helios.errors import ConfigError, IndexFormatError
from helios.index.quantiser import QuantisedVectors, Quantiser, centroid_count, random_rotation

D = 32


def unit_vectors(seed: int, count: int, dimension: int = D) -> np.ndarray:
    """Vectors around a few directions, as token vectors are."""
    random = np.random.default_rng(seed)
    directions = np.random.default_rng(99).standard_normal((8, dimension))
    vectors = directions[random.integers(8, size=count)] + 0.7 * random.standard_normal((count, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module", params=[1, 2])
def quantiser(request) -> Quantiser:
    return Quantiser.fit(unit_vectors(0, 2000), centroids=16, bits=request.param)


def test_the_rotation_is_orthogonal_and_the_same_for_a_seed():
    rotation = random_rotation(D, 3)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(D), atol=1e-5)
    np.testing.assert_array_equal(rotation, random_rotation(D, 3))
    assert not np.array_equal(rotation, random_rotation(D, 4))


@given(stored=arrays(np.uint8, st.tuples(st.integers(1, 5), st.just(D // 4)), elements=st.integers(0, 255)))
@settings(deadline=None)
def test_packing_is_the_inverse_of_unpacking(quantiser, stored):
    """With no rotation, one centroid at 0 and scale 1, decoding gives the levels themselves."""
    plain = replace(
        quantiser,
        rotation_DD=np.eye(D, dtype=np.float32),
        centroids_KD=np.zeros_like(quantiser.centroids_KD),
        scale_levels=np.ones(256, np.float32),
    )
    stored = stored[:, : plain.residual_bytes].copy()
    stored[:, 0] |= 3  # a row of inner levels alone has another scale
    codes, scales = np.zeros(len(stored), np.uint16), np.zeros(len(stored), np.uint8)
    levels = plain.decode(QuantisedVectors(codes, scales, stored))
    np.testing.assert_array_equal(plain.encode(levels).residuals, stored)


@given(seed=st.integers(1, 2**32 - 1), count=st.integers(1, 60))
@settings(max_examples=25, deadline=None)
def test_a_round_trip_keeps_the_direction(quantiser, seed, count):
    vectors = unit_vectors(seed, count)
    decoded = quantiser.decode(quantiser.encode(vectors))
    error = ((vectors - decoded) ** 2).sum(axis=1)
    nearest = quantiser.centroids_KD[quantiser.encode(vectors).codes] @ quantiser.rotation_DD
    residual = ((vectors - nearest) ** 2).sum(axis=1)
    # Lloyd-Max leaves 0.363 (one bit) and 0.117 (two bits) of a Gaussian's variance; single vectors scatter around it
    assert np.all(error <= residual * {1: 0.8, 2: 0.5}[quantiser.bits])
    if count >= 30:
        assert error.mean() <= residual.mean() * {1: 0.45, 2: 0.17}[quantiser.bits]


def test_two_bits_are_closer_than_one():
    vectors = unit_vectors(5, 500)
    errors = []
    for bits in (1, 2):
        fitted = Quantiser.fit(unit_vectors(0, 2000), centroids=16, bits=bits)
        errors.append(float(((vectors - fitted.decode(fitted.encode(vectors))) ** 2).sum(axis=1).mean()))
    assert errors[1] < 0.5 * errors[0]


def test_sizes_are_as_promised(quantiser):
    stored = quantiser.encode(unit_vectors(1, 10))
    assert stored.codes.dtype == np.uint16
    assert stored.codes.max() < len(quantiser.centroids_KD)
    assert stored.scales.dtype == stored.residuals.dtype == np.uint8
    assert stored.residuals.shape == (10, quantiser.residual_bytes) == (10, D * quantiser.bits // 8)


def test_a_vector_is_stored_alike_whatever_is_beside_it(quantiser):
    vectors = unit_vectors(2, 50)
    together = quantiser.encode(vectors)
    for start in (0, 17, 49):
        alone = quantiser.encode(vectors[start : start + 1])
        np.testing.assert_array_equal(alone.residuals[0], together.residuals[start])


def test_no_vectors(quantiser):
    stored = quantiser.encode(np.zeros((0, D), np.float32))
    assert quantiser.decode(stored).shape == (0, D)


@given(seed=st.integers(0, 2**32 - 1), queries=st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_tables_give_the_products_of_decoded_vectors(quantiser, seed, queries):
    stored = quantiser.encode(unit_vectors(seed, 20))
    questions = unit_vectors(seed + 1, queries)
    rotated = questions @ quantiser.rotation_DD.T
    table = quantiser.residual_table(rotated)
    assert table.shape == (2 * quantiser.residual_bytes, 16, queries)
    groups = np.stack([stored.residuals & 15, stored.residuals >> 4], axis=2).reshape(len(stored.codes), -1)
    residual = table[np.arange(table.shape[0])[None, :], groups].sum(axis=1)
    centroid = quantiser.centroids_KD[stored.codes] @ rotated.T
    products = centroid + quantiser.scale_levels[stored.scales][:, None] * residual
    np.testing.assert_allclose(products, quantiser.decode(stored) @ questions.T, atol=2e-5)


def test_a_codebook_survives_the_disk(quantiser, tmp_path):
    quantiser.save(tmp_path)
    opened = Quantiser.open(tmp_path, bits=quantiser.bits)
    vectors = unit_vectors(9, 100)
    stored, again = quantiser.encode(vectors), opened.encode(vectors)
    for name in QuantisedVectors.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(stored, name), getattr(again, name))


def test_a_damaged_codebook_is_named(quantiser, tmp_path):
    quantiser.save(tmp_path)
    (tmp_path / "centroids.npy").write_bytes(b"nothing")
    with pytest.raises(IndexFormatError, match=rf"{tmp_path}/centroids\.npy: damaged"):
        Quantiser.open(tmp_path, bits=1)


def test_fitting_is_deterministic():
    one, two = (Quantiser.fit(unit_vectors(0, 500), centroids=16, bits=1) for _ in range(2))
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])


@pytest.mark.parametrize("count", [1, 3])
def test_fewer_vectors_than_centroids(count):
    vectors = unit_vectors(0, count)
    fitted = Quantiser.fit(vectors, centroids=16, bits=2)
    assert 1 <= len(fitted.centroids_KD) <= 16
    np.testing.assert_allclose(fitted.decode(fitted.encode(vectors)), vectors, atol=0.05)


def test_bits_that_there_are_not():
    with pytest.raises(ValueError, match="bits must be 1 or 2"):
        Quantiser.fit(unit_vectors(0, 10), centroids=4, bits=3)


def test_more_centroids_than_codes_can_name():
    with pytest.raises(
        ConfigError, match="advanced.encoder.centroids=65537: their numbers have 16 bits, set 65536 or less"
    ):
        Quantiser.fit(unit_vectors(0, 10), centroids=65537, bits=1)


@given(tokens=st.integers(-1, 10**12))
def test_centroid_counts_fit_their_codes_and_never_fall(tokens):
    assert 16 <= centroid_count(tokens) <= 2**16
    assert centroid_count(tokens) <= centroid_count(2 * max(1, tokens))


@pytest.mark.parametrize(("tokens", "count"), [(0, 16), (40_000, 4096), (2_000_000, 4096), (30_000_000, 16384)])
def test_small_parts_get_enough_centroids_to_tell_texts_apart(tokens, count):
    assert centroid_count(tokens) == count

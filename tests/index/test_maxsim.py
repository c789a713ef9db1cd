"""The kernels against plain numpy: MaxSim of nodes and edges, from codes and tables as from decoded vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.index.maxsim import LANES, edge_scores, node_bounds, node_maxima, padded, star_bounds

LENGTHS = st.lists(st.integers(1, 11), min_size=1, max_size=7)


@pytest.mark.parametrize(("count", "lanes"), [(0, 32), (1, 32), (32, 32), (33, 64), (64, 64), (65, 96), (128, 128)])
def test_lanes(count, lanes):
    assert LANES == 32
    assert padded(count) == lanes


def maxima_of(store, questions, nodes):
    """The kernel's m_q(X) of some nodes, the way search calls it."""
    quantiser = store.quantiser
    rotated = np.zeros((padded(len(questions)), questions.shape[1]), np.float32)
    rotated[: len(questions)] = questions @ quantiser.rotation_DD.T
    out = np.empty((len(nodes), len(rotated)), np.float32)
    node_maxima(
        np.array(nodes, np.int64), store.offsets, store.codes, store.residuals, store.scales, quantiser.scale_levels,
        np.ascontiguousarray(quantiser.centroids_KD @ rotated.T), quantiser.residual_table(rotated), out, 0, len(nodes),
    )  # fmt: skip
    return out


@given(
    lengths=LENGTHS, bits=st.sampled_from([1, 2]), seed=st.integers(0, 999), queries=st.sampled_from([1, 31, 33, 65])
)
@settings(max_examples=25, deadline=None)
def test_node_maxima_are_those_of_decoded_vectors(make_store, unit_vectors, lengths, bits, seed, queries):
    store = make_store(lengths, bits=bits, seed=seed)
    questions = unit_vectors(np.random.default_rng(seed + 1), queries)
    nodes = list(range(len(lengths)))[::-1]
    found = maxima_of(store, questions, nodes)
    expected = [(questions @ store.vectors(node).T).max(axis=1) for node in nodes]
    np.testing.assert_allclose(found[:, :queries], expected, atol=2e-5)


@given(lengths=LENGTHS, bits=st.sampled_from([1, 2]), seed=st.integers(0, 999))
@settings(max_examples=25, deadline=None)
def test_factored_maxsim_is_maxsim_of_the_concatenation(make_store, unit_vectors, lengths, bits, seed):
    store = make_store(lengths, bits=bits, seed=seed)
    random = np.random.default_rng(seed + 1)
    questions, weights = unit_vectors(random, 5), np.zeros(LANES, np.float32)
    weights[:5] = random.random(5) + 0.1
    left = random.integers(-1, len(lengths), 10)
    right = np.where(left < 0, random.integers(0, len(lengths), 10), random.integers(-1, len(lengths), 10))
    out = np.empty(10, np.float32)
    edge_scores(left, right, maxima_of(store, questions, range(len(lengths))), weights, out)
    for score, *pair in zip(out, left, right, strict=True):
        edge = np.concatenate([store.vectors(int(node)) for node in pair if node >= 0])
        expected = float(weights[:5] @ (questions @ edge.T).max(axis=1))
        assert score == pytest.approx(expected, abs=1e-4)


@given(lengths=LENGTHS, seed=st.integers(0, 999))
@settings(max_examples=25, deadline=None)
def test_bounds_are_maxima_over_centroids_alone(make_store, lengths, seed):
    store = make_store(lengths, seed=seed)
    table = np.random.default_rng(seed).integers(0, 256, (len(store.quantiser.centroids_KD), LANES)).astype(np.uint8)
    bounds = np.full((len(lengths) + 1, LANES), 7, np.uint8)
    bounds[-1] = 0
    nodes = np.arange(len(lengths), dtype=np.int64)
    node_bounds(nodes, store.offsets, store.codes, table, bounds, 0, len(nodes))
    for node in nodes:
        codes = store.codes[store.offsets[node] : store.offsets[node + 1]]
        np.testing.assert_array_equal(bounds[node], table[codes].max(axis=0))
    left = np.arange(len(lengths), dtype=np.int32)
    right = np.full(len(lengths), len(lengths), np.int32)
    right[0] = len(lengths) - 1
    sums = np.empty((len(left), 3), np.float32)
    star_bounds(np.arange(len(left) + 1), left, right, bounds, sums, 0, len(left))
    expected = np.maximum(bounds[left], bounds[right]).astype(np.int64).sum(axis=1)
    np.testing.assert_array_equal(sums[:, 0], expected)
    np.testing.assert_array_equal(sums[:, 1], bounds[left].astype(np.int64).sum(axis=1))
    np.testing.assert_array_equal(sums[:, 2], expected)


def test_kernels_leave_other_ranges_alone(make_store):
    store = make_store([2, 2, 2, 2])
    table = np.ones((len(store.quantiser.centroids_KD), LANES), np.uint8)
    bounds = np.full((5, LANES), 9, np.uint8)
    node_bounds(np.arange(4), store.offsets, store.codes, table, bounds, 1, 3)
    assert bounds[:, 0].tolist() == [9, 1, 1, 9, 9]

"""The kernels against plain numpy: MaxSim of nodes and edges, from codes and tables as from decoded vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.index.maxsim import (
    EdgeBounds,
    FusedWeights,
    edge_scores,
    largest_above,
    node_bounds,
    node_maxima,
    star_bounds,
)
from helios.index.products import padded
from helios.index.simd import LANES
from helios.index.visible import Numbering, VisibleTokens

LENGTHS = st.lists(st.integers(1, 11), min_size=1, max_size=7)


@pytest.mark.parametrize(("count", "lanes"), [(0, 32), (1, 32), (32, 32), (33, 64), (64, 64), (65, 96), (128, 128)])
def test_lanes(count, lanes):
    assert LANES == 32
    assert padded(count) == lanes


def tables_of(store, questions, weights):
    """What search makes of question vectors for the kernels."""
    padded_QD = np.zeros((padded(len(questions)), questions.shape[1]), np.float32)
    padded_QD[: len(questions)] = questions
    nodes = np.arange(store.node_count)
    numbering = Numbering.of([nodes], [nodes[:0]], [len(nodes)], [len(nodes)], whole=True)
    visible = VisibleTokens([store], numbering, store.frequencies, counted=len(nodes))
    (tables,), step = visible.tables(padded_QD, weights)
    return tables, step


def maxima_of(store, questions, nodes):
    """The kernel's m_q(X) of some nodes, in rows from the last to the first, and how far off each may be: products with
    residuals are summed in whole steps.
    """
    tables, _ = tables_of(store, questions, np.ones(padded(len(questions)), np.float32))
    slack = float(tables.pattern_step * len(tables.patterns_GPQ) / 2 * store.quantiser.scale_levels.max()) + 1e-5
    out = np.empty((len(nodes), padded(len(questions))), np.float32)
    rows = np.arange(len(nodes))[::-1]
    node_maxima(np.array(nodes, np.int64), rows, store.stored, tables, out, 0, len(nodes))
    return out[::-1], slack


@given(
    lengths=LENGTHS, bits=st.sampled_from([1, 2]), seed=st.integers(0, 999), queries=st.sampled_from([1, 31, 33, 65])
)
@settings(max_examples=25, deadline=None)
def test_node_maxima_are_those_of_decoded_vectors(make_store, unit_vectors, lengths, bits, seed, queries):
    store = make_store(lengths, bits=bits, seed=seed)
    questions = unit_vectors(np.random.default_rng(seed + 1), queries)
    nodes = list(range(len(lengths)))[::-1]
    found, slack = maxima_of(store, questions, nodes)
    expected = [(questions @ store.vectors(node).T).max(axis=1) for node in nodes]
    np.testing.assert_allclose(found[:, :queries], expected, atol=slack)


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
    maxima, slack = maxima_of(store, questions, range(len(lengths)))
    edge_scores(left, right, maxima, weights, out)
    for score, *pair in zip(out, left, right, strict=True):
        edge = np.concatenate([store.vectors(int(node)) for node in pair if node >= 0])
        expected = float(weights[:5] @ (questions @ edge.T).max(axis=1))
        assert score == pytest.approx(expected, abs=slack * float(weights.sum()))


@given(lengths=LENGTHS, seed=st.integers(0, 999))
@settings(max_examples=25, deadline=None)
def test_bounds_are_maxima_over_centroids_alone(make_store, lengths, seed):
    store = make_store(lengths, seed=seed)
    table = np.random.default_rng(seed).integers(0, 256, (len(store.quantiser.centroids_KD), LANES)).astype(np.uint8)
    bounds = np.full((len(lengths) + 1, LANES), 7, np.uint8)
    bounds[-1] = 0
    count = len(lengths)
    nodes = np.arange(count, dtype=np.int64)
    node_bounds(nodes, store.stored, table, 0, bounds, 0, count)
    for node in nodes:
        codes = store.codes[store.offsets[node] : store.offsets[node + 1]]
        np.testing.assert_array_equal(bounds[node], table[codes].max(axis=0))


@given(
    stars=st.lists(st.tuples(st.integers(-1, 6), st.lists(st.integers(0, 7), min_size=1, max_size=4)), max_size=6),
    seed=st.integers(0, 999), lanes=st.sampled_from([32, 64, 160]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_stars_are_summed_whole(stars, seed, lanes):
    """A star is a left node with its right ones; -1 is no left node, and each of its right nodes a star of its own."""
    random, none = np.random.default_rng(seed), 8
    bounds = np.zeros((none + 1, lanes), np.uint8)
    bounds[:none] = random.integers(0, 256, (none, lanes))
    words = np.append(random.random(none), 0.0).astype(np.float32)
    split = [(left, own) for left, rights in stars for own in ([[right] for right in rights] if left < 0 else [rights])]
    left = np.array([none if left < 0 else left for left, rights in split for _ in rights], np.int32)
    right = np.array([node for _, rights in split for node in rights], np.int32)
    starts = np.cumsum([0, *(len(rights) for _, rights in split)]).astype(np.int64)
    found = EdgeBounds(
        np.full(len(left), -1, np.int32), np.full(len(split), -1, np.int32), np.full(len(split), -1, np.int32),
        np.zeros(len(left), np.float32),
    )  # fmt: skip
    weights = FusedWeights(np.float32(0.5), np.float32(0.25), np.float32(2.0))
    star_bounds(starts, left, right, bounds, weights, words, found, 0, len(split))
    wide = bounds.astype(np.int64)
    edges = np.maximum(wide[left], wide[right]).sum(axis=1)
    np.testing.assert_array_equal(found.edges, edges)
    for star, (centre, rights) in enumerate(split):
        members = rights if centre < 0 else [centre, *rights]
        assert found.segments[star] == wide[members[0]].sum()
        assert found.stars[star] == wide[members].max(axis=0).sum()
    of_unit = np.repeat(np.arange(len(split)), np.diff(starts))
    beside = 0.25 * found.segments[of_unit] + 2.0 * found.stars[of_unit]
    np.testing.assert_allclose(found.fused, 0.5 * (edges + beside) + words[left] + words[right], rtol=1e-5)


@given(scores=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60), count=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_the_largest_are_among_those_above(scores, count):
    scores = np.array(scores, np.float32)
    chosen = largest_above(scores, min(count, len(scores)))
    assert np.all(np.diff(chosen) > 0)
    least = np.sort(scores)[::-1][: len(scores)][min(count, len(scores)) - 1]
    assert set(np.flatnonzero(scores >= least)) <= set(chosen.tolist())


def test_kernels_leave_other_ranges_alone(make_store):
    store = make_store([2, 2, 2, 2])
    table = np.ones((len(store.quantiser.centroids_KD), LANES), np.uint8)
    bounds = np.full((9, LANES), 9, np.uint8)
    node_bounds(np.arange(4), store.stored, table, 3, bounds, 1, 3)
    assert bounds[:, 0].tolist() == [9, 9, 9, 9, 1, 1, 9, 9, 9]


def test_nodes_are_taken_by_their_numbers(make_store):
    """Visible nodes of a part, from some number on."""
    store = make_store([1, 2, 3, 4])
    table = np.random.default_rng(0).integers(0, 256, (len(store.quantiser.centroids_KD), LANES)).astype(np.uint8)
    every, some = (np.zeros((5, LANES), np.uint8) for _ in range(2))
    node_bounds(np.arange(4), store.stored, table, 0, every, 0, 4)
    node_bounds(np.array([1, 3]), store.stored, table, 2, some, 0, 2)
    np.testing.assert_array_equal(some[2:4], every[[1, 3]])
    assert not some[[0, 1, 4]].any()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_leave_the_histogram_whole(odd):
    scores = np.linspace(0, 1, 1000, dtype=np.float32)
    scores[[0, 500, 999]] = odd
    assert set(largest_above(scores, 10)) <= set(range(1000))

"""Search over units: exact where it says exact, the same for any number of threads, ties in order."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.index.lexical import Postings, write_postings
from helios.index.search import FactoredSearch, Fusion, Query, Units, _top
from helios.models.encoder import TokenVectors

LENGTHS = [4, 1, 6, 2, 5, 3, 2, 7, 1, 4]
WORDS = ["rhine", "basel", "bridge", "bern", "river", "lake"]
NONE = len(LENGTHS)


def build_units(random) -> Units:
    """Edges between nodes 0-5 and 6-9, and two lone nodes."""
    left = np.append(random.integers(0, 6, 30), [2, NONE]).astype(np.int32)
    right = np.append(random.integers(6, 10, 30), [NONE, 8]).astype(np.int32)
    return Units(left, right)


@pytest.fixture(scope="module", params=[1, 2])
def store(make_store, request):
    return make_store(LENGTHS, bits=request.param, seed=3)


@pytest.fixture(scope="module")
def postings(tmp_path_factory) -> Postings:
    directory = tmp_path_factory.mktemp("lexical")
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(WORDS, size=length)) for length in LENGTHS]
    write_postings(texts, directory, segment_count=6)
    return Postings(directory)


@pytest.fixture(scope="module")
def search(store, postings):
    return FactoredSearch(store, postings, build_units(np.random.default_rng(2)))


def question(store, unit_vectors, count, *, seed=0, text="rhine bridge") -> Query:
    random = np.random.default_rng(seed)
    ids = random.integers(50, size=count).astype(np.int32)
    return Query.of(text, TokenVectors(unit_vectors(random, count), ids, np.zeros((count, 2), np.int32)), store)


def expected_maxsim(search, query, unit):
    store = search.tokens
    nodes = [int(side[unit]) for side in (search.units.left, search.units.right) if side[unit] < store.node_count]
    edge = np.concatenate([store.vectors(node) for node in nodes]) @ store.quantiser.rotation_DD.T
    return float(query.weights_Q @ (query.vectors_QD @ edge.T).max(axis=1))


@pytest.mark.parametrize("count", [1, 20, 32, 33, 65, 128])
def test_candidates_are_scored_exactly(search, unit_vectors, count):
    query = question(search.tokens, unit_vectors, count)
    assert len(query.weights_Q) % 32 == 0
    assert query.weights_Q.sum() == pytest.approx(count, rel=1e-4)
    found = search.candidates(query, count=1000, fusion=Fusion(lexical=0.05))
    assert sorted(found.units) == list(range(len(search.units)))
    expected = [expected_maxsim(search, query, unit) for unit in found.units]
    np.testing.assert_allclose(found.maxsim, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.lexical, search.lexical_scores(query.text)[found.units])


def test_candidates_are_the_units_of_the_best_centroid_bounds(search, unit_vectors):
    query = question(search.tokens, unit_vectors, 9)
    store = search.tokens
    products = np.maximum(store.quantiser.centroids_KD @ query.vectors_QD.T * query.weights_Q, 0.0)
    nodes = [products[store.codes[a:b]].max(axis=0) for a, b in zip(store.offsets, store.offsets[1:], strict=False)]
    nodes.append(np.zeros(len(query.weights_Q)))
    bounds = [np.maximum(nodes[a], nodes[b]).sum() for a, b in zip(search.units.left, search.units.right, strict=True)]
    fused = np.array(bounds) + 0.05 * search.lexical_scores(query.text)
    found = search.candidates(query, count=8, fusion=Fusion(lexical=0.05)).units
    slack = 9 * products.max() / 255
    assert len(found) == 8
    assert fused[found].min() >= np.sort(fused)[-8] - slack
    assert np.all(np.diff(fused[found]) <= slack)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_nothing(search, unit_vectors, threads):
    other = FactoredSearch(search.tokens, search.postings, search.units, threads=threads)
    for seed in range(5):
        query = question(search.tokens, unit_vectors, 9, seed=seed)
        one, many = (one.candidates(query, count=12, fusion=Fusion(lexical=0.05)) for one in (search, other))
        for name in ("units", "maxsim", "segment", "star", "lexical"):
            np.testing.assert_array_equal(getattr(one, name), getattr(many, name))
    other.close()


def test_questions_at_the_same_time(search, unit_vectors):
    shared = FactoredSearch(search.tokens, search.postings, search.units, threads=2)
    queries = [question(search.tokens, unit_vectors, 9 + seed, seed=seed) for seed in range(24)]

    def units(query):
        return shared.candidates(query, count=10, fusion=Fusion(lexical=0.05)).units.tolist()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(units, queries)) == [units(query) for query in queries]
    shared.close()
    with pytest.raises(RuntimeError, match="shutdown"):
        units(queries[0])


def test_without_bm25_nothing_lexical_is_computed(search, unit_vectors):
    found = search.candidates(question(search.tokens, unit_vectors, 4), count=5, fusion=Fusion())
    assert not found.lexical.any()
    assert found.maxsim.all()


def test_segments_and_stars_count_beside_the_edge(search, unit_vectors):
    query = question(search.tokens, unit_vectors, 9)
    store = search.tokens
    found = search.candidates(query, count=1000, fusion=Fusion(segment=0.5, star=0.25))
    alone = {node: float(query.weights_Q @ row) for node, row in enumerate(search.node_maxima(query, all_nodes(store)))}
    for unit, segment in zip(found.units, found.segment, strict=True):
        left, right = int(search.units.left[unit]), int(search.units.right[unit])
        assert segment == pytest.approx(alone[right if left == store.node_count else left], rel=1e-4)
    products = np.maximum(store.quantiser.centroids_KD @ query.vectors_QD.T * query.weights_Q, 0.0)
    nodes = [products[store.codes[a:b]].max(axis=0) for a, b in zip(store.offsets, store.offsets[1:], strict=False)]
    nodes.append(np.zeros(len(query.weights_Q)))
    for unit, star in zip(found.units, found.star, strict=True):
        members = star_members(search.units, unit, store.node_count)
        assert abs(star - np.max([nodes[n] for n in members], axis=0).sum()) <= 9 * products.max() / 255
    fused = found.maxsim + 0.5 * found.segment + 0.25 * found.star
    np.testing.assert_allclose(found.fused(Fusion(segment=0.5, star=0.25)), fused, rtol=1e-5)


def all_nodes(store):
    return np.arange(store.node_count)


def star_members(units, unit, node_count):
    """The nodes of a unit's star: its run of neighbours with the same left node."""
    left = units.left[unit]
    first = last = int(unit)
    if left != node_count:
        while first > 0 and units.left[first - 1] == left:
            first -= 1
        while last + 1 < len(units) and units.left[last + 1] == left:
            last += 1
    return {int(left), *units.right[first : last + 1].tolist()}


def test_lone_units_name_their_node(search):
    assert search.node_of(np.array([30, 31])).tolist() == [2, 8]


def test_no_units(store, postings, unit_vectors):
    nothing = Units(np.zeros(0, np.int32), np.zeros(0, np.int32))
    search = FactoredSearch(store, postings, nothing, threads=2)
    assert len(search.candidates(question(store, unit_vectors, 3), count=5, fusion=Fusion(lexical=1.0)).units) == 0
    search.close()


@given(scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -1.0]), min_size=1, max_size=30), count=st.integers(1, 40))
def test_top_breaks_ties_by_number(scores, count):
    found = _top(np.array(scores, np.float32), count)
    expected = sorted(range(len(scores)), key=lambda number: (-scores[number], number))[:count]
    assert found.tolist() == expected


def test_equal_units_keep_their_order(store, postings, unit_vectors):
    units = Units(np.full(6, 1, np.int32), np.full(6, 7, np.int32))
    query = question(store, unit_vectors, 3)
    found = FactoredSearch(store, postings, units).candidates(query, count=4, fusion=Fusion(lexical=0.1))
    assert found.units.tolist() == [0, 1, 2, 3]
    assert len(set(found.maxsim.tolist())) == 1


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_every_unit_is_bounded_on_the_scale_of_its_score(search, unit_vectors, seed):
    """Bounds from centroids differ from exact scores by no more than the residuals allow."""
    query = question(search.tokens, unit_vectors, 6, seed=seed)
    sums, step = search._bounds(query)
    bounds = sums[:, 0] * step
    exact, _ = search.exact(query, search.units.left, search.units.right)
    longest = search.tokens.quantiser.scale_levels.max() * np.sqrt(32) * 1.6
    assert np.all(np.abs(bounds - exact) <= query.weights_Q.sum() * longest)


def test_pairs_are_bounded_like_edges(search, unit_vectors):
    query = question(search.tokens, unit_vectors, 9)
    bounds = search.node_bounds(query)
    sums, step = search._bounds(query)
    for unit in range(30):
        left, right = int(search.units.left[unit]), int(search.units.right[unit])
        (pair,) = search.pair_bounds(bounds, left, np.array([right]))
        assert pair == pytest.approx(sums[unit, 0] * step)
    for unit in (30, 31):
        node = min(int(search.units.left[unit]), int(search.units.right[unit]))
        assert search.bound_sums(bounds)[node] == pytest.approx(sums[unit, 0] * step)


def test_a_pair_is_scored_as_its_edge_would_be(search, unit_vectors):
    query, fusion = question(search.tokens, unit_vectors, 9), Fusion(segment=0.5, star=0.25, lexical=0.05)
    found = search.candidates(query, count=1000, fusion=fusion)
    kept = found.units < 30
    left, right = search.units.left[found.units[kept]], search.units.right[found.units[kept]]
    members = [star_members(search.units, unit, NONE) - {NONE} for unit in found.units[kept]]
    stars = [np.array(sorted(nodes)) for nodes in members]
    scored = search.pair_scores(query, left, right, stars, fusion=fusion)
    for name in ("maxsim", "segment", "star", "lexical"):
        np.testing.assert_allclose(getattr(scored, name), getattr(found, name)[kept], rtol=1e-5)

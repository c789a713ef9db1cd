"""Search over units: exact where it says exact, the same for any number of threads or parts, ties in order."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.graph import DataGraph
from helios.index import visible
from helios.index.reader import IndexReader
from helios.index.search import EdgeSearch, Fusion, Pairs, largest, places_in
from helios.index.simd import LANES
from helios.index.units import Units, edge_units, node_units
from helios.index.visible import Query, Threads, query_of
from helios.models.encoder import TokenVectors
from helios.types import Edge

WORDS = ["rhine", "basel", "bridge", "bern", "river", "lake"]
LENGTHS = [4, 1, 6, 2, 5, 3], [2, 7, 1, 4]
EVERYTHING = {"count": 1000, "exact": 1000}
ALL_SCORES = Fusion(segment=0.5, star=0.25, lexical=0.05)


def texts(seed: int) -> tuple[list[str], list[str]]:
    """Random words of six rows and four passages."""
    random = np.random.default_rng(seed)
    rows, passages = ([" ".join(random.choice(WORDS, size=length)) for length in side] for side in LENGTHS)
    return rows, passages


def edges(seed: int, *, rows: int = 6, passages: int = 4) -> list[tuple[int, int]]:
    """Random pairs that leave row 2 and passage 3 alone."""
    random = np.random.default_rng(seed)
    left = [row for row in range(rows) if row != 2]
    right = [passage for passage in range(passages) if passage != 3]
    return sorted({(int(random.choice(left)), int(random.choice(right))) for _ in range(3 * rows)})


@pytest.fixture(scope="module", params=[1, 2])
def index(make_index, request) -> IndexReader:
    return make_index([texts(1)], edges(2), bits=request.param, seed=3)


def searching(index: IndexReader, fusion: Fusion = ALL_SCORES, *, threads: int = 1) -> EdgeSearch:
    return EdgeSearch(index, fusion, Threads(threads))


def question(index: IndexReader, unit_vectors, count, *, seed=0, text="rhine bridge") -> Query:
    random = np.random.default_rng(seed)
    ids = random.integers(50, size=count).astype(np.int32)
    tokens = TokenVectors(unit_vectors(random, count), ids, np.zeros((count, 2), np.int32))
    return query_of(text, tokens, index.tokens, index.postings)


def slack_of(query: Query, index: IndexReader) -> float:
    """How far rounding of residual products may move a weighted sum of maxima."""
    steps = [
        tables.pattern_step * len(tables.patterns_GPQ) / 2 * codec.scale_levels.max()
        for tables, codec in zip(query.tables, index.tokens.codecs, strict=True)
    ]
    return float(query.weights_Q.sum() * max(steps)) + 1e-4


def expected_maxsim(index: IndexReader, query: Query, nodes) -> float:
    """MaxSim of some nodes' tokens together, from decoded vectors."""
    vectors = np.concatenate([index.tokens.vectors(node) for node in nodes])
    weights = query.weights_Q[: len(query.tokens.vectors)]
    return float(weights @ (query.tokens.vectors @ vectors.T).max(axis=1))


def nodes_of(units: Units, unit: int) -> list[int]:
    return [int(side[unit]) for side in (units.left, units.right) if side[unit] < units.nodes]


def members_of(units: Units, unit: int) -> list[int]:
    """The nodes of a unit's star."""
    star = units.star_of[unit]
    first, last = int(units.stars[star]), int(units.stars[star + 1])
    return sorted({node for other in range(first, last) for node in nodes_of(units, other)})


def centroid_bounds(index: IndexReader, query: Query) -> np.ndarray:
    """Weighted maxima over centroids of every node (N + 1, Q), in plain numpy."""
    store = index.tokens.stores[0]
    rotated = query.tokens.vectors @ store.quantiser.rotation_DD.T
    weights = query.weights_Q[: len(rotated)]
    products = np.maximum(store.quantiser.centroids_KD @ rotated.T * weights, 0.0)
    nodes = [products[store.codes[a:b]].max(axis=0) for a, b in zip(store.offsets, store.offsets[1:], strict=False)]
    return np.array([*nodes, np.zeros(len(rotated))])


@pytest.mark.parametrize("count", [1, 20, 32, 33, 65, 128])
def test_candidates_are_scored_exactly(index, unit_vectors, count):
    query = question(index, unit_vectors, count)
    assert len(query.weights_Q) % LANES == 0
    assert query.weights_Q.sum() == pytest.approx(count, rel=1e-4)
    search, units = searching(index), index.units
    found = search.candidates(query, **EVERYTHING)
    assert sorted(found.units) == list(range(len(units)))
    slack = slack_of(query, index)
    for place, unit in enumerate(found.units.tolist()):
        nodes = nodes_of(units, unit)
        assert found.scores.maxsim[place] == pytest.approx(expected_maxsim(index, query, nodes), abs=slack)
        assert found.scores.segment[place] == pytest.approx(expected_maxsim(index, query, nodes[:1]), abs=slack)
        assert (found.pairs.left[place], found.pairs.right[place]) == (units.left[unit], units.right[unit])
    scores, fusion = found.scores, search.fusion
    fused = scores.maxsim + fusion.segment * scores.segment + fusion.star * scores.star
    np.testing.assert_allclose(scores.fused, fused + fusion.lexical * scores.lexical, rtol=1e-5)
    np.testing.assert_array_equal(scores.lexical, search.bm25(query, found.pairs))
    assert np.all(np.diff(scores.fused) <= 0)


def test_stars_are_bounded_over_all_their_nodes(index, unit_vectors):
    query = question(index, unit_vectors, 9)
    found = searching(index).candidates(query, **EVERYTHING)
    nodes = centroid_bounds(index, query)
    for place, unit in enumerate(found.units.tolist()):
        star = nodes[members_of(index.units, unit)].max(axis=0).sum()
        assert abs(found.scores.star[place] - star) <= 9 * nodes.max() / 255


def test_candidates_are_the_units_of_the_best_bounds(index, unit_vectors):
    query = question(index, unit_vectors, 9)
    search, units = searching(index, Fusion(lexical=0.05)), index.units
    nodes = centroid_bounds(index, query)
    bounds = np.maximum(nodes[units.left], nodes[units.right]).sum(axis=1)
    pairs = Pairs(units.left.astype(np.int64), units.right.astype(np.int64))
    fused = bounds + 0.05 * search.bm25(query, pairs)
    found = search.candidates(query, count=8, exact=0)
    step = 9 * nodes.max() / 255
    assert len(found) == 8
    assert fused[found.units].min() >= np.sort(fused)[-8] - step
    assert np.all(np.diff(fused[found.units]) <= step)


def test_what_is_not_exact_continues_what_is(index, unit_vectors):
    """The rest has its bounds, shifted by what exact scores of the question are above theirs."""
    query, search = question(index, unit_vectors, 9), searching(index, Fusion(segment=0.5, star=0.25))
    exact = search.candidates(query, **EVERYTHING)
    some = search.candidates(query, count=1000, exact=5)
    bounds = search.candidates(query, count=1000, exact=0)
    known = {unit: place for place, unit in enumerate(exact.units.tolist())}
    bounded = {unit: float(bounds.scores.maxsim[place]) for place, unit in enumerate(bounds.units.tolist())}
    first = bounds.units[:5].tolist()
    shifts = []
    for place, unit in enumerate(some.units.tolist()):
        if unit in first:
            assert some.scores.maxsim[place] == exact.scores.maxsim[known[unit]]
        else:
            shifts.append(some.scores.maxsim[place] - bounded[unit])
    assert len(some) == len(exact)
    np.testing.assert_allclose(shifts, shifts[0], atol=1e-4)


def test_what_has_the_rarest_words_is_scored_whatever_its_bound(index, unit_vectors):
    """Centroids know little of a rare word: a quarter of what is scored exactly is chosen by BM25 alone."""
    query = question(index, unit_vectors, 9, text="lake")
    search, units = searching(index, Fusion(lexical=1e-6)), index.units
    pairs = Pairs(units.left.astype(np.int64), units.right.astype(np.int64))
    words = search.bm25(query, pairs)
    best = largest(words, 1)[0]
    assert words[best] > 0
    found = search.candidates(query, count=4, exact=4, depth=1)
    assert best in found.units.tolist()
    assert len(found) == 4


def test_a_small_index_is_scored_as_a_whole(index, unit_vectors):
    """The best few need no guess of what may still rise where everything can be scored."""
    query, search = question(index, unit_vectors, 9), searching(index)
    assert_equal(search.candidates(query, **EVERYTHING), search.candidates(query, **EVERYTHING, depth=1))


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_nothing(index, unit_vectors, threads, monkeypatch):
    monkeypatch.setattr(visible, "SHARED_OUT", 1)
    one, many = searching(index), searching(index, threads=threads)
    for seed in range(5):
        query = question(index, unit_vectors, 9, seed=seed)
        assert_equal(*(search.candidates(query, count=12, exact=6) for search in (one, many)))
    many.threads.close()


def assert_equal(one, other):
    """Candidates of the same units with the same scores, bit for bit."""
    np.testing.assert_array_equal(one.units, other.units)
    for name in ("maxsim", "segment", "star", "lexical", "fused"):
        np.testing.assert_array_equal(getattr(one.scores, name), getattr(other.scores, name))


def test_questions_at_the_same_time(index, unit_vectors, monkeypatch):
    monkeypatch.setattr(visible, "SHARED_OUT", 1)
    shared = searching(index, threads=2)
    queries = [question(index, unit_vectors, 9 + seed, seed=seed) for seed in range(24)]

    def units(query):
        return shared.candidates(query, count=10, exact=10).units.tolist()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(units, queries)) == [units(query) for query in queries]
    shared.threads.close()
    with pytest.raises(RuntimeError, match="closed"):
        units(queries[0])


def test_without_bm25_nothing_lexical_is_computed(index, unit_vectors):
    found = searching(index, Fusion()).candidates(question(index, unit_vectors, 4), count=5, exact=5)
    assert not found.scores.lexical.any()
    assert found.scores.maxsim.all()


PART_SIZES = [[(6, 4)], [(2, 1), (4, 3)], [(1, 4), (5, 0)], [(0, 1), (3, 0), (1, 1), (2, 2)]]


@pytest.mark.parametrize("sizes", PART_SIZES[1:])
def test_one_token_store_for_each_part(make_index, unit_vectors, sizes):
    """Parts of random vectors: nodes have their numbers over all parts, and their scores are those of their vectors."""
    (rows, passages), parts = texts(1), []
    for row_count, passage_count in sizes:
        parts.append((rows[:row_count], passages[:passage_count]))
        rows, passages = rows[row_count:], passages[passage_count:]
    for codebooks in (1, 2):
        index = make_index(parts, edges(2), bits=2, seed=5, codebooks=codebooks)
        assert (index.segment_count, index.node_count) == (6, 10)
        query = question(index, unit_vectors, 7)
        assert len(query.tables) == len({number % codebooks for number in range(len(sizes))})
        found = searching(index).candidates(query, **EVERYTHING)
        assert sorted(found.units) == list(range(len(index.units)))
        slack = slack_of(query, index)
        for place, unit in enumerate(found.units.tolist()):
            expected = expected_maxsim(index, query, nodes_of(index.units, unit))
            assert found.scores.maxsim[place] == pytest.approx(expected, abs=slack)


def test_parts_share_their_statistics(make_index, unit_vectors):
    """The words of an edge count the same, however its nodes are spread over parts."""
    rows, passages = texts(1)
    found = []
    for sizes in PART_SIZES:
        left, right, parts = list(rows), list(passages), []
        for row_count, passage_count in sizes:
            parts.append((left[:row_count], right[:passage_count]))
            left, right = left[row_count:], right[passage_count:]
        index = make_index(parts, edges(2), seed=5)
        units = index.units
        pairs = Pairs(units.left.astype(np.int64), units.right.astype(np.int64))
        query = question(index, unit_vectors, 7, text="rhine rivers basel's 1998 lake")
        found.append((query.terms.terms, searching(index).bm25(query, pairs)))
    for terms, scores in found[1:]:
        assert terms == found[0][0] == ("rhine", "river", "basel", "lake")
        np.testing.assert_array_equal(scores, found[0][1])
    assert found[0][1].any()


def test_hidden_nodes_are_not_there(index, unit_vectors):
    """A narrowed reader searches the units of what it shows, with the statistics of the whole."""
    shown = np.ones(10, bool)
    shown[[1, 8]] = False
    part = index.narrowed(shown)
    kept = np.flatnonzero(shown)
    assert (part.segment_count, part.passage_count) == (5, 3)
    whole_query, query = (question(one, unit_vectors, 9) for one in (index, part))
    np.testing.assert_array_equal(query.weights_Q, whole_query.weights_Q)
    np.testing.assert_array_equal(query.terms.idf_T, whole_query.terms.idf_T)
    whole, found = (searching(one).candidates(own, **EVERYTHING) for one, own in ((index, whole_query), (part, query)))
    of_whole = {index.units.edge(unit): place for place, unit in enumerate(whole.units.tolist())}
    expected = {
        edge for edge in of_whole if not {edge.segment, None if edge.passage is None else edge.passage + 6} & {1, 8}
    }
    seen = set()
    for place, unit in enumerate(found.units.tolist()):
        left, right = (int(side[unit]) for side in (part.units.left, part.units.right))
        row, node = (None if own == 8 else int(kept[own]) for own in (left, right))
        edge = Edge(row, None if node is None else node - 6)
        if edge in of_whole:
            seen.add(edge)
            for name in ("maxsim", "segment", "lexical"):
                assert getattr(found.scores, name)[place] == getattr(whole.scores, name)[of_whole[edge]]
        else:  # the other node of all its edges is hidden
            assert (row is None) != (node is None)
    assert seen == expected


def test_maxima_are_computed_once(index, unit_vectors):
    query, search = question(index, unit_vectors, 9), searching(index)
    nothing = search.no_maxima(query)
    assert search.with_maxima(query, nothing, np.zeros(0, np.int64)) is nothing
    some = search.with_maxima(query, nothing, np.array([1, 7]))
    assert search.with_maxima(query, some, np.array([7])) is some
    more = search.with_maxima(query, some, np.array([0, 7, 9]))
    assert more.nodes.tolist() == [0, 1, 7, 9]
    assert more.places(np.array([7, 5, 0])).tolist() == [2, -1, 0]
    every = search.with_maxima(query, nothing, np.arange(10))
    np.testing.assert_array_equal(more.values_UQ, every.values_UQ[[0, 1, 7, 9]])


def test_a_pair_is_scored_as_its_edge_is(index, unit_vectors):
    query, search = question(index, unit_vectors, 9), searching(index)
    found = search.candidates(query, **EVERYTHING)
    scored, maxima = search.pair_scores(query, found.pairs, search.no_maxima(query), found.bounds)
    for name in ("maxsim", "segment", "star", "lexical", "fused"):
        np.testing.assert_array_equal(getattr(scored, name), getattr(found.scores, name))
    assert maxima.nodes.tolist() == list(range(10))


def test_a_new_pair_joins_the_star_of_its_row(index, unit_vectors):
    query, search = question(index, unit_vectors, 9), searching(index)
    bounds = index.tokens.bounds(query, search.threads)
    pairs = Pairs(np.array([2, 0]), np.array([9, 9]))
    scored, _ = search.pair_scores(query, pairs, search.no_maxima(query), bounds)
    for n, row in enumerate((2, 0)):
        members = [row, 9, *(index.graph.passages_of(row) + 6).tolist()]
        expected = bounds.bounds_NQ[members].max(axis=0).astype(np.int64).sum() * bounds.step
        assert scored.star[n] == pytest.approx(expected, rel=1e-6)


@given(scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -1.0]), max_size=30), count=st.integers(1, 40))
def test_the_largest_break_ties_by_number(scores, count):
    found = largest(np.array(scores, np.float32), count)
    expected = sorted(range(len(scores)), key=lambda number: (-scores[number], number))[:count]
    assert found.tolist() == expected


@given(nodes=st.lists(st.integers(0, 20), unique=True), wanted=st.lists(st.integers(0, 21), max_size=10))
def test_places_of_nodes(nodes, wanted):
    nodes = sorted(nodes)
    found = places_in(np.array(nodes, np.int64), np.array(wanted, np.int64)).tolist()
    assert found == [nodes.index(node) if node in nodes else -1 for node in wanted]


def test_equal_units_keep_their_order(index, unit_vectors):
    units = Units.of(np.full(6, 1, np.int32), np.full(6, 7, np.int32), segments=6, nodes=10)
    query = question(index, unit_vectors, 3)
    found = searching(index).candidates(query, count=4, exact=4, units=units)
    assert found.units.tolist() == [0, 1, 2, 3]
    assert len(set(found.scores.fused.tolist())) == 1


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_every_unit_is_bounded_on_the_scale_of_its_score(index, unit_vectors, seed):
    """Bounds from centroids differ from exact scores by no more than the residuals allow."""
    query, search = question(index, unit_vectors, 6, seed=seed), searching(index)
    bounds, exact = (search.candidates(query, count=1000, exact=count) for count in (0, 1000))
    at = {unit: place for place, unit in enumerate(exact.units.tolist())}
    gaps = [
        bounds.scores.maxsim[place] - exact.scores.maxsim[at[unit]] for place, unit in enumerate(bounds.units.tolist())
    ]
    longest = index.tokens.stores[0].quantiser.scale_levels.max() * np.sqrt(32) * 1.6
    assert np.all(np.abs(gaps) <= query.weights_Q.sum() * longest)


class TestUnits:
    def graph(self, tmp_path) -> DataGraph:
        links = [(0, 1), (2, 0), (2, 1)]
        left, right = (np.array([link[side] for link in links]) for side in (0, 1))
        zeros = np.zeros(3, np.int64)
        return DataGraph.write(
            tmp_path / "graph", left, right, zeros, zeros, zeros, zeros, segment_count=4, passage_count=3
        )

    def test_edges_then_nodes_without_one(self, tmp_path):
        units = edge_units(self.graph(tmp_path))
        expected = [Edge(0, 1), Edge(2, 0), Edge(2, 1), Edge(1, None), Edge(3, None), Edge(None, 2)]
        assert [units.edge(unit) for unit in range(len(units))] == expected
        assert units.stars.tolist() == [0, 1, 3, 4, 5, 6]
        assert units.star_of.tolist() == [0, 1, 1, 2, 3, 4]

    def test_every_node_on_its_own(self, tmp_path):
        units = node_units(self.graph(tmp_path))
        expected = [*(Edge(row, None) for row in range(4)), *(Edge(None, passage) for passage in range(3))]
        assert [units.edge(unit) for unit in range(len(units))] == expected
        assert units.star_of.tolist() == list(range(7))

    def test_no_units(self, index, unit_vectors):
        nothing = np.zeros(0, np.int32)
        units = Units.of(nothing, nothing, segments=6, nodes=10)
        assert len(searching(index).candidates(question(index, unit_vectors, 3), count=5, exact=5, units=units)) == 0

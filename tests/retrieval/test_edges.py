"""Edge retrieval: factored MaxSim plus BM25 as log-odds, best first, the same every time."""

from dataclasses import replace

import numpy as np
import pytest

from helios.engine import Engine
from helios.index.search import EdgeSearch, Fusion
from helios.retrieval.edges import EdgeRetrieval
from helios.retrieval.ranking.fused import FusedModel
from helios.retrieval.state import SearchState, edges_of
from helios.types import Origin

QUESTION = "In what year was the element discovered that melts in a warm hand?"
SCALE = FusedModel.load().scale


def begun(engine: Engine, fusion: Fusion, *, depth: int) -> SearchState:
    state = engine.begin(QUESTION, k=1)
    return replace(state, search=EdgeSearch(engine.index, fusion, engine.threads), depth=depth)


def retrieved(engine: Engine, fusion: Fusion, *, depth: int, candidates: int = 2000) -> SearchState:
    return EdgeRetrieval(SCALE, candidates, exact=2000).run(begun(engine, fusion, depth=depth))


def test_the_fused_score_is_of_edge_segment_star_and_bm25(engine: Engine):
    fusion = Fusion(segment=0.5, star=0.25, lexical=0.2)
    state = retrieved(engine, fusion, depth=1000)
    found, search = state.found, state.search
    assert len(found) == len(engine.index.units) == len(state.subgraph)
    maxsim, segment = search.maxsim(state.query, found.pairs, found.maxima)
    lexical = search.bm25(state.query, found.pairs)
    expected = maxsim + 0.5 * segment + 0.25 * found.scores.star + 0.2 * lexical
    np.testing.assert_allclose(found.scores.fused, expected, atol=1e-4)
    again, _ = search.pair_scores(state.query, found.pairs, found.maxima, found.bounds)
    np.testing.assert_allclose(again.star, found.scores.star, atol=1e-4)
    assert np.all(np.diff(found.scores.fused) <= 0)
    assert [scored.edge for scored in state.subgraph.edges] == list(edges_of(engine.index, found.pairs))
    assert {scored.origin for scored in state.subgraph.edges} == {Origin.LINKED}


def test_scores_are_log_odds_by_the_distance_to_the_best_and_the_rank(engine: Engine):
    state = retrieved(engine, FusedModel.load().fusion, depth=50)
    fused = state.found.scores.fused[:50].astype(float)
    scores = [scored.score for scored in state.subgraph.edges]
    gaps = (fused[0] - fused) / max(fused[0], 1.0) ** 0.5
    expected = SCALE.intercept + SCALE.gap * gaps + SCALE.rank * np.log1p(np.arange(50))
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert scores == sorted(scores, reverse=True)


def test_fewer_edges_are_the_first_of_more(engine: Engine):
    few, many = (retrieved(engine, FusedModel.load().fusion, depth=depth) for depth in (5, 40))
    assert few.subgraph.edges == many.subgraph.edges[:5]


def test_a_depth_beyond_the_candidates_is_met(engine: Engine):
    assert len(retrieved(engine, Fusion(), depth=20, candidates=3).subgraph) == 20


def test_the_edge_alone(engine: Engine):
    state = retrieved(engine, Fusion(), depth=1000)
    np.testing.assert_array_equal(state.found.scores.fused, state.found.scores.maxsim)
    assert not state.found.scores.lexical.any()


def test_a_state_without_candidates_says_who_has_to_find_them(engine: Engine):
    with pytest.raises(ValueError, match="no stage has retrieved candidates: the first stage must"):
        _ = engine.begin(QUESTION).found

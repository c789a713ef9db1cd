"""The stage `rank`: what it puts in order, what it leaves, and what new edges are worth beside the others."""

from dataclasses import replace

import numpy as np
import pytest

from helios.engine import Engine
from helios.retrieval.ranking.fused import FusedModel
from helios.retrieval.ranking.stage import LEARNED, SHIFT, FusedEdges, Ranking
from helios.retrieval.state import edges_of, run_stages
from helios.types import Edge

QUESTION = "Which is the longest river that flows into the Black Sea?"


@pytest.fixture
def ranking(stages) -> Ranking:
    """The usual one; it sees fewer edges than the sample has."""
    assert isinstance(stages["rank"], Ranking)
    return replace(stages["rank"], first=30)


def test_the_first_get_log_odds_of_trees_and_fused_score_and_the_others_keep_theirs(state_after, ranking):
    before = state_after(QUESTION, "retrieve")
    after = ranking.run(before)
    assert after.ranked is not None
    old = {scored.edge: scored.score for scored in before.subgraph.edges}
    trees = ranking.ranker.score(after.ranked.features).tolist()
    plain = [old[edge] for edge in after.ranked.edges]
    np.testing.assert_allclose(
        after.ranked.log_odds, LEARNED * np.array(trees) + (1 - LEARNED) * np.array(plain) + SHIFT, atol=1e-3
    )
    learned = dict(zip(after.ranked.edges, after.ranked.log_odds.tolist(), strict=True))
    assert len(learned) == ranking.first
    assert {scored.edge for scored in after.subgraph.edges} == set(old)
    for scored in after.subgraph.edges:
        assert scored.score == learned.get(scored.edge, old[scored.edge])
    scores = [scored.score for scored in after.subgraph.edges]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("k", "candidates"), [(70, 2000), (1, 2000), (70, 10)])
def test_scores_belong_to_their_edges_whatever_is_asked_for(engine: Engine, ranking, stages, k: int, candidates: int):
    """The ranking sees the best candidates, however many edges are asked for and however few are kept."""
    retrieve = replace(stages["retrieve"], candidates=candidates)
    state = run_stages(replace(engine.begin(QUESTION, k=k), depth=max(k, ranking.depth)), [retrieve, ranking])
    assert len(state.subgraph) == max(k, 30)
    assert state.ranked is not None
    assert state.ranked.edges == edges_of(engine.index, state.found.pairs)[: ranking.first]
    expected = dict(zip(state.ranked.edges, state.ranked.log_odds.tolist(), strict=True))
    found = {scored.edge: scored.score for scored in state.subgraph.edges}
    assert len(expected) == 30
    assert {edge: found[edge] for edge in expected} == expected


def test_a_linked_edge_scored_as_new_gets_nearly_what_it_has(state_after, ranking, engine: Engine):
    """Its rivals are one more than they were: itself."""
    state = state_after(QUESTION, "retrieve", "rank")
    known = dict(zip(state.ranked.edges, state.ranked.log_odds.tolist(), strict=True))
    edges = [edge for edge in state.ranked.edges if None not in (edge.segment, edge.passage)][:8]
    _, again = ranking.score(state, edges)
    assert np.corrcoef(again, [known[edge] for edge in edges])[0, 1] > 0.9
    after, scores = ranking.score(state, [Edge(0, 0), Edge(1, 5), Edge(0, None), Edge(None, 3)])
    assert scores.shape == (4,)
    assert np.isfinite(scores).all()
    assert after.maxima is not None
    assert set(state.maxima.nodes.tolist()) | {0, 1} <= set(after.maxima.nodes.tolist())
    assert after.subgraph is state.subgraph


def test_a_linked_edge_scored_by_the_fused_score_gets_what_retrieval_gave(state_after):
    state = state_after(QUESTION, "retrieve")
    edges = [scored.edge for scored in state.subgraph.edges[:12]]
    _, again = FusedEdges(FusedModel.load().scale).score(state, edges)
    np.testing.assert_allclose(again, [scored.score for scored in state.subgraph.edges[:12]], atol=1e-3)


def test_without_the_ranking_new_edges_are_worth_their_fused_score(state_after, ranking):
    """The stage `rank` may be left out while others still score new edges by it."""
    state = state_after(QUESTION, "retrieve")
    edges = [Edge(0, 0), Edge(1, 5), Edge(None, 3)]
    _, scores = ranking.score(state, edges)
    _, expected = ranking.unranked.score(state, edges)
    np.testing.assert_array_equal(scores, expected)

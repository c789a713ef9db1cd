"""Spreading: which edges change places, and what never does."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from helios.corpus.sample import sample_path
from helios.evaluation.questions import read_questions
from helios.graph import Subgraph
from helios.retrieval.spreading import CANDIDATES, Prices, Spreading, spread
from helios.retrieval.state import run_stages
from helios.types import Edge, ScoredEdge

PRICES = Prices(row=0.5, passage=1.0)
RANKS = 10
SIDES = st.one_of(st.none(), st.integers(0, 4))
EDGES = (
    st.tuples(SIDES, SIDES, st.floats(-8, 8)).filter(lambda one: one[:2] != (None, None))
    .map(lambda one: ScoredEdge(Edge(one[0], one[1]), one[2]))
)  # fmt: skip
SUBGRAPHS = st.lists(EDGES, max_size=60).map(Subgraph.from_edges)


def _subgraph(*edges: tuple[int | None, int | None, float]) -> Subgraph:
    return Subgraph.from_edges(ScoredEdge(Edge(row, passage), score) for row, passage, score in edges)


def _order(subgraph: Subgraph) -> list[Edge]:
    return [scored.edge for scored in subgraph.edges]


def test_an_edge_that_repeats_the_passage_of_a_better_one_stands_behind_a_new_one():
    found = spread(_subgraph((0, 0, 2.0), (1, 0, 1.5), (2, 1, 1.0)), PRICES, ranks=RANKS)
    assert _order(found) == [Edge(0, 0), Edge(2, 1), Edge(1, 0)]


def test_a_repeated_row_costs_its_price():
    edges = (0, 0, 2.0), (0, 1, 1.0), (1, 2, 0.6)
    assert _order(spread(_subgraph(*edges), PRICES, ranks=RANKS))[1] == Edge(1, 2)
    assert _order(spread(_subgraph(*edges), Prices(row=0.3, passage=1.0), ranks=RANKS))[1] == Edge(0, 1)


def test_an_edge_that_is_far_better_stays_before_new_ones():
    edges = (0, 0, 5.0), (0, 1, 4.0), (1, 2, 1.0)
    assert _order(spread(_subgraph(*edges), PRICES, ranks=RANKS)) == [Edge(0, 0), Edge(0, 1), Edge(1, 2)]


def test_an_edge_that_verification_rejected_does_not_come_back():
    found = _subgraph((0, 0, 2.0), (1, 0, 1.9), (2, 1, 1.8))
    *kept, last = found.edges
    rejecting = Subgraph.from_edges([*kept, replace(last, rejected=True)])
    assert _order(spread(rejecting, PRICES, ranks=RANKS)) == _order(found)
    assert _order(spread(found, PRICES, ranks=RANKS)) == [Edge(0, 0), Edge(2, 1), Edge(1, 0)]


def test_two_edges_without_a_row_do_not_repeat_one_another():
    edges = (None, 0, 2.0), (None, 1, 1.9), (3, 2, 1.8)
    assert _order(spread(_subgraph(*edges), PRICES, ranks=RANKS)) == [Edge(None, 0), Edge(None, 1), Edge(3, 2)]


@given(SUBGRAPHS)
def test_every_edge_keeps_its_score_and_the_best_stays_first(subgraph: Subgraph):
    found = spread(subgraph, PRICES, ranks=RANKS)
    assert sorted(found.edges, key=repr) == sorted(subgraph.edges, key=repr)
    assert _order(found)[:1] == _order(subgraph)[:1]


@given(SUBGRAPHS, st.integers(0, 12))
def test_edges_behind_the_filled_ranks_keep_their_order(subgraph: Subgraph, depth: int):
    found = _order(spread(subgraph, PRICES, ranks=depth))
    behind = found[depth:]
    assert behind == [edge for edge in _order(subgraph) if edge in set(behind)]


@given(SUBGRAPHS)
def test_nothing_moves_without_a_price_or_without_ranks_to_fill(subgraph: Subgraph):
    assert spread(subgraph, PRICES, ranks=0) == subgraph
    assert spread(subgraph, Prices(row=0.0, passage=0.0), ranks=RANKS) == subgraph


@given(SUBGRAPHS)
def test_ranks_filled_by_hand_are_those_that_are_filled(subgraph: Subgraph):
    """The definition, without its shortcuts: each rank takes the edge whose score less its repeats is largest."""
    left, chosen = list(subgraph.edges[: CANDIDATES * RANKS]), []
    while left and len(chosen) < RANKS:

        def worth(one: ScoredEdge) -> float:
            rows = {edge.segment for edge in chosen if edge.segment is not None}
            passages = {edge.passage for edge in chosen if edge.passage is not None}
            return one.score - (0.5 * (one.edge.segment in rows) + 1.0 * (one.edge.passage in passages))

        best = max(left, key=worth)
        chosen.append(best.edge)
        left.remove(best)
    assert _order(spread(subgraph, PRICES, ranks=RANKS))[: len(chosen)] == chosen


def test_search_spreads_by_default_and_not_where_it_is_off(engine, stages, reopen):
    usual = ("retrieve", "rank", "rerank", "documents", "expand", "refine")
    plain = reopen("advanced.search.spread=0")
    assert isinstance(stages["spread"], Spreading)
    assert [stage.name for stage in plain.pipeline.stages] == list(usual)
    moved = 0
    for question in read_questions(sample_path() / "questions.jsonl")[:6]:
        found = run_stages(engine.begin(question.text, k=20), [stages[name] for name in usual]).subgraph
        expected = spread(found, Prices.load(), ranks=RANKS)
        shown = [edge.score for edge in engine.search(question.text, k=20).edges]
        assert shown == [scored.score for scored in expected.edges[:20]]
        before = [edge.score for edge in plain.search(question.text, k=20).edges]
        assert before == [scored.score for scored in found.edges[:20]]
        moved += shown != before
    assert moved > 0


def test_scores_without_a_learned_ranking_are_log_odds_too_and_are_spread(reopen):
    question = "Which is the longest river that flows into the Black Sea?"
    orders = [
        [(edge.segment, edge.passage) for edge in reopen("search.ranker=none", *more).search(question, k=20).edges]
        for more in ((), ("advanced.search.spread=0",))
    ]
    assert orders[0] != orders[1]
    assert orders[0][0] == orders[1][0]

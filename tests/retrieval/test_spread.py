"""Spreading: which edges change places, and what never does."""

from hypothesis import given
from hypothesis import strategies as st

from helios.config import SpreadSettings, load_config
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.graph import Subgraph
from helios.retrieval.spread import CANDIDATES, spread
from helios.types import Edge, ScoredEdge

SETTINGS = SpreadSettings(depth=10, row=0.5, passage=1.0)
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
    found = spread(_subgraph((0, 0, 2.0), (1, 0, 1.5), (2, 1, 1.0)), SETTINGS)
    assert _order(found) == [Edge(0, 0), Edge(2, 1), Edge(1, 0)]


def test_a_repeated_row_costs_what_the_settings_say():
    edges = (0, 0, 2.0), (0, 1, 1.0), (1, 2, 0.6)
    assert _order(spread(_subgraph(*edges), SETTINGS))[1] == Edge(1, 2)
    assert _order(spread(_subgraph(*edges), SpreadSettings(row=0.3)))[1] == Edge(0, 1)


def test_an_edge_that_is_far_better_stays_before_new_ones():
    edges = (0, 0, 5.0), (0, 1, 4.0), (1, 2, 1.0)
    assert _order(spread(_subgraph(*edges), SETTINGS)) == [Edge(0, 0), Edge(0, 1), Edge(1, 2)]


def test_an_edge_that_refinement_removed_does_not_come_back():
    found = _subgraph((0, 0, 2.0), (1, 0, 1.9), (2, 1, 1.8))
    assert _order(spread(found, SETTINGS, kept=2)) == _order(found)
    assert _order(spread(found, SETTINGS, kept=3)) == [Edge(0, 0), Edge(2, 1), Edge(1, 0)]


def test_two_edges_without_a_row_do_not_repeat_one_another():
    edges = (None, 0, 2.0), (None, 1, 1.9), (3, 2, 1.8)
    assert _order(spread(_subgraph(*edges), SETTINGS)) == [Edge(None, 0), Edge(None, 1), Edge(3, 2)]


@given(SUBGRAPHS)
def test_every_edge_stays_the_best_stays_first_and_scores_fall(subgraph: Subgraph):
    found = spread(subgraph, SETTINGS)
    assert sorted(_order(found), key=repr) == sorted(_order(subgraph), key=repr)
    assert _order(found)[:1] == _order(subgraph)[:1]
    scores = [scored.score for scored in found.edges]
    assert scores == sorted(scores, reverse=True)


def test_scores_fall_where_a_difference_is_rounded_away():
    tiny = -9e-149
    edges = [(0, None, 1.0), *((None, passage, 0.0) for passage in range(8)), (1, None, tiny), (0, 9, 0.4)]
    assert (scores := [scored.score for scored in spread(_subgraph(*edges), SETTINGS).edges]) == sorted(scores)[::-1]


@given(SUBGRAPHS, st.integers(0, 12))
def test_edges_behind_the_filled_ranks_keep_their_order(subgraph: Subgraph, depth: int):
    found = _order(spread(subgraph, SETTINGS.model_copy(update={"depth": depth})))
    behind = found[depth:]
    assert behind == [edge for edge in _order(subgraph) if edge in set(behind)]


@given(SUBGRAPHS)
def test_nothing_moves_without_a_price_or_without_ranks_to_fill(subgraph: Subgraph):
    assert spread(subgraph, SpreadSettings(depth=0)) == subgraph
    assert spread(subgraph, SpreadSettings(row=0.0, passage=0.0)) == subgraph


@given(SUBGRAPHS)
def test_ranks_filled_by_hand_are_those_that_are_filled(subgraph: Subgraph):
    """The definition, without its shortcuts: each rank takes the edge whose score less its repeats is largest."""
    left, chosen = list(subgraph.edges[: CANDIDATES * SETTINGS.depth]), []
    while left and len(chosen) < SETTINGS.depth:

        def worth(one: ScoredEdge) -> float:
            rows = {edge.segment for edge in chosen if edge.segment is not None}
            passages = {edge.passage for edge in chosen if edge.passage is not None}
            return one.score - (0.5 * (one.edge.segment in rows) + 1.0 * (one.edge.passage in passages))

        best = max(left, key=worth)
        chosen.append(best.edge)
        left.remove(best)
    assert _order(spread(subgraph, SETTINGS))[: len(chosen)] == chosen


def test_search_spreads_by_default_and_not_where_it_is_off(sample_index):
    questions = read_questions(sample_path() / "questions.jsonl")
    moved = 0
    with Engine.open(sample_index) as engine, Engine.open(sample_index, overrides=["spread.depth=0"]) as plain:
        for question in questions:
            reranked = engine.stages.rerank(question.text, engine.retrieve_edges(question.text, k=engine.stages.depth))
            found = engine.stages.refine(question.text, engine.stages.expand(question.text, reranked))
            expected = spread(found.subgraph, load_config().spread).top(20).edges
            shown = [edge.score for edge in engine.search(question.text, k=20).edges]
            before = [edge.score for edge in plain.search(question.text, k=20).edges]
            assert shown == [scored.score for scored in expected]
            assert before == [scored.score for scored in found.subgraph.top(20).edges]
            moved += shown != before
    assert moved > 0


def test_fused_scores_are_no_log_odds_and_are_left_alone(sample_index):
    question = "Which driver won the race in the city on the river?"
    fused = ["search.ranker=none", "refinement.mode=off"]
    with (
        Engine.open(sample_index, overrides=fused) as engine,
        Engine.open(sample_index, overrides=[*fused, "spread.depth=0"]) as plain,
    ):
        assert engine.search(question, k=20).edges == plain.search(question, k=20).edges

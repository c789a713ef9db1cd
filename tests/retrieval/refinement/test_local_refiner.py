"""The whole local refiner over the sample index, with the shipped weights."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.config import RefinementSettings
from helios.engine import Engine
from helios.errors import ModelError
from helios.graph import Subgraph
from helios.retrieval.refinement import RefinementMode, demote, promote
from helios.retrieval.refinement.bonus import RowBonus
from helios.retrieval.refinement.detector import Detector
from helios.retrieval.refinement.local import LocalRefiner
from helios.retrieval.refinement.scorer import PlanScorer, Verifier
from helios.types import Edge, Origin, ScoredEdge

QUESTION = "What is the longest river that flows through the oldest city ?"


def refiner(engine: Engine, **settings: float) -> LocalRefiner:
    return LocalRefiner(engine.encoder, RefinementSettings(**settings))


def test_nothing_is_dropped_and_the_report_tells(engine: Engine) -> None:
    subgraph = engine.retrieve_edges(QUESTION, k=20)
    found = refiner(engine, believe=0.0).refine(QUESTION, subgraph, engine.part)
    assert {scored.edge for scored in subgraph.edges} <= {scored.edge for scored in found.subgraph.edges}
    assert found.report.mode is RefinementMode.LOCAL
    assert found.report.plans
    assert found.report.segments
    assert found.report.milliseconds > 0
    assert found.report.problems == ()
    table = engine.corpus.table_of(found.report.segments[0])
    for cell in found.report.cells:
        segment = engine.corpus.segment(cell.segment)
        assert engine.corpus.table_of(cell.segment) == table
        assert segment.cells[cell.column] == cell.text
    added = {scored.edge for scored in found.subgraph.edges} - {scored.edge for scored in subgraph.edges}
    origins = {scored.edge: scored.origin for scored in found.subgraph.edges}
    assert all(origins[edge] is Origin.AGGREGATED for edge in added)


def test_a_plan_raises_its_rows(engine: Engine) -> None:
    subgraph = engine.retrieve_edges(QUESTION, k=20)
    sure = RowBonus(np.array([100.0, 0.0, 0.0, 0.0, 100.0, 100.0]))
    strong = LocalRefiner(engine.encoder, RefinementSettings(believe=0.0), bonus=sure)
    found = strong.refine(QUESTION, subgraph, engine.part)
    assert found.subgraph.edges[0].edge.segment in found.report.segments
    assert found.report.promoted[0] == found.subgraph.edges[0].edge
    nothing = LocalRefiner(engine.encoder, RefinementSettings(believe=1.0), bonus=RowBonus(np.zeros(6)))
    kept = nothing.refine(QUESTION, subgraph, engine.part)
    assert kept.subgraph == subgraph
    assert (kept.report.segments, kept.report.computed(engine.corpus)) == ((), None)


def test_a_question_that_compares_nothing_keeps_its_best_edge(engine: Engine) -> None:
    question = "Which capital lies on the Danube ?"
    subgraph = engine.retrieve_edges(question, k=20)
    found = refiner(engine).refine(question, subgraph, engine.part)
    assert found.subgraph.edges[0] == subgraph.edges[0]
    assert found.report.plans == ()
    assert found.report.promoted == ()


def test_past_the_deadline_the_subgraph_stays_and_the_report_says_so(engine: Engine) -> None:
    subgraph = engine.retrieve_edges(QUESTION, k=20)
    late = time.monotonic() - 1
    found = refiner(engine, detect=0.0).refine(QUESTION, subgraph, engine.part, deadline=late)
    assert found.subgraph == subgraph
    assert len(found.report.problems) == 1


def test_an_empty_subgraph_is_no_trouble(engine: Engine) -> None:
    assert refiner(engine).refine(QUESTION, Subgraph(), engine.part).subgraph == Subgraph()


def test_wrong_weights_are_refused(tmp_path) -> None:
    (tmp_path / "x").write_text("{}")
    for load in (Detector.load, Verifier.load, RowBonus.load):
        with pytest.raises(ModelError):
            load(tmp_path / "x")
    with pytest.raises(ModelError):
        PlanScorer("nonsense").scores([[0.0]])
    with pytest.raises(ModelError):
        PlanScorer.load(tmp_path / "absent")


@st.composite
def subgraphs(draw: st.DrawFn) -> Subgraph:
    pairs = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True, min_size=1, max_size=12))
    return Subgraph.from_edges(ScoredEdge(Edge(*pair), draw(st.floats(-5, 5))) for pair in pairs)


@given(subgraphs(), st.data())
def test_demoted_edges_stand_behind_the_others_in_their_order(subgraph: Subgraph, data: st.DataObject) -> None:
    moved = frozenset(data.draw(st.lists(st.sampled_from([s.edge for s in subgraph.edges]), unique=True)))
    after = [scored.edge for scored in demote(subgraph, moved).edges]
    before = [scored.edge for scored in subgraph.edges]
    if 0 < len(moved) < len(before):
        assert set(after[len(before) - len(moved) :]) == moved
    assert sorted(after, key=str) == sorted(before, key=str)


@given(subgraphs())
def test_promotion_keeps_every_edge_and_its_origin(subgraph: Subgraph) -> None:
    last = subgraph.edges[-1]
    new = ScoredEdge(Edge(9, 9), last.score)
    after = promote(subgraph, [(last, 100.0), (new, 99.0)])
    assert {scored.edge for scored in after.edges} == {scored.edge for scored in subgraph.edges} | {new.edge}
    origins = {scored.edge: scored.origin for scored in after.edges}
    assert origins[new.edge] is Origin.AGGREGATED
    assert origins[last.edge] is last.origin
    assert after.edges[0].edge in (last.edge, new.edge)

"""The whole local refiner over the sample index, with the shipped weights."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helios.config import AdvancedRefinementSettings
from helios.engine import Engine
from helios.errors import ModelError
from helios.graph import Subgraph
from helios.models.trees import Trees
from helios.retrieval.refinement import local, scorer
from helios.retrieval.refinement.bonus import BONUS_FEATURES, RowBonus
from helios.retrieval.refinement.detector import Detector
from helios.retrieval.refinement.local import LocalRefinement, RefinementModels
from helios.retrieval.refinement.scorer import PLANS, PlanScorer, Verifier
from helios.retrieval.report import RefinementMode
from helios.retrieval.state import SearchState
from helios.types import Origin

QUESTION = "What is the longest river that flows through the oldest city ?"
SURE = RowBonus(np.array([100.0, 0.0, 0.0, 0.0, 100.0, 100.0]))


@pytest.fixture(scope="module")
def models() -> RefinementModels:
    return RefinementModels.load()


@pytest.fixture
def refinement(models: RefinementModels, stages):
    """The stage with some settings; `bonus` is what plans are worth in place of the shipped model."""

    def make(*, bonus: RowBonus | None = None, **settings: float) -> LocalRefinement:
        chosen = models if bonus is None else replace(models, bonus=bonus)
        return LocalRefinement(AdvancedRefinementSettings(**settings), chosen, stages["rank"])

    return make


@pytest.fixture
def state(state_after) -> SearchState:
    """The best twenty edges of a question that compares."""
    return best(state_after(QUESTION, "retrieve", "rank"))


def best(state: SearchState, count: int = 20) -> SearchState:
    return replace(state, subgraph=state.subgraph.top(count))


def edges_of(state: SearchState) -> set:
    return {scored.edge for scored in state.subgraph.edges}


def test_nothing_is_dropped_and_the_report_tells(engine: Engine, refinement, state) -> None:
    found = refinement(believe=0.0).run(state)
    assert edges_of(state) <= edges_of(found)
    report = found.report
    assert report.mode is RefinementMode.LOCAL
    assert report.plans
    assert report.segments
    assert report.problems == ()
    table = engine.corpus.table_of(report.segments[0])
    for cell in report.cells:
        segment = engine.corpus.segment(cell.segment)
        assert engine.corpus.table_of(cell.segment) == table
        assert segment.cells[cell.column] == cell.text
    origins = {scored.edge: scored.origin for scored in found.subgraph.edges}
    assert all(origins[edge] is Origin.AGGREGATED for edge in edges_of(found) - edges_of(state))


def test_rows_gain_what_their_plans_are_worth_and_the_others_keep_their_score(refinement, state, models) -> None:
    found = refinement().run(state)
    plans, chances = refinement().rank_plans(state)
    gains = models.bonus.of(plans, chances)
    after = {scored.edge: scored.score for scored in found.subgraph.edges}
    for scored in state.subgraph.edges:
        assert after[scored.edge] == pytest.approx(scored.score + gains.get(scored.edge.segment, 0.0), abs=1e-6)
    assert any(gain > 0 for gain in gains.values())


def test_a_row_that_was_not_retrieved_enters_on_the_scale_of_the_others(engine: Engine, refinement, state) -> None:
    """What the ranking thinks of its edges, and what its plans are worth."""
    stage = refinement(bonus=SURE)
    plans, _ = stage.rank_plans(state)
    chosen = set(plans[0].segments)
    others = state.with_edges(scored for scored in state.subgraph.edges if scored.edge.segment not in chosen)
    found = stage.run(others)
    entered = {scored.edge: scored.score for scored in found.subgraph.edges if scored.origin is Origin.AGGREGATED}
    assert chosen <= {edge.segment for edge in entered}
    in_order = sorted(entered, key=lambda edge: (edge.segment, edge.passage is not None and edge.passage))
    _, plain = stage.new_edges.score(others, in_order)
    gains = SURE.of(*stage.rank_plans(others))
    for edge, score in zip(in_order, plain.tolist(), strict=True):
        assert entered[edge] == pytest.approx(score + gains[edge.segment], abs=1e-4)


def test_a_plan_raises_its_rows(engine: Engine, refinement, state) -> None:
    found = refinement(bonus=SURE, believe=0.0).run(state)
    assert found.subgraph.edges[0].edge.segment in found.report.segments
    assert found.report.promoted[0] == found.subgraph.edges[0].edge
    kept = refinement(bonus=RowBonus(np.zeros(len(BONUS_FEATURES))), believe=1.0).run(state)
    assert kept.subgraph == state.subgraph
    assert (kept.report.segments, kept.report.computed(engine.corpus)) == ((), None)


def test_a_question_that_compares_nothing_keeps_its_edges(refinement, state_after) -> None:
    state = best(state_after("Which capital lies on the Danube ?", "retrieve", "rank"))
    found = refinement().run(state)
    assert found.subgraph == state.subgraph
    assert found.report.plans == ()
    assert found.report.promoted == ()
    assert found.report.notes() == ()


def test_past_the_deadline_the_subgraph_stays_and_the_report_says_so(refinement, state) -> None:
    found = refinement().run(replace(state, deadline=0.0))
    assert found.subgraph == state.subgraph
    assert found.report.problems == ("no time left for aggregation",)
    assert found.report.notes() == ("no time left for aggregation",)


def test_an_empty_subgraph_is_no_trouble(refinement, state) -> None:
    assert refinement(verify=0.5).run(replace(state, subgraph=Subgraph())).subgraph == Subgraph()


def test_what_verification_doubts_comes_last_with_its_score(refinement, state) -> None:
    before = {scored.edge: scored.score for scored in state.subgraph.edges}
    found = refinement(verify=0.3, bonus=RowBonus(np.zeros(len(BONUS_FEATURES)))).run(state)
    rejected = set(found.report.rejected)
    assert 0 < len(rejected) < len(state.subgraph)
    edges = found.subgraph.edges
    assert {scored.edge for scored in edges if scored.rejected} == rejected
    assert {scored.edge: scored.score for scored in edges} == before
    assert [scored.rejected for scored in edges] == sorted(scored.rejected for scored in edges)
    assert not edges[0].rejected
    for part in (False, True):
        scores = [scored.score for scored in edges if scored.rejected is part]
        assert scores == sorted(scores, reverse=True)
    everything = refinement(verify=1.0).run(state)
    assert [scored.rejected for scored in everything.subgraph.edges].count(False) >= 1
    assert everything.subgraph.edges[0].edge == state.subgraph.edges[0].edge


def test_rejected_edges_are_marked_in_the_evidence(reopen) -> None:
    found = reopen("advanced.refinement.verify=0.3").search(QUESTION, k=60)
    marks = [edge.rejected for edge in found.edges]
    assert any(marks)
    assert marks == sorted(marks)


def test_wrong_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    for load in (Detector.load, Verifier.load, RowBonus.load, PlanScorer.load):
        with pytest.raises(ModelError):
            load(tmp_path / "x")
    with pytest.raises(ModelError):
        PlanScorer.load(tmp_path / "absent")
    trees = Trees.read(PLANS)
    replace(trees, text=trees.text.replace("head_share", "tail_share")).save(tmp_path / "plans.txt")
    with pytest.raises(ModelError, match="was trained on other features"):
        PlanScorer.load(tmp_path / "plans.txt")


def test_packaged_weights_that_changed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(PLANS.parent, tmp_path / "weights"))
    with (folder / "rows.json").open("a") as file:
        file.write("\n")
    for module in (local, scorer):
        monkeypatch.setattr(module, "PLANS", folder / "plans.txt")
    with pytest.raises(ModelError, match=r"rows\.json: damaged, or not the file of its card"):
        RefinementModels.load()

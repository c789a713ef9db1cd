"""The refiner without a language model: detect, plan, execute, verify (HELIOS 4.3).

1. a classifier reads the question: does it compare over a column at all?
2. plans over the whole tables of the best stars are executed in DuckDB; a scorer says how likely each one is meant;
3. the rows that plans chose gain what the plans are worth, in log-odds beside the ranking's own;
4. where the settings ask for it, edges that a calibrated score takes for noise are rejected: they come last.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from helios.config import AdvancedRefinementSettings
from helios.index.reader import IndexReader
from helios.models.card import read_card
from helios.retrieval.ranking.stage import EdgeScorer
from helios.retrieval.refinement.bonus import RowBonus
from helios.retrieval.refinement.columns import Kind
from helios.retrieval.refinement.detector import Detector
from helios.retrieval.refinement.execution import Executor
from helios.retrieval.refinement.planning import HEAD, Plan, lay_plans
from helios.retrieval.refinement.restoring import restore
from helios.retrieval.refinement.scorer import PLANS, PlanScorer, Verifier
from helios.retrieval.refinement.verification import edge_features
from helios.retrieval.refinement.wording import read_cues
from helios.retrieval.report import Contribution, RefinementMode, RefinementReport
from helios.retrieval.state import SearchState
from helios.types import Edge, Origin, ScoredEdge

VERIFIED = 200
"""Edges from the top that are verified; those after them are behind already."""
SHOWN_PLANS = 3
ENTERING_PLANS = 3
"""Best plans whose rows enter although they were not retrieved."""


@dataclass(frozen=True, slots=True)
class RefinementModels:
    """What is learned of refinement: which questions aggregate, which plan is meant and its worth, what is noise."""

    detector: Detector
    scorer: PlanScorer
    bonus: RowBonus
    verifier: Verifier

    @classmethod
    def load(cls) -> "RefinementModels":
        """The packaged ones; ModelError if they are damaged."""
        read_card(PLANS.parent, "aggregation")
        return cls(Detector.load(), PlanScorer.load(), RowBonus.load(), Verifier.load())


class LocalRefinement:
    """The stage: aggregation by plans that are executed, verification by a calibrated score; threads may share it."""

    name = "refine"
    depth = VERIFIED

    def __init__(self, settings: AdvancedRefinementSettings, models: RefinementModels, new_edges: EdgeScorer) -> None:
        """`new_edges` scores the edges of rows that enter although they were not retrieved."""
        self.settings = settings
        self.models = models
        self.new_edges = new_edges
        self.executor = Executor()

    def __repr__(self) -> str:
        return f"LocalRefinement({self.settings})"

    def run(self, state: SearchState) -> SearchState:
        """The state with rows that plans chose raised, and a report; past the deadline what is done so far counts."""
        report = RefinementReport(RefinementMode.LOCAL, aggregation=self.models.detector.probability(state.question))
        if state.subgraph.edges and self.settings.verify:
            state, report = self.verify(state, report)
        if state.subgraph.edges and read_cues(state.question) and report.aggregation >= self.settings.detect:
            if state.in_time():
                state, report = self.aggregate(state, report)
            else:
                report = replace(report, problems=(*report.problems, "no time left for aggregation"))
        return replace(state, report=report)

    def verify(self, state: SearchState, report: RefinementReport) -> tuple[SearchState, RefinementReport]:
        """Mark edges that are hardly evidence as rejected; the best edge never is."""
        head = state.subgraph.edges[:VERIFIED]
        state, features = edge_features(state, head)
        probabilities = self.models.verifier.probabilities(features)
        doubted = {
            scored.edge
            for scored, probability in zip(head[1:], probabilities[1:], strict=True)
            if probability < self.settings.verify
        }
        state = state.with_edges(
            replace(scored, rejected=True) if scored.edge in doubted else scored for scored in state.subgraph.edges
        )
        return state, replace(report, rejected=tuple(scored.edge for scored in head if scored.edge in doubted))

    def aggregate(self, state: SearchState, report: RefinementReport) -> tuple[SearchState, RefinementReport]:
        """Execute the plans for a question and raise the rows that they chose.

        Rows of the best plans that were not retrieved enter with all their edges, scored as retrieved ones are.
        """
        plans, chances = self.rank_plans(state)
        likeliest = zip(plans[:SHOWN_PLANS], chances[:SHOWN_PLANS], strict=True)
        report = replace(report, plans=tuple(f"{plan.words} ({chance:.2f})" for plan, chance in likeliest))
        if not plans:
            return state, report
        raised = {segment: gain for segment, gain in self.models.bonus.of(plans, chances).items() if gain > 0}
        entering = {segment for plan in plans[:ENTERING_PLANS] for segment in plan.segments if segment in raised}
        state, entered = self._entering(state, sorted(entering))
        gains = ((scored, raised.get(_row(scored), 0.0)) for scored in [*state.subgraph.edges, *entered])
        state = state.with_edges(replace(scored, score=scored.score + gain) for scored, gain in gains)
        if chances[0] < self.settings.believe:
            return state, report
        best = plans[0]
        promoted = tuple(scored.edge for scored in state.subgraph.edges if scored.edge.segment in best.segments)
        return state, replace(
            report, chance=float(chances[0]), segments=best.segments, cells=_contributions(best), promoted=promoted
        )

    def rank_plans(self, state: SearchState) -> tuple[list[Plan], NDArray[np.float64]]:
        """Executed plans with their probabilities, the likeliest first."""
        tables = list(restore(state.index, state.subgraph, count=self.settings.tables))
        head = [scored.score for scored in state.subgraph.edges[:HEAD]]
        plans = lay_plans(state.question, read_cues(state.question), tables, self.executor, head=head)
        chances = self.models.scorer.scores([plan.features for plan in plans])
        order = np.argsort(-chances, kind="stable")
        return [plans[number] for number in order], chances[order]

    def _entering(self, state: SearchState, segments: Sequence[int]) -> tuple[SearchState, list[ScoredEdge]]:
        """The edges of these rows that were not retrieved, with their scores."""
        present = {scored.edge for scored in state.subgraph.edges}
        edges = [edge for segment in segments for edge in edges_of_row(state.index, segment) if edge not in present]
        if not edges:
            return state, []
        state, scores = self.new_edges.score(state, edges)
        pairs = zip(edges, scores.tolist(), strict=True)
        return state, [ScoredEdge(edge, score, Origin.AGGREGATED) for edge, score in pairs]


def edges_of_row(index: IndexReader, segment: int) -> list[Edge]:
    """All edges of a row, or the row alone where it has none."""
    passages = index.graph.passages_of(segment).tolist()
    return [Edge(segment, passage) for passage in passages] or [Edge(segment, None)]


def _row(scored: ScoredEdge) -> int:
    """The row of an edge, -1 for a passage alone."""
    return -1 if scored.edge.segment is None else scored.edge.segment


def _contributions(plan: Plan) -> tuple[Contribution, ...]:
    """The cells that were compared, of the chosen rows first."""
    table, column = plan.table.table, plan.column
    if column.kind is Kind.ORDER:
        return ()
    others = [int(row) for row in np.flatnonzero(plan.filter.mask & np.isfinite(column.values))]
    rows = [*plan.rows, *(row for row in others if row not in plan.rows)]
    first = plan.table.first_segment
    return tuple(
        Contribution(first + row, column.column, column.header, table.rows[row][column.column]) for row in rows
    )

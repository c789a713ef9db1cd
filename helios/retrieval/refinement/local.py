"""The refiner without a language model: detect, plan, execute, verify (HELIOS 4.3).

1. a classifier reads the question: does it compare over a column at all?
2. plans over the whole tables of the best stars are executed in DuckDB; a scorer says how likely each one is meant;
3. the rows that plans chose gain what the plans are worth beside the ranking's own log-odds;
4. where the settings ask for it, edges that a calibrated score takes for noise move behind the others.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from helios.config import RefinementSettings
from helios.graph import Subgraph
from helios.index.search import Query
from helios.models.encoder import TokenEncoder
from helios.retrieval.part import SearchPart
from helios.retrieval.refinement.base import (
    Contribution,
    Refinement,
    RefinementMode,
    RefinementReport,
    demote,
    promote,
)
from helios.retrieval.refinement.bonus import RowBonus
from helios.retrieval.refinement.columns import Kind
from helios.retrieval.refinement.detector import Detector
from helios.retrieval.refinement.execution import Executor
from helios.retrieval.refinement.planning import HEAD, Plan, lay_plans
from helios.retrieval.refinement.restoring import restore
from helios.retrieval.refinement.scorer import PlanScorer, Verifier
from helios.retrieval.refinement.verification import edge_features, pair_scores
from helios.retrieval.refinement.wording import read_cues
from helios.types import Edge, ScoredEdge

VERIFIED = 200
"""Edges from the top that are verified; those after them are behind already."""
SHOWN_PLANS = 3
ENTERING_PLANS = 3
"""Best plans whose rows enter although they were not retrieved."""


class LocalRefiner:
    """Aggregation by plans that are executed, verification by a calibrated score; threads may share it."""

    def __init__(
        self,
        encoder: TokenEncoder,
        settings: RefinementSettings,
        *,
        detector: Detector | None = None,
        scorer: PlanScorer | None = None,
        bonus: RowBonus | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self.encoder = encoder
        self.settings = settings
        self.detector = detector or Detector.load()
        self.scorer = scorer or PlanScorer.load()
        self.bonus = bonus or RowBonus.load()
        self.verifier = verifier or Verifier.load()
        self.executor = Executor()

    def refine(
        self, question: str, subgraph: Subgraph, part: SearchPart, *, deadline: float | None = None
    ) -> Refinement:
        started = time.monotonic()
        report = RefinementReport(RefinementMode.LOCAL, aggregation=self.detector.probability(question))
        refined = subgraph
        if subgraph.edges and self.settings.verify:
            if _left(deadline):
                refined, report = self.verify(part.query(self.encoder, question), refined, part, report)
            else:
                report = replace(report, problems=(*report.problems, "no time left for verification"))
        if subgraph.edges and read_cues(question) and report.aggregation >= self.settings.detect:
            if _left(deadline):
                refined, report = self.aggregate(question, refined, part, report)
            else:
                report = replace(report, problems=(*report.problems, "no time left for aggregation"))
        milliseconds = (time.monotonic() - started) * 1e3
        return Refinement(refined, replace(report, milliseconds=milliseconds))

    def verify(
        self, query: Query, subgraph: Subgraph, part: SearchPart, report: RefinementReport
    ) -> tuple[Subgraph, RefinementReport]:
        """Move edges that are hardly evidence behind the others; the best edge always stays."""
        head = subgraph.top(VERIFIED)
        together, alone = pair_scores(part, query, [scored.edge for scored in head.edges])
        probabilities = self.verifier.probabilities(edge_features(head, part.graph, together, alone))
        doubted = [
            scored.edge
            for scored, probability in zip(head.edges[1:], probabilities[1:], strict=True)
            if probability < self.settings.verify
        ]
        tail = [scored.edge for scored in subgraph.edges[VERIFIED:]]
        moved = demote(subgraph, frozenset([*doubted, *tail]))
        return moved, replace(report, demoted=tuple(doubted))

    def aggregate(
        self, question: str, subgraph: Subgraph, part: SearchPart, report: RefinementReport
    ) -> tuple[Subgraph, RefinementReport]:
        """Execute the plans for a question and raise the rows that they chose.

        Rows of the best plans that were not retrieved enter with all their edges, below all others by MaxSim before
        they are raised.
        """
        plans, chances = self.rank_plans(question, subgraph, part)
        likeliest = zip(plans[:SHOWN_PLANS], chances[:SHOWN_PLANS], strict=True)
        report = replace(report, plans=tuple(f"{plan.words} ({chance:.2f})" for plan, chance in likeliest))
        if not plans:
            return subgraph, report
        raised = {segment: gain for segment, gain in self.bonus.of(plans, chances).items() if gain > 0}
        entering = {segment for plan in plans[:ENTERING_PLANS] for segment in plan.segments if segment in raised}
        edges = [*subgraph.edges, *self.new_edges(question, subgraph, part, sorted(entering))]
        gains = [(scored, raised[row]) for scored in edges if (row := scored.edge.segment) in raised]
        refined = promote(subgraph, gains)
        if chances[0] < self.settings.believe:
            return refined, report
        best = plans[0]
        promoted = tuple(scored.edge for scored in refined.edges if scored.edge.segment in best.segments)
        return refined, replace(
            report, chance=float(chances[0]), segments=best.segments, cells=_contributions(best), promoted=promoted
        )

    def rank_plans(self, question: str, subgraph: Subgraph, part: SearchPart) -> tuple[list[Plan], NDArray[np.float64]]:
        """Executed plans with their probabilities, the likeliest first."""
        tables = list(restore(part.corpus, part.graph, subgraph, count=self.settings.tables))
        head = [scored.score for scored in subgraph.edges[:HEAD]]
        plans = lay_plans(question, read_cues(question), tables, self.executor, head=head)
        chances = self.scorer.scores([plan.features for plan in plans])
        order = np.argsort(-chances, kind="stable")
        return [plans[number] for number in order], chances[order]

    def new_edges(
        self, question: str, subgraph: Subgraph, part: SearchPart, segments: Sequence[int]
    ) -> list[ScoredEdge]:
        """The edges of these rows that were not retrieved, below all others by MaxSim."""
        present = {scored.edge for scored in subgraph.edges}
        deleted = frozenset(part.deleted.tolist())
        shift = part.graph.segment_count
        edges: list[Edge] = []
        for segment in segments:
            passages = [int(p) for p in part.graph.passages_of(segment) if int(p) + shift not in deleted]
            found = [Edge(segment, passage) for passage in passages] or [Edge(segment, None)]
            edges += [edge for edge in found if edge not in present and segment not in deleted]
        if not edges:
            return []
        together, _ = pair_scores(part, part.query(self.encoder, question), edges)
        floor = subgraph.edges[-1].score - float(together.max())
        return [ScoredEdge(edge, floor + float(score)) for edge, score in zip(edges, together, strict=True)]


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


def _left(deadline: float | None) -> bool:
    return deadline is None or time.monotonic() < deadline

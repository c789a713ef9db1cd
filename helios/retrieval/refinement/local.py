"""The refiner without a language model: detect, plan, execute, verify (HELIOS 4.3).

1. a classifier reads the question: does it compare over a column at all?
2. plans over the whole tables of the best stars are executed in DuckDB; a scorer says which one is meant;
3. the rows that the best plan chose come first, or second when the scorer is less sure;
4. edges that a calibrated score takes for noise move behind the others.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from helios.config import RefinementSettings
from helios.graph import Subgraph
from helios.index.search import Query
from helios.models.encoder import TokenEncoder
from helios.retrieval.part import SearchPart
from helios.retrieval.refinement.base import (
    GAP,
    Contribution,
    Refinement,
    RefinementMode,
    RefinementReport,
    demote,
    promote,
)
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


class LocalRefiner:
    """Aggregation by plans that are executed, verification by a calibrated score; threads may share it."""

    def __init__(
        self,
        encoder: TokenEncoder,
        settings: RefinementSettings,
        *,
        detector: Detector | None = None,
        scorer: PlanScorer | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self.encoder = encoder
        self.settings = settings
        self.detector = detector or Detector.load()
        self.scorer = scorer or PlanScorer.load()
        self.verifier = verifier or Verifier.load()
        self.executor = Executor()

    def refine(
        self, question: str, subgraph: Subgraph, part: SearchPart, *, deadline: float | None = None
    ) -> Refinement:
        started = time.monotonic()
        report = RefinementReport(RefinementMode.LOCAL, aggregation=self.detector.probability(question))
        refined = subgraph
        if len(subgraph):
            query = Query.of(question, self.encoder.encode_question(question), part.tokens)
            if _left(deadline):
                refined, report = self.verify(query, refined, part, report)
            else:
                report = replace(report, problems=(*report.problems, "no time left for verification"))
            if report.aggregation >= self.settings.detect:
                if _left(deadline):
                    refined, report = self.aggregate(question, query, refined, part, report)
                else:
                    report = replace(report, problems=(*report.problems, "no time left for aggregation"))
        milliseconds = (time.monotonic() - started) * 1e3
        return Refinement(refined, replace(report, milliseconds=milliseconds))

    def verify(
        self, query: Query, subgraph: Subgraph, part: SearchPart, report: RefinementReport
    ) -> tuple[Subgraph, RefinementReport]:
        """Move edges that are hardly evidence behind the others; the best edge always stays."""
        if not self.settings.verify:
            return subgraph, report
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
        self, question: str, query: Query, subgraph: Subgraph, part: SearchPart, report: RefinementReport
    ) -> tuple[Subgraph, RefinementReport]:
        """Execute the plans for a question and bring rows to the front.

        The row of the best edge needs no help, so the likeliest plan that chooses another row is the one that moves.
        """
        ranked = self.rank_plans(question, subgraph, part)
        report = replace(report, plans=tuple(f"{plan.words} ({score:.2f})" for plan, score in ranked[:SHOWN_PLANS]))
        if not ranked or ranked[0][1] < self.settings.second:
            return subgraph, report
        best = ranked[0][0]
        report = replace(report, segments=_segments(best), cells=_contributions(best))
        top = subgraph.edges[0].edge.segment
        plan, score = next(((p, s) for p, s in ranked if top not in _segments(p)), (best, 0.0))
        if score < self.settings.second:
            return subgraph, report
        edges = self.row_edges(query, subgraph, part, _segments(plan))
        boost = _boost(subgraph, edges, first=score >= self.settings.first)
        if boost > 0:
            subgraph = promote(subgraph, edges, boost=boost)
            chosen = dict.fromkeys((*_segments(best), *_segments(plan)))
            report = replace(report, segments=tuple(chosen), promoted=tuple(scored.edge for scored in edges))
        return subgraph, report

    def rank_plans(self, question: str, subgraph: Subgraph, part: SearchPart) -> list[tuple[Plan, float]]:
        """Executed plans with their probability, the likeliest first."""
        tables = list(restore(part.corpus, part.graph, subgraph, count=self.settings.tables))
        head = [scored.score for scored in subgraph.edges[:HEAD]]
        cues = read_cues(question)
        plans = lay_plans(question, cues, tables, self.executor, head=head)
        scores = self.scorer.scores([plan.features for plan in plans])
        order = np.argsort(-scores, kind="stable")
        return [(plans[number], float(scores[number])) for number in order]

    def row_edges(
        self, query: Query, subgraph: Subgraph, part: SearchPart, segments: Sequence[int]
    ) -> list[ScoredEdge]:
        """All edges of the rows, best first; those that were not retrieved are set below all others by MaxSim."""
        present = {scored.edge: scored for scored in subgraph.edges}
        deleted = frozenset(part.view.deleted_nodes().tolist())
        shift = part.graph.segment_count
        edges: list[Edge] = [scored.edge for scored in subgraph.edges if scored.edge.segment in segments]
        for segment in segments:
            if segment in deleted:
                continue
            passages = [int(p) for p in part.graph.passages_of(segment) if int(p) + shift not in deleted]
            edges += [Edge(segment, passage) for passage in passages] or [Edge(segment, None)]
        edges = list(dict.fromkeys(edges))
        together, _ = pair_scores(part, query, edges)
        floor = subgraph.edges[-1].score - float(together.max(initial=0.0))
        scored = [
            present.get(edge, ScoredEdge(edge, floor + float(score)))
            for edge, score in zip(edges, together, strict=True)
        ]
        return sorted(scored, key=lambda item: -item.score)


def _boost(subgraph: Subgraph, edges: Sequence[ScoredEdge], *, first: bool) -> float:
    """What lifts the best of these edges to the first or the second rank; 0 where it is there already."""
    if not edges:
        return 0.0
    others = [scored.score for scored in subgraph.edges if scored.edge.segment != edges[0].edge.segment]
    if not others:
        return 0.0
    top = subgraph.edges[0].score
    if first:
        return max(0.0, top + GAP - edges[0].score)
    runner = subgraph.edges[1].score if len(subgraph) > 1 else top - GAP
    return max(0.0, (top + runner) / 2 - edges[0].score)


def _segments(plan: Plan) -> tuple[int, ...]:
    return tuple(plan.table.first_segment + row for row in plan.rows)


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

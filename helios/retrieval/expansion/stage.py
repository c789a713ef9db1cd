"""Query-relevant node expansion (HELIOS 4.2): edges that the data graph lacks, from the best nodes of a subgraph.

    seeds -> candidates -> pair model -> beam

Seeds are the subgraph's best rows, all rows of its best tables, and its best passages. A seed's candidates are the
passages nearest to the question and the seed's text together, linked or not; edges of the data graph are left out:
edge retrieval has scored all of them. One model scores the pairs of all seeds, in place of p(u | q) · p(v | u, q):
its log-odds see how good the seed is and how well the pair fits, so that pairs of different seeds compare. The best
`beam` pairs become edges. Rows of tables that the subgraph does not touch are not looked for.
"""

from dataclasses import dataclass, field

import numpy as np

from helios.retrieval.expansion.candidates import Reach, find_pairs
from helios.retrieval.expansion.model import PairModel
from helios.retrieval.expansion.seeds import NodeScorer, Seeds
from helios.retrieval.ranking.stage import EdgeScorer
from helios.retrieval.state import SearchState
from helios.types import Edge, Origin, ScoredEdge

CONTENDERS = 1000
"""Pairs that all trees of the pair model look at."""
READ = 200
"""Ranked edges that seeds are chosen from."""


@dataclass(frozen=True, slots=True)
class ExpandedPair:
    """A new edge and the pair model's log-odds that it is evidence."""

    edge: Edge
    log_odds: float


@dataclass(frozen=True, slots=True)
class Expansion:
    """The stage: at most `beam` new edges, their origin EXPANDED.

    An edge's score is the scorer's, and no more than the pair model's log-odds: the learned ranking has only seen
    edges that the graph has, and thinks too well of others.
    """

    model: PairModel
    scorer: EdgeScorer = field(repr=False)
    reach: Reach
    beam: int
    nodes: NodeScorer = field(repr=False)
    name: str = "expand"
    depth: int = READ

    def run(self, state: SearchState) -> SearchState:
        """The state with new edges among the ranked ones."""
        if not state.in_time():
            return state.without("to look for edges that the graph lacks")
        pairs = self.pairs(state)
        if not pairs:
            return state
        state, scores = self.scorer.score(state, [pair.edge for pair in pairs])
        added = (
            ScoredEdge(pair.edge, min(score, pair.log_odds), Origin.EXPANDED)
            for pair, score in zip(pairs, scores.tolist(), strict=True)
        )
        return state.with_edges([*state.subgraph.edges, *added])

    def pairs(self, state: SearchState) -> list[ExpandedPair]:
        """The best `beam` pairs that are neither linked nor in the subgraph, best first."""
        if self.beam == 0 or not state.subgraph.edges:
            return []
        found = find_pairs(state, self.seeds(state), self.reach)
        kept = self.model.contenders(found.features, max(CONTENDERS, 10 * self.beam))
        rows, passages, log_odds = found.rows[kept], found.passages[kept], self.model.score(found.features[kept])
        best = np.lexsort((passages, rows, -log_odds))[: self.beam]
        return [ExpandedPair(Edge(int(rows[n]), int(passages[n])), float(log_odds[n])) for n in best.tolist()]

    def seeds(self, state: SearchState) -> Seeds:
        """What it begins from (first step of the beam search)."""
        return seeds_of(state, self.nodes)


def seeds_of(state: SearchState, scorer: NodeScorer) -> Seeds:
    """The nodes of a subgraph by a node scorer."""
    touched, segments = state.subgraph.nodes(), state.index.segment_count
    nodes = np.array([*touched.segments, *(passage + segments for passage in touched.passages)], np.int64)
    return Seeds.of(state.index, nodes, scorer.score(state, nodes, state.subgraph))

"""Edge retrieval f_e (HELIOS 4.1): from a question to its best edges by the fused score.

Only nodes are encoded and stored; every edge of the index is bounded and the best ones are scored exactly
(`helios.index.search`). `helios.retrieval.joint` is the paper's way, for comparison.
"""

from dataclasses import dataclass, replace

import numpy as np

from helios.graph import Subgraph
from helios.retrieval.ranking.fused import FusedScale
from helios.retrieval.state import SearchState, edges_of
from helios.types import ScoredEdge


@dataclass(frozen=True, slots=True)
class EdgeRetrieval:
    """The stage that begins every search."""

    scale: FusedScale
    candidates: int
    """Units that are kept for the later stages, at least."""
    exact: int
    """Of these how many are scored from stored vectors at most."""
    name: str = "retrieve"
    depth: int = 0

    def run(self, state: SearchState) -> SearchState:
        """The state with candidates, their nodes' maxima, and the best `state.depth` as ranked edges."""
        count = max(self.candidates, state.depth)
        exact = max(self.exact, state.depth)
        found = state.search.candidates(state.query, count=count, exact=exact, depth=state.depth)
        fused = found.scores.fused[: state.depth]
        best = float(fused[0]) if len(fused) else 0.0
        scores = self.scale.log_odds(fused, np.arange(len(fused)), best=best)
        edges = edges_of(state.index, found.pairs.take(np.arange(len(fused))))
        ranked = [ScoredEdge(edge, score) for edge, score in zip(edges, scores.tolist(), strict=True)]
        return replace(state, candidates=found, maxima=found.maxima, subgraph=Subgraph.from_edges(ranked))

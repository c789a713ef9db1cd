"""What expansion begins from: the best nodes of a subgraph."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.graph import Subgraph
from helios.index.reader import IndexReader
from helios.retrieval.state import SearchState

FloatArray = NDArray[np.float32]
Numbers = NDArray[np.int64]
UNSEEN = -12.0
"""Log-odds of a node that the subgraph does not have."""


class NodeScorer(Protocol):
    """g_n: how relevant nodes are to a question."""

    def score(self, state: SearchState, nodes: Numbers, subgraph: Subgraph) -> FloatArray:
        """One logit a node of the subgraph, by their numbers in the index: (B)."""


class BestEdges:
    """The default node scorer: a node is as good as its best edge.

    On train questions its seeds led to four times as many missing links as seeds by the node's own MaxSim did.
    """

    def score(self, state: SearchState, nodes: Numbers, subgraph: Subgraph) -> FloatArray:
        """One logit a node: (B)."""
        segments = state.index.segment_count
        best: dict[int, float] = {}
        for scored in subgraph.edges:
            if scored.edge.segment is not None:
                best.setdefault(scored.edge.segment, scored.score)
            if scored.edge.passage is not None:
                best.setdefault(scored.edge.passage + segments, scored.score)
        return np.array([best[int(node)] for node in nodes], np.float32)


@dataclass(frozen=True, slots=True)
class Seeds:
    """Scores of rows, tables and passages, best first."""

    rows: dict[int, float]
    tables: dict[int, float]
    passages: dict[int, float]

    @classmethod
    def of(cls, index: IndexReader, nodes: Numbers, scores: FloatArray) -> "Seeds":
        """Nodes by their scores; a table is as good as its best row."""
        segments = index.segment_count
        rows: dict[int, float] = {}
        tables: dict[int, float] = {}
        passages: dict[int, float] = {}
        for n in np.lexsort((nodes, -scores)).tolist():
            node, score = int(nodes[n]), float(scores[n])
            if node < segments:
                rows[node] = score
                tables.setdefault(index.corpus.table_of(node), score)
            else:
                passages[node - segments] = score
        return cls(rows, tables, passages)


def looked_up(numbers: Numbers, scores: dict[int, float]) -> tuple[FloatArray, Numbers]:
    """The score and the rank of each node, those of unknown ones below all others."""
    ranks = {number: rank for rank, number in enumerate(scores)}
    distinct, places = np.unique(numbers, return_inverse=True)
    found = np.array([scores.get(int(n), UNSEEN) for n in distinct], np.float32)
    order = np.array([ranks.get(int(n), 2 * len(ranks)) for n in distinct], np.int64)
    return found[places], order[places]

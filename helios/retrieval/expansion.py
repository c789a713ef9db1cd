"""Query-relevant node expansion (HELIOS 4.2): edges that the data graph lacks, from the best nodes of a subgraph.

    seeds -> candidates -> pair model -> beam

Seeds are the subgraph's best rows, all rows of its best tables, and its best passages. A seed's candidates are the
passages nearest to the question and the seed's text together, linked or not; edges of the data graph are left out:
edge retrieval has scored all of them. One model scores the pairs of all seeds, in place of p(u | q) · p(v | u, q):
its log-odds see how good the seed is and how well the pair fits, so that pairs of different seeds compare. The best
`beam` pairs become edges. Rows of tables that the subgraph does not touch are not looked for.

What is near to a row is found by words and not by encoding [q; Γ(u)]: of 158 gold passages that the graph did not link
to a row of a good table, 77 were among the first 20 passages by BM25 of [q; Γ(u)], 109 with the words of titles
counted too, and 20 by the MaxSim that question and row reach together (train questions).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.config import ExpansionSettings
from helios.graph import Subgraph
from helios.index.search import Query
from helios.models.encoder import TokenEncoder
from helios.models.pairs import PairModel
from helios.once import once
from helios.retrieval.pairs import PAIR_FEATURES, PairFinder, Reach, Seeds
from helios.retrieval.part import SearchPart
from helios.types import Edge, Origin, ScoredEdge

FloatArray = NDArray[np.float32]
NodeArray = NDArray[np.int64]
CONTENDERS = 1000
"""Pairs that all trees of the pair model look at."""


class NodeScorer(Protocol):
    """g_n: how relevant nodes are to a question."""

    def score(self, query: Query, nodes: NodeArray, subgraph: Subgraph) -> FloatArray:
        """One logit a node of the subgraph (segments, then passages, by their numbers in the part): (B)."""


class EdgeScorer(Protocol):
    """What gives new edges the scores that they are ranked by beside those of the subgraph."""

    def score(self, query: Query, edges: Sequence[Edge]) -> FloatArray:
        """One score an edge, on the scale of the subgraph's scores."""


@dataclass(frozen=True, slots=True)
class ExpandedPair:
    """A new edge and the pair model's log-odds that it is evidence."""

    edge: Edge
    log_odds: float


class BestEdges:
    """The default node scorer: a node is as good as its best edge.

    On train questions its seeds led to four times as many missing links as seeds by the node's own MaxSim did.
    """

    def __init__(self, part: SearchPart) -> None:
        self.part = part

    def score(self, query: Query, nodes: NodeArray, subgraph: Subgraph) -> FloatArray:
        segments = self.part.graph.segment_count
        best: dict[int, float] = {}
        for scored in reversed(subgraph.edges):
            if scored.edge.segment is not None:
                best[scored.edge.segment] = scored.score
            if scored.edge.passage is not None:
                best[scored.edge.passage + segments] = scored.score
        return np.array([best[int(node)] for node in nodes], np.float32)


class NodeExpander:
    """Expands the subgraphs of one part; holds no state of a question, so threads may share it."""

    def __init__(
        self, part: SearchPart, encoder: TokenEncoder, settings: ExpansionSettings,
        node_scorer: NodeScorer | None = None,
    ) -> None:  # fmt: skip
        self.part = part
        self.encoder = encoder
        self.settings = settings
        self.node_scorer = node_scorer or BestEdges(part)

    def expand(self, question: str, subgraph: Subgraph, *, edge_scorer: EdgeScorer) -> Subgraph:
        """The subgraph with at most `beam` new edges, their origin EXPANDED.

        An edge's score is the scorer's, and no more than the pair model's log-odds: the learned ranking has only seen
        edges that the graph has, and thinks too well of others.
        """
        query = self.query(question)
        pairs = self.pairs(query, subgraph)
        if not pairs:
            return subgraph
        scores = edge_scorer.score(query, [pair.edge for pair in pairs])
        return subgraph.merge(
            ScoredEdge(pair.edge, min(float(score), pair.log_odds), Origin.EXPANDED)
            for pair, score in zip(pairs, scores, strict=True)
        )

    def query(self, question: str) -> Query:
        """The question with its token vectors."""
        return self.part.query(self.encoder, question)

    def pairs(self, query: Query, subgraph: Subgraph) -> list[ExpandedPair]:
        """The best `beam` pairs that are neither linked nor in the subgraph, best first."""
        beam = self.settings.beam
        if beam == 0 or not subgraph.edges:
            return []
        found = self.finder.find(query, self.seeds(query, subgraph), subgraph)
        kept = self.model.contenders(found.features, max(CONTENDERS, 10 * beam))
        rows, passages, log_odds = found.rows[kept], found.passages[kept], self.model.score(found.features[kept])
        best = np.lexsort((passages, rows, -log_odds))[:beam]
        return [ExpandedPair(Edge(int(rows[n]), int(passages[n])), float(log_odds[n])) for n in best.tolist()]

    def seeds(self, query: Query, subgraph: Subgraph) -> Seeds:
        """The nodes of the subgraph by the node scorer (first step of the beam search)."""
        touched, segments = subgraph.nodes(), self.part.graph.segment_count
        nodes = np.array([*touched.segments, *(passage + segments for passage in touched.passages)], np.int64)
        return Seeds.of(self.part, nodes, self.node_scorer.score(query, nodes, subgraph))

    @once
    def finder(self) -> PairFinder:
        """What finds candidates."""
        return PairFinder(self.part, Reach(rows=self.settings.seeds, tables=self.settings.tables))

    @once
    def model(self) -> PairModel:
        """The pair model."""
        return PairModel.load(self.settings.model, features=PAIR_FEATURES)

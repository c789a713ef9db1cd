"""Late interaction over nodes, stars or edges, without BM25 and without a reranker: the comparison of HELIOS's Table 6.

Every unit is scored exactly from the same stored token vectors, after a first pass with centroids alone.
"""

import numpy as np
from numpy.typing import NDArray

from helios.evaluation.edges import RankedEdge
from helios.evaluation.units import RetrievalUnit, edges_of_ranking
from helios.index.search import FactoredSearch, Query
from helios.models.encoder import TokenEncoder
from helios.retrieval.part import SearchPart, node_units
from helios.types import Edge, ScoredEdge

FIRST_PASS = 2000
"""Units whose bounds are checked by exact scoring."""


class LateInteraction:
    """MaxSim over one kind of retrieval unit."""

    def __init__(self, part: SearchPart, encoder: TokenEncoder, *, unit: RetrievalUnit, threads: int = 1) -> None:
        self.part = part
        self.encoder = encoder
        self.unit = unit
        units = part.search.units if unit is RetrievalUnit.EDGE else node_units(part.graph)
        self._search = FactoredSearch(part.tokens, part.postings, units, threads=threads)

    def search(self, question: str, *, k: int = 50) -> tuple[RankedEdge, ...]:
        """The k best edges that the ranked units stand for."""
        query = Query.of(question, self.encoder.encode_question(question), self.part.tokens)
        edges = self._edges(query)[:k] if self.unit is RetrievalUnit.EDGE else self._expanded(query, k=k)
        corpus = self.part.corpus
        return tuple(
            RankedEdge(
                None if scored.edge.segment is None else corpus.segment(scored.edge.segment),
                None if scored.edge.passage is None else corpus.passages[scored.edge.passage],
                scored.score,
            )
            for scored in edges
        )

    def _edges(self, query: Query) -> list[ScoredEdge]:
        found = self._search.candidates(query, count=FIRST_PASS, lexical_weight=0.0)
        order = np.argsort(-found.maxsim, kind="stable")
        return [ScoredEdge(self.part.edge(int(found.units[i])), float(found.maxsim[i])) for i in order]

    def _expanded(self, query: Query, *, k: int) -> list[ScoredEdge]:
        """Ranked segments (alone or as stars) and lone passages, taken apart into edges."""
        graph = self.part.graph
        found = self._search.candidates(query, count=FIRST_PASS, lexical_weight=0.0)
        nodes = self._search.node_of(found.units)
        passages = np.full(graph.passage_count, -np.inf, np.float32)
        is_passage = nodes >= graph.segment_count
        passages[nodes[is_passage] - graph.segment_count] = found.maxsim[is_passage]
        segments = nodes[~is_passage]
        scores = found.maxsim[~is_passage]
        if self.unit is RetrievalUnit.STAR:
            segments = np.unique(np.concatenate([segments, self._centres(nodes[is_passage])]))
            scores = np.array([self._star(query, int(segment)) for segment in segments], np.float32)
        order = np.argsort(-scores, kind="stable")
        ranking = [(Edge(int(segments[i]), None), float(scores[i])) for i in order]
        return edges_of_ranking(graph, ranking, passages, k=k)

    def _centres(self, passage_nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Segments whose stars hold one of the best passages."""
        graph = self.part.graph
        best = passage_nodes[:200] - graph.segment_count
        linked = [graph.segments_of(int(passage)) for passage in best]
        return np.concatenate(linked).astype(np.int64) if linked else np.zeros(0, np.int64)

    def _star(self, query: Query, segment: int) -> float:
        graph = self.part.graph
        members = np.concatenate([[segment], graph.passages_of(segment) + graph.segment_count]).astype(np.int64)
        maxima = self._search.node_maxima(query, members).max(axis=0)
        return float(maxima @ query.weights_Q)

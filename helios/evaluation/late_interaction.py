"""Late interaction over nodes, stars or edges, without BM25 and without a reranker: the comparison of HELIOS's Table 6.

Every unit is scored exactly from the same stored token vectors, after a first pass with centroids alone.
"""

import numpy as np
from numpy.typing import NDArray

from helios.evaluation.edges import RankedEdge, with_texts
from helios.evaluation.units import RetrievalUnit, edges_of_ranking
from helios.index.search import FactoredSearch, Fusion, Query
from helios.models.encoder import TokenEncoder
from helios.retrieval.part import SearchPart, node_units
from helios.types import Edge, ScoredEdge

FloatArray = NDArray[np.float32]
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

    def close(self) -> None:
        """End its threads."""
        self._search.close()

    def search(self, question: str, *, k: int = 50) -> tuple[RankedEdge, ...]:
        """The k best edges that the ranked units stand for."""
        query = self.part.query(self.encoder, question)
        edges = self._edges(query)[:k] if self.unit is RetrievalUnit.EDGE else self._expanded(query, k=k)
        return with_texts(edges, self.part.corpus)

    def _edges(self, query: Query) -> list[ScoredEdge]:
        found = self._search.candidates(query, count=FIRST_PASS, fusion=Fusion())
        order = np.argsort(-found.maxsim, kind="stable")
        return [ScoredEdge(self.part.edge(int(found.units[i])), float(found.maxsim[i])) for i in order]

    def _expanded(self, query: Query, *, k: int) -> list[ScoredEdge]:
        """Ranked segments (alone or as stars) and lone passages, taken apart into edges."""
        graph = self.part.graph
        found = self._search.candidates(query, count=FIRST_PASS, fusion=Fusion())
        nodes = self._search.node_of(found.units)
        passages = np.full(graph.passage_count, -np.inf, np.float32)
        is_passage = nodes >= graph.segment_count
        passages[nodes[is_passage] - graph.segment_count] = found.maxsim[is_passage]
        segments = nodes[~is_passage]
        scores = found.maxsim[~is_passage]
        if self.unit is RetrievalUnit.STAR:
            segments = np.unique(np.concatenate([segments, self._centres(nodes[is_passage])]))
            scores = self._star_scores(query, segments)
        order = np.argsort(-scores, kind="stable")
        ranking = [(Edge(int(segments[i]), None), float(scores[i])) for i in order]
        return edges_of_ranking(graph, ranking, passages, k=k)

    def _centres(self, passage_nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Segments whose stars hold one of the best passages."""
        graph = self.part.graph
        best = passage_nodes[:200] - graph.segment_count
        linked = [graph.segments_of(int(passage)) for passage in best]
        return np.concatenate(linked).astype(np.int64) if linked else np.zeros(0, np.int64)

    def _star_scores(self, query: Query, segments: NDArray[np.int64]) -> FloatArray:
        """MaxSim of each segment together with all its passages; every node is scored once."""
        graph = self.part.graph
        stars = [np.append(segment, graph.passages_of(int(segment)) + graph.segment_count) for segment in segments]
        if not stars:
            return np.zeros(0, np.float32)
        starts = np.cumsum([0, *map(len, stars[:-1])])
        nodes, places = np.unique(np.concatenate(stars), return_inverse=True)
        maxima = self._search.node_maxima(query, nodes.astype(np.int64))[places]
        scores: FloatArray = np.maximum.reduceat(maxima, starts, axis=0) @ query.weights_Q
        return scores

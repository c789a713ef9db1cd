"""Late interaction alone over one kind of retrieval unit, for the comparison of HELIOS 5.3, Table 6."""

import numpy as np
from numpy.typing import NDArray

from helios.engine import Engine
from helios.evaluation.edges import RankedEdge, with_texts
from helios.evaluation.units import RetrievalUnit, edges_of_ranking
from helios.index.search import Candidates, EdgeSearch, Fusion
from helios.index.units import node_units
from helios.index.visible import Query
from helios.retrieval.state import edges_of
from helios.types import Edge, ScoredEdge

FloatArray = NDArray[np.float32]
FIRST_PASS = 2000
"""Units that are scored exactly."""


class LateInteraction:
    """MaxSim over one kind of retrieval unit."""

    def __init__(self, engine: Engine, *, unit: RetrievalUnit) -> None:
        self.engine = engine
        self.index = engine.index
        self.unit = unit
        self._units = self.index.units if unit is RetrievalUnit.EDGE else node_units(self.index.graph)
        self._search = EdgeSearch(self.index, Fusion(), engine.threads)

    def search(self, question: str, *, k: int = 50) -> tuple[RankedEdge, ...]:
        """The k best edges that the ranked units stand for."""
        query = self.engine.query(question)
        found = self._search.candidates(query, count=FIRST_PASS, exact=FIRST_PASS, units=self._units)
        edges = self._edges(found)[:k] if self.unit is RetrievalUnit.EDGE else self._expanded(query, found, k=k)
        return with_texts(edges, self.index.corpus)

    def _edges(self, found: Candidates) -> list[ScoredEdge]:
        order = np.argsort(-found.scores.maxsim, kind="stable").tolist()
        edges = edges_of(self.index, found.pairs)
        return [ScoredEdge(edges[i], float(found.scores.maxsim[i])) for i in order]

    def _expanded(self, query: Query, found: Candidates, *, k: int) -> list[ScoredEdge]:
        """Ranked segments (alone or as stars) and lone passages, taken apart into edges."""
        graph, shift = self.index.graph, self.index.segment_count
        nodes = np.minimum(found.pairs.left, found.pairs.right)
        passages = np.full(graph.passage_count, -np.inf, np.float32)
        is_passage = nodes >= shift
        passages[nodes[is_passage] - shift] = found.scores.maxsim[is_passage]
        segments, scores = nodes[~is_passage], found.scores.maxsim[~is_passage]
        if self.unit is RetrievalUnit.STAR:
            segments = np.unique(np.concatenate([segments, self._centres(nodes[is_passage])]))
            scores = self._star_scores(query, segments)
        order = np.argsort(-scores, kind="stable")
        ranking = [(Edge(int(segments[i]), None), float(scores[i])) for i in order]
        return edges_of_ranking(graph, ranking, passages, k=k)

    def _centres(self, passage_nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Segments whose stars hold one of the best passages."""
        graph = self.index.graph
        best = passage_nodes[:200] - self.index.segment_count
        linked = [graph.segments_of(int(passage)) for passage in best]
        return np.concatenate(linked).astype(np.int64) if linked else np.zeros(0, np.int64)

    def _star_scores(self, query: Query, segments: NDArray[np.int64]) -> FloatArray:
        """MaxSim of each segment together with all its passages; every node is scored once."""
        graph, shift = self.index.graph, self.index.segment_count
        stars = [np.append(segment, graph.passages_of(int(segment)) + shift) for segment in segments]
        if not stars:
            return np.zeros(0, np.float32)
        starts = np.cumsum([0, *map(len, stars[:-1])])
        nodes, places = np.unique(np.concatenate(stars), return_inverse=True)
        maxima = self.index.tokens.maxima(query, nodes.astype(np.int64), self.engine.threads)[places]
        scores: FloatArray = np.maximum.reduceat(maxima, starts, axis=0) @ query.weights_Q
        return scores

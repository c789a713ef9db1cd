"""Edge retrieval f_e (HELIOS 4.1): from a question to its best edges.

`EdgeIndex` is what the engine knows; `FactoredEdges` is the default, which encodes nodes and never edges, and
`helios.retrieval.joint` the paper's way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.config import SearchSettings
from helios.index.search import Candidates, FloatArray, Fusion, Query
from helios.models.encoder import TokenEncoder
from helios.models.ranker import EdgeRanker
from helios.retrieval.expansion import EdgeScorer
from helios.retrieval.features import edge_features
from helios.retrieval.part import SearchPart
from helios.types import Edge, ScoredEdge


class EdgeIndex(Protocol):
    """Anything that ranks the edges of a corpus for a question."""

    @property
    def ranker(self) -> EdgeRanker | None:
        """The learned ranking that scores come from, None where they are sums of MaxSim and BM25."""

    def retrieve(self, question: str, *, k: int) -> list[list[ScoredEdge]]:
        """The best k edges of each part, best first."""

    def new_edges(self, part: SearchPart) -> EdgeScorer:
        """What scores edges that the graph lacks as if it had them."""


RECENT = 8
"""Questions whose candidates are kept for the stages that follow."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Units of one part and their scores, best first."""

    units: NDArray[np.int64]
    scores: FloatArray


@dataclass(frozen=True, slots=True)
class Found:
    """A question in a part's terms, and the best candidates by their fused score, best first."""

    query: Query
    candidates: Candidates
    fused: FloatArray

    def top(self, count: int) -> tuple[Candidates, FloatArray]:
        """The first `count` candidates with their fused scores."""
        return self.candidates.take(np.arange(min(count, len(self.fused)))), self.fused[:count]


class FactoredEdges:
    """Factored MaxSim of edge, row and star fused with BM25, the best of them put in order by a learned ranking."""

    def __init__(
        self,
        parts: Sequence[SearchPart],
        encoder: TokenEncoder,
        settings: SearchSettings,
        ranker: EdgeRanker | None = None,
    ) -> None:
        self.parts = parts
        self.encoder = encoder
        self.settings = settings
        self.ranker = ranker
        self._recent = lru_cache(RECENT)(self._find)
        self._seen = lru_cache(RECENT)(self._features)

    def retrieve(self, question: str, *, k: int) -> list[list[ScoredEdge]]:
        found = []
        for part in self.parts:
            ranking = self.rank(part, question, k=k)
            pairs = zip(ranking.units.tolist(), ranking.scores.tolist(), strict=True)
            found.append([ScoredEdge(part.edge(unit), score) for unit, score in pairs])
        return found

    def rank(self, part: SearchPart, question: str, *, k: int) -> Ranking:
        """The best k units of a part."""
        depth = self.settings.rank_depth if self.ranker is not None else 0
        found = self.found(part, question, depth=max(k, depth))
        fused = found.fused
        if self.ranker is not None:
            fused = reorder(self.ranker.score(self._seen(part, question)), fused)
        units = found.candidates.units
        order = np.lexsort((units, -fused))[:k]
        return Ranking(units[order], fused[order])

    def found(self, part: SearchPart, question: str, *, depth: int) -> Found:
        """At least the best `depth` candidates of a part; those of recent questions are at hand."""
        return self._recent(part, question, max(depth, self.settings.candidates))

    def new_edges(self, part: SearchPart) -> "NewEdges":
        """What scores edges that the graph lacks as if it had them."""
        return NewEdges(part, self)

    def features(self, part: SearchPart, question: str, edges: Sequence[Edge]) -> FloatArray:
        """What the learned ranking saw of edges that are among its first `rank_depth`: (C, features).

        KeyError for an edge that is not.
        """
        depth = self.settings.rank_depth
        units = self.found(part, question, depth=depth).candidates.units[:depth].tolist()
        places = {part.edge(unit): place for place, unit in enumerate(units)}
        return self._seen(part, question)[[places[edge] for edge in edges]]

    def _features(self, part: SearchPart, question: str) -> FloatArray:
        depth = self.settings.rank_depth
        return rank_features(part, self.found(part, question, depth=depth), depth)

    def _find(self, part: SearchPart, question: str, count: int) -> Found:
        query = part.query(self.encoder, question)
        fusion = fusion_of(self.settings)
        candidates = part.search.candidates(query, count=count, fusion=fusion)
        fused = candidates.fused(fusion)
        order = np.lexsort((candidates.units, -fused))
        return Found(query, candidates.take(order), fused[order])


class NewEdges:
    """Scores of edges that were not retrieved, on the scale of those that were (the edge scorer of expansion)."""

    def __init__(self, part: SearchPart, edges: FactoredEdges) -> None:
        self.part = part
        self.edges = edges

    def score(self, query: Query, edges: Sequence[Edge]) -> FloatArray:
        """One score an edge; a learned ranking sees the new edges among the retrieved ones."""
        settings, ranker, part = self.edges.settings, self.edges.ranker, self.part
        fusion = fusion_of(settings)
        left, right = edge_sides(part, edges)
        new = part.search.pair_scores(query, left, right, part.stars(left, right), fusion=fusion)
        if ranker is None:
            return new.fused(fusion)
        depth = settings.rank_depth
        head, fused = self.edges.found(part, query.text, depth=depth).top(depth)
        units = part.search.units
        features = edge_features(
            part,
            query,
            np.concatenate([units.left[head.units], left]).astype(np.int64),
            np.concatenate([units.right[head.units], right]).astype(np.int64),
            head.joined(new),
            np.concatenate([fused, new.fused(fusion)]),
        )
        return ranker.score(features)[len(fused) :]


def edge_sides(part: SearchPart, edges: Sequence[Edge]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Node numbers of both sides; a missing side is the node count, as in `Units`."""
    segments, none = part.graph.segment_count, part.tokens.node_count
    left = [none if edge.segment is None else edge.segment for edge in edges]
    right = [none if edge.passage is None else edge.passage + segments for edge in edges]
    return np.array(left, np.int32), np.array(right, np.int32)


def rank_features(part: SearchPart, found: Found, depth: int) -> FloatArray:
    """Features of the first `depth` candidates."""
    head, fused = found.top(depth)
    units = part.search.units
    left, right = units.left[head.units].astype(np.int64), units.right[head.units].astype(np.int64)
    return edge_features(part, found.query, left, right, head, fused)


def reorder(learned: FloatArray, fused: FloatArray) -> FloatArray:
    """Learned scores for the head of a ranking, and the rest below them at the distances that it had."""
    if len(learned) == 0 or len(learned) == len(fused):
        return learned
    rest = fused[len(learned) :]
    return np.concatenate([learned, rest - rest[0] + learned.min() - np.float32(1e-3)])


def fusion_of(settings: SearchSettings) -> Fusion:
    """The weights of the settings."""
    return Fusion(settings.segment_weight, settings.star_weight, settings.lexical_weight)

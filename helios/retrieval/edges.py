"""Edge retrieval f_e (HELIOS 4.1): from a question to its best edges.

`EdgeIndex` is what the engine knows; `FactoredEdges` is the default, which encodes nodes and never edges.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from helios.config import SearchSettings
from helios.index.search import Fusion, Query
from helios.models.encoder import TokenEncoder
from helios.retrieval.part import SearchPart
from helios.types import ScoredEdge


class EdgeIndex(Protocol):
    """Anything that ranks the edges of a corpus for a question."""

    def retrieve(self, question: str, *, k: int) -> list[list[ScoredEdge]]:
        """The best k edges of each part, best first."""


class FactoredEdges:
    """Factored MaxSim of edge, row and star fused with BM25; one store of node vectors serves them all."""

    def __init__(self, parts: Sequence[SearchPart], encoder: TokenEncoder, settings: SearchSettings) -> None:
        self.parts = parts
        self.encoder = encoder
        self.settings = settings

    def retrieve(self, question: str, *, k: int) -> list[list[ScoredEdge]]:
        tokens = self.encoder.encode_question(question)
        ranked = []
        for part in self.parts:
            query = Query.of(question, tokens, part.tokens)
            ranked.append(self._rank(part, query, k=k))
        return ranked

    def _rank(self, part: SearchPart, query: Query, *, k: int) -> list[ScoredEdge]:
        fusion = fusion_of(self.settings)
        found = part.search.candidates(query, count=max(k, self.settings.candidates), fusion=fusion)
        scores = found.fused(fusion)
        order = np.lexsort((found.units, -scores))[:k]
        return [ScoredEdge(part.edge(int(found.units[i])), float(scores[i])) for i in order]


def fusion_of(settings: SearchSettings) -> Fusion:
    """The weights of the settings."""
    return Fusion(settings.segment_weight, settings.star_weight, settings.lexical_weight)

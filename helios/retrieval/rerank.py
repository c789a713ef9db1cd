"""Reranking (HELIOS 4.1, 4.2): g_e reads the best edges again with the question, g_n the nodes that may be seeds.

An edge's new score is a logit: the score of retrieval brought to that scale, plus a share of how far the reranker's
logit is above the mean of those that it gave for the question.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from helios.config import RerankSettings
from helios.graph import Subgraph
from helios.index.search import Query
from helios.models.base import WEIGHTS_SHA256, find_base_model
from helios.models.reranking import Reranker, Scores
from helios.models.reranking.evidence_text import Evidence, evidence_texts
from helios.retrieval.expansion import EdgeScorer, NodeScorer
from helios.retrieval.part import SearchPart
from helios.types import Edge

log = logging.getLogger(__name__)

FloatArray = NDArray[np.float32]
SHARPNESS = 10.0
"""Scores of retrieval, divided by the root of the question's best one, times this are the best calibrated logits
(train questions of ottqa9k; longer questions have larger scores and larger gaps)."""


@dataclass(frozen=True, slots=True)
class Mix:
    """How one question's scores are put together; a score of retrieval times `scale` is a logit."""

    weight: float
    """How much of the reranker's logit is added; 0 leaves the scores of retrieval."""
    scale: float = 1.0

    @classmethod
    def of_fused(cls, weight: float, best: float) -> "Mix":
        """For fused MaxSim and BM25 (`helios.retrieval.edges`), whose best score for the question is `best`."""
        return cls(weight, SHARPNESS / math.sqrt(max(best, 1.0)))

    def of(self, retrieved: float, reranked: float) -> float:
        """One logit from a score of retrieval and one of the reranker."""
        return self.retrieval_logit(retrieved) + self.weight * reranked

    def retrieval_logit(self, retrieved: float) -> float:
        """A score of retrieval, brought to the scale of logits."""
        return self.scale * retrieved


def load_reranker(
    role: Literal["edge", "node"], settings: RerankSettings, *, base: str | None = None, lanes: int | None = None
) -> Reranker | None:
    """The reranker of pairs that the settings ask for, None for `none` and `late-interaction`.

    `base` is the folder of the shared encoder.

    The packaged ones fit that one alone: with another base there is none, which is logged.

    Raises ModelError for a model or a library that is missing.
    """
    model = settings.edge_model if role == "edge" else settings.node_model
    match settings.backend:
        case "none" | "late-interaction":
            return None
        case "embedded":
            from helios.models.reranking.embedded import EmbeddedReranker

            if model is None and base is not None and find_base_model(base).sha256 != WEIGHTS_SHA256:
                log.warning("encoder.model=%s is not what the packaged rerankers were trained on: no reranking", base)
                return None
            return EmbeddedReranker.load(
                role, model, base=base, runtime=settings.runtime, max_tokens=settings.max_tokens,
                batch_tokens=settings.batch_tokens, lanes=lanes,
            )  # fmt: skip
        case "cross-encoder":
            from helios.models.reranking.cross_encoder import CrossEncoderReranker

            return CrossEncoderReranker.load(model, max_tokens=settings.max_tokens, batch_tokens=settings.batch_tokens)
        case "flag":
            from helios.models.reranking.flag import FlagPairReranker

            return FlagPairReranker.load(model, max_tokens=settings.max_tokens, batch_tokens=settings.batch_tokens)
        case "flag-layerwise":
            from helios.models.reranking.layerwise import LayerwiseReranker

            return LayerwiseReranker.load(
                model, layer=settings.layer, max_tokens=settings.max_tokens, batch_tokens=settings.batch_tokens
            )


def rerank_edges(
    part: SearchPart, reranker: Reranker, question: str, subgraph: Subgraph, *, k1: int, k2: int, mix: Mix,
    deadline: float | None = None,
) -> Subgraph:  # fmt: skip
    """The best k1 edges read again and ranked with the others; k2 in all.

    Scores are logits afterwards, of `mix`, and only differences between the edges that were read count (`centred`):
    the others, and those that the deadline (time.monotonic) left out, are as good as retrieval found them.
    """
    if not subgraph.edges:
        return subgraph
    head, tail = subgraph.edges[:k1], subgraph.edges[k1:]
    values = centred(score_edges(part, reranker, question, [scored.edge for scored in head], deadline=deadline))
    gained = [*values.tolist(), *(0.0 for _ in tail)]
    return Subgraph.from_edges(
        replace(scored, score=mix.of(scored.score, gain)) for scored, gain in zip(subgraph.edges, gained, strict=True)
    ).top(k2)


def centred(scores: Scores) -> FloatArray:
    """Logits less their mean (B), 0 where a text was not read."""
    if not scores.done.any():
        return np.zeros(len(scores.values), np.float32)
    return np.where(scores.done, scores.values - scores.values[scores.done].mean(), 0.0).astype(np.float32)


def score_edges(
    part: SearchPart, reranker: Reranker, question: str, edges: Sequence[Edge], *, deadline: float | None = None
) -> Scores:
    """g_e of edges, linked or not, the first ones first."""
    return reranker.score(question, _texts(reranker, question, _evidence(part, edges)), deadline=deadline)


class MixedEdges:
    """Scores for new edges on the scale of a reranked subgraph (the edge scorer of expansion, HELIOS 4.2)."""

    def __init__(
        self, part: SearchPart, reranker: Reranker, retrieval: EdgeScorer, mix: Mix, *, deadline: float | None = None
    ) -> None:
        self.part, self.reranker, self.retrieval = part, reranker, retrieval
        self.mix, self.deadline = mix, deadline

    def score(self, query: Query, edges: Sequence[Edge]) -> FloatArray:
        """One logit an edge; see `centred`."""
        retrieved = self.retrieval.score(query, edges)
        values = centred(score_edges(self.part, self.reranker, query.text, edges, deadline=self.deadline))
        mixed = [self.mix.of(float(score), float(value)) for score, value in zip(retrieved, values, strict=True)]
        return np.array(mixed, np.float32)


class RerankedNodes:
    """g_n as the node scorer of expansion: its logit for the best `limit` nodes is added to that of retrieval."""

    def __init__(
        self, part: SearchPart, reranker: Reranker, retrieval: NodeScorer, *, weight: float, limit: int,
        deadline_ms: float | None = None,
    ) -> None:  # fmt: skip
        self.part, self.reranker, self.retrieval = part, reranker, retrieval
        self.weight, self.limit, self.deadline_ms = weight, limit, deadline_ms

    def score(self, query: Query, nodes: NDArray[np.int64], subgraph: Subgraph) -> FloatArray:
        """One logit a node (segments, then passages, by their numbers in the part), B in all."""
        logits = np.array(self.retrieval.score(query, nodes, subgraph), np.float32)
        best = np.argsort(-logits, kind="stable")[: self.limit]
        deadline = deadline_in(self.deadline_ms)
        read = score_nodes(self.part, self.reranker, query.text, nodes[best], deadline=deadline)
        logits[best] += np.float32(self.weight) * centred(read)
        return logits


def score_nodes(
    part: SearchPart, reranker: Reranker, question: str, nodes: NDArray[np.int64], *, deadline: float | None = None
) -> Scores:
    """g_n of nodes by their numbers in the part, the first ones first."""
    segments = part.graph.segment_count
    edges = [Edge(n, None) if n < segments else Edge(None, n - segments) for n in nodes.tolist()]
    return score_edges(part, reranker, question, edges, deadline=deadline)


def deadline_in(milliseconds: float | None) -> float | None:
    """So many milliseconds from now, as time.monotonic counts; None for no end."""
    return None if milliseconds is None else monotonic() + milliseconds / 1e3


def _evidence(part: SearchPart, edges: Sequence[Edge]) -> list[Evidence]:
    return [
        (
            None if edge.segment is None else part.corpus.segment(edge.segment),
            None if edge.passage is None else part.corpus.passages[edge.passage],
        )
        for edge in edges
    ]


def _texts(reranker: Reranker, question: str, evidence: Sequence[Evidence]) -> list[str]:
    return evidence_texts(question, evidence, max_tokens=reranker.max_tokens, count_tokens=reranker.count_tokens)

"""Reranking by pairs (HELIOS 4.1, 4.2): g_e reads the best edges with the question, g_n the nodes that may be seeds.

A score stays a log-odds: what it was, plus a share of how far the reranker's logit is above the mean of those that it
gave for the question.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from helios.config import AdvancedRerankSettings, RerankSettings
from helios.extras import import_library
from helios.graph import Subgraph
from helios.index.reader import IndexReader
from helios.models.base import WEIGHTS_SHA256, find_base_model
from helios.models.routes import Runtime
from helios.retrieval.expansion.seeds import NodeScorer
from helios.retrieval.ranking.stage import EdgeScorer
from helios.retrieval.reranking.evidence_text import Evidence, evidence_texts
from helios.retrieval.reranking.reranker import Reranker, Scores
from helios.retrieval.state import SearchState
from helios.types import Edge

log = logging.getLogger(__name__)

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PairReranking:
    """The stage: g_e reads the best edges; those that it has no time for are as good as they were before."""

    reranker: Reranker
    weight: float
    first: int
    """Edges that are read."""
    milliseconds: float | None
    """Time for one question."""
    name: str = "rerank"

    @property
    def depth(self) -> int:
        """Edges that it reads."""
        return self.first

    def run(self, state: SearchState) -> SearchState:
        """The best edges with what reading them adds."""
        head = state.subgraph.edges[: self.first]
        if not head:
            return state
        state, gains = self.gains(state, [scored.edge for scored in head])
        read = (replace(scored, score=scored.score + gain) for scored, gain in zip(head, gains, strict=True))
        return state.with_edges([*read, *state.subgraph.edges[self.first :]])

    def over(self, scorer: EdgeScorer) -> "ReadEdges":
        """The scorer of new edges that also reads them."""
        return ReadEdges(self, scorer)

    def gains(self, state: SearchState, edges: Sequence[Edge]) -> tuple[SearchState, list[float]]:
        """What reading adds to the score of each edge, and the state that says how many were not reached."""
        until = until_of(state, self.milliseconds)
        scores = score_edges(state.index, self.reranker, state.question, edges, deadline=until)
        if unread := len(edges) - int(scores.done.sum()):
            state = state.without(f"to read {unread} of {len(edges)} edges again")
        return state, [float(gain) for gain in np.float32(self.weight) * centred(scores)]


@dataclass(frozen=True, slots=True)
class ReadEdges:
    """Scores of new edges with what reading them adds (the edge scorer of expansion, HELIOS 4.2)."""

    reranking: PairReranking
    scorer: EdgeScorer

    def score(self, state: SearchState, edges: Sequence[Edge]) -> tuple[SearchState, FloatArray]:
        """Log-odds of each edge."""
        state, scores = self.scorer.score(state, edges)
        state, gains = self.reranking.gains(state, edges)
        return state, scores + np.array(gains, np.float32)


@dataclass(frozen=True, slots=True)
class RerankedNodes:
    """g_n as the node scorer of expansion: its logit for the best `limit` nodes is added to that of retrieval."""

    reranker: Reranker
    retrieval: NodeScorer
    weight: float
    limit: int
    milliseconds: float | None = None

    def score(self, state: SearchState, nodes: NDArray[np.int64], subgraph: Subgraph) -> FloatArray:
        """One logit a node: (B)."""
        logits = np.array(self.retrieval.score(state, nodes, subgraph), np.float32)
        best = np.argsort(-logits, kind="stable")[: self.limit]
        until = until_of(state, self.milliseconds)
        read = score_nodes(state.index, self.reranker, state.question, nodes[best], deadline=until)
        logits[best] += np.float32(self.weight) * centred(read)
        return logits


def load_reranker(
    role: Literal["edge", "node"], settings: RerankSettings, advanced: AdvancedRerankSettings, *,
    base: str | None = None, runtime: Runtime = "auto", lanes: int | None = None,
) -> Reranker | None:  # fmt: skip
    """The reranker of pairs that the settings ask for, None for `none` and `late-interaction`.

    `base` is the folder of the shared encoder. The packaged ones fit that one alone: with another base there is none,
    which is logged. Raises ModelError for a model or a library that is missing.
    """
    model = settings.model if role == "edge" else advanced.node_model
    sizes: dict[str, Any] = {"max_tokens": advanced.max_tokens, "batch_tokens": advanced.batch_tokens}
    match settings.backend:
        case "none" | "late-interaction":
            return None
        case "embedded":
            import_library("torch", needed_by="rerank.backend=embedded")
            from helios.retrieval.reranking.embedded import EmbeddedReranker

            if model is None and base is not None and find_base_model(base).sha256 != WEIGHTS_SHA256:
                log.warning("encoder.model=%s is not what the packaged rerankers were trained on: no reranking", base)
                return None
            return EmbeddedReranker.load(role, model, base=base, runtime=runtime, lanes=lanes, **sizes)
        case "cross-encoder":
            from helios.retrieval.reranking.cross_encoder import CrossEncoderReranker

            return CrossEncoderReranker.load(model, **sizes)
        case "flag":
            from helios.retrieval.reranking.flag import FlagPairReranker

            return FlagPairReranker.load(model, **sizes)
        case "flag-layerwise":
            from helios.retrieval.reranking.layerwise import LayerwiseReranker

            return LayerwiseReranker.load(model, layer=advanced.layer, **sizes)


def centred(scores: Scores) -> FloatArray:
    """Logits less their mean (B), 0 where a text was not read."""
    if not scores.done.any():
        return np.zeros(len(scores.values), np.float32)
    return np.where(scores.done, scores.values - scores.values[scores.done].mean(), 0.0).astype(np.float32)


def score_edges(
    index: IndexReader, reranker: Reranker, question: str, edges: Sequence[Edge], *, deadline: float | None = None
) -> Scores:
    """g_e of edges, linked or not, the first ones first."""
    evidence: list[Evidence] = [
        (
            None if edge.segment is None else index.corpus.segment(edge.segment),
            None if edge.passage is None else index.corpus.passages[edge.passage],
        )
        for edge in edges
    ]
    texts = evidence_texts(question, evidence, max_tokens=reranker.max_tokens, count_tokens=reranker.count_tokens)
    return reranker.score(question, texts, deadline=deadline)


def score_nodes(
    index: IndexReader, reranker: Reranker, question: str, nodes: NDArray[np.int64], *, deadline: float | None = None
) -> Scores:
    """g_n of nodes by their numbers, the first ones first."""
    segments = index.segment_count
    edges = [Edge(n, None) if n < segments else Edge(None, n - segments) for n in nodes.tolist()]
    return score_edges(index, reranker, question, edges, deadline=deadline)


def until_of(state: SearchState, milliseconds: float | None) -> float | None:
    """The instant (time.monotonic) at which reading ends: so many milliseconds from now, or the question's deadline."""
    ends = [] if milliseconds is None else [time.monotonic() + milliseconds / 1e3]
    return min([*ends, *([] if state.deadline is None else [state.deadline])], default=None)

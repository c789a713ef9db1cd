"""Late-interaction reranking (HELIOS 4.1): a trained token encoder reads the nodes of the best edges again.

The index holds vectors of the encoder as it comes. The trained one is better in the first ranks and worse below them,
so it does not replace those vectors: when a question comes it reads the nodes of the best edges, each node once however
many edges it has, and trees of their own order these edges by what both encoders say of them.

Shape legend: C edges, U their distinct nodes, Q question tokens, D dimensions.
"""

import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.config import RerankSettings
from helios.errors import ModelError
from helios.graph import Subgraph
from helios.models.base import WEIGHTS_SHA256, find_base_model
from helios.models.encoder import MiniLMEncoder, TokenEncoder
from helios.models.ranker import EdgeRanker
from helios.models.text import passage_text, segment_text
from helios.retrieval.edges import FactoredEdges, edge_sides, reorder
from helios.retrieval.features import FEATURES, group_best, tables_of, token_features
from helios.retrieval.part import SearchPart

log = logging.getLogger(__name__)

FloatArray = NDArray[np.float32]
SHIPPED = Path(__file__).parent.parent / "models" / "weights" / "late-reranker"
ENCODER = "token-encoder.safetensors"
"""The trained encoder beside its trees."""
LATE_FEATURES = (
    *FEATURES,
    # the order so far
    "ranked", "place",
    # the trained encoder, in distances to the best edge and to rivals
    "late_maxsim", "late_segment", "late_maxsim_over_segment", "late_segment_below_table", "late_maxsim_below_row",
    "late_tokens_in_row", "late_tokens_in_passage", "late_tokens_in_edge", "late_weakest_token",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LateReranker:
    """The trained encoder and the trees that order what it has read; threads may share it."""

    encoder: TokenEncoder
    ranker: EdgeRanker

    @classmethod
    def load(cls, settings: RerankSettings, *, base: str | None = None, max_tokens: int = 256) -> "LateReranker | None":
        """The folder `rerank.edge_model`, or the one in the package, for which None where the base is another.

        Raises ModelError for files that are missing, damaged or of another base.
        """
        from helios.models.reranking.pair import require_base

        model = find_base_model(base)
        if settings.edge_model is None and model.sha256 != WEIGHTS_SHA256:
            log.warning("encoder.model=%s is not what the packaged reranker was trained on: no reranking", base)
            return None
        folder = SHIPPED if settings.edge_model is None else Path(settings.edge_model).expanduser()
        if not (folder / ENCODER).is_file():
            raise ModelError(f"{folder / ENCODER}: missing; expected a folder that `helios train late-reranker` wrote")
        ranker = EdgeRanker.load(folder, features=LATE_FEATURES)
        require_base(folder / ENCODER, model)
        make = _shipped_encoder if settings.edge_model is None else late_encoder
        return cls(make(folder / ENCODER, settings, base=base, max_tokens=max_tokens), ranker)

    def rerank(
        self, part: SearchPart, edges: FactoredEdges, question: str, subgraph: Subgraph, *, k1: int
    ) -> Subgraph:  # fmt: skip
        """The best k1 edges in a new order, scores in log-odds; the others follow as they were."""
        head = subgraph.edges[: min(k1, edges.settings.rank_depth)]
        if not head:
            return subgraph
        features = late_features(part, edges, self.encoder, question, subgraph.top(len(head)))
        old = np.array([scored.score for scored in subgraph.edges], np.float32)
        new = reorder(self.ranker.score(features), old)
        return Subgraph.from_edges(
            replace(scored, score=score) for scored, score in zip(subgraph.edges, new.tolist(), strict=True)
        )


def late_encoder(
    adapter: Path, settings: RerankSettings, *, base: str | None = None, max_tokens: int = 256
) -> MiniLMEncoder:  # fmt: skip
    """A trained encoder that reads the nodes of one question together, a batch a core."""
    return MiniLMEncoder.load(
        base, adapter=str(adapter), runtime=settings.runtime, max_tokens=max_tokens,
        batch_tokens=settings.batch_tokens,
    )  # fmt: skip


_shipped_encoder = lru_cache(2)(late_encoder)
"""One for all engines of a process: compiling it takes seconds, and the package's file does not change."""


def late_features(
    part: SearchPart, edges: FactoredEdges, encoder: TokenEncoder, question: str, subgraph: Subgraph
) -> FloatArray:
    """Features (C, len(LATE_FEATURES)) of a subgraph's edges, which the learned ranking has put in order."""
    pairs = [scored.edge for scored in subgraph.edges]
    scores = np.array([scored.score for scored in subgraph.edges], np.float32)
    left, right = (side.astype(np.int64) for side in edge_sides(part, pairs))
    nodes = np.unique(np.concatenate([left, right]))
    nodes = nodes[nodes < part.tokens.node_count]
    tokens = encoder.encode_question(question)
    weights_Q = part.tokens.token_weights(tokens.ids)
    maxima_UQ = _maxima(part, encoder, nodes, tokens.vectors)
    places = [np.where(side < part.tokens.node_count, np.searchsorted(nodes, side), -1) for side in (left, right)]
    row, passage = np.concatenate([maxima_UQ, np.zeros((1, len(weights_Q)), np.float32)])[places]
    maxsim = np.maximum(row, passage) @ weights_Q
    segment = np.where((places[0] < 0)[:, None], passage, row) @ weights_Q
    columns = [
        scores - scores.max(), np.arange(len(pairs)),
        maxsim - maxsim.max(), segment - segment.max(), maxsim - segment,
        segment - group_best(tables_of(part, left), segment), maxsim - group_best(left, maxsim),
        *token_features(maxima_UQ, places[0], places[1], weights_Q),
    ]  # fmt: skip
    return np.column_stack([edges.features(part, question, pairs), *columns]).astype(np.float32)


def _maxima(part: SearchPart, encoder: TokenEncoder, nodes: NDArray[np.int64], question_QD: FloatArray) -> FloatArray:
    """The best cosine of every question token in every node: (U, Q)."""
    read = encoder.encode_documents([_text(part, node) for node in nodes.tolist()])
    return np.stack([(document.vectors @ question_QD.T).max(axis=0) for document in read]).astype(np.float32)


def _text(part: SearchPart, node: int) -> str:
    segments = part.graph.segment_count
    if node < segments:
        return segment_text(part.corpus.segment(node)).text
    return passage_text(part.corpus.passages[node - segments]).text

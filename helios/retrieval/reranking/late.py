"""Late-interaction reranking (HELIOS 4.1): a trained token encoder reads the nodes of the best edges again.

The index holds vectors of the encoder as it comes. The trained one is better in the first ranks and worse below them,
so it does not replace those vectors: when a question comes it reads the nodes of the best edges, each node once however
many edges it has, and trees of their own order these edges by what both encoders say of them.

Shape legend: C edges, U their distinct nodes, Q question tokens, D dimensions.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.bounded import Bounded
from helios.errors import ModelError
from helios.index.products import products, weighted_sums
from helios.index.reader import IndexReader
from helios.models.base import WEIGHTS_SHA256, find_base_model
from helios.models.encoder import MAX_QUESTION_TOKENS, MiniLMEncoder, TokenEncoder, TokenVectors
from helios.models.routes import Runtime
from helios.models.text import passage_text, segment_text
from helios.retrieval.ranking.features import FEATURES, group_best, tables_of, token_features
from helios.retrieval.ranking.model import EdgeRanker
from helios.retrieval.state import SearchState, pairs_of
from helios.types import ScoredEdge

log = logging.getLogger(__name__)

FloatArray = NDArray[np.float32]
HalfArray = NDArray[np.float16]
SHIPPED = Path(__file__).parent / "weights" / "late"
ROLE = "late-reranker"
ENCODER = "token-encoder.safetensors"
"""The trained encoder beside its trees."""
LEAST = 2
LATE_FEATURES = (
    *FEATURES,
    # the order so far
    "ranked", "place",
    # the trained encoder, in distances to the best edge and to rivals
    "late_maxsim", "late_segment", "late_maxsim_over_segment", "late_segment_below_table", "late_maxsim_below_row",
    "late_tokens_in_row", "late_tokens_in_passage", "late_tokens_in_edge", "late_weakest_token",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LateReranking:
    """The stage: the trained encoder and the trees that order what it has read; scores stay log-odds."""

    reading: "NodeReading"
    ranker: EdgeRanker
    first: int
    """Edges that are read at most, those that the learned ranking has seen."""
    within: float
    """Log-odds below the best edge up to which an edge is read: reading seldom lifts a later one to the top."""
    tokens: int
    """Tokens of different nodes that are read at most, by whole edges; the best two are read however long they are."""
    name: str = "rerank"

    @property
    def depth(self) -> int:
        """Edges that it reads."""
        return self.first

    def with_glossary(self, digest: str | None) -> "LateReranking":
        """The same, with an encoder that reads other languages by the glossaries of a digest."""
        return replace(self, reading=self.reading.with_glossary(digest))

    def run(self, state: SearchState) -> SearchState:
        """The best edges with the log-odds of having read them; the others keep theirs."""
        if state.ranked is None:
            return state
        seen = set(state.ranked.edges)
        known = [scored for scored in state.subgraph.edges[: self.first] if scored.edge in seen]
        head = self._worth_reading(state.index, known) if any(one.edge.segment is not None for one in known) else []
        if not head:
            return state
        if not state.in_time():
            return state.without("to read the best edges again")
        read = self.ranker.score(late_features(state, self.reading, head))
        scores = dict(zip((scored.edge for scored in head), read.tolist(), strict=True))
        return state.with_edges(
            replace(scored, score=scores.get(scored.edge, scored.score)) for scored in state.subgraph.edges
        )

    def _worth_reading(self, index: IndexReader, edges: Sequence[ScoredEdge]) -> Sequence[ScoredEdge]:
        """The first of some edges, best first, that are near enough to the best one and not too long together."""
        near = [scored for scored in edges if scored.score >= edges[0].score - self.within]
        pairs = pairs_of(index, [scored.edge for scored in near])
        nodes = pairs.nodes(index.node_count)
        lengths = dict(zip(nodes.tolist(), index.tokens.lengths_of(nodes).tolist(), strict=True))
        spent, count = 0, 0
        for sides in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
            spent += sum(lengths.pop(node, 0) for node in sides)
            if count >= LEAST and spent > self.tokens:
                break
            count += 1
        return near[:count]


class NodeReading:
    """A trained encoder and the vectors of the nodes that it read last, for the next question; threads may share it.

    Vectors are kept, and used, in half precision: what was read before gives the same bits as what is read now.
    """

    def __init__(self, encoder: TokenEncoder, *, megabytes: int = 0) -> None:
        self.encoder = encoder
        self._kept: Bounded[bytes, HalfArray] = Bounded(megabytes << 20, size=lambda vectors: vectors.nbytes)

    def __repr__(self) -> str:
        return f"NodeReading({self.encoder!r})"

    def with_glossary(self, digest: str | None) -> "NodeReading":
        """The same, with an encoder that reads other languages by the glossaries of a digest."""
        encoder = self.encoder
        if not isinstance(encoder, MiniLMEncoder) or encoder.glossary == digest:
            return self
        return NodeReading(encoder.with_glossary(digest), megabytes=self._kept.limit >> 20)

    def read(
        self, index: IndexReader, question: str, nodes: Sequence[int]
    ) -> tuple[TokenVectors, list[FloatArray]]:  # fmt: skip
        """The question's tokens, and unit vectors (tokens, D) of every node's; the encoder reads them all at once."""
        texts = [_text(index, node) for node in nodes]
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        found = {key: vectors for key in keys if (vectors := self._kept.get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        asked, *read = self.encoder.encode_documents([question, *missing.values()])
        for key, tokens in zip(missing, read, strict=True):
            found[key] = tokens.vectors.astype(np.float16)
            self._kept.put(key, found[key])
        return asked.first(MAX_QUESTION_TOKENS), [found[key].astype(np.float32) for key in keys]


def load_late_reranking(
    folder: str | None, *, base: str | None, first: int, max_tokens: int, runtime: Runtime, threads: int,
    megabytes: int, within: float, tokens: int,
) -> LateReranking | None:  # fmt: skip
    """The trained encoder and trees of a folder, or those of the package, for which None where the base is another.

    Raises ModelError for files that are missing, damaged or of another base.
    """
    model = find_base_model(base)
    if folder is None and model.sha256 != WEIGHTS_SHA256:
        log.warning("encoder.model=%s is not what the packaged reranker was trained on: no reranking", base)
        return None
    place = SHIPPED if folder is None else Path(folder).expanduser()
    if not (place / ENCODER).is_file():
        raise ModelError(f"{place / ENCODER}: missing; expected a folder that `helios train late-reranker` wrote")
    ranker, card = EdgeRanker.load(place, role=ROLE, features=LATE_FEATURES)
    card.check(place, base=model.sha256)
    encoder = late_encoder(place / ENCODER, base=base, max_tokens=max_tokens, runtime=runtime, threads=threads)
    return LateReranking(NodeReading(encoder, megabytes=megabytes), ranker, first, within, tokens)


def late_encoder(
    adapter: Path, *, base: str | None = None, max_tokens: int = 256, runtime: Runtime = "auto", threads: int = 1
) -> MiniLMEncoder:
    """A trained encoder that reads the nodes of one question, each alone: what is read beside it changes nothing."""
    return MiniLMEncoder.load(
        base, adapter=str(adapter), runtime=runtime, max_tokens=max_tokens, batch_tokens=1, threads=threads
    )


def late_features(state: SearchState, reading: NodeReading, head: Sequence[ScoredEdge]) -> FloatArray:
    """Features (C, len(LATE_FEATURES)) of ranked edges, best first, from reading their nodes again."""
    assert state.ranked is not None
    index, edges = state.index, [scored.edge for scored in head]
    scores = np.array([scored.score for scored in head], np.float32)
    pairs = pairs_of(index, edges)
    nodes = pairs.nodes(index.node_count)
    tokens, read = reading.read(index, state.question, nodes.tolist())
    weights_Q = index.tokens.token_weights(tokens.ids)
    maxima_UQ = _maxima(read, tokens.vectors)
    places = [np.where(side < index.node_count, np.searchsorted(nodes, side), -1) for side in (pairs.left, pairs.right)]
    row, passage = np.concatenate([maxima_UQ, np.zeros((1, len(weights_Q)), np.float32)])[places]
    maxsim = weighted_sums(np.maximum(row, passage), weights_Q)
    segment = weighted_sums(np.where((places[0] < 0)[:, None], passage, row), weights_Q)
    columns = [
        scores - scores.max(), np.arange(len(edges)),
        maxsim - maxsim.max(), segment - segment.max(), maxsim - segment,
        segment - group_best(tables_of(index, pairs.left), segment), maxsim - group_best(pairs.left, maxsim),
        *token_features(maxima_UQ, places[0], places[1], weights_Q),
    ]  # fmt: skip
    return np.column_stack([state.ranked.features_of(edges), *columns]).astype(np.float32)


def _maxima(read: Sequence[FloatArray], question_QD: FloatArray) -> FloatArray:
    """The best cosine of every question token in every node: (U, Q)."""
    return np.stack([products(vectors, question_QD).max(axis=0) for vectors in read])


def _text(index: IndexReader, node: int) -> str:
    if node < index.segment_count:
        return segment_text(index.corpus.segment(node)).text
    return passage_text(index.corpus.passages[node - index.segment_count]).text

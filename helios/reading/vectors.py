"""Where a reader gets token vectors from: the index's own store, which costs no encoding, or the encoder."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.models.encoder import TokenEncoder, TokenVectors
from helios.reading.spans import ReadNode
from helios.retrieval.part import SearchPart

FloatArray = NDArray[np.float32]


class NodeVectors(Protocol):
    """Token vectors of questions and of the nodes that evidence holds."""

    def question(self, question: str) -> TokenVectors:
        """Vectors of the question's tokens."""
        ...

    def nodes(self, nodes: Sequence[ReadNode]) -> list[TokenVectors]:
        """Vectors of every node's tokens, with their characters in the node's text."""
        ...

    def weights(self, question: TokenVectors) -> FloatArray:
        """How much each token of a question counts (Q): the rarer, the more."""
        ...


class EncodedVectors:
    """Vectors made by an encoder: for evidence from anywhere, at the price of encoding it."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder = encoder

    def question(self, question: str) -> TokenVectors:
        """Vectors of the question's tokens."""
        return self.encoder.encode_question(question)

    def nodes(self, nodes: Sequence[ReadNode]) -> list[TokenVectors]:
        """Encode the nodes' texts."""
        return list(self.encoder.encode_documents([node.text.text for node in nodes]))

    def weights(self, question: TokenVectors) -> FloatArray:
        """One each: how rare a word is, only an index knows."""
        return np.ones(len(question.ids), np.float32)


class StoredVectors:
    """Vectors as the index keeps them; a node that is not in the index is encoded."""

    def __init__(self, part: SearchPart, encoder: TokenEncoder) -> None:
        self.part = part
        self.encoder = encoder

    def question(self, question: str) -> TokenVectors:
        """Vectors of the question's tokens."""
        return self.encoder.encode_question(question)

    def nodes(self, nodes: Sequence[ReadNode]) -> list[TokenVectors]:
        """Decode the nodes' stored vectors; their characters come from the tokenizer."""
        return [self._stored(node) or next(iter(self.encoder.encode_documents([node.text.text]))) for node in nodes]

    def weights(self, question: TokenVectors) -> FloatArray:
        """Weights by the index's counts of tokens."""
        return self.part.tokens.token_weights(question.ids)

    def _stored(self, node: ReadNode) -> TokenVectors | None:
        number = self._number(node)
        if number is None:
            return None
        vectors = self.part.tokens.vectors(number)
        spans = self.encoder.token_spans(node.text.text)
        if len(vectors) != len(spans):  # another text under the same id
            return None
        return TokenVectors(vectors, np.zeros(len(spans), np.int32), spans)

    def _number(self, node: ReadNode) -> int | None:
        corpus = self.part.corpus
        if node.segment is not None:
            table = corpus.tables.find(node.segment.segment_id.table_id)
            return None if table is None else corpus.segment_number(node.segment.segment_id)
        passage = corpus.passages.find(node.passage.passage_id) if node.passage is not None else None
        return None if passage is None else self.part.graph.segment_count + passage

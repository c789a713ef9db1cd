"""Where a reader gets token vectors from: the index's own store, which costs no encoding, or the encoder."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.index.reader import IndexReader
from helios.models.encoder import TokenEncoder, TokenVectors
from helios.reading.spans import ReadNode

FloatArray = NDArray[np.float32]


class NodeVectors(Protocol):
    """Token vectors of questions and of the nodes that evidence holds."""

    def question(self, question: str) -> TokenVectors:
        """Vectors of the question's tokens."""
        ...

    def nodes(self, nodes: Sequence[ReadNode]) -> list[TokenVectors]:
        """Vectors of every node's tokens, with their characters in the node's text."""
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


class StoredVectors:
    """Vectors as the index keeps them; a node that is not in the index is encoded."""

    def __init__(self, index: IndexReader, encoder: TokenEncoder) -> None:
        self.index = index
        self.encoder = encoder

    def question(self, question: str) -> TokenVectors:
        """Vectors of the question's tokens."""
        return self.encoder.encode_question(question)

    def nodes(self, nodes: Sequence[ReadNode]) -> list[TokenVectors]:
        """Decode the nodes' stored vectors; their characters come from the tokenizer."""
        return [self._stored(node) or next(iter(self.encoder.encode_documents([node.text.text]))) for node in nodes]

    def _stored(self, node: ReadNode) -> TokenVectors | None:
        number = self._number(node)
        if number is None or not self.encoder.places_words(node.text.text):
            return None
        vectors = self.index.tokens.vectors(number)
        spans = self.encoder.token_spans(node.text.text)
        if len(vectors) != len(spans):  # another text under the same id
            return None
        return TokenVectors(vectors, np.zeros(len(spans), np.int32), spans)

    def _number(self, node: ReadNode) -> int | None:
        corpus = self.index.corpus
        if node.segment is not None:
            try:
                return corpus.segment_number(node.segment.segment_id)
            except KeyError:
                return None
        passage = corpus.passages.find(node.passage.passage_id) if node.passage is not None else None
        return None if passage is None else self.index.segment_count + passage

"""Why an edge was found: for each question token, the word of the row or passage that it matched best."""

import re

import numpy as np
from numpy.typing import NDArray

from helios.errors import IndexFormatError
from helios.index.languages import UNSPACED
from helios.index.reader import IndexReader
from helios.index.visible import Query
from helios.models.encoder import TokenEncoder
from helios.models.text import NodeText, passage_text, segment_text
from helios.types import Edge, TokenMatch

_LETTERS = re.compile(rf"[^\W_{UNSPACED}]{{2}}")


def explain_edge(index: IndexReader, encoder: TokenEncoder, query: Query, edge: Edge) -> tuple[TokenMatch, ...]:
    """One match a question token, in the order of the question, from the stored vectors of the edge's nodes.

    Similarities are unweighted. Special tokens, which stand for no word, are left out.
    """
    best: list[TokenMatch | None] = [None] * len(query.tokens.spans)
    for number, node in _nodes(index, encoder, edge):
        for i, match in enumerate(_matches(index, encoder, query, number, node)):
            current = best[i]
            if current is None or match.similarity > current.similarity:
                best[i] = match
    return tuple(match for match in best if match is not None and match.query_token)


def words_of_tokens(
    index: IndexReader, encoder: TokenEncoder, vectors_AD: NDArray[np.float32], edge: Edge
) -> list[str]:
    """For each of some vectors the word of an edge's texts that it matches best."""
    best, words = np.full(len(vectors_AD), -np.inf, np.float32), [""] * len(vectors_AD)
    for number, node in _nodes(index, encoder, edge):
        similarities, spans = _against(index, encoder, vectors_AD, number, node)
        for i, j in enumerate(np.argmax(similarities, axis=1)):
            if similarities[i, j] > best[i]:
                start, end = _word(node.text, *(int(x) for x in spans[j]))
                best[i], words[i] = similarities[i, j], node.text[start:end]
    return words


def _nodes(index: IndexReader, encoder: TokenEncoder, edge: Edge) -> list[tuple[int, NodeText]]:
    """The nodes of an edge by their numbers, with their texts, of which it is known where their tokens are."""
    nodes: list[tuple[int, NodeText]] = []
    if edge.segment is not None:
        nodes.append((edge.segment, segment_text(index.corpus.segment(edge.segment))))
    if edge.passage is not None:
        number = index.segment_count + edge.passage
        nodes.append((number, passage_text(index.corpus.passages[edge.passage])))
    return [(number, node) for number, node in nodes if encoder.places_words(node.text)]


def _matches(index: IndexReader, encoder: TokenEncoder, query: Query, number: int, node: NodeText) -> list[TokenMatch]:
    similarities, spans = _against(index, encoder, query.tokens.vectors, number, node)
    found = []
    for i, j in enumerate(np.argmax(similarities, axis=1)):
        start, end = _word(node.text, *(int(x) for x in spans[j]))
        query_token = query.text[slice(*(int(x) for x in query.tokens.spans[i]))]
        found.append(TokenMatch(query_token, node.text[start:end], float(similarities[i, j]), node.where(start)))
    return found


def _against(
    index: IndexReader, encoder: TokenEncoder, vectors_QD: NDArray[np.float32], number: int, node: NodeText
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Similarities of vectors with a node's tokens, (Q, tokens), and what of its text each token is."""
    similarities = vectors_QD @ index.tokens.vectors(number).T
    spans = encoder.token_spans(node.text)
    if not 0 < similarities.shape[1] <= len(spans):
        raise IndexFormatError(
            f"node {number}: its text has {len(spans)} tokens, its vectors are of {similarities.shape[1]}: texts or "
            "vectors are damaged; run `helios index fsck`"
        )
    return similarities, spans


def _word(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a token's span to the whole word; where no blanks part words it stays as it is."""
    while start > 0 and start < end and _LETTERS.fullmatch(text[start - 1 : start + 1]):
        start -= 1
    while end < len(text) and start < end and _LETTERS.fullmatch(text[end - 1 : end + 1]):
        end += 1
    return start, end

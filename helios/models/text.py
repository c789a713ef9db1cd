"""How a node becomes the text that a token encoder reads, with the place of every piece.

    John Adams, Offices held. Year: 1789 ; Office: Vice President      (a segment)
    Vice President of the United States. The vice president is ...     (a passage)

`where` names follow `helios.types.TokenMatch`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from helios.types import Passage, Segment

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(\[]?[A-Z0-9])|(?<=[。！？])(?=[^\s」』”])")


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters [start, end) of a node's text and what they are."""

    start: int
    end: int
    where: str


@dataclass(frozen=True, slots=True)
class NodeText:
    """The text of a node and its pieces, in order."""

    text: str
    pieces: tuple[Piece, ...]

    def where(self, position: int) -> str:
        """What the character at a position belongs to; empty for separators."""
        for piece in self.pieces:
            if piece.start <= position < piece.end:
                return piece.where
        return ""


def segment_text(segment: Segment) -> NodeText:
    """A row with its titles and header: title, section. header: cell ; header: cell."""
    parts: list[tuple[str, str]] = [(segment.title, "title")]
    if segment.section:
        parts += [(", ", ""), (segment.section, "section")]
    parts.append((". ", ""))
    for column, (name, cell) in enumerate(zip(segment.header, segment.cells, strict=True)):
        if column:
            parts.append((" ; ", ""))
        parts += [(name, f"header:{column}"), (": ", ""), (cell, f"cell:{column}")]
    return _join(parts)


def passage_text(passage: Passage) -> NodeText:
    """Title and text; every sentence is a piece."""
    parts: list[tuple[str, str]] = [(passage.title, "title"), (". ", "")]
    ends = [match.end() for match in SENTENCE_END.finditer(passage.text)]
    for number, (start, end) in enumerate(pairwise([0, *ends, len(passage.text)])):
        parts.append((passage.text[start:end], f"sentence:{number}"))
    return _join(parts)


def plain_text(passage: Passage) -> str:
    """The same without its pieces."""
    return f"{passage.title}. {passage.text}"


def sentences_of(passage: Passage) -> Iterator[tuple[int, str]]:
    """Number and text of every sentence, as search explanations and citations count them."""
    text = passage_text(passage)
    for piece in text.pieces:
        kind, _, number = piece.where.partition(":")
        if kind == "sentence":
            yield int(number), text.text[piece.start : piece.end]


def _join(parts: list[tuple[str, str]]) -> NodeText:
    pieces: list[Piece] = []
    position = 0
    for text, where in parts:
        if where and text:
            pieces.append(Piece(position, position + len(text), where))
        position += len(text)
    return NodeText("".join(text for text, _ in parts), tuple(pieces))

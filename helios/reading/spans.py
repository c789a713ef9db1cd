"""Candidate answers in evidence: cells and their parts; names, dates, numbers and short phrases of sentences."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from helios.models.text import NodeText, Piece, passage_text, segment_text
from helios.reading.base import Citation
from helios.reading.question import STOP, words
from helios.types import Evidence, Passage, Segment

TOKEN = re.compile(r"\w+(?:[.,:/'’–-]\w+)*|[^\w\s]")
MONTHS = words(
    "january february march april may june july august september october november december jan feb mar apr "
    "jun jul aug sep sept oct nov dec"
)
CARDINALS = words(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand "
    "million billion"
)
NUMBER_WORDS = CARDINALS | words("first second third fourth fifth sixth seventh eighth ninth tenth")
SCALES = words("million billion thousand hundred trillion % percent")
JOINING = words("of the and & 's ' - – . , de la van von der du for in to a an ( ) / or at on with : s")
"""Tokens that may stand inside a phrase but not at its ends."""
PHRASE_TOKENS = 8
CHUNK_TOKENS = 5


class Shape(StrEnum):
    """How a candidate was found."""

    CELL = "cell"
    CELL_PART = "cell part"
    TITLE = "title"
    DATE = "date"
    NUMBER = "number"
    NAME = "name"
    PHRASE = "phrase"


@dataclass(frozen=True, slots=True)
class ReadNode:
    """A node of the evidence with its text, and the ranks (from 1) of its edges, best first."""

    segment: Segment | None
    passage: Passage | None
    text: NodeText
    ranks: tuple[int, ...]

    @property
    def title(self) -> str:
        """The node's title."""
        node = self.segment or self.passage
        return node.title if node is not None else ""


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a mark of a node's text: characters [start, end)."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        """In lower case."""
        return self.text.lower()


@dataclass(frozen=True, slots=True)
class Span:
    """A candidate: characters [start, end) of the text of node number `node`, inside one piece of it."""

    node: int
    piece: int
    start: int
    end: int
    shape: Shape


def read_nodes(evidence: Evidence, *, edges: int) -> list[ReadNode]:
    """The distinct nodes of the best edges, in the order of their first edge."""
    ranks: dict[tuple[str, object], list[int]] = {}
    nodes: dict[tuple[str, object], Segment | Passage] = {}
    for edge in evidence.edges[:edges]:
        if edge.segment is not None:
            key: tuple[str, object] = ("segment", edge.segment.segment_id)
            nodes[key] = edge.segment
            ranks.setdefault(key, []).append(edge.rank)
        if edge.passage is not None:
            key = ("passage", edge.passage.passage_id)
            nodes[key] = edge.passage
            ranks.setdefault(key, []).append(edge.rank)
    return [_read_node(node, tuple(ranks[key])) for key, node in nodes.items()]


def _read_node(node: Segment | Passage, ranks: tuple[int, ...]) -> ReadNode:
    if isinstance(node, Segment):
        return ReadNode(node, None, segment_text(node), ranks)
    return ReadNode(None, node, passage_text(node), ranks)


def candidate_spans(nodes: Sequence[ReadNode]) -> list[Span]:
    """Every candidate of every node; the same characters of a node only once."""
    spans: list[Span] = []
    for number, node in enumerate(nodes):
        found: dict[tuple[int, int], Span] = {}
        for place, piece in enumerate(node.text.pieces):
            if node.segment is not None and place_number(piece) is None:
                continue  # the titles of a table answer nothing
            for start, end, shape in piece_spans(node.text.text[piece.start : piece.end], piece.where):
                found.setdefault(
                    (piece.start + start, piece.start + end),
                    Span(number, place, piece.start + start, piece.start + end, shape),
                )
        spans.extend(found.values())
    return spans


def citation_of(node: ReadNode, span: Span) -> Citation:
    """Where a span stands, as a citation of its cell, sentence or title."""
    piece = node.text.pieces[span.piece]
    text = node.text.text[span.start : span.end]
    start, end = span.start - piece.start, span.end - piece.start
    number = place_number(piece)
    if node.segment is not None:
        return Citation(text, segment_id=node.segment.segment_id, column=number, start=start, end=end)
    if node.passage is None:
        raise ValueError("a node is a segment or a passage")
    return Citation(text, passage_id=node.passage.passage_id, sentence=number, start=start, end=end)


def place_number(piece: Piece) -> int | None:
    """Column or sentence of a piece; None for titles."""
    _, _, number = piece.where.partition(":")
    return int(number) if number else None


@lru_cache(maxsize=20_000)
def piece_spans(text: str, where: str) -> tuple[tuple[int, int, Shape], ...]:
    """Candidates (start, end, shape) inside one piece; headers and the titles of tables hold none."""
    kind = where.partition(":")[0]
    if kind == "cell":
        return tuple(_cell_spans(text))
    if kind == "sentence":
        return tuple(_sentence_spans(text))
    return ((0, len(text), Shape.TITLE),) if kind == "title" and text.strip() else ()


def tokens_of(text: str) -> list[Token]:
    """Words and marks with their characters."""
    return [Token(match.group(), match.start(), match.end()) for match in TOKEN.finditer(text)]


def _cell_spans(text: str) -> Iterator[tuple[int, int, Shape]]:
    stripped = text.strip()
    if not stripped:
        return
    start = text.index(stripped)
    yield start, start + len(stripped), Shape.CELL
    for part_start, part_end in _parts(text):
        if (part_start, part_end) != (start, start + len(stripped)):
            yield part_start, part_end, Shape.CELL_PART
    tokens = tokens_of(text)
    if len(tokens) > 40:
        yield from _sentence_spans(text)
    else:
        for first, last in (*_dates(tokens), *_numbers(tokens)):
            yield tokens[first].start, tokens[last - 1].end, Shape.CELL_PART


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Parts of a cell between separators, and what is outside its brackets."""
    position = 0
    for match in [*re.finditer(r"\s*[,;/|()\[\]•·]\s*|\s+(?:and|&|–|-|featuring)\s+", text), None]:
        end = match.start() if match else len(text)
        part = text[position:end].strip()
        if part:
            start = text.index(part, position)
            yield start, start + len(part)
        position = match.end() if match else len(text)


def _sentence_spans(text: str) -> Iterator[tuple[int, int, Shape]]:
    tokens = tokens_of(text)
    for shape, spans in (
        (Shape.DATE, _dates(tokens)), (Shape.NUMBER, _numbers(tokens)), (Shape.NAME, _names(tokens)),
        (Shape.PHRASE, _phrases(tokens)),
    ):  # fmt: skip
        for first, last in spans:
            yield tokens[first].start, tokens[last - 1].end, shape


def _is_number(token: Token) -> bool:
    return token.text[0].isdigit() or token.lower in NUMBER_WORDS or token.lower.split("-")[0] in NUMBER_WORDS


def _is_year(token: Token) -> bool:
    return len(token.text) == 4 and token.text.isdigit() and 1000 <= int(token.text) <= 2100


def _dates(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Day month year in either order, month and year, year."""
    for at, token in enumerate(tokens):
        if _is_year(token):
            yield at, at + 1
        if token.lower not in MONTHS:
            continue
        first = at - 1 if at and tokens[at - 1].text.isdigit() and len(tokens[at - 1].text) <= 2 else at
        last = at + 1
        if last < len(tokens) and tokens[last].text.isdigit() and len(tokens[last].text) <= 2:
            last += 1
        if last - first > 1:
            yield first, last
        comma = last + 1 if last < len(tokens) and tokens[last].text == "," else last
        if comma < len(tokens) and _is_year(tokens[comma]):
            yield first, comma + 1
            if first < at:
                yield at, comma + 1
        elif last - first == 1:
            yield first, last


def _numbers(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """A number alone, with its sign of currency, its scale, and up to two words of unit."""
    for at, token in enumerate(tokens):
        if not _is_number(token):
            continue
        firsts = [at]
        if at and tokens[at - 1].text in ("$", "£", "€", "¥", "#", "-"):
            firsts.append(at - 1)
        last = at + 1
        while last < len(tokens) and tokens[last].lower in SCALES:
            last += 1
        lasts = dict.fromkeys((at + 1, last))
        for unit in (1, 2):
            if last + unit <= len(tokens) and all(t.text[0].isalpha() for t in tokens[last : last + unit]):
                lasts[last + unit] = None
        for first in firsts:
            yield from ((first, end) for end in lasts)


def _names(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Runs of capitalised words with what joins them, and the runs inside a run."""
    at = 0
    while at < len(tokens):
        if not _is_capital(tokens[at]):
            at += 1
            continue
        last = at + 1
        ahead = last
        while ahead < len(tokens) and (_is_capital(tokens[ahead]) or _joins(tokens[ahead])) and ahead - last < 3:
            ahead += 1
            if _is_capital(tokens[ahead - 1]):
                last = ahead
        yield from _inside(tokens, at, last)
        at = last


def _inside(tokens: Sequence[Token], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The run, then its parts that begin and end with a capital."""
    if last - first > PHRASE_TOKENS:
        yield first, last
    capitals = [at for at in range(first, last) if _is_capital(tokens[at])]
    for start in capitals:
        for end in capitals:
            if start <= end < start + PHRASE_TOKENS:
                yield start, end + 1


def _phrases(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Short runs without a stop word at either end, with at most one joining word inside."""
    for first, token in enumerate(tokens):
        if not _is_content(token):
            continue
        joints = 0
        for last in range(first, min(len(tokens), first + CHUNK_TOKENS)):
            if _is_content(tokens[last]):
                yield first, last + 1
            elif tokens[last].lower in JOINING and not joints:
                joints += 1
            else:
                break


def _is_content(token: Token) -> bool:
    return token.text[0].isalnum() and token.lower not in STOP


def _is_capital(token: Token) -> bool:
    return token.text[0].isupper() or token.text[0].isdigit()


def _joins(token: Token) -> bool:
    return token.lower in JOINING

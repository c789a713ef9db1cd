"""The text of an edge or of a node for one question, cut to what a reranker can read.

A text that is too long keeps its titles, then the cells and sentences that share words with the question, then
the others in their order; what is kept stays in its order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from helios.index.lexical import terms_of
from helios.models.text import passage_text, segment_text
from helios.types import Passage, Segment

TokenCount = Callable[[Sequence[str]], list[int]]
Evidence = tuple[Segment | None, Passage | None]

SPECIAL_TOKENS = 3
LEAST_PART = 8
"""A sentence is cut in two only if so many tokens of it can stay."""
JOIN = ". "
"""Between a segment and its passage."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a node that may be left out."""

    text: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Node:
    """A node's titles, its parts and what stands between those."""

    head: str
    parts: tuple[_Part, ...]
    between: str

    def tokens(self, pieces: Mapping[str, int]) -> int:
        """Tokens of the whole node."""
        return pieces[self.head] + sum(pieces[part.text] for part in self.parts) + self.marks * (len(self.parts) - 1)

    @property
    def marks(self) -> int:
        """Tokens between two parts."""
        return 1 if self.between.strip() else 0

    def join(self, texts: Sequence[str]) -> str:
        return (self.head + self.between.join(texts)).strip()


def evidence_texts(
    question: str, evidence: Sequence[Evidence], *, max_tokens: int, count_tokens: TokenCount
) -> list[str]:
    """One text for each (segment, passage), either of which may be missing.

    `max_tokens` is for question and text together; a text has at least half of it.
    """
    (taken,) = count_tokens([question])
    max_tokens = max(max_tokens // 2, max_tokens - taken) - SPECIAL_TOKENS
    asked = content_terms(question)
    known: dict[Segment | Passage, _Node] = {}
    nodes = [[_node(half, known) for half in pair if half is not None] for pair in evidence]
    pieces = {text: 0 for node in known.values() for text in (node.head, *(part.text for part in node.parts))}
    pieces = dict(zip(pieces, count_tokens(list(pieces)), strict=True))
    lengths = {half: node.tokens(pieces) for half, node in known.items()}
    texts = []
    for pair, row in zip(evidence, nodes, strict=True):
        fits = sum(lengths[half] + 1 for half in pair if half is not None) <= max_tokens + 1
        texts.append(_whole(*pair) if fits else _cut(row, asked, pieces, max_tokens))
    return texts


def content_terms(text: str) -> frozenset[str]:
    """Words of four letters or more, and numbers: a rough set of what a question is about."""
    return frozenset(term for term in terms_of(text) if len(term) > 3 or any(letter.isdigit() for letter in term))


def _whole(segment: Segment | None, passage: Passage | None) -> str:
    parts = [] if segment is None else [segment_text(segment).text]
    parts += [] if passage is None else [passage_text(passage).text]
    return JOIN.join(parts)


def _node(half: Segment | Passage, known: dict[Segment | Passage, _Node]) -> _Node:
    """The node in pieces; rows and passages that several edges share are taken apart once."""
    if half not in known:
        known[half] = _row(half) if isinstance(half, Segment) else _text(half)
    return known[half]


def _row(segment: Segment) -> _Node:
    head = f"{segment.title}, {segment.section}. " if segment.section else f"{segment.title}. "
    cells = (f"{name}: {cell}" for name, cell in zip(segment.header, segment.cells, strict=True))
    return _Node(head, tuple(_Part(text, content_terms(text)) for text in cells), " ; ")


def _text(passage: Passage) -> _Node:
    whole = passage_text(passage)
    sentences = (whole.text[p.start : p.end].strip() for p in whole.pieces if p.where.startswith("sentence"))
    return _Node(f"{passage.title}. ", tuple(_Part(text, content_terms(text)) for text in sentences), " ")


def _cut(nodes: Sequence[_Node], asked: frozenset[str], tokens: Mapping[str, int], max_tokens: int) -> str:
    """Fill the room that titles leave with the best parts."""
    room = max_tokens - sum(tokens[node.head] for node in nodes) - len(nodes) + 1
    kept: dict[tuple[int, int], str] = {}
    for place in _by_relevance(nodes, asked):
        text = nodes[place[0]].parts[place[1]].text
        cost = tokens[text] + nodes[place[0]].marks
        if cost > room and room >= LEAST_PART and cost > LEAST_PART:
            text, cost = _shortened(text, cost, room), room
        if cost <= room:
            kept[place] = text
            room -= cost
    return JOIN.join(
        node.join([kept[number, p] for p in range(len(node.parts)) if (number, p) in kept])
        for number, node in enumerate(nodes)
    )


def _by_relevance(nodes: Sequence[_Node], asked: frozenset[str]) -> list[tuple[int, int]]:
    """Places (node, part): most words shared with the question first; one more for what the other title names.

    A passage's first sentence, which says what it is about, has one more too.
    """
    titles = [content_terms(node.head) for node in nodes]
    ranked = []
    for number, node in enumerate(nodes):
        others = frozenset[str]().union(*(title for n, title in enumerate(titles) if n != number))
        for place, part in enumerate(node.parts):
            bonus = bool(part.terms & others) + (place == 0 and not node.marks)
            ranked.append((-len(part.terms & asked) - bonus, place, number))
    return [(number, place) for _, place, number in sorted(ranked)]


def _shortened(text: str, tokens: int, room: int) -> str:
    words = text.split()
    return " ".join(words[: max(1, len(words) * room // tokens)])

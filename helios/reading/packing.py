"""Evidence as text for a language model, within a token budget.

    R1  John Adams, Offices held
        Year: 1789 | Office: Vice President
    P1  Vice President of the United States (linked from R1, R4)
        The vice president is ... [...] He presides over the Senate.

Best edges come first, every node once, and a text once that stands under two titles. A passage names all rows that link
to it, the best first. What verification rejected is not shown where there is anything else. Nodes of the first edges
are shown whole where they fit, those of later ones by what speaks of the question. What does not fit is cut by whole
cells and sentences and marked; nodes left out are counted. The budget is kept to the last token.

Text of the corpus is quoted (helios.llm.quoting): it cannot forge a label, a line or the end of the evidence.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from helios.index.function_words import telling_terms
from helios.llm.excerpt import by_relevance
from helios.llm.quoting import one_line
from helios.models.text import sentences_of
from helios.types import Evidence, EvidenceEdge, Passage, Segment, SegmentId

CUT = "[...]"
"""Stands where something was left out."""
WHOLE = 5
"""Edges from the first whose nodes are shown whole, if there is room."""
BRIEF_TOKENS = 100
"""Most tokens of a node of a later edge."""
TokenCount = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class PackedEvidence:
    """Text for a prompt, the node behind every label, and what was cut."""

    text: str
    nodes: dict[str, Segment | Passage]
    cut: int
    """Nodes shown in part."""
    left_out: int
    """Nodes not shown at all."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A node ready to be shown: its first line, its parts and what joins them."""

    label: str
    node: Segment | Passage
    head: str
    parts: tuple[str, ...]
    between: str
    place: int
    """Of its first edge, from 0."""

    def text(self, shown: Sequence[int]) -> str:
        """The node with some of its parts, in order; a gap is marked."""
        pieces: list[str] = []
        for place, part in enumerate(self.parts):
            if place in shown:
                pieces.append(part)
            elif not pieces or pieces[-1] != CUT:
                pieces.append(CUT)
        return f"{self.head}\n    {self.between.join(pieces)}\n"


def pack_evidence(question: str, evidence: Evidence, *, budget: int, count_tokens: TokenCount) -> PackedEvidence:
    """Show as many nodes as fit into `budget` tokens, best edges first."""
    asked = telling_terms(question)
    shown: list[str] = []
    nodes: dict[str, Segment | Passage] = {}
    cut = left_out = spent = 0
    for entry in _entries([edge for edge in evidence.edges if not edge.rejected] or evidence.edges):
        left = budget - spent
        enough = left if entry.place < WHOLE else min(BRIEF_TOKENS, left)
        text, whole = _fitted(entry, asked, left, enough, count_tokens)
        if not text:
            left_out += 1
            continue
        shown.append(text)
        spent += count_tokens(text)
        nodes[entry.label] = entry.node
        cut += not whole
    return PackedEvidence("".join(shown), nodes, cut, left_out)


@dataclass(frozen=True, slots=True)
class _Page:
    """A text that rows link to: its first passage, all its titles, and the labels of the rows, best first."""

    label: str
    passage: Passage
    place: int
    titles: dict[str, None]
    rows: dict[str, None]


def _entries(edges: Sequence[EvidenceEdge]) -> list[_Entry]:
    """Every node once, in the order of its first edge, a row before its passage."""
    labels: dict[SegmentId, str] = {}
    pages: dict[str, _Page] = {}
    found: list[tuple[int, Segment] | _Page] = []
    for place, edge in enumerate(edges):
        if edge.segment is not None and edge.segment.segment_id not in labels:
            labels[edge.segment.segment_id] = f"R{len(labels) + 1}"
            found.append((place, edge.segment))
        if edge.passage is None:
            continue
        text = one_line(edge.passage.text).casefold() or edge.passage.passage_id
        if text not in pages:
            pages[text] = _Page(f"P{len(pages) + 1}", edge.passage, place, {}, {})
            found.append(pages[text])
        pages[text].titles[one_line(edge.passage.title)] = None
        if edge.segment is not None:
            pages[text].rows[labels[edge.segment.segment_id]] = None
    return [
        _passage(one) if isinstance(one, _Page) else _row(labels[one[1].segment_id], one[1], one[0]) for one in found
    ]


def _row(label: str, segment: Segment, place: int) -> _Entry:
    title = f"{segment.title}, {segment.section}" if segment.section else segment.title
    pairs = zip(segment.header, segment.cells, strict=True)
    cells = tuple(f"{one_line(name)}: {one_line(cell)}" for name, cell in pairs if cell.strip())
    return _Entry(label, segment, f"{label}  {one_line(title)}", cells, " | ", place)


def _passage(page: _Page) -> _Entry:
    origin = f" (linked from {', '.join(page.rows)})" if page.rows else ""
    sentences = tuple(one_line(text) for _, text in sentences_of(page.passage))
    head = f"{page.label}  {' or '.join(page.titles)}{origin}"
    return _Entry(page.label, page.passage, head, sentences, " ", page.place)


def _fitted(
    entry: _Entry, asked: Collection[str], left: int, enough: int, count_tokens: TokenCount
) -> tuple[str, bool]:
    """The node's text within `enough` tokens, for its best part within `left`, and whether it is whole.

    Empty if not even one part fits.
    """
    whole = entry.text(range(len(entry.parts)))
    if count_tokens(whole) <= enough:
        return whole, True
    shown: list[int] = []
    best = ""
    for place in by_relevance(entry.parts, asked):
        text = entry.text([*shown, place])
        if count_tokens(text) <= (enough if shown else left):
            shown.append(place)
            best = text
    return best, len(shown) == len(entry.parts)

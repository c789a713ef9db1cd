"""Evidence as text for a language model, within a token budget.

    R1  John Adams, Offices held
        Year: 1789 | Office: Vice President
    P1  Vice President of the United States (linked from R1)
        The vice president is ... [...] He presides over the Senate.

Best edges come first, every node once. What does not fit is cut by whole cells and sentences, those without words
of the question first, and marked; nodes left out are counted. The budget is kept to the last token.

Text of the corpus is quoted (helios.llm.quoting): it cannot forge a label, a line or the end of the evidence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from helios.index.lexical import terms_of
from helios.llm.quoting import one_line
from helios.reading.citations import sentences_of
from helios.reading.question import STOP
from helios.types import Evidence, EvidenceEdge, Passage, Segment

CUT = "[...]"
"""Stands where something was left out."""
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
    asked = frozenset(terms_of(question)) - STOP
    shown: list[str] = []
    nodes: dict[str, Segment | Passage] = {}
    cut = left_out = spent = 0
    for entry in _entries(evidence.edges):
        text, whole = _fitted(entry, asked, budget - spent, count_tokens)
        if not text:
            left_out += 1
            continue
        shown.append(text)
        spent += count_tokens(text)
        nodes[entry.label] = entry.node
        cut += not whole
    return PackedEvidence("".join(shown), nodes, cut, left_out)


def _entries(edges: Sequence[EvidenceEdge]) -> list[_Entry]:
    """Every node once, in the order of its first edge, a row before its passage."""
    labels: dict[object, str] = {}
    entries = []
    rows = passages = 0
    for edge in edges:
        if edge.segment is not None and edge.segment.segment_id not in labels:
            rows += 1
            labels[edge.segment.segment_id] = f"R{rows}"
            entries.append(_row(f"R{rows}", edge.segment))
        if edge.passage is not None and edge.passage.passage_id not in labels:
            passages += 1
            labels[edge.passage.passage_id] = f"P{passages}"
            via = labels[edge.segment.segment_id] if edge.segment is not None else ""
            entries.append(_passage(f"P{passages}", edge.passage, via))
    return entries


def _row(label: str, segment: Segment) -> _Entry:
    title = f"{segment.title}, {segment.section}" if segment.section else segment.title
    pairs = zip(segment.header, segment.cells, strict=True)
    cells = tuple(f"{one_line(name)}: {one_line(cell)}" for name, cell in pairs if cell.strip())
    return _Entry(label, segment, f"{label}  {one_line(title)}", cells, " | ")


def _passage(label: str, passage: Passage, via: str) -> _Entry:
    origin = f" (linked from {via})" if via else ""
    sentences = tuple(one_line(text) for _, text in sentences_of(passage))
    return _Entry(label, passage, f"{label}  {one_line(passage.title)}{origin}", sentences, " ")


def _fitted(entry: _Entry, asked: frozenset[str], left: int, count_tokens: TokenCount) -> tuple[str, bool]:
    """The node's text within `left` tokens and whether it is whole; empty if not even one part fits."""
    everything = range(len(entry.parts))
    whole = entry.text(everything)
    if count_tokens(whole) <= left:
        return whole, True
    order = sorted(everything, key=lambda place: (-len(asked.intersection(terms_of(entry.parts[place]))), place))
    shown: list[int] = []
    best = ""
    for place in order:
        text = entry.text([*shown, place])
        if count_tokens(text) <= left:
            shown.append(place)
            best = text
    return best, False

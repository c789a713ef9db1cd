"""What the reader of passages reads: a passage followed by the row that links to it, and every row alone.

A window knows which characters of which node its own characters are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from helios.reading.spans import ReadNode
from helios.types import Evidence

JOIN = " | "
"""Between a passage and its row."""


@dataclass(frozen=True, slots=True)
class Window:
    """A text and the nodes in it: (node number, first character in the text, length)."""

    text: str
    nodes: tuple[tuple[int, int, int], ...]


def windows_of(evidence: Evidence, nodes: Sequence[ReadNode]) -> list[Window]:
    """One window a row and one a passage with the row of its best edge, in the order of the nodes."""
    numbers = {_id(node): number for number, node in enumerate(nodes)}
    windows = []
    for number, node in enumerate(nodes):
        text = node.text.text
        if node.passage is None:
            windows.append(Window(text, ((number, 0, len(text)),)))
            continue
        edge = evidence.edges[node.ranks[0] - 1]
        row = None if edge.segment is None else numbers.get(edge.segment.segment_id)
        if row is None:
            windows.append(Window(text, ((number, 0, len(text)),)))
        else:
            below = nodes[row].text.text
            parts = ((number, 0, len(text)), (row, len(text) + len(JOIN), len(below)))
            windows.append(Window(f"{text}{JOIN}{below}", parts))
    return windows


def _id(node: ReadNode) -> object:
    if node.segment is not None:
        return node.segment.segment_id
    return node.passage.passage_id if node.passage is not None else None

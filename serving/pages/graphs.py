"""Where the nodes and edges of a graph stand in its drawing: a column a step, the centre at the top left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

WIDTH, HEIGHT = 216, 46
"""Of a node's box."""
ACROSS, DOWN = WIDTH + 64, HEIGHT + 12
"""From one column to the next, from one box to the one below."""
EDGE = 8
LETTERS = 26
"""Of a line in a box."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node as it is drawn."""

    x: int
    y: int
    kind: str
    centre: bool
    label: str
    below: str
    whole: str
    address: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """All boxes, the curves between them as paths of SVG, and the size of the whole."""

    width: int
    height: int
    boxes: list[Box]
    curves: list[str]
    box_width: int = WIDTH
    box_height: int = HEIGHT


def drawing(graph: Mapping[str, Any]) -> Drawing:
    """The drawing of a graph of `serving.ego`."""
    nodes: Sequence[Mapping[str, Any]] = graph["nodes"]
    depth = [0] * (1 + max(node["step"] for node in nodes))
    boxes = []
    for node in nodes:
        step = node["step"]
        boxes.append(_box(node, graph["index"], EDGE + step * ACROSS, EDGE + depth[step] * DOWN))
        depth[step] += 1
    curves = [_curve(boxes[start], boxes[end]) for start, end in graph["edges"]]
    width, height = 2 * EDGE + len(depth) * ACROSS - (ACROSS - WIDTH), 2 * EDGE + max(depth) * DOWN - (DOWN - HEIGHT)
    return Drawing(width, height, boxes, curves)


def address_of(node: Mapping[str, Any], index: str) -> str:
    """The fields that name a node in an address."""
    own = {"table": node["table"], "row": node["row"]} if node["kind"] == "row" else {"id": node["id"]}
    return urlencode({"index": index, **own})


def _box(node: Mapping[str, Any], index: str, x: int, y: int) -> Box:
    links = f"{node['links']} link{'' if node['links'] == 1 else 's'}"
    if node["kind"] == "row":
        label = " · ".join(cell for cell in node["cells"] if cell.strip()) or "(empty row)"
        below = f"{_cut(node['title'], LETTERS - 8)}, row {node['row']}"
        whole = f"Row {node['row']} of {node['title']}: {label}; {links}"
    else:
        label, below, whole = node["title"] or node["id"], f"text, {links}", f"Text {node['title']}; {links}"
    return Box(
        x, y, node["kind"], node["step"] == 0, _cut(label, LETTERS), below, whole, address_of(node, index)
    )  # fmt: skip


def _curve(start: Box, end: Box) -> str:
    x1, x2, y1, y2 = start.x + WIDTH, end.x, start.y + HEIGHT // 2, end.y + HEIGHT // 2
    middle = (x1 + x2) // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"

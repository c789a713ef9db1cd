"""The graph around a row or a text: its neighbours, theirs, and what was left out, as plain JSON data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.graph.data import DataGraph
from helios.index.reader import Corpus
from helios.types import SegmentId
from serving.indexes import OpenIndex
from serving.problems import Problem

MOST = 200
"""Nodes that are shown."""
DEEPEST = 3
"""Steps from the centre, at most."""
ROW, TEXT = "row", "passage"
Node = tuple[str, int]
"""Its kind and its number in the corpus."""


@dataclass(slots=True)
class Found:
    """What a walk has found: nodes with their step, in the order in which they were found, and what had no place."""

    steps: dict[Node, int]
    opened: list[Node] = field(default_factory=list)


def row_graph(index: OpenIndex, table_id: str, row: int, *, steps: int, most: int = MOST) -> dict[str, Any]:
    """The graph around a row; Problem `row_not_found`."""
    try:
        number = index.engine.corpus.segment_number(SegmentId(table_id, row))
    except (KeyError, IndexError):
        raise Problem("row_not_found") from None
    return _graph(index, (ROW, number), steps, most)


def passage_graph(index: OpenIndex, passage_id: str, *, steps: int, most: int = MOST) -> dict[str, Any]:
    """The graph around a text; Problem `passage_not_found`."""
    number = index.engine.corpus.passages.find(passage_id)
    if number is None:
        raise Problem("passage_not_found")
    return _graph(index, (TEXT, number), steps, most)


def _graph(index: OpenIndex, centre: Node, steps: int, most: int) -> dict[str, Any]:
    corpus, graph = index.engine.corpus, index.engine.graph
    found = _walk(graph, centre, steps, most)
    numbers = {node: number for number, node in enumerate(found.steps)}
    return {
        "index": index.name, "generation": index.generation, "steps": steps,
        "nodes": [_node(corpus, graph, node, step) for node, step in found.steps.items()],
        "edges": sorted(_edges(graph, found, numbers)),
        "left_out": _left_out(graph, found),
    }  # fmt: skip


def _walk(graph: DataGraph, centre: Node, steps: int, most: int) -> Found:
    """Breadth first; the places that are left are shared out among the nodes of a step, so that no hub takes all."""
    found = Found({centre: 0})
    frontier = [centre]
    for step in range(1, steps + 1):
        reached: list[Node] = []
        degrees = [len(_neighbours(graph, node)[1]) for node in frontier]
        for node, share in zip(frontier, _shares(degrees, most - len(found.steps)), strict=True):
            found.opened.append(node)
            other, numbers = _neighbours(graph, node)
            for number in numbers:
                if share <= 0:
                    break
                if (other, int(number)) not in found.steps:
                    found.steps[other, int(number)] = step
                    reached.append((other, int(number)))
                    share -= 1
        frontier = reached
    return found


def _shares(degrees: Sequence[int], places: int) -> list[int]:
    """Places for the neighbours of each node: those with few get all of them, the others share what is left."""
    shares = [0] * len(degrees)
    for done, node in enumerate(sorted(range(len(degrees)), key=degrees.__getitem__)):
        shares[node] = min(degrees[node], places // (len(degrees) - done))
        places -= shares[node]
    return shares


def _neighbours(graph: DataGraph, node: Node) -> tuple[str, NDArray[np.int32]]:
    kind, number = node
    return (TEXT, graph.passages_of(number)) if kind == ROW else (ROW, graph.segments_of(number))


def _edges(graph: DataGraph, found: Found, numbers: dict[Node, int]) -> Iterable[tuple[int, int]]:
    """Every link between two nodes that are shown, as places in `nodes`."""
    edges = set()
    for node in found.opened:
        other, linked = _neighbours(graph, node)
        for number in linked:
            at = numbers.get((other, int(number)))
            if at is not None:
                edges.add((min(numbers[node], at), max(numbers[node], at)))
    return edges


def _left_out(graph: DataGraph, found: Found) -> int:
    """How many neighbours of opened nodes are not shown."""
    count = 0
    for kind in (ROW, TEXT):
        linked = [_neighbours(graph, node)[1] for node in found.opened if node[0] != kind]
        shown = [number for own, number in found.steps if own == kind]
        if linked:
            count += len(np.setdiff1d(np.concatenate(linked), np.asarray(shown, np.int32)))
    return count


def _node(corpus: Corpus, graph: DataGraph, node: Node, step: int) -> dict[str, Any]:
    kind, number = node
    own: dict[str, Any] = {"kind": kind, "step": step, "links": len(_neighbours(graph, node)[1])}
    if kind == TEXT:
        passage = corpus.passages[number]
        return own | {"id": passage.passage_id, "title": passage.title}
    segment = corpus.segment(number)
    return own | {
        "table": segment.segment_id.table_id, "row": segment.segment_id.row, "title": segment.title,
        "cells": list(segment.cells),
    }  # fmt: skip

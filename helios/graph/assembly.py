"""One graph out of several layers: edges of parts that were written at different times, under one numbering.

Shapes: E edges and L links of a layer or of the whole; see `helios.graph.data`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from helios.graph.data import LINK_COLUMNS, Array, DataGraph, passage_side, run_offsets

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A stored graph, and which node each of its own is in the whole; -1 for one that is not to be seen."""

    graph: DataGraph
    segments: Numbers
    passages: Numbers
    decided: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Segments of the whole whose links this layer decides: those that earlier layers have do not count."""


def assembled(layers: Sequence[Layer], *, segment_count: int, passage_count: int) -> DataGraph:
    """The edges of all layers whose both nodes are visible and whose row no later layer decides.

    Links of an edge that several layers have are joined.

    In memory: about 40 bytes an edge and 14 a link. A single layer of which everything is visible is itself.
    """
    if len(layers) == 1 and _is_whole(layers[0], segment_count, passage_count):
        return layers[0].graph
    edges = edges_that_count(layers, segment_count)
    segments = np.concatenate([np.zeros(0, np.int64), *(own.segments for own in edges)])
    passages = np.concatenate([np.zeros(0, np.int64), *(own.passages for own in edges)])
    counts = np.concatenate([np.zeros(0, np.int64), *(own.counts for own in edges)])
    links = {
        name: np.concatenate([getattr(layers[0].graph, name)[:0], *(own.links[name] for own in edges)])
        for name in LINK_COLUMNS
    }
    keys = segments * max(passage_count, 1) + passages
    if np.any(np.diff(keys) <= 0):
        order = np.argsort(keys, kind="stable")
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)[order]
        segments, passages, counts, keys = segments[order], passages[order], counts[order], keys[order]
        picked = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
        links = {name: column[picked.astype(np.int64)] for name, column in links.items()}
        first = np.concatenate([[True], np.diff(keys) > 0])
        counts = np.add.reduceat(counts, np.flatnonzero(first))
        segments, passages = segments[first], passages[first]
    offsets, by_passage = passage_side(passages, passage_count)
    return DataGraph(
        segment_count=segment_count,
        passage_count=passage_count,
        edge_count=len(segments),
        link_count=int(counts.sum()),
        segment_offsets=run_offsets(segments, segment_count),
        edge_passages=passages.astype(np.int32),
        edge_segments=segments.astype(np.int32),
        passage_offsets=offsets,
        passage_edges=by_passage,
        link_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        **links,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Visible edges of a layer by numbers of the whole (E), how many links each has (E), and the links (L)."""

    segments: Numbers
    passages: Numbers
    counts: Numbers
    links: dict[str, Array]


def edges_that_count(layers: Sequence[Layer], segment_count: int) -> list[Edges]:
    """The edges of each layer that count."""
    found: list[Edges] = []
    decided = np.zeros(segment_count + 1, bool)  # the last one stands for -1
    for layer in reversed(layers):
        found.append(_visible(layer, decided))
        decided[layer.decided] = True
    return found[::-1]


def _visible(layer: Layer, decided: NDArray[np.bool_]) -> Edges:
    graph = layer.graph
    segments, passages = layer.segments[graph.edge_segments], layer.passages[graph.edge_passages]
    kept = (segments >= 0) & (passages >= 0) & ~decided[segments]
    counts = np.diff(graph.link_offsets)
    links = {name: getattr(graph, name)[np.repeat(kept, counts)] for name in LINK_COLUMNS}
    return Edges(segments[kept], passages[kept], counts[kept], links)


def _is_whole(layer: Layer, segment_count: int, passage_count: int) -> bool:
    """Whether a layer has all nodes under their own numbers."""
    sides = ((layer.segments, segment_count), (layer.passages, passage_count))
    return all(len(own) == count and np.array_equal(own, np.arange(count)) for own, count in sides)

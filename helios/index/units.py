"""What is ranked: edges, and nodes without one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.graph import DataGraph
from helios.types import Edge

IntArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Pairs of node numbers, segments before passages; `nodes`, their count, stands for 'no such node' on a side.

    Neighbours with the same left node are a star.
    """

    left: IntArray
    right: IntArray
    segments: int
    nodes: int
    stars: NDArray[np.int64]
    """Where each star's units begin, and their end."""
    star_of: IntArray
    """The star of every unit."""

    def __repr__(self) -> str:
        return f"Units({len(self)})"

    @classmethod
    def of(cls, left: IntArray, right: IntArray, *, segments: int, nodes: int) -> "Units":
        """Pairs, neighbours with the same left node together."""
        begins = np.ones(len(left), bool)
        begins[1:] = (left[1:] != left[:-1]) | (left[1:] == nodes)
        stars = np.append(np.flatnonzero(begins), len(left))
        return cls(left, right, segments, nodes, stars, (np.cumsum(begins) - 1).astype(np.int32))

    def __len__(self) -> int:
        return len(self.left)

    def edge(self, unit: int) -> Edge:
        """The edge that a unit stands for."""
        left, right = int(self.left[unit]), int(self.right[unit])
        return Edge(left if left < self.nodes else None, right - self.segments if right < self.nodes else None)


def edge_units(graph: DataGraph) -> Units:
    """Every edge, then every node without an edge."""
    segments, nodes = graph.segment_count, graph.segment_count + graph.passage_count
    left = np.array(graph.edge_segments, np.int32)
    right = np.array(graph.edge_passages, np.int32) + np.int32(segments)
    lone = np.flatnonzero(np.concatenate([np.diff(graph.segment_offsets) == 0, np.diff(graph.passage_offsets) == 0]))
    return _with_lone(left, right, lone.astype(np.int32), segments, nodes)


def node_units(graph: DataGraph) -> Units:
    """Every node on its own: segments, then passages (for the comparison of retrieval units, HELIOS Table 6)."""
    nothing = np.zeros(0, np.int32)
    nodes = graph.segment_count + graph.passage_count
    return _with_lone(nothing, nothing, np.arange(nodes, dtype=np.int32), graph.segment_count, nodes)


def _with_lone(left: IntArray, right: IntArray, lone: IntArray, segments: int, nodes: int) -> Units:
    """Pairs, then lone nodes: a segment on the left, a passage on the right."""
    is_segment, none = lone < segments, np.int32(nodes)
    return Units.of(
        np.concatenate([left, np.where(is_segment, lone, none)]),
        np.concatenate([right, np.where(is_segment, none, lone)]),
        segments=segments,
        nodes=nodes,
    )

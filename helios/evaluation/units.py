"""Retrieval units (HELIOS 5.3, Table 6): what is scored as one thing, and how it becomes edges."""

from collections.abc import Iterable
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from helios.graph import DataGraph
from helios.types import Edge, ScoredEdge


class RetrievalUnit(StrEnum):
    """What a retriever scores: single nodes, a segment with all its passages, or edges."""

    NODE = "node"
    STAR = "star"
    EDGE = "edge"


def edge_pairs(graph: DataGraph) -> NDArray[np.int32]:
    """int32[U, 2]: (segment, passage) of every edge, then lone segments, then lone passages; -1 is 'none'."""
    linked = np.stack([graph.edge_segments, graph.edge_passages], axis=1)
    segments = np.flatnonzero(np.diff(graph.segment_offsets) == 0)
    passages = lone_passages(graph)
    lone = np.full((len(segments) + len(passages), 2), -1, dtype=np.int32)
    lone[: len(segments), 0] = segments
    lone[len(segments) :, 1] = passages
    return np.concatenate([linked, lone])


def lone_passages(graph: DataGraph) -> NDArray[np.int64]:
    """Numbers of the passages that no segment links to, ascending."""
    return np.flatnonzero(np.diff(graph.passage_offsets) == 0)


def edges_of_ranking(
    graph: DataGraph,
    ranking: Iterable[tuple[Edge, float]],
    passage_scores: NDArray[np.floating],
    *,
    k: int,
) -> list[ScoredEdge]:
    """The first k edges of ranked segments (nodes or stars) and lone passages.

    A ranked segment (n, None) becomes all its edges, passages by their own score (float[P]) first and by
    number second; each edge bears the score of its segment. A lone passage stands for itself.
    """
    edges: list[ScoredEdge] = []
    for edge, score in ranking:
        if len(edges) >= k:
            break
        if edge.segment is None or not len(passages := graph.passages_of(edge.segment)):
            edges.append(ScoredEdge(edge, score))
            continue
        order = np.argsort(-passage_scores[passages], kind="stable")
        edges.extend(ScoredEdge(Edge(edge.segment, int(p)), score) for p in passages[order])
    return edges[:k]

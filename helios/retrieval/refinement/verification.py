"""Passage verification without a language model: is this edge evidence, judged by its star and its own score?"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from helios.graph import DataGraph, Subgraph
from helios.index.maxsim import edge_scores
from helios.index.search import Query
from helios.retrieval.part import SearchPart
from helios.retrieval.refinement.scorer import VERIFIER_FEATURES
from helios.types import Edge


def pair_scores(
    part: SearchPart, query: Query, edges: Sequence[Edge]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Factored MaxSim (edges) of pairs, linked or not, and of their segments alone (of the passage without one)."""
    shift = part.graph.segment_count
    left = np.array([-1 if edge.segment is None else edge.segment for edge in edges], np.int64)
    right = np.array([-1 if edge.passage is None else edge.passage + shift for edge in edges], np.int64)
    nodes = np.unique(np.concatenate([left, right]))
    nodes = nodes[nodes >= 0]
    if not len(nodes):
        return np.zeros(0, np.float32), np.zeros(0, np.float32)
    maxima = part.search.node_maxima(query, nodes)
    left_places = np.where(left < 0, -1, np.searchsorted(nodes, left))
    right_places = np.where(right < 0, -1, np.searchsorted(nodes, right))
    together = np.empty(len(edges), np.float32)
    edge_scores(left_places, right_places, maxima, query.weights_Q, together)
    alone = np.asarray(maxima @ query.weights_Q, np.float32)
    return together, alone[np.where(left_places < 0, right_places, left_places)]


def edge_features(
    subgraph: Subgraph, graph: DataGraph, together: NDArray[np.float32], alone: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(edges, VERIFIER_FEATURES) in the order of the subgraph; MaxSims as `pair_scores` gives them."""
    scores = np.array([scored.score for scored in subgraph.edges])
    spread = max(1e-6, float(scores[0] - scores[min(len(scores), 50) - 1])) if len(scores) else 1.0
    stars: dict[int, list[int]] = {}
    for number, scored in enumerate(subgraph.edges):
        if scored.edge.segment is not None:
            stars.setdefault(scored.edge.segment, []).append(number)
    rank, size, gap = np.zeros(len(scores)), np.ones(len(scores)), np.zeros(len(scores))
    for members in stars.values():
        rank[members] = np.arange(len(members))
        size[members] = len(members)
        gap[members] = (scores[members[0]] - scores[members]) / spread
    link = np.array([_link_score(graph, scored.edge) for scored in subgraph.edges])
    columns = {
        "gap": (scores[0] - scores) / spread if len(scores) else scores,
        "gain": (together - alone) / np.maximum(1e-6, np.abs(together)),
        "star_rank": np.log1p(rank),
        "star_gap": gap,
        "star_size": np.log(size),
        "link": link,
        "alone": np.array([s.edge.segment is None or s.edge.passage is None for s in subgraph.edges], float),
    }
    return np.stack([np.asarray(columns[name], np.float64) for name in VERIFIER_FEATURES], axis=1)


def _link_score(graph: DataGraph, edge: Edge) -> float:
    """The best score of an edge's links; 0 for a pair that is not linked."""
    if edge.segment is None or edge.passage is None:
        return 0.0
    number = graph.edge_number(edge.segment, edge.passage)
    return 0.0 if number is None else max(link.score for link in graph.links(number))

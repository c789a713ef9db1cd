"""Passage verification without a language model: is this edge evidence, judged by its star and its own score?"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from helios.index.reader import IndexReader
from helios.retrieval.refinement.scorer import VERIFIER_FEATURES
from helios.retrieval.state import SearchState, pairs_of
from helios.types import Edge, ScoredEdge


def edge_features(state: SearchState, head: Sequence[ScoredEdge]) -> tuple[SearchState, NDArray[np.float64]]:
    """(edges, VERIFIER_FEATURES) of the best edges in their order; the state has the maxima that this needed."""
    pairs = pairs_of(state.index, [scored.edge for scored in head])
    state = state.with_maxima(pairs.nodes(state.index.node_count))
    assert state.maxima is not None
    together, alone = state.search.maxsim(state.query, pairs, state.maxima)
    scores = np.array([scored.score for scored in head])
    spread = max(1e-6, float(scores[0] - scores[min(len(scores), 50) - 1])) if len(scores) else 1.0
    stars: dict[int, list[int]] = {}
    for number, scored in enumerate(head):
        if scored.edge.segment is not None:
            stars.setdefault(scored.edge.segment, []).append(number)
    rank, size, gap = np.zeros(len(scores)), np.ones(len(scores)), np.zeros(len(scores))
    for members in stars.values():
        rank[members] = np.arange(len(members))
        size[members] = len(members)
        gap[members] = (scores[members[0]] - scores[members]) / spread
    link = np.array([_link_score(state.index, scored.edge) for scored in head])
    columns = {
        "gap": (scores[0] - scores) / spread if len(scores) else scores,
        "gain": (together - alone) / np.maximum(1e-6, np.abs(together)),
        "star_rank": np.log1p(rank),
        "star_gap": gap,
        "star_size": np.log(size),
        "link": link,
        "alone": np.array([s.edge.segment is None or s.edge.passage is None for s in head], float),
    }
    return state, np.stack([np.asarray(columns[name], np.float64) for name in VERIFIER_FEATURES], axis=1)


def _link_score(index: IndexReader, edge: Edge) -> float:
    """The best score of an edge's links; 0 for a pair that is not linked."""
    return max((link.score for link in index.edge_links(edge)), default=0.0)

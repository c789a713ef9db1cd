"""The learned ranking of the best edges (after HELIOS 4.1), and the same for edges that were not retrieved.

Scores are log-odds of being evidence for every edge: by trees for the best `depth` edges, which are compared with each
other, and by the fused score's scale for the others.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.index.search import Pairs, PairScores
from helios.retrieval.ranking.features import FEATURES, NodeFacts, edge_features, own_features
from helios.retrieval.ranking.fused import FusedScale
from helios.retrieval.ranking.model import SHIPPED, EdgeRanker
from helios.retrieval.state import RankedPairs, SearchState, edges_of, pairs_of
from helios.types import Edge

log = logging.getLogger(__name__)

FloatArray = NDArray[np.float32]
ROLE = "ranker"
LEARNED = 0.75
"""How much the trees' log-odds count; the rest is the fused score's, which knows no training data and so errs in other
places: the two together find more than either, on questions like those of training and on others."""


SHIFT = 0.3
"""By so much pooled log-odds are too low, on train questions."""


class EdgeScorer(Protocol):
    """What gives edges that were not retrieved the scores that they are ranked by beside the others."""

    def score(self, state: SearchState, edges: Sequence[Edge]) -> tuple[SearchState, FloatArray]:
        """Log-odds of each edge, and the state with what was computed for it."""


@dataclass(frozen=True, slots=True)
class FusedEdges:
    """Scores of edges that were not retrieved by the fused score alone."""

    scale: FusedScale

    def score(self, state: SearchState, edges: Sequence[Edge]) -> tuple[SearchState, FloatArray]:
        """Log-odds of each edge, at the rank that it would have had among the candidates."""
        state, _, scores = _paired(state, edges)
        return state, self.log_odds(state, scores)

    def log_odds(self, state: SearchState, scores: PairScores) -> FloatArray:
        """Those of pairs with these scores."""
        fused = state.found.scores.fused
        ranks = np.searchsorted(-fused, -scores.fused)
        best = max(float(fused[0]) if len(fused) else 0.0, float(scores.fused.max(initial=0.0)))
        return self.scale.log_odds(scores.fused, ranks, best=best)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The stage that puts the best edges in order, and scores new ones among them."""

    ranker: EdgeRanker
    first: int
    """Edges that it puts in order."""
    unranked: FusedEdges
    """What scores new edges where this stage was left out or comes later."""
    name: str = "rank"

    @property
    def depth(self) -> int:
        """Edges that it reads."""
        return self.first

    def run(self, state: SearchState) -> SearchState:
        """The best edges by the trees' log-odds; the others keep those of the fused score."""
        found = state.found
        head = np.arange(min(self.first, len(found)))
        pairs, scores = found.pairs.take(head), found.scores.take(head)
        state, features, own = pair_features(state, pairs, scores)
        log_odds = _pooled(self.ranker.score(features), self.unranked.log_odds(state, scores))
        edges = edges_of(state.index, pairs)
        learned = dict(zip(edges, log_odds.tolist(), strict=True))
        ranked = (replace(one, score=learned.get(one.edge, one.score)) for one in state.subgraph.edges)
        state = replace(state, ranked=RankedPairs(pairs, scores, edges, features, own, log_odds))
        return state.with_edges(ranked)

    def score(self, state: SearchState, edges: Sequence[Edge]) -> tuple[SearchState, FloatArray]:
        """Log-odds of edges that were not retrieved, seen among those that were."""
        ranked = state.ranked
        if ranked is None:
            return self.unranked.score(state, edges)
        state, pairs, scores = _paired(state, edges)
        together = ranked.pairs.joined(pairs), ranked.scores.joined(scores)
        state, features, _ = pair_features(state, *together, known=ranked.own)
        return state, _pooled(self.ranker.score(features[-len(edges) :]), self.unranked.log_odds(state, scores))


def pair_features(
    state: SearchState, pairs: Pairs, scores: PairScores, *, known: NDArray[np.float64] | None = None
) -> tuple[SearchState, FloatArray, NDArray[np.float64]]:
    """What the trees see of pairs among each other, (C, len(FEATURES)), and of it what does not depend on the others.

    `known` is the latter for the first of the pairs. The state has what was computed of their nodes.
    """
    facts = (state.facts or NodeFacts.of(state.query)).including(state.index, state.query, pairs)
    state = replace(state, facts=facts).with_maxima(pairs.nodes(state.index.node_count))
    assert state.maxima is not None
    rest = pairs if known is None else pairs.take(np.arange(len(known), len(pairs)))
    own = own_features(state.index, facts.asked, rest)
    own = own if known is None else np.concatenate([known, own])
    return state, edge_features(state.index, state.query, facts, state.maxima, pairs, scores, own), own


def load_ranking(configured: str | None, *, first: int, scale: FusedScale, needs: dict[str, object]) -> Ranking | None:
    """The ranking of a folder, the packaged one for None, none for "none".

    The packaged one fits one encoder and one fused score: with others there is none, which is logged. Raises ModelError
    where a named folder does not fit.
    """
    if configured == "none":
        return None
    folder = SHIPPED if configured is None else Path(configured).expanduser()
    ranker, card = EdgeRanker.load(folder, role=ROLE, features=FEATURES)
    if configured is None and (others := card.unmet(**needs)):
        log.warning("the packaged ranking was trained with another %s: no learned ranking", others[0])
        return None
    card.check(folder, **needs)
    return Ranking(ranker, first, FusedEdges(scale))


def _pooled(learned: FloatArray, plain: FloatArray) -> FloatArray:
    """Log-odds of trees and of the fused score as one."""
    return np.float32(LEARNED) * learned + np.float32(1 - LEARNED) * plain + np.float32(SHIFT)


def _paired(state: SearchState, edges: Sequence[Edge]) -> tuple[SearchState, Pairs, PairScores]:
    """Edges as pairs with the scores that they would have in retrieval."""
    pairs = pairs_of(state.index, edges)
    maxima = state.maxima or state.search.no_maxima(state.query)
    scores, maxima = state.search.pair_scores(state.query, pairs, maxima, state.found.bounds)
    return replace(state, maxima=maxima), pairs, scores

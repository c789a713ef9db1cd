"""Factored late-interaction search over an index: every edge bounded, the best ones scored exactly.

MaxSim of an edge is, a query token at a time, the larger of its two nodes' maxima (design: factored late
interaction), so nodes are looked at once and edges cost one comparison a token:

1. node bounds: for all nodes, MaxSim against centroids alone, eight bits a token;
2. edge bounds: the sum of the larger side, fused with those of the edge's row and star, over *all* edges;
3. words: BM25 of nodes apart chooses the edges for which it is computed;
4. exact: the nodes of the best edges are scored from their stored residuals.

Shape legend: N nodes, E units (edges, then lone nodes), C candidates, U nodes of theirs, Q query tokens (padded
lanes), T terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.index.lexical import pair_bm25
from helios.index.maxsim import EdgeBounds, FusedWeights, edge_scores, largest_above, star_bounds
from helios.index.reader import IndexReader
from helios.index.units import Units
from helios.index.visible import NodeBounds, Query, Threads

FloatArray = NDArray[np.float32]
Numbers = NDArray[np.int64]
WIDE = 8192
"""Units with the best bounds for which BM25 is computed to the letter; the rough one chooses them."""
BLOCK = 250
"""Units that are scored exactly before it is asked whether more have to be."""
RARE = 2.0


@dataclass(frozen=True, slots=True)
class Fusion:
    """How much the other scores of an edge count beside its own MaxSim, and the parameters of BM25.

    `segment` is the MaxSim of its row alone, `star` that of the row with all its passages: both are already there
    when edges are scored, and tell whether the edge's row is the right one. `lexical` is BM25 of the edge.
    """

    segment: float = 0.0
    star: float = 0.0
    lexical: float = 0.0
    k1: float = 0.9
    b: float = 0.4


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of nodes, a row and a passage, by their numbers; the count of nodes on a side stands for 'no such node'."""

    left: Numbers
    right: Numbers

    def __repr__(self) -> str:
        return f"Pairs({len(self)})"

    def __len__(self) -> int:
        return len(self.left)

    def take(self, places: Numbers) -> "Pairs":
        """The pairs at these places."""
        return Pairs(self.left[places], self.right[places])

    def joined(self, others: "Pairs") -> "Pairs":
        """These pairs, then the others."""
        return Pairs(np.concatenate([self.left, others.left]), np.concatenate([self.right, others.right]))

    def nodes(self, count: int) -> Numbers:
        """The distinct nodes, ascending, of an index of `count`."""
        nodes = np.unique(np.concatenate([self.left, self.right]))
        return nodes[nodes < count]


@dataclass(frozen=True, slots=True, eq=False)
class PairScores:
    """Scores of pairs (C): MaxSim of the pair and of its row, bound of the star, BM25, and all of it as one number."""

    maxsim: FloatArray
    segment: FloatArray
    star: FloatArray
    lexical: FloatArray
    fused: FloatArray

    def __repr__(self) -> str:
        return f"PairScores({len(self.fused)})"

    @classmethod
    def of(
        cls, maxsim: FloatArray, segment: FloatArray, star: FloatArray, lexical: FloatArray, fusion: Fusion
    ) -> "PairScores":
        """With the fused score of the parts."""
        fused = maxsim + fusion.segment * segment + fusion.star * star + fusion.lexical * lexical
        return cls(maxsim, segment, star, lexical, np.asarray(fused, np.float32))

    def take(self, places: Numbers) -> "PairScores":
        """The scores at these places."""
        return PairScores(
            self.maxsim[places], self.segment[places], self.star[places], self.lexical[places], self.fused[places]
        )

    def joined(self, others: "PairScores") -> "PairScores":
        """These scores, then the others."""
        names = ("maxsim", "segment", "star", "lexical", "fused")
        return PairScores(*(np.concatenate([getattr(self, name), getattr(others, name)]) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class NodeMaxima:
    """m_q(X) of some nodes from their stored vectors: numbers ascending (U), values (U, Q), unweighted."""

    nodes: Numbers
    values_UQ: FloatArray

    def __repr__(self) -> str:
        return f"NodeMaxima({len(self.nodes)} nodes)"

    def places(self, nodes: Numbers) -> Numbers:
        """The row of each node, -1 for one that is not there."""
        if not len(self.nodes):
            return np.full(len(nodes), -1, np.int64)
        found = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return np.where(self.nodes[found] == nodes, found, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The units with the best fused scores, best first.

    The first `exact` in order of their bounds were scored from stored vectors; the others have their bound, shifted by
    what exact scores are above bounds for this question.
    """

    units: Numbers
    pairs: Pairs
    scores: PairScores
    maxima: NodeMaxima
    bounds: NodeBounds

    def __repr__(self) -> str:
        return f"Candidates({len(self)})"

    def __len__(self) -> int:
        return len(self.units)


class EdgeSearch:
    """Search over the edges and lone nodes of an index; holds no state of a question, so threads may share it."""

    def __init__(self, index: IndexReader, fusion: Fusion, threads: Threads) -> None:
        self.index = index
        self.fusion = fusion
        self.threads = threads

    def candidates(
        self, query: Query, *, count: int, exact: int, depth: int | None = None, units: Units | None = None
    ) -> Candidates:
        """The `count` units with the best fused scores, best first, at most `exact` of them scored exactly.

        Units are scored exactly, those with the best BM25 first and then in the order of their bounds, until those that
        are left are not expected among the best `depth`; None scores all `exact`, and so does a small index. `units`
        are those of the index by default.
        """
        ranked = self.index.units if units is None else units
        bounds = self.index.tokens.bounds(query, self.threads)
        found = self._edge_bounds(query, ranked, bounds)
        wide = largest(found.fused, max(WIDE, 4 * count))
        pairs = Pairs(ranked.left[wide].astype(np.int64), ranked.right[wide].astype(np.int64))
        stars = ranked.star_of[wide]
        sums = found.edges[wide], found.segments[stars], found.stars[stars]
        maxsim, segment, star = (np.asarray(own * bounds.step, np.float32) for own in sums)
        bounded = PairScores.of(maxsim, segment, star, self.bm25(query, pairs), self.fusion)
        first = self._best(bounded, count, exact)
        if len(first) <= exact:
            depth = None
        scores, maxima = self._refined(query, pairs.take(first), bounded.take(first), exact=exact, depth=depth)
        order = np.lexsort((wide[first], -scores.fused))
        return Candidates(wide[first][order], pairs.take(first[order]), scores.take(order), maxima, bounds)

    def _best(self, bounded: PairScores, count: int, exact: int) -> Numbers:
        """Places of the `count` best, those first that BM25 alone puts first: centroids know little of rare words."""
        best = largest(bounded.fused, count)
        named = largest(bounded.lexical, min(BLOCK, exact // 4))
        named = named[bounded.lexical[named] > 0]
        return np.concatenate([named, best[~np.isin(best, named)]])[:count]

    def pair_scores(
        self, query: Query, pairs: Pairs, maxima: NodeMaxima, bounds: NodeBounds
    ) -> tuple[PairScores, NodeMaxima]:
        """The exact scores that pairs would have as edges, linked or not; and the maxima with those of their nodes."""
        maxima = self.with_maxima(query, maxima, pairs.nodes(self.index.node_count))
        maxsim, segment = self.maxsim(query, pairs, maxima)
        star = self._star_bounds(pairs, bounds)
        return PairScores.of(maxsim, segment, star, self.bm25(query, pairs), self.fusion), maxima

    def with_maxima(self, query: Query, maxima: NodeMaxima, nodes: Numbers) -> NodeMaxima:
        """The maxima with those of more nodes (ascending); what is there is not computed again."""
        missing = nodes[maxima.places(nodes) < 0]
        if not len(missing):
            return maxima
        joined = np.concatenate([maxima.nodes, missing])
        order = np.argsort(joined, kind="stable")
        values = np.concatenate([maxima.values_UQ, self.index.tokens.maxima(query, missing, self.threads)])
        return NodeMaxima(joined[order], values[order])

    def no_maxima(self, query: Query) -> NodeMaxima:
        """Those of no node."""
        return NodeMaxima(np.zeros(0, np.int64), np.zeros((0, len(query.weights_Q)), np.float32))

    def bm25(self, query: Query, pairs: Pairs) -> FloatArray:
        """BM25 of pairs, each taken as one document; zeros where the fused score has no use for it."""
        scores = np.zeros(len(pairs), np.float32)
        if not self.fusion.lexical or not len(pairs):
            return scores
        nodes = pairs.nodes(self.index.node_count)
        postings = self.index.postings
        counts = postings.counts(query.terms, nodes)
        mean = np.float32(self.index.statistics.mean_edge_length)
        left, right = (places_in(nodes, side) for side in (pairs.left, pairs.right))
        pair_bm25(
            left, right, postings.lengths(nodes), counts, query.terms.idf_T, np.float32(self.fusion.k1),
            np.float32(self.fusion.b), mean, scores,
        )  # fmt: skip
        return scores

    def _edge_bounds(self, query: Query, units: Units, bounds: NodeBounds) -> EdgeBounds:
        """Bounds of every unit, of its segment and of its star from centroids alone, and its fused score of these.

        BM25 counts as it would if the two nodes of an edge shared no term.
        """
        fusion, stars = self.fusion, len(units.stars) - 1
        found = EdgeBounds(
            np.empty(len(units), np.int32), np.empty(stars, np.int32), np.empty(stars, np.int32),
            np.empty(len(units), np.float32),
        )  # fmt: skip
        if fusion.lexical:
            words = self.index.postings.node_bm25(query.terms, k1=fusion.k1, b=fusion.b) * np.float32(fusion.lexical)
        else:
            words = np.zeros(self.index.node_count + 1, np.float32)
        weights = FusedWeights(np.float32(bounds.step), np.float32(fusion.segment), np.float32(fusion.star))
        self.threads.split(
            stars, star_bounds, units.stars, units.left, units.right, bounds.bounds_NQ, weights, words, found
        )
        return found

    def _refined(
        self, query: Query, pairs: Pairs, bounded: PairScores, *, exact: int, depth: int | None
    ) -> tuple[PairScores, NodeMaxima]:
        """Exact scores for the first pairs, and for the rest their bounds at the distance that these have."""
        maxima, exact = self.no_maxima(query), min(exact, len(pairs))
        scored: list[tuple[FloatArray, FloatArray]] = []
        fused, done = np.zeros(0, np.float32), 0
        while done < exact and (depth is None or _may_rise(fused, bounded.fused, depth)):
            block = np.arange(done, min(done + BLOCK, exact) if depth is not None else exact)
            own, known = pairs.take(block), bounded.take(block)
            maxima = self.with_maxima(query, maxima, own.nodes(self.index.node_count))
            scored.append(self.maxsim(query, own, maxima))
            fused = np.concatenate([fused, PairScores.of(*scored[-1], known.star, known.lexical, self.fusion).fused])
            done = len(fused)

        def continued(values: Sequence[FloatArray], bounds: FloatArray) -> FloatArray:
            found = np.concatenate([np.zeros(0, np.float32), *values])
            gaps = (found - bounds[:done])[done // 2 :]
            shift = np.median(gaps) if done else 0.0
            return np.concatenate([found, bounds[done:] + np.float32(shift)])

        scores = PairScores.of(
            continued([pair for pair, _ in scored], bounded.maxsim),
            continued([row for _, row in scored], bounded.segment), bounded.star, bounded.lexical, self.fusion,
        )  # fmt: skip
        return scores, maxima

    def maxsim(self, query: Query, pairs: Pairs, maxima: NodeMaxima) -> tuple[FloatArray, FloatArray]:
        """Factored MaxSim of pairs, and of their segments alone (of the passage where there is none)."""
        left, right = maxima.places(pairs.left), maxima.places(pairs.right)
        scores = np.empty(len(pairs), np.float32)
        edge_scores(left, right, maxima.values_UQ, query.weights_Q, scores)
        alone = np.empty(len(pairs), np.float32)
        edge_scores(np.where(left < 0, right, left), np.full(len(pairs), -1), maxima.values_UQ, query.weights_Q, alone)
        return scores, alone

    def _star_bounds(self, pairs: Pairs, bounds: NodeBounds) -> FloatArray:
        """For each pair the bound of the star that its row would have with the passage; of a lone passage, its own."""
        graph, segments = self.index.graph, self.index.segment_count
        sums = np.empty(len(pairs), np.int64)
        for n, (row, passage) in enumerate(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)):
            members = (
                [row, passage] if row >= segments else [*(graph.passages_of(row) + segments).tolist(), row, passage]
            )
            sums[n] = bounds.bounds_NQ[members].max(axis=0).sum(dtype=np.int64)
        return np.asarray(sums * bounds.step, np.float32)


def _may_rise(fused: FloatArray, bounds: FloatArray, depth: int) -> bool:
    """Whether a pair beyond those with exact fused scores may be among the best `depth`; the next has the best bound.

    It may if its bound and a gap of RARE standard deviations above the mean gap reach the last of them.
    """
    if len(fused) <= depth:
        return True
    gaps = fused - bounds[: len(fused)]
    rise = gaps[len(gaps) // 2 :].mean() + RARE * gaps.std()
    return bool(bounds[len(fused)] + rise > np.partition(fused, -depth)[-depth])


def largest(scores: FloatArray, count: int) -> Numbers:
    """Numbers of the `count` largest scores, largest first; ties go to the smaller number."""
    count = min(count, len(scores))
    if count == 0:
        return np.zeros(0, np.int64)
    chosen = largest_above(scores, count) if len(scores) > 4 * count else np.arange(len(scores))
    return chosen[np.lexsort((chosen, -scores[chosen]))][:count]


def places_in(nodes: Numbers, wanted: Numbers) -> Numbers:
    """The position of each wanted node in ascending `nodes`, -1 where it is not there."""
    if not len(nodes):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    return np.where(nodes[places] == wanted, places, -1)

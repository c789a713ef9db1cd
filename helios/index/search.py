"""Factored late-interaction search over one part: every edge bounded, the best ones scored exactly.

MaxSim of an edge is, a query token at a time, the larger of its two nodes' maxima (design: factored late
interaction), so nodes are looked at once and edges cost one comparison a token:

1. node bounds: for all nodes, MaxSim against centroids alone, eight bits a token;
2. edge bounds: the sum of the larger side, fused with those of the edge's row and star and with BM25, over *all*
   edges;
3. exact: the best edges' nodes are scored from their stored residuals.

Shape legend: N nodes, E units (edges, then lone nodes), C candidates, Q query tokens (padded lanes), T terms.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.index.lexical import MAX_TERMS, Postings, edge_bm25
from helios.index.maxsim import edge_scores, node_bounds, node_maxima, padded, star_bounds, union_bounds
from helios.index.tokens import TokenStore
from helios.models.encoder import TokenVectors

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]
RECENT = 8
"""Questions whose scores of centroids are kept: every stage of a search needs them."""


@dataclass(frozen=True, slots=True)
class Units:
    """What is ranked: pairs of node numbers; `node_count` on a side stands for 'no such node'."""

    left: IntArray
    right: IntArray

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True, slots=True)
class Fusion:
    """How much the other scores of an edge count beside its own MaxSim.

    `segment` is the MaxSim of its row alone, `star` that of the row with all its passages: both are already there
    when edges are scored, and tell whether the edge's row is the right one. `lexical` is BM25 of the edge.
    """

    segment: float = 0.0
    star: float = 0.0
    lexical: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """Scored units of one question, best bound first: exact MaxSim of edge and segment, bound of the star, BM25."""

    units: NDArray[np.int64]
    maxsim: FloatArray
    segment: FloatArray
    star: FloatArray
    lexical: FloatArray

    def take(self, places: NDArray[np.int64]) -> "Candidates":
        """The candidates at these places."""
        return Candidates(
            self.units[places], self.maxsim[places], self.segment[places], self.star[places], self.lexical[places]
        )

    def joined(self, others: "Candidates") -> "Candidates":
        """These candidates, then the others."""
        pairs = ((getattr(self, name), getattr(others, name)) for name in Candidates.__slots__)
        return Candidates(*(np.concatenate(pair) for pair in pairs))

    def fused(self, fusion: Fusion) -> FloatArray:
        """One score a unit."""
        scores = self.maxsim + fusion.segment * self.segment + fusion.star * self.star + fusion.lexical * self.lexical
        return np.asarray(scores, np.float32)


@dataclass(frozen=True, slots=True)
class NodeBounds:
    """m_q(X) of every node against centroids alone, times the token's weight: uint8 (N + 1, Q) in steps of a score.

    Row N is zero: it stands for 'no such node'.
    """

    bounds_NQ: NDArray[np.uint8]
    step: np.float32


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A question as the kernels read it: rotated token vectors (Q, D), weights (Q), and its text for BM25."""

    text: str
    vectors_QD: FloatArray
    weights_Q: FloatArray

    @classmethod
    def of(cls, text: str, tokens: TokenVectors, store: TokenStore) -> "Query":
        """Rotate a question's vectors and weigh them by how rare their tokens are; padding has weight 0."""
        lanes = padded(len(tokens.vectors))
        vectors = np.zeros((lanes, tokens.vectors.shape[1]), np.float32)
        vectors[: len(tokens.vectors)] = tokens.vectors @ store.quantiser.rotation_DD.T
        weights = np.zeros(lanes, np.float32)
        weights[: len(tokens.ids)] = store.token_weights(tokens.ids)
        return cls(text, vectors, weights)


@dataclass(frozen=True, slots=True)
class _CentroidScores:
    """A question against the K centroids: cosines (K, Q), and times the tokens' weights in 256 steps of a score."""

    cosines_KQ: FloatArray
    steps_KQ: NDArray[np.uint8]
    step: np.float32

    @classmethod
    def of(cls, query: Query, store: TokenStore) -> "_CentroidScores":
        cosines = np.ascontiguousarray(store.quantiser.centroids_KD @ query.vectors_QD.T)
        weighted = np.maximum(cosines * query.weights_Q, 0.0)
        step = max(float(weighted.max()), 1e-6) / 255.0
        return cls(cosines, np.rint(weighted / step).astype(np.uint8), np.float32(step))


class FactoredSearch:
    """Search over the units of one part; remembers the last questions' scores of centroids, threads may share it."""

    def __init__(
        self,
        tokens: TokenStore,
        postings: Postings,
        units: Units,
        *,
        threads: int = 1,
        k1: float = 0.9,
        b: float = 0.4,
    ) -> None:
        self.tokens = tokens
        self.postings = postings
        self.units = units
        self.k1 = k1
        self.b = b
        self._threads = max(1, threads)
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        self._stars = _star_starts(units, tokens.node_count)
        self._all_nodes = np.arange(tokens.node_count, dtype=np.int64)
        self._centroids_of = lru_cache(RECENT)(_CentroidScores.of)

    def close(self) -> None:
        """End the threads, when what they are doing is done; a later search raises RuntimeError."""
        if self._pool is not None:
            self._pool.shutdown()

    def candidates(self, query: Query, *, count: int, fusion: Fusion) -> Candidates:
        """The units with the best fused bound, best first, with their scores.

        BM25 is not computed where it does not count, and given as 0.
        """
        if len(self.units) == 0:
            nothing = np.zeros(0, np.float32)
            return Candidates(np.zeros(0, np.int64), nothing, nothing, nothing, nothing)
        lexical = self.lexical_scores(query.text) if fusion.lexical else np.zeros(len(self.units), np.float32)
        bounds_E3, step = self._bounds(query)
        beside = np.array([1.0, fusion.segment, fusion.star], np.float32) * step
        best = _top(bounds_E3 @ beside + np.float32(fusion.lexical) * lexical, count)
        maxsim, segment = self.exact(query, self.units.left[best], self.units.right[best])
        return Candidates(best, maxsim, segment, bounds_E3[best, 2] * step, lexical[best])

    def exact(self, query: Query, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Factored MaxSim of pairs of nodes, as `Units` has them, and of their segments alone, from stored vectors."""
        nodes = self._nodes_of(left, right)
        maxima = self.node_maxima(query, nodes)
        left_places, right_places = _places(nodes, left), _places(nodes, right)
        scores = np.empty(len(left), np.float32)
        edge_scores(left_places, right_places, maxima, query.weights_Q, scores)
        alone: FloatArray = maxima @ query.weights_Q
        return scores, alone[np.where(left_places < 0, right_places, left_places)]

    def node_maxima(self, query: Query, nodes: NDArray[np.int64]) -> FloatArray:
        """m_q(X) of the given nodes: (nodes, Q), unweighted."""
        store = self.tokens
        residual_GQ = store.quantiser.residual_table(query.vectors_QD)
        out = np.empty((len(nodes), len(query.weights_Q)), np.float32)
        self._split(
            len(nodes), node_maxima, nodes, store.offsets, store.codes, store.residuals, store.scales,
            store.quantiser.scale_levels, self._centroids(query).cosines_KQ, residual_GQ, out,
        )  # fmt: skip
        return out

    def node_bounds(self, query: Query) -> NodeBounds:
        """MaxSim of every query token against every node, from centroids alone."""
        return NodeBounds(*self._bounds_of(query, self._all_nodes))

    def bounds_of(self, query: Query, nodes: NDArray[np.int64]) -> tuple[NDArray[np.uint8], np.float32]:
        """MaxSim of every query token against some nodes from centroids alone, in steps of a score: (nodes, Q)."""
        bounds_NQ, step = self._bounds_of(query, nodes)
        return bounds_NQ[nodes], step

    def bound_sums(self, bounds: NodeBounds) -> FloatArray:
        """MaxSim of every node alone from its bounds: (N)."""
        sums = np.empty(self.tokens.node_count, np.float32)
        self._split(len(sums), union_bounds, self._all_nodes, bounds.bounds_NQ, self.tokens.node_count, sums)
        sums *= bounds.step
        return sums

    def pair_bounds(self, bounds: NodeBounds, seed: int, nodes: NDArray[np.int64]) -> FloatArray:
        """Factored MaxSim of a node with each of others, from their bounds: (nodes)."""
        sums = np.empty(len(nodes), np.float32)
        union_bounds(nodes, bounds.bounds_NQ, seed, sums, 0, len(nodes))
        sums *= bounds.step
        return sums

    def pair_scores(
        self, query: Query, left: IntArray, right: IntArray, stars: Sequence[NDArray[np.int64]], *, fusion: Fusion
    ) -> Candidates:
        """The scores that pairs of nodes would have as edges; `stars` holds the nodes of each pair's star.

        Exact MaxSim of pair and segment, bound of the star, BM25: what `candidates` gives for a unit.
        """
        maxsim, segment = self.exact(query, left, right)
        centroids = self._centroids(query)
        bounds = [_star_bound(self.tokens, centroids.steps_KQ, nodes) for nodes in stars]
        star = np.array(bounds, np.float32) * centroids.step
        lexical = self._pair_bm25(query.text, left, right) if fusion.lexical else np.zeros(len(left), np.float32)
        return Candidates(np.arange(len(left)), maxsim, segment, star, lexical)

    def node_of(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """The node of each lone-node unit."""
        return np.minimum(self.units.left[units], self.units.right[units]).astype(np.int64)

    def lexical_scores(self, text: str) -> FloatArray:
        """BM25 of every unit: (E)."""
        looked_up = self.postings.query(text)
        out = np.empty(len(self.units), np.float32)
        self._split(
            len(self.units), edge_bm25, self.units.left, self.units.right, self.postings.lengths, looked_up.counts_NQ,
            looked_up.idf_Q, self.k1, self.b, self.postings.mean_edge_length, out,
        )  # fmt: skip
        return out

    def _pair_bm25(self, text: str, left: IntArray, right: IntArray) -> FloatArray:
        """BM25 of pairs of nodes, looked up for these alone."""
        nodes = self._nodes_of(left, right)
        found = self.postings.term_counts(text, nodes)
        rarest = np.argsort(-found.idf_T, kind="stable")[:MAX_TERMS]
        counts = np.concatenate([found.counts_UT[:, rarest], np.zeros((1, len(rarest)), np.uint8)])
        places = [np.where(side < self.tokens.node_count, _places(nodes, side), len(nodes)) for side in (left, right)]
        out = np.empty(len(left), np.float32)
        edge_bm25(
            places[0], places[1], self.postings.lengths[nodes], counts, found.idf_T[rarest], self.k1, self.b,
            self.postings.mean_edge_length, out, 0, len(left),
        )  # fmt: skip
        return out

    def _nodes_of(self, left: IntArray, right: IntArray) -> NDArray[np.int64]:
        """The distinct nodes of pairs, ascending, without 'no such node'."""
        nodes = np.unique(np.concatenate([left, right])).astype(np.int64)
        return nodes[nodes < self.tokens.node_count]

    def _centroids(self, query: Query) -> _CentroidScores:
        return self._centroids_of(query, self.tokens)

    def _bounds_of(self, query: Query, nodes: NDArray[np.int64]) -> tuple[NDArray[np.uint8], np.float32]:
        """MaxSim of every query token against some nodes from centroids alone, in steps of a score: (N + 1, Q)."""
        centroids, store = self._centroids(query), self.tokens
        bounds = np.zeros((store.node_count + 1, len(query.weights_Q)), np.uint8)
        self._split(len(nodes), node_bounds, nodes, store.offsets, store.codes, centroids.steps_KQ, bounds)
        return bounds, centroids.step

    def _bounds(self, query: Query) -> tuple[FloatArray, np.float32]:
        """MaxSim of every unit, of its segment and of its star (E, 3) from centroids alone, in steps of a score."""
        nodes = self.node_bounds(query)
        sums = np.empty((len(self.units), 3), np.float32)
        stars = len(self._stars) - 1
        self._split(stars, star_bounds, self._stars, self.units.left, self.units.right, nodes.bounds_NQ, sums)
        return sums, nodes.step

    def _split(self, count: int, kernel: Callable[..., None], *arguments: Any) -> None:
        """Run a kernel over [0, count), in as many ranges as there are threads."""
        if self._pool is None:
            kernel(*arguments, 0, count)
            return
        edges = np.linspace(0, count, 4 * self._threads + 1).astype(np.int64)
        spans = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        for future in [self._pool.submit(kernel, *arguments, start, stop) for start, stop in spans]:
            future.result()


def _star_bound(store: TokenStore, table_KQ: NDArray[np.uint8], nodes: NDArray[np.int64]) -> int:
    """MaxSim of the nodes together from centroids alone, in steps."""
    spans = [store.codes[store.offsets[node] : store.offsets[node + 1]] for node in nodes]
    return int(table_KQ[np.concatenate(spans)].max(axis=0).sum())


def _star_starts(units: Units, node_count: int) -> NDArray[np.int64]:
    """Where each star's units begin, and their end: neighbours with the same left node are a star."""
    if len(units) == 0:
        return np.zeros(1, np.int64)
    begins = np.ones(len(units), bool)
    begins[1:] = (units.left[1:] != units.left[:-1]) | (units.left[1:] == node_count)
    return np.append(np.flatnonzero(begins), len(units))


def _top(scores: FloatArray, count: int) -> NDArray[np.int64]:
    """Numbers of the `count` largest scores, largest first; ties go to the smaller number."""
    count = min(count, len(scores))
    threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
    above = np.flatnonzero(scores > threshold)
    level = np.flatnonzero(scores == threshold)[: count - len(above)]
    chosen = np.concatenate([above, level])
    return chosen[np.lexsort((chosen, -scores[chosen]))]


def _places(nodes: NDArray[np.int64], wanted: IntArray) -> NDArray[np.int64]:
    """Position of each wanted node in sorted `nodes`, -1 where it is not there."""
    if len(nodes) == 0:
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    return np.where(nodes[places] == wanted, places, -1)

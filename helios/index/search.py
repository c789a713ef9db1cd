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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.index.lexical import Postings, edge_bm25
from helios.index.maxsim import edge_scores, node_bounds, node_maxima, padded, star_bounds, union_bounds
from helios.index.tokens import TokenStore
from helios.models.encoder import TokenVectors

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]


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


@dataclass(frozen=True, slots=True)
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


class FactoredSearch:
    """Search over the units of one part; holds no state of a query, so threads may share it."""

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
        centroid_KQ = self._centroid_scores(query)
        lexical = self.lexical_scores(query.text) if fusion.lexical else np.zeros(len(self.units), np.float32)
        bounds_E3, step = self._bounds(query, centroid_KQ)
        beside = np.array([1.0, fusion.segment, fusion.star], np.float32) * step
        best = _top(bounds_E3 @ beside + np.float32(fusion.lexical) * lexical, count)
        maxsim, segment = self.exact(query, best, centroid_KQ=centroid_KQ)
        return Candidates(best, maxsim, segment, bounds_E3[best, 2] * step, lexical[best])

    def exact(
        self, query: Query, units: NDArray[np.int64], *, centroid_KQ: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Factored MaxSim of the given units, and of their segments alone, from the stored vectors."""
        if centroid_KQ is None:
            centroid_KQ = self._centroid_scores(query)
        left, right = self.units.left[units], self.units.right[units]
        nodes = np.unique(np.concatenate([left, right])).astype(np.int64)
        nodes = nodes[nodes < self.tokens.node_count]
        maxima = self.node_maxima(query, nodes, centroid_KQ=centroid_KQ)
        left_places, right_places = _places(nodes, left), _places(nodes, right)
        scores = np.empty(len(units), np.float32)
        edge_scores(left_places, right_places, maxima, query.weights_Q, scores)
        alone: FloatArray = maxima @ query.weights_Q
        return scores, alone[np.where(left_places < 0, right_places, left_places)]

    def node_maxima(
        self, query: Query, nodes: NDArray[np.int64], *, centroid_KQ: FloatArray | None = None
    ) -> FloatArray:
        """m_q(X) of the given nodes: (nodes, Q), unweighted."""
        if centroid_KQ is None:
            centroid_KQ = self._centroid_scores(query)
        store = self.tokens
        residual_GQ = store.quantiser.residual_table(query.vectors_QD)
        out = np.empty((len(nodes), len(query.weights_Q)), np.float32)
        self._split(
            len(nodes), node_maxima, nodes, store.offsets, store.codes, store.residuals, store.scales,
            store.quantiser.scale_levels, centroid_KQ, residual_GQ, out,
        )  # fmt: skip
        return out

    def node_bounds(self, query: Query, *, centroid_KQ: FloatArray | None = None) -> NodeBounds:
        """MaxSim of every query token against every node, from centroids alone."""
        if centroid_KQ is None:
            centroid_KQ = self._centroid_scores(query)
        table, step = _byte_table(np.maximum(centroid_KQ * query.weights_Q, 0.0))
        bounds = np.zeros((self.tokens.node_count + 1, table.shape[1]), np.uint8)
        store = self.tokens
        self._split(len(self._all_nodes), node_bounds, self._all_nodes, store.offsets, store.codes, table, bounds)
        return NodeBounds(bounds, step)

    def bounds_of(self, query: Query, nodes: NDArray[np.int64]) -> tuple[NDArray[np.uint8], np.float32]:
        """MaxSim of every query token against some nodes from centroids alone, in steps of a score: (nodes, Q)."""
        table, step = _byte_table(np.maximum(self._centroid_scores(query) * query.weights_Q, 0.0))
        bounds = np.zeros((self.tokens.node_count + 1, table.shape[1]), np.uint8)
        store = self.tokens
        self._split(len(nodes), node_bounds, nodes, store.offsets, store.codes, table, bounds)
        return bounds[nodes], step

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
        centroid_KQ = self._centroid_scores(query)
        alone = FactoredSearch(self.tokens, self.postings, Units(left, right), k1=self.k1, b=self.b)
        units = np.arange(len(left))
        maxsim, segment = alone.exact(query, units, centroid_KQ=centroid_KQ)
        table, step = _byte_table(np.maximum(centroid_KQ * query.weights_Q, 0.0))
        star = np.array([_star_bound(self.tokens, table, nodes) for nodes in stars], np.float32) * step
        lexical = alone.lexical_scores(query.text) if fusion.lexical else np.zeros(len(left), np.float32)
        return Candidates(units, maxsim, segment, star, lexical)

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

    def _centroid_scores(self, query: Query) -> FloatArray:
        scores: FloatArray = self.tokens.quantiser.centroids_KD @ query.vectors_QD.T
        return np.ascontiguousarray(scores)

    def _bounds(self, query: Query, centroid_KQ: FloatArray) -> tuple[FloatArray, np.float32]:
        """MaxSim of every unit, of its segment and of its star (E, 3) from centroids alone, in steps of a score."""
        nodes = self.node_bounds(query, centroid_KQ=centroid_KQ)
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


def _byte_table(weighted_KQ: FloatArray) -> tuple[NDArray[np.uint8], np.float32]:
    """Scores of centroids in 256 steps, and the step."""
    step = max(float(weighted_KQ.max()), 1e-6) / 255.0
    return np.rint(weighted_KQ / step).astype(np.uint8), np.float32(step)


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

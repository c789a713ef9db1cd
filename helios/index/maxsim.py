"""Compiled kernels of factored MaxSim over the quantised token store.

Shape legend: N nodes, T tokens, K centroids, E edges, Q query tokens padded to a multiple of `LANES`,
G residual groups (four bits of residual each).

Every kernel works on a half-open range of its first axis, holds no lock and touches no other range, so that
callers split work over threads as they like. Sums are of whole numbers wherever they can be: they come out the same
however a processor orders them.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from helios.index.simd import best_of_tokens, max_of_rows, star_sums


class StoredTokens(NamedTuple):
    """Token vectors of one part as they are stored (`helios.index.tokens`)."""

    offsets: NDArray[np.int64]
    codes: NDArray[np.uint16]
    residuals: NDArray[np.uint8]
    scales: NDArray[np.uint8]
    scale_levels: NDArray[np.float32]


class QueryTables(NamedTuple):
    """What a query's tokens reach with each centroid and with each pattern of a residual."""

    cosines_KQ: NDArray[np.float32]
    steps_KQ: NDArray[np.uint8]
    """Weighted cosines in 256 steps of a score, none below 0."""
    patterns_GPQ: NDArray[np.int8]
    """(G, 16, Q): products with the residual patterns, in steps of `pattern_step`."""
    pattern_step: np.float32


class EdgeBounds(NamedTuple):
    """Bounds of edges (E), and of their segments and of their stars (stars), as whole numbers of steps; of every edge
    the fused score of these with rough BM25 (E).
    """

    edges: NDArray[np.int32]
    segments: NDArray[np.int32]
    stars: NDArray[np.int32]
    fused: NDArray[np.float32]


class FusedWeights(NamedTuple):
    """What bounds count for in the fused score: one step, and of segment and star beside the edge."""

    step: np.float32
    segment: np.float32
    star: np.float32


@njit(nogil=True, cache=True, boundscheck=False)
def node_bounds(
    nodes: np.ndarray, stored: StoredTokens, steps_KQ: np.ndarray, first: int, out_NQ: np.ndarray, start: int, stop: int
) -> None:
    """out[first + n, q] = max over the tokens of nodes[n] of steps[code, q]: MaxSim against centroids alone."""
    width = np.int64(steps_KQ.shape[1])
    for n in range(start, stop):
        node = nodes[n]
        begin, end = stored.offsets[node], stored.offsets[node + 1]
        max_of_rows(steps_KQ, stored.codes, begin, end, out_NQ, np.int64(first + n), width)


@njit(nogil=True, cache=True, boundscheck=False)
def star_bounds(
    starts: np.ndarray, left: np.ndarray, right: np.ndarray, bounds_NQ: np.ndarray, weights: FusedWeights,
    lexical_N: np.ndarray, out: EdgeBounds, start: int, stop: int,
) -> None:  # fmt: skip
    """Bounds of edges, of their segments alone and of their whole stars, each summed over q, and fused with BM25.

    Star s is the units [starts[s], starts[s + 1]), which share their left node; row N of `bounds` is zero.
    A unit without a left node is a star of its own, and its segment is its right node. `lexical_N` is what BM25 of each
    node alone adds.
    """
    width = np.int64(bounds_NQ.shape[1])
    none = bounds_NQ.shape[0] - 1
    star = np.zeros(2, np.int32)
    for s in range(start, stop):
        first, last = np.int64(starts[s]), np.int64(starts[s + 1])
        a = np.int64(left[first])
        centre = np.int64(right[first]) if a == none else a
        out.edges[first:last] = 0
        star[:] = 0
        star_sums(bounds_NQ, width, a, centre, right, first, last, out.edges, star)
        out.segments[s] = star[0]
        out.stars[s] = star[1]
        beside = weights.segment * np.float32(star[0]) + weights.star * np.float32(star[1])
        for e in range(first, last):
            words = lexical_N[a] + lexical_N[right[e]]
            out.fused[e] = weights.step * (np.float32(out.edges[e]) + beside) + words


@njit(nogil=True, cache=True, boundscheck=False)
def node_maxima(
    nodes: np.ndarray, rows: np.ndarray, stored: StoredTokens, tables: QueryTables, out_NQ: np.ndarray,
    start: int, stop: int,
) -> None:  # fmt: skip
    """out[rows[n]] = m_q(X) of nodes[n] from its stored vectors: centroid part plus scaled residual part."""
    width = np.int64(tables.cosines_KQ.shape[1])
    pairs = np.int64(stored.residuals.shape[1])
    for n in range(start, stop):
        begin, end = stored.offsets[nodes[n]], stored.offsets[nodes[n] + 1]
        best_of_tokens(
            tables.patterns_GPQ, stored.residuals, stored.scales, stored.scale_levels, stored.codes, tables.cosines_KQ,
            begin, end, pairs, tables.pattern_step, out_NQ, np.int64(rows[n]), width,
        )  # fmt: skip


@njit(nogil=True, cache=True, boundscheck=False)
def _bin(score: np.float32, low: np.float32, scale: np.float32, bins: int) -> int:
    """The bin of a score, also of one that is no number."""
    return min(max(int((score - low) * scale), 0), bins - 1)


@njit(nogil=True, cache=True, boundscheck=False)
def largest_above(scores: np.ndarray, count: int) -> np.ndarray:
    """Numbers of at least the `count` largest scores, ascending, and few more: by a histogram in two passes."""
    low, high = scores[0], scores[0]
    for e in range(scores.shape[0]):
        low, high = min(low, scores[e]), max(high, scores[e])
    bins = 4096
    scale = np.float32(bins - 1) / max(high - low, np.float32(1e-9))
    held = np.zeros(bins, np.int64)
    for e in range(scores.shape[0]):
        held[_bin(scores[e], low, scale, bins)] += 1
    least, found = bins - 1, held[bins - 1]
    while least > 0 and found < count:
        least -= 1
        found += held[least]
    chosen = np.empty(found, np.int64)
    at = 0
    for e in range(scores.shape[0]):
        if _bin(scores[e], low, scale, bins) >= least:
            chosen[at] = e
            at += 1
    return chosen


@njit(nogil=True, cache=True, boundscheck=False)
def edge_scores(
    left: np.ndarray, right: np.ndarray, maxima_NQ: np.ndarray, weights_Q: np.ndarray, out_E: np.ndarray
) -> None:
    """out[e] = sum over q of weight[q] * max(m_q(left), m_q(right)); a side of -1 means that there is no such node."""
    for e in range(left.shape[0]):
        a = left[e]
        b = right[e]
        total = np.float32(0.0)
        for q in range(weights_Q.shape[0]):
            best = np.float32(-1e30)
            if a >= 0:
                best = maxima_NQ[a, q]
            if b >= 0 and maxima_NQ[b, q] > best:
                best = maxima_NQ[b, q]
            total += weights_Q[q] * best
        out_E[e] = total

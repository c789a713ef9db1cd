"""Compiled kernels of factored MaxSim over the quantised token store.

Shape legend: N nodes, T tokens, K centroids, E edges, Q query tokens padded to a multiple of `LANES`,
G residual groups (four bits of residual each).

Every kernel works on a half-open range of its first axis, holds no lock and touches no other range, so that
callers split work over threads as they like. Inner loops run over Q with a trip count known only at run time:
measured, that is what LLVM turns into vector instructions; a constant count was ten times slower.
"""

import numpy as np
from numba import njit

LANES = 32
"""Query tokens are padded to a multiple of this, so that the inner loops fill vector registers."""


def padded(count: int) -> int:
    """The number of lanes that hold `count` query tokens."""
    return max(LANES, -(-count // LANES) * LANES)


@njit(nogil=True, cache=True, boundscheck=False)
def node_bounds(
    nodes: np.ndarray, offsets: np.ndarray, codes: np.ndarray, table_KQ: np.ndarray, out_NQ: np.ndarray,
    start: int, stop: int,
) -> None:  # fmt: skip
    """out[nodes[n], q] = max over the tokens of nodes[n] of table[code, q]: MaxSim against centroids alone.

    Four tokens a step: the running maximum then waits for its own store a quarter as often.
    """
    lanes = table_KQ.shape[1]
    for n in range(start, stop):
        node = nodes[n]
        for q in range(lanes):
            out_NQ[node, q] = 0
        t = offsets[node]
        end = offsets[node + 1]
        while t + 4 <= end:
            c0, c1, c2, c3 = codes[t], codes[t + 1], codes[t + 2], codes[t + 3]
            for q in range(lanes):
                best = max(max(table_KQ[c0, q], table_KQ[c1, q]), max(table_KQ[c2, q], table_KQ[c3, q]))
                out_NQ[node, q] = max(out_NQ[node, q], best)
            t += 4
        while t < end:
            c0 = codes[t]
            for q in range(lanes):
                out_NQ[node, q] = max(out_NQ[node, q], table_KQ[c0, q])
            t += 1


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def star_bounds(
    starts: np.ndarray, left: np.ndarray, right: np.ndarray, bounds_NQ: np.ndarray, sums_E3: np.ndarray,
    start: int, stop: int,
) -> None:  # fmt: skip
    """sums[e] = bounds of the edge, of its segment alone and of its whole star, each summed over q, as integers.

    Star s is the units [starts[s], starts[s + 1]), which share their left node; row N of `bounds` is zero.
    A unit without a left node is a star of its own, and its segment is its right node.
    """
    lanes = bounds_NQ.shape[1]
    none = bounds_NQ.shape[0] - 1
    best = np.empty(lanes, np.uint8)
    for s in range(start, stop):
        first = starts[s]
        last = starts[s + 1]
        a = left[first]
        centre = right[first] if a == none else a
        segment = np.int32(0)
        for q in range(lanes):
            best[q] = bounds_NQ[centre, q]
            segment += np.int32(bounds_NQ[centre, q])
        for e in range(first, last):
            b = right[e]
            total = np.int32(0)
            for q in range(lanes):
                value = bounds_NQ[b, q]
                total += np.int32(max(bounds_NQ[a, q], value))
                best[q] = max(best[q], value)
            sums_E3[e, 0] = total
        star = np.int32(0)
        for q in range(lanes):
            star += np.int32(best[q])
        for e in range(first, last):
            sums_E3[e, 1] = segment
            sums_E3[e, 2] = star


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def node_maxima(
    nodes: np.ndarray, offsets: np.ndarray, codes: np.ndarray, residuals: np.ndarray, scales: np.ndarray,
    scale_levels: np.ndarray, centroid_KQ: np.ndarray, residual_GQ: np.ndarray, out_NQ: np.ndarray,
    start: int, stop: int,
) -> None:  # fmt: skip
    """m_q(X) of every node from its stored vectors: centroid part plus scaled residual part.

    `residual_GQ` (G, 16, Q) holds, for each group and each of its 16 bit patterns, that pattern's product
    with the query token; `residuals` packs two groups a byte, low half first.
    """
    lanes = centroid_KQ.shape[1]
    pairs = residuals.shape[1]
    partial = np.empty(lanes, np.float32)
    for n in range(start, stop):
        node = nodes[n]
        for q in range(lanes):
            out_NQ[n, q] = -1e30  # infinities are undefined under fastmath
        for t in range(offsets[node], offsets[node + 1]):
            for q in range(lanes):
                partial[q] = 0.0
            p = 0
            while p + 2 <= pairs:
                b0 = residuals[t, p]
                b1 = residuals[t, p + 1]
                g = 2 * p
                low0, high0, low1, high1 = b0 & 15, b0 >> 4, b1 & 15, b1 >> 4
                for q in range(lanes):
                    partial[q] += (residual_GQ[g, low0, q] + residual_GQ[g + 1, high0, q]) + (
                        residual_GQ[g + 2, low1, q] + residual_GQ[g + 3, high1, q]
                    )
                p += 2
            while p < pairs:
                b0 = residuals[t, p]
                low0, high0 = b0 & 15, b0 >> 4
                for q in range(lanes):
                    partial[q] += residual_GQ[2 * p, low0, q] + residual_GQ[2 * p + 1, high0, q]
                p += 1
            scale = scale_levels[scales[t]]
            code = codes[t]
            for q in range(lanes):
                value = centroid_KQ[code, q] + scale * partial[q]
                out_NQ[n, q] = max(out_NQ[n, q], value)


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
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


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def union_bounds(
    nodes: np.ndarray, bounds_NQ: np.ndarray, other: int, sums: np.ndarray, start: int, stop: int
) -> None:  # fmt: skip
    """sums[n] = sum over q of the larger of nodes[n]'s and the other node's bound: each node paired with the other."""
    lanes = bounds_NQ.shape[1]
    for n in range(start, stop):
        node = nodes[n]
        total = np.int32(0)
        for q in range(lanes):
            total += np.int32(max(bounds_NQ[other, q], bounds_NQ[node, q]))
        sums[n] = total

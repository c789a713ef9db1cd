"""How much candidate generation loses: the search's candidates against an exact scan of every stored vector.

The scan decodes every node's vectors and scores all questions at once, so that it costs minutes, not hours.

Shape legend: N nodes, T tokens of a block, Q tokens of all questions, E units, D dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from helios.engine import Engine
from helios.index.reader import IndexReader
from helios.index.search import EdgeSearch, Fusion
from helios.index.units import Units

FloatArray = NDArray[np.float32]
BLOCK_NODES = 256


@dataclass(frozen=True, slots=True)
class Exactness:
    """Means over the questions of the share of the exact top `depth` edges that the search finds.

    `by_maxsim` is among candidates by the bound of MaxSim alone, `by_fusion` among those by the bound that searches
    use, `in_ranking` among the first `depth` of the former after exact scoring.
    """

    questions: int
    depth: int
    candidates: int
    by_maxsim: float
    by_fusion: float
    in_ranking: float


def measure_exactness(
    engine: Engine, questions: Sequence[str], *, depth: int = 100, progress: Callable[[int, int], None] | None = None
) -> Exactness:
    """Compare candidate generation with an exact scan; `progress` is told nodes done and nodes in all."""
    index, settings = engine.index, engine.config.advanced.search
    queries = [engine.query(question) for question in questions]
    counts = [len(query.tokens.ids) for query in queries]
    firsts = np.concatenate([[0], np.cumsum(counts)])
    maxima_NQ = scan(index, np.concatenate([query.tokens.vectors for query in queries]), progress=progress)
    plain = EdgeSearch(index, Fusion(), engine.threads)
    fused = EdgeSearch(index, engine.pipeline.fused.fusion, engine.threads)
    size: dict[str, Any] = {"count": settings.candidates, "exact": settings.exact}
    shares = []
    for number, query in enumerate(queries):
        columns = slice(int(firsts[number]), int(firsts[number + 1]))
        scores = unit_scores(index.units, maxima_NQ[:, columns], query.weights_Q[: counts[number]])
        exact = np.argpartition(-scores, min(depth, len(scores) - 1))[:depth]
        alone = plain.candidates(query, **size)
        first = alone.units[np.argsort(-alone.scores.maxsim, kind="stable")[:depth]]
        by_fusion = fused.candidates(query, **size)
        shares.append([np.isin(exact, units).mean() for units in (alone.units, by_fusion.units, first)])
    means = (float(share) for share in np.mean(shares, axis=0))
    return Exactness(len(queries), depth, settings.candidates, *means)


def scan(
    index: IndexReader, vectors_QD: FloatArray, *, progress: Callable[[int, int], None] | None = None
) -> NDArray[np.float16]:
    """Largest product of each query token with the stored tokens of each node: (N + 1, Q), last row 0."""
    maxima = np.zeros((index.node_count + 1, len(vectors_QD)), np.float16)
    for part, store in enumerate(index.tokens.stores):
        for nodes, shift in index.numbering.spans(part):
            for start in range(0, len(nodes), BLOCK_NODES):
                block = nodes[start : start + BLOCK_NODES]
                first, last = int(block[0]), int(block[-1]) + 1
                offsets = np.array(store.offsets[first : last + 1])
                products = store.decode(int(offsets[0]), int(offsets[-1])) @ vectors_QD.T
                found = np.empty((last - first, len(vectors_QD)), np.float32)
                _segment_maxima(products, offsets - offsets[0], found)
                maxima[shift + start : shift + start + len(block)] = found[block - first]
                if progress is not None:
                    progress(shift + start + len(block), index.node_count)
    return maxima


def unit_scores(units: Units, maxima_NQ: NDArray[np.float16], weights_Q: FloatArray) -> FloatArray:
    """Factored MaxSim of every unit: (E)."""
    narrow = np.ascontiguousarray(maxima_NQ, dtype=np.float32)
    scores = np.empty(len(units), np.float32)
    for start in range(0, len(units), 65536):
        block = slice(start, start + 65536)
        scores[block] = np.maximum(narrow[units.left[block]], narrow[units.right[block]]) @ weights_Q
    return scores


@njit(nogil=True, cache=True, boundscheck=False)
def _segment_maxima(products_TQ: np.ndarray, offsets: np.ndarray, out_NQ: np.ndarray) -> None:
    for n in range(out_NQ.shape[0]):
        for q in range(out_NQ.shape[1]):
            out_NQ[n, q] = products_TQ[offsets[n], q]
        for t in range(offsets[n] + 1, offsets[n + 1]):
            for q in range(out_NQ.shape[1]):
                out_NQ[n, q] = max(out_NQ[n, q], products_TQ[t, q])

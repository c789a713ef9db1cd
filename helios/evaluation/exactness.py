"""How much candidate generation loses: the search's candidates against an exact scan of every stored vector.

The scan decodes every node's vectors and scores all questions at once, so that it costs minutes, not hours.

Shape legend: N nodes, T tokens of a block, Q tokens of all questions, E units, D dimensions.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from helios.index.search import Fusion, Query, Units
from helios.index.tokens import TokenStore
from helios.models.encoder import TokenEncoder
from helios.retrieval.part import SearchPart

FloatArray = NDArray[np.float32]
BLOCK_TOKENS = 8192


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
    part: SearchPart, encoder: TokenEncoder, questions: Sequence[str], *, candidates: int, fusion: Fusion,
    depth: int = 100, progress: Callable[[int, int], None] | None = None,
) -> Exactness:  # fmt: skip
    """Compare candidate generation with an exact scan; `progress` is told nodes done and nodes in all."""
    store, search = part.tokens, part.search
    queries = [Query.of(question, encoder.encode_question(question), store) for question in questions]
    counts = [int(np.count_nonzero(query.weights_Q)) for query in queries]
    firsts = np.concatenate([[0], np.cumsum(counts)])
    vectors = np.concatenate([query.vectors_QD[:count] for query, count in zip(queries, counts, strict=True)])
    maxima_NQ = scan(store, vectors, progress=progress)
    shares = []
    for number, query in enumerate(queries):
        columns = slice(int(firsts[number]), int(firsts[number + 1]))
        scores = unit_scores(search.units, maxima_NQ[:, columns], query.weights_Q[: counts[number]])
        exact = np.argpartition(-scores, min(depth, len(scores) - 1))[:depth]
        alone = search.candidates(query, count=candidates, fusion=Fusion())
        first = alone.units[np.argsort(-alone.maxsim, kind="stable")[:depth]]
        fused = search.candidates(query, count=candidates, fusion=fusion)
        shares.append([np.isin(exact, units).mean() for units in (alone.units, fused.units, first)])
    return Exactness(len(queries), depth, candidates, *(float(share) for share in np.mean(shares, axis=0)))


def scan(
    store: TokenStore, vectors_QD: FloatArray, *, progress: Callable[[int, int], None] | None = None
) -> NDArray[np.float16]:
    """Largest product of each (rotated) query token with the stored tokens of each node: (N + 1, Q), last row 0."""
    import torch

    from helios.models.runtime import supports_bf16

    kind = torch.bfloat16 if supports_bf16() else torch.float32
    torch.set_num_threads(os.cpu_count() or 1)
    questions = torch.from_numpy(vectors_QD).to(kind).T
    maxima = np.zeros((store.node_count + 1, len(vectors_QD)), np.float16)
    first = 0
    while first < store.node_count:
        last = int(np.searchsorted(store.offsets, store.offsets[first] + BLOCK_TOKENS, side="right")) - 1
        last = min(max(last, first + 1), store.node_count)
        offsets = np.array(store.offsets[first : last + 1])
        stored = store.quantiser.decode_rotated(store.stored(int(offsets[0]), int(offsets[-1])))
        products = (torch.from_numpy(stored).to(kind) @ questions).float().numpy()
        block = np.empty((last - first, len(vectors_QD)), np.float32)
        _segment_maxima(products, offsets - offsets[0], block)
        maxima[first:last] = block
        first = last
        if progress is not None:
            progress(first, store.node_count)
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

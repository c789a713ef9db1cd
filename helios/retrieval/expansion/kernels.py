"""Compiled kernels that find and describe pairs of a row and a passage by the words of the passage's title.

Shape legend: R rows of one table, W words of all the rows' cells, X distinct ones, P passages, V title terms, C pairs.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

QUESTION, CONTEXT, SIBLING = 1, 2, 4
"""Where a title term is known from beside the row: the question, the table's titles and header, titles of passages
that the table's rows are linked to."""
TITLE_WEIGHT = 25.0
"""What a title counts beside BM25 if the row's cells hold all of it."""
KNOWN_WEIGHT = 12.5
"""What it counts if all of it is known, but not from the row."""
MAX_HOLDERS = 4000
"""Terms of more titles than this find no candidates; they still describe them."""
MAX_CELLS = 64
TITLE_FEATURES = (
    "title_in_row", "title_in_cell", "cell_in_title", "title_in_row_question", "title_in_row_context",
    "title_in_row_siblings", "title_in_question", "number_missing", "number_matched", "title_terms",
    "title_rest",
)  # fmt: skip
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


class RowWords(NamedTuple):
    """Words of the cells of some rows: where each row's begin (R + 1), and of each word its number among the terms of
    titles (-1: in none), its number among the distinct words, and its column (W).
    """

    starts: IntArray
    titles: NDArray[np.int32]
    numbers: IntArray
    cells: IntArray


class WordPassages(NamedTuple):
    """Where the passages of each distinct word are, places [first, last) of `passages` and `counts`; its rarity (X).

    `passages` are numbers plus `shift`.
    """

    first: IntArray
    last: IntArray
    idf: FloatArray
    passages: NDArray[np.int32]
    counts: NDArray[np.uint8]
    shift: np.int64


class Titles(NamedTuple):
    """The terms of titles in both directions (`helios.index.titles`)."""

    starts: IntArray
    terms: NDArray[np.int32]
    shares: FloatArray
    numeric: NDArray[np.bool_]
    offsets: IntArray
    holders: NDArray[np.int32]
    holder_shares: FloatArray


class Scratch(NamedTuple):
    """Arrays of the size of the corpus, made once a question; every table leaves them as it found them.

    `base_P` is what the question says for each passage.
    """

    base_P: FloatArray
    lexical_P: FloatArray
    title_P: FloatArray
    known_P: FloatArray
    seen_P: NDArray[np.bool_]
    touched: NDArray[np.int32]
    known_V: NDArray[np.uint8]
    masks_V: NDArray[np.uint64]
    stamp_V: NDArray[np.int32]

    @classmethod
    def of(cls, base_P: FloatArray, terms: int) -> "Scratch":
        """For a question."""
        count = len(base_P)
        return cls(
            base_P, np.zeros(count, np.float32), np.zeros(count, np.float32), np.zeros(count, np.float32),
            np.zeros(count, bool), np.empty(count, np.int32), np.zeros(terms, np.uint8), np.zeros(terms, np.uint64),
            np.full(terms, -1, np.int32),
        )  # fmt: skip


@njit(nogil=True, cache=True, boundscheck=False)
def near_passages(
    words: RowWords, spans: WordPassages, titles: Titles, scratch: Scratch, context: np.ndarray, norm_P: np.ndarray,
    k1: np.float32, count: int, leading: np.ndarray, forced: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The passages nearest to each row and the question together: rows, passages, ranks, scores, BM25 of the row (C).

    To what the question says for each passage a table adds the share of the title that its `context` holds, and a row
    BM25 of its words and the share of the title that its cells hold. Passages without a word of the row are not looked
    at, but for the `forced` ones of `leading` rows.
    """
    rows = words.starts.shape[0] - 1
    room = rows * (count + forced.shape[0])
    found_rows, found = np.empty(room, np.int64), np.empty(room, np.int64)
    found_ranks = np.empty(room, np.int64)
    found_scores, found_lexical = np.empty(room, np.float32), np.empty(room, np.float32)
    best = np.empty(count, np.float32)
    lexical_P, title_P, seen_P, touched = scratch.lexical_P, scratch.title_P, scratch.seen_P, scratch.touched
    for t in context:
        for i in range(titles.offsets[t], titles.offsets[t + 1]):
            scratch.known_P[titles.holders[i]] += np.float32(KNOWN_WEIGHT) * titles.holder_shares[i]
    worth, worth_starts = _worth(spans, norm_P, k1)
    stamp_V, stamp_X = scratch.stamp_V, np.full(spans.first.shape[0], -1, np.int32)
    size = 0
    for r in range(rows):
        touches = 0
        for w in range(words.starts[r], words.starts[r + 1]):
            x = words.numbers[w]
            if stamp_X[x] != r:
                stamp_X[x] = r
                at = worth_starts[x]
                for i in range(spans.first[x], spans.last[x]):
                    p = spans.passages[i] - spans.shift
                    if not seen_P[p]:
                        seen_P[p] = True
                        touched[touches] = p
                        touches += 1
                    lexical_P[p] += worth[at]
                    at += 1
            t = words.titles[w]
            if t < 0 or stamp_V[t] == r or titles.offsets[t + 1] - titles.offsets[t] > MAX_HOLDERS:
                continue
            stamp_V[t] = r
            weight = np.float32(TITLE_WEIGHT - KNOWN_WEIGHT) if scratch.known_V[t] else np.float32(TITLE_WEIGHT)
            for i in range(titles.offsets[t], titles.offsets[t + 1]):
                p = np.int64(titles.holders[i])
                if not seen_P[p]:
                    seen_P[p] = True
                    touched[touches] = p
                    touches += 1
                title_P[p] += weight * titles.holder_shares[i]
        kept = 0
        for n in range(touches):
            p = touched[n]
            score = lexical_P[p] + title_P[p] + scratch.known_P[p] + scratch.base_P[p]
            if kept == count and score <= best[count - 1]:
                continue
            at = kept if kept < count else count - 1
            kept = min(kept + 1, count)
            while at > 0 and best[at - 1] < score:
                best[at] = best[at - 1]
                found[size + at] = found[size + at - 1]
                at -= 1
            best[at] = score
            found[size + at] = p
        if leading[r]:
            begin = size
            for p in forced:
                known = False
                for at in range(begin, begin + kept):
                    known = known or found[at] == p
                if not known:
                    found[size + kept] = p
                    kept += 1
        for at in range(size, size + kept):
            p = found[at]
            found_rows[at] = r
            found_ranks[at] = at - size
            found_lexical[at] = lexical_P[p]
            found_scores[at] = lexical_P[p] + title_P[p] + scratch.known_P[p] + scratch.base_P[p]
        for n in range(touches):
            p = touched[n]
            lexical_P[p] = 0.0
            title_P[p] = 0.0
            seen_P[p] = False
        for w in range(words.starts[r], words.starts[r + 1]):
            if words.titles[w] >= 0:
                stamp_V[words.titles[w]] = -1
        size += kept
    for t in context:
        for i in range(titles.offsets[t], titles.offsets[t + 1]):
            scratch.known_P[titles.holders[i]] = 0.0
    return found_rows[:size], found[:size], found_ranks[:size], found_scores[:size], found_lexical[:size]


@njit(nogil=True, cache=True, boundscheck=False)
def _worth(spans: WordPassages, norm_P: np.ndarray, k1: np.float32) -> tuple[np.ndarray, np.ndarray]:
    """BM25 of every distinct word in each passage that holds it, and where each word's begin: rows share words."""
    starts = np.zeros(spans.first.shape[0] + 1, np.int64)
    for x in range(spans.first.shape[0]):
        starts[x + 1] = starts[x] + spans.last[x] - spans.first[x]
    worth = np.empty(starts[-1], np.float32)
    for x in range(spans.first.shape[0]):
        scaled = spans.idf[x] * (k1 + np.float32(1.0))
        at = starts[x]
        for i in range(spans.first[x], spans.last[x]):
            count = np.float32(spans.counts[i])
            worth[at] = scaled * count / (count + norm_P[spans.passages[i] - spans.shift])
            at += 1
    return worth, starts


@njit(nogil=True, cache=True, boundscheck=False)
def describe_titles(
    rows: np.ndarray, passages: np.ndarray, words: RowWords, titles: Titles, scratch: Scratch, out_CF: np.ndarray,
    columns_C: np.ndarray,
) -> None:  # fmt: skip
    """TITLE_FEATURES of pairs whose rows ascend, and the column of the cell that holds most of the title (-1: none)."""
    masks_V, known_V = scratch.masks_V, scratch.known_V
    cover = np.zeros(MAX_CELLS, np.float32)
    met = np.zeros(MAX_CELLS, np.int32)
    sizes = np.zeros(MAX_CELLS, np.int32)
    current = -1
    for c in range(rows.shape[0]):
        r = rows[c]
        if r != current:
            if current >= 0:
                _forget(masks_V, words.titles[words.starts[current] : words.starts[current + 1]])
            current = r
            sizes[:] = 0
            for w in range(words.starts[r], words.starts[r + 1]):
                cell = words.cells[w]
                if cell < MAX_CELLS:
                    sizes[cell] += 1
                    if words.titles[w] >= 0:
                        masks_V[words.titles[w]] |= np.uint64(1) << np.uint64(cell)
        cover[:] = 0.0
        met[:] = 0
        out = out_CF[c]
        out[:] = 0.0
        p = passages[c]
        for i in range(titles.starts[p], titles.starts[p + 1]):
            t = titles.terms[i]
            s = titles.shares[i]
            mask = masks_V[t]
            known = known_V[t]
            in_row = mask != 0
            if in_row:
                out[0] += s
                cell = 0
                while mask != 0:
                    if mask & np.uint64(1):
                        cover[cell] += s
                        met[cell] += 1
                    mask >>= np.uint64(1)
                    cell += 1
            if in_row or known & QUESTION:
                out[3] += s
            if in_row or known & (QUESTION | CONTEXT):
                out[4] += s
            if in_row or known:
                out[5] += s
            else:
                out[10] += 1
            if known & QUESTION:
                out[6] += s
            if titles.numeric[t]:
                if in_row:
                    out[8] += s
                elif not known & QUESTION:
                    out[7] += s
        best = -1
        for cell in range(MAX_CELLS):
            if met[cell] and (
                best < 0 or cover[cell] > cover[best] or (cover[cell] == cover[best] and sizes[cell] < sizes[best])
            ):
                best = cell
        columns_C[c] = best
        if best >= 0:
            out[1] = cover[best]
            out[2] = met[best] / max(sizes[best], 1)
        out[9] = titles.starts[p + 1] - titles.starts[p]
    if current >= 0:
        _forget(masks_V, words.titles[words.starts[current] : words.starts[current + 1]])


@njit(nogil=True, cache=True, boundscheck=False)
def _forget(masks_V: np.ndarray, terms: np.ndarray) -> None:
    for t in terms:
        if t >= 0:
            masks_V[t] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def best_of_linked(
    rows: np.ndarray, starts: np.ndarray, members: np.ndarray, bounds_UQ: np.ndarray, held_UT: np.ndarray,
    idf_T: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """For each row (places in the nodes, R) the best bound and share of terms with one of its passages or alone.

    Row r's passages are members[starts[r] : starts[r + 1]].
    """
    best, shares = np.zeros(len(rows)), np.zeros(len(rows))
    for r in range(len(rows)):
        row = rows[r]
        for at in range(starts[r], starts[r + 1] + 1):
            other = members[at] if at < starts[r + 1] else row
            bound = 0
            for q in range(bounds_UQ.shape[1]):
                bound += max(bounds_UQ[row, q], bounds_UQ[other, q])
            share = 0.0
            for t in range(held_UT.shape[1]):
                if held_UT[row, t] or held_UT[other, t]:
                    share += idf_T[t]
            best[r], shares[r] = max(best[r], float(bound)), max(shares[r], share)
    return best, shares

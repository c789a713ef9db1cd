"""Compiled kernels that find and describe pairs of a row and a passage by the words of the passage's title.

Shape legend: R rows of one table, W words of all the rows' cells, P passages, V title terms, C pairs.
"""

import numpy as np
from numba import njit

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


@njit(nogil=True, cache=True, boundscheck=False)
def near_passages(
    row_starts: np.ndarray, row_titles: np.ndarray, row_words: np.ndarray, offsets: np.ndarray, holders: np.ndarray,
    shares: np.ndarray, known_V: np.ndarray, first_X: np.ndarray, last_X: np.ndarray, idf_X: np.ndarray,
    nodes: np.ndarray, counts: np.ndarray, norm_P: np.ndarray, segments: int, base_P: np.ndarray, k1: np.float32,
    count: int, leading: np.ndarray, forced: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The passages nearest to each row and the question together: rows, passages, ranks, scores, BM25 of the row (C).

    `base_P` is what the question and the table say for each passage; a row adds BM25 of its words, `row_words`
    (X distinct ones whose postings are [first_X, last_X)), and the share of the title that its cells hold. Passages
    without a word of the row are not looked at, but for the `forced` ones of `leading` rows.
    """
    rows = row_starts.shape[0] - 1
    room = rows * (count + forced.shape[0])
    found_rows, found = np.empty(room, np.int64), np.empty(room, np.int64)
    found_ranks = np.empty(room, np.int64)
    found_scores, found_lexical = np.empty(room, np.float32), np.empty(room, np.float32)
    best = np.empty(count, np.float32)
    lexical_P, title_P = np.zeros(base_P.shape[0], np.float32), np.zeros(base_P.shape[0], np.float32)
    seen_P = np.zeros(base_P.shape[0], np.bool_)
    touched = np.empty(base_P.shape[0], np.int32)
    stamp_V, stamp_X = np.full(known_V.shape[0], -1, np.int32), np.full(first_X.shape[0], -1, np.int32)
    size = 0
    for r in range(rows):
        touches = 0
        for w in range(row_starts[r], row_starts[r + 1]):
            x = row_words[w]
            if x >= 0 and stamp_X[x] != r:
                stamp_X[x] = r
                for i in range(first_X[x], last_X[x]):
                    p = nodes[i] - segments
                    if not seen_P[p]:
                        seen_P[p] = True
                        touched[touches] = p
                        touches += 1
                    tf = np.float32(counts[i])
                    lexical_P[p] += idf_X[x] * tf * (k1 + np.float32(1.0)) / (tf + norm_P[p])
            t = row_titles[w]
            if t < 0 or stamp_V[t] == r or offsets[t + 1] - offsets[t] > MAX_HOLDERS:
                continue
            stamp_V[t] = r
            weight = np.float32(TITLE_WEIGHT - KNOWN_WEIGHT) if known_V[t] else np.float32(TITLE_WEIGHT)
            for i in range(offsets[t], offsets[t + 1]):
                p = holders[i]
                if not seen_P[p]:
                    seen_P[p] = True
                    touched[touches] = p
                    touches += 1
                title_P[p] += weight * shares[i]
        kept = 0
        for n in range(touches):
            p = touched[n]
            score = lexical_P[p] + title_P[p] + base_P[p]
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
            found_scores[at] = lexical_P[p] + title_P[p] + base_P[p]
        for n in range(touches):
            p = touched[n]
            lexical_P[p] = 0.0
            title_P[p] = 0.0
            seen_P[p] = False
        size += kept
    return found_rows[:size], found[:size], found_ranks[:size], found_scores[:size], found_lexical[:size]


@njit(nogil=True, cache=True, boundscheck=False)
def describe_titles(
    rows: np.ndarray, passages: np.ndarray, row_starts: np.ndarray, row_terms: np.ndarray, row_cells: np.ndarray,
    starts: np.ndarray, terms: np.ndarray, shares: np.ndarray, numeric: np.ndarray, known_V: np.ndarray,
    out_CF: np.ndarray, columns_C: np.ndarray,
) -> None:  # fmt: skip
    """TITLE_FEATURES of pairs whose rows ascend, and the column of the cell that holds most of the title (-1: none)."""
    masks_V = np.zeros(known_V.shape[0], np.uint64)
    cover = np.zeros(MAX_CELLS, np.float32)
    met = np.zeros(MAX_CELLS, np.int32)
    sizes = np.zeros(MAX_CELLS, np.int32)
    current = -1
    for c in range(rows.shape[0]):
        r = rows[c]
        if r != current:
            if current >= 0:
                _forget(masks_V, row_terms[row_starts[current] : row_starts[current + 1]])
            current = r
            sizes[:] = 0
            for w in range(row_starts[r], row_starts[r + 1]):
                cell = row_cells[w]
                if cell < MAX_CELLS:
                    sizes[cell] += 1
                    if row_terms[w] >= 0:
                        masks_V[row_terms[w]] |= np.uint64(1) << np.uint64(cell)
        cover[:] = 0.0
        met[:] = 0
        out = out_CF[c]
        out[:] = 0.0
        p = passages[c]
        for i in range(starts[p], starts[p + 1]):
            t = terms[i]
            s = shares[i]
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
            if numeric[t]:
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
        out[9] = starts[p + 1] - starts[p]


@njit(nogil=True, cache=True, boundscheck=False)
def _forget(masks_V: np.ndarray, terms: np.ndarray) -> None:
    for t in terms:
        if t >= 0:
            masks_V[t] = 0

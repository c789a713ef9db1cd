"""Candidate passages for the cells of one table: title keys inside the cell, aliases, and BM25 with context.

Compiled kernels over the arrays of `PassageIndex` and `BoundAliases`. P passages, V vocabulary tokens,
U distinct cell texts of a table, N pooled candidates. Scores are BM25-like; features are float32.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from helios.models.linker.aliases import BoundAliases
from helios.models.linker.arrays import Cells, Extra, IndexArrays, Pool, Workspace
from helios.models.linker.matching import WIDTH, describe, seen_before
from helios.models.linker.passages import ACRONYM, ngram_hash

Array = npt.NDArray[Any]
POOL = 160
MAX_NGRAM = 10
KEY_CAP = 16
"""At most this many passages are taken from one title key, those nearest to the table's titles."""
TOP = 8
"""Passages taken from each of the three rankings of a mention."""
MAX_QUERY = 20
TEXT_DF_CAP = 12_000
GIVEN, SPELLED, SEARCHED = 0, 1, 2
"""Candidates of a cell: `extra` alone; also what title keys and aliases spell; also what BM25 finds."""
INTRO_WEIGHT = 0.25
"""Weight of the introduction's words beside those of the titles."""


@njit(cache=True, nogil=True)
def pool_candidates(
    ix: IndexArrays, aliases: BoundAliases, ws: Workspace, cells: Cells, context: Array, intro: Array, extra: Extra,
    efforts: Array,
) -> Pool:  # fmt: skip
    """Candidates for every distinct cell, given the distinct tokens of the table's titles and intro.

    `extra` are passages that other routes found; they come after this module's own. `efforts` uint8[U] says for each
    cell where candidates come from: SEARCHED, SPELLED or GIVEN.
    """
    count = len(cells.token_offsets) - 1
    offsets = np.zeros(count + 1, dtype=np.int64)
    capacity = 64 * count + POOL
    passages = np.empty(capacity, dtype=np.int32)
    first = np.empty(capacity, dtype=np.int16)
    last = np.empty(capacity, dtype=np.int16)
    features = np.empty((capacity, WIDTH), dtype=np.float32)
    _score_context(ix, ws, context, intro)
    pooled = np.empty(POOL, dtype=np.int32)
    hits = np.zeros((POOL, 12), dtype=np.float32)
    size = 0
    for cell in range(count):
        given = extra.passages[extra.offsets[cell] : extra.offsets[cell + 1]]
        found = _pool_cell(ix, aliases, ws, cells, cell, pooled, hits, efforts[cell] == SEARCHED)
        if efforts[cell] == GIVEN:
            found = _only_given(ws, pooled, hits, found, given)
        for passage in given:
            found = max(found, _put(ws, pooled, hits, found, passage) + 1)
        if size + found > capacity:
            capacity = 2 * capacity + found
            passages = _grown(passages, capacity)
            first = _grown(first, capacity)
            last = _grown(last, capacity)
            larger = np.empty((capacity, WIDTH), dtype=np.float32)
            for at in range(size):
                larger[at] = features[at]
            features = larger
        for number in range(found):
            passages[size + number] = pooled[number]
            ws.place[pooled[number]] = -1
        describe(ix, aliases, ws, cells, cell, pooled, hits, found, context, first, last, features, size)
        size += found
        offsets[cell + 1] = size
    ws.context_title[:] = 0.0
    ws.context_text[:] = 0.0
    return Pool(offsets, passages[:size], first[:size], last[:size], features[:size])


@njit(cache=True, nogil=True)
def unresolved_mentions(ix: IndexArrays, aliases: BoundAliases, cells: Cells) -> Array:
    """bool per mention: neither a title key nor an alias is spelled like the whole of it."""
    unresolved = np.zeros(len(cells.mention_first), dtype=np.bool_)
    for cell in range(len(cells.token_offsets) - 1):
        tokens = cells.tokens[cells.token_offsets[cell] : cells.token_offsets[cell + 1]]
        for mention in range(cells.mention_offsets[cell], cells.mention_offsets[cell + 1]):
            key = ngram_hash(tokens, cells.mention_first[mention], cells.mention_last[mention])
            unresolved[mention] = _find(ix.key_hashes, key) < 0 and _find(aliases.hashes, key) < 0
    return unresolved


@njit(cache=True)
def _grown(values: Array, capacity: int) -> Array:
    larger = np.empty(capacity, dtype=values.dtype)
    for at in range(len(values)):
        larger[at] = values[at]
    return larger


@njit(cache=True)
def _score_context(ix: IndexArrays, ws: Workspace, context: Array, intro: Array) -> None:
    for token in intro:
        idf = INTRO_WEIGHT * ix.title_idf[token]
        for at in range(ix.title_posting_offsets[token], ix.title_posting_offsets[token + 1]):
            passage = ix.title_postings[at]
            ws.context_title[passage] += idf * 2.2 / (1.0 + ix.title_norm[passage])
    for token in context:
        idf = ix.title_idf[token]
        for at in range(ix.title_posting_offsets[token], ix.title_posting_offsets[token + 1]):
            passage = ix.title_postings[at]
            ws.context_title[passage] += idf * 2.2 / (1.0 + ix.title_norm[passage])
        start, stop = ix.text_posting_offsets[token], ix.text_posting_offsets[token + 1]
        if stop - start > 4 * TEXT_DF_CAP:
            continue
        idf = ix.text_idf[token]
        for at in range(start, stop):
            passage = ix.text_postings[at]
            tf = float(ix.text_counts[at])
            ws.context_text[passage] += idf * tf * 2.2 / (tf + ix.text_norm[passage])


@njit(cache=True)
def _find(keys: Array, key: int) -> int:
    at = np.searchsorted(keys, key)
    return int(at) if at < len(keys) and keys[at] == key else -1


@njit(cache=True)
def _put(ws: Workspace, pooled: Array, hits: Array, size: int, passage: int) -> int:
    """The passage's place in the pool (added if new), or -1 when the pool is full."""
    place = ws.place[passage]
    if place >= 0:
        return int(place)
    if size >= POOL:
        return -1
    ws.place[passage] = size
    pooled[size] = passage
    hits[size, :] = 0.0
    return size


@njit(cache=True)
def _pool_cell(
    ix: IndexArrays, aliases: BoundAliases, ws: Workspace, cells: Cells, cell: int, pooled: Array, hits: Array,
    searched: bool,
) -> int:  # fmt: skip
    """Fill `pooled` and `hits` for one cell.

    Hit columns: 0 title tokens, 1 kinds, 2 ambiguity, 3 first, 4 capitals, 5 alias count, 6 alias share,
    7 alias nil share, 8 alias seen, 9 alias first, 10 alias tokens, 11 unused.
    """
    begin, end = cells.token_offsets[cell], cells.token_offsets[cell + 1]
    tokens = cells.tokens[begin:end]
    capitals = cells.capitals[begin:end]
    size = _ngram_hits(ix, aliases, ws, tokens, capitals, pooled, hits)
    if not searched:
        return size
    for mention in range(cells.mention_offsets[cell], cells.mention_offsets[cell + 1]):
        first, last = cells.mention_first[mention], cells.mention_last[mention]
        if last - first <= MAX_QUERY:
            size = _retrieve(ix, ws, tokens, first, last, pooled, hits, size)
    return size


@njit(cache=True)
def _only_given(ws: Workspace, pooled: Array, hits: Array, found: int, given: Array) -> int:
    """Drop from a pool what is not given; how many are left."""
    left = 0
    for number in range(found):
        passage = pooled[number]
        ws.place[passage] = -1
        for other in given:
            if other == passage:
                ws.place[passage] = left
                pooled[left] = passage
                hits[left] = hits[number]
                left += 1
                break
    return left


@njit(cache=True)
def _ngram_hits(
    ix: IndexArrays, aliases: BoundAliases, ws: Workspace, tokens: Array, capitals: Array,
    pooled: Array, hits: Array,
) -> int:  # fmt: skip
    size = 0
    count = len(tokens)
    for length in range(min(count, MAX_NGRAM), 0, -1):
        for first in range(count - length + 1):
            whole = length == count
            if tokens[first] == -1 or (length == 1 and capitals[first] == 0 and not whole):
                continue
            key = ngram_hash(tokens, first, first + length)
            at = _find(aliases.hashes, key)
            if at >= 0:
                size = _alias_hits(aliases, ws, at, first, length, pooled, hits, size)
            at = _find(ix.key_hashes, key)
            if at >= 0:
                size = _title_hits(ix, ws, at, first, length, capitals, pooled, hits, size)
    return size


@njit(cache=True)
def _alias_hits(
    aliases: BoundAliases,
    ws: Workspace,
    at: int,
    first: int,
    length: int,
    pooled: Array,
    hits: Array,
    size: int,
) -> int:
    total, nil = aliases.totals[at], aliases.nils[at]
    taken = 0
    for entry in range(aliases.offsets[at], aliases.offsets[at + 1]):
        taken += 1
        if taken > 3 * KEY_CAP:
            break
        place = _put(ws, pooled, hits, size, aliases.passages[entry])
        if place < 0:
            break
        size = max(size, place + 1)
        if hits[place, 10] > 0:
            continue
        hits[place, 5] = aliases.counts[entry]
        hits[place, 6] = aliases.counts[entry] / (total + 0.5)
        hits[place, 7] = nil / (total + nil + 0.5)
        hits[place, 8] = total + nil
        hits[place, 9] = first
        hits[place, 10] = length
    return size


@njit(cache=True)
def _title_hits(
    ix: IndexArrays, ws: Workspace, at: int, first: int, length: int, capitals: Array,
    pooled: Array, hits: Array, size: int,
) -> int:  # fmt: skip
    start, stop = ix.key_offsets[at], ix.key_offsets[at + 1]
    threshold = -1.0
    if stop - start > KEY_CAP:
        threshold = _kept_context(ix, ws, start, stop)
    taken = 0
    for entry in range(start, stop):
        passage = ix.key_passages[entry]
        if threshold >= 0 and ws.context_text[passage] + 2.0 * ws.context_title[passage] < threshold:
            continue
        kind = ix.key_kinds[entry]
        if kind == ACRONYM and capitals[first] < 2:
            continue
        taken += 1
        if taken > KEY_CAP:
            break
        place = _put(ws, pooled, hits, size, passage)
        if place < 0:
            break
        size = max(size, place + 1)
        if hits[place, 0] > length:
            continue
        hits[place, 1] = kind if hits[place, 0] < length else int(hits[place, 1]) | kind
        hits[place, 0] = length
        hits[place, 2] = stop - start
        hits[place, 3] = first
        hits[place, 4] = capitals[first]
    return size


@njit(cache=True)
def _kept_context(ix: IndexArrays, ws: Workspace, start: int, stop: int) -> float:
    """The KEY_CAP-th best context score of a key's passages."""
    best = np.full(KEY_CAP, -1.0, dtype=np.float32)
    for entry in range(start, stop):
        passage = ix.key_passages[entry]
        score = np.float32(ws.context_text[passage] + 2.0 * ws.context_title[passage])
        at = KEY_CAP - 1
        if score <= best[at]:
            continue
        while at > 0 and best[at - 1] < score:
            best[at] = best[at - 1]
            at -= 1
        best[at] = score
    return float(best[KEY_CAP - 1])


@njit(cache=True)
def _retrieve(
    ix: IndexArrays,
    ws: Workspace,
    tokens: Array,
    first: int,
    last: int,
    pooled: Array,
    hits: Array,
    size: int,
) -> int:
    """BM25 over titles and over texts for one mention, fused with the table's context in three rankings."""
    touched = 0
    for at in range(first, last):
        token = tokens[at]
        if token < 0 or seen_before(tokens, first, at):
            continue
        touched = _accumulate_title(ix, ws, token, touched)
        touched = _accumulate_text(ix, ws, token, touched)
    for ranking in range(3):
        best, best_count = _top(ws, touched, ranking)
        for number in range(best_count):
            place = _put(ws, pooled, hits, size, best[number])
            if place < 0:
                break
            size = max(size, place + 1)
    for number in range(touched):
        ws.title_scores[ws.touched[number]] = 0.0
        ws.text_scores[ws.touched[number]] = 0.0
    return size


@njit(cache=True)
def _accumulate_title(ix: IndexArrays, ws: Workspace, token: int, touched: int) -> int:
    idf = ix.title_idf[token]
    for at in range(ix.title_posting_offsets[token], ix.title_posting_offsets[token + 1]):
        passage = ix.title_postings[at]
        if ws.title_scores[passage] == 0.0 and ws.text_scores[passage] == 0.0:
            ws.touched[touched] = passage
            touched += 1
        ws.title_scores[passage] += idf * 2.2 / (1.0 + ix.title_norm[passage])
    return touched


@njit(cache=True)
def _accumulate_text(ix: IndexArrays, ws: Workspace, token: int, touched: int) -> int:
    start, stop = ix.text_posting_offsets[token], ix.text_posting_offsets[token + 1]
    if stop - start > TEXT_DF_CAP:
        return touched
    idf = ix.text_idf[token]
    for at in range(start, stop):
        passage = ix.text_postings[at]
        if ws.title_scores[passage] == 0.0 and ws.text_scores[passage] == 0.0:
            ws.touched[touched] = passage
            touched += 1
        tf = float(ix.text_counts[at])
        ws.text_scores[passage] += idf * tf * 2.2 / (tf + ix.text_norm[passage])
    return touched


@njit(cache=True)
def _top(ws: Workspace, touched: int, ranking: int) -> tuple[Array, int]:
    """The best TOP touched passages of one ranking, best first."""
    best = np.empty(TOP, dtype=np.int32)
    scores = np.empty(TOP, dtype=np.float32)
    size = 0
    for number in range(touched):
        passage = ws.touched[number]
        title, text = ws.title_scores[passage], ws.text_scores[passage]
        if ranking == 0:
            score = title + 0.1 * ws.context_title[passage] + 0.05 * ws.context_text[passage]
        elif ranking == 1:
            score = title + 0.7 * ws.context_title[passage] + 0.25 * ws.context_text[passage]
        else:
            score = text + 0.5 * title + 0.4 * ws.context_text[passage]
        if (ranking < 2 and title == 0.0) or (size == TOP and score <= scores[TOP - 1]):
            continue
        at = size if size < TOP else TOP - 1
        size = min(size + 1, TOP)
        while at > 0 and scores[at - 1] < score:
            scores[at], best[at] = scores[at - 1], best[at - 1]
            at -= 1
        scores[at], best[at] = score, passage
    return best, size

"""Features of (cell, candidate) pairs: the pool's, the row's and column's, and collective ones.

N pairs, C cells, F features. Kernels are compiled; arrays are float32 and pairs are ordered by cell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from helios.models.linker.aliases import LAST_WORD, BoundAliases, header_hash
from helios.models.linker.arrays import Cells, IndexArrays, Pool, Workspace
from helios.models.linker.encoding import EncodedTable
from helios.models.linker.matching import POOL_FEATURES, WIDTH
from helios.models.linker.text import normalise
from helios.types import Table

Array = npt.NDArray[Any]

PAIR_FEATURES = (
    "row_in_text", "row_words_in_text", "title_rest_in_row", "context_in_text", "header_in_text",
    "header_in_title", "header_type_share", "header_disambiguator_share", "cell_in_text", "title_in_intro",
    "header_last_word_share",
)  # fmt: skip
CELL_FEATURES = (
    "header_link_rate", "header_cells", "column", "columns", "rows", "earlier_copies", "column_distinct",
    "column_digits", "cell_digits", "cell_characters", "column_tokens",
)  # fmt: skip
FIRST_FEATURES = POOL_FEATURES + PAIR_FEATURES + CELL_FEATURES
COLLECTIVE_FEATURES = (
    "first_score", "first_rank", "first_gap", "cell_best", "column_best", "column_type_share",
    "column_disambiguator_share", "column_last_word_share", "same_column", "same_table", "same_row_best",
    "column_title_extra", "second_best", "column_position_share",
)  # fmt: skip
SECOND_FEATURES = FIRST_FEATURES + COLLECTIVE_FEATURES
PRIOR_CELLS = 8.0


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidate pairs of one table. `cells` index the encoded table's cells, ascending."""

    cells: Array
    passages: Array
    first: Array
    last: Array
    features: Array

    @classmethod
    def none(cls) -> "Pairs":
        """No pairs."""
        numbers = np.zeros(0, dtype=np.int32)
        return cls(numbers, numbers, numbers, numbers, np.zeros((0, len(FIRST_FEATURES)), dtype=np.float32))

    def keep(self, mask: Array) -> "Pairs":
        """The pairs where `mask` is true."""
        return Pairs(self.cells[mask], self.passages[mask], self.first[mask], self.last[mask], self.features[mask])


def describe_pairs(
    table: Table,
    encoded: EncodedTable,
    pool: Pool,
    index: IndexArrays,
    aliases: BoundAliases,
    headers: Mapping[str, tuple[int, int]],
    ws: Workspace,
) -> Pairs:
    """Spread the pool over the cells and add what row, column and header say; FIRST_FEATURES."""
    counts = np.diff(pool.offsets)[encoded.texts_of_cells]
    cells = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    starts = pool.offsets[encoded.texts_of_cells]
    within = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
    source = np.repeat(starts, counts) + within
    pair_features = np.zeros((len(cells), len(PAIR_FEATURES)), dtype=np.float32)
    passages = pool.passages[source]
    header_keys = np.array([header_hash(normalise(name)) for name in table.header], dtype=np.uint64)
    _pair_features(
        index, aliases, ws, encoded.cells, encoded.rows, encoded.columns, encoded.texts_of_cells, cells,
        passages, encoded.header_offsets, encoded.header_tokens, header_keys, encoded.context, encoded.intro,
        pair_features,
    )  # fmt: skip
    per_cell = _cell_features(table, encoded, headers)
    features = np.concatenate((pool.features[source], pair_features, per_cell[cells]), axis=1)
    return Pairs(cells, passages, pool.first[source], pool.last[source], features)


def _cell_features(table: Table, encoded: EncodedTable, headers: Mapping[str, tuple[int, int]]) -> Array:
    """float32[C, len(CELL_FEATURES)]."""
    out = np.zeros((len(encoded.rows), len(CELL_FEATURES)), dtype=np.float32)
    if not len(out):
        return out
    columns, texts = encoded.columns, encoded.texts_of_cells
    width = len(table.header)
    seen = [headers.get(normalise(name), (0, 0)) for name in table.header]
    rates = np.array([(hits + 0.45 * PRIOR_CELLS) / (cells + PRIOR_CELLS) for cells, hits in seen])
    digits = np.array([sum(map(str.isdigit, text)) / len(text) for text in encoded.texts])
    lengths = np.array([len(text) for text in encoded.texts])
    tokens = np.diff(encoded.cells.token_offsets)
    members = np.bincount(columns, minlength=width).clip(1)
    distinct = np.zeros(width)
    pairs = np.unique(columns.astype(np.int64) * len(encoded.texts) + texts)
    np.add.at(distinct, pairs // len(encoded.texts), 1)
    out[:, 0], out[:, 1] = rates[columns], np.log1p(np.array([cells for cells, _ in seen]))[columns]
    out[:, 2], out[:, 3], out[:, 4] = columns, width, len(table.rows)
    out[:, 5] = _earlier_copies(texts, len(encoded.texts))
    out[:, 6] = (distinct / members)[columns]
    out[:, 7] = (np.bincount(columns, weights=digits[texts], minlength=width) / members)[columns]
    out[:, 8], out[:, 9] = digits[texts], lengths[texts]
    out[:, 10] = (np.bincount(columns, weights=tokens[texts], minlength=width) / members)[columns]
    return out


@njit(cache=True)
def _earlier_copies(texts: Array, distinct: int) -> Array:
    seen = np.zeros(distinct, dtype=np.float32)
    copies = np.empty(len(texts), dtype=np.float32)
    for cell in range(len(texts)):
        copies[cell] = seen[texts[cell]]
        seen[texts[cell]] += 1
    return copies


@njit(cache=True, nogil=True)
def _pair_features(
    ix: IndexArrays, aliases: BoundAliases, ws: Workspace, cells: Cells, rows: Array, columns: Array,
    texts: Array, pair_cells: Array, passages: Array, header_offsets: Array, header_tokens: Array,
    header_keys: Array, context: Array, intro: Array, out: Array,
) -> None:  # fmt: skip
    """Marks: 1 own cell, 2 other cells of the row, 4 header, 8 context, 16 intro."""
    for token in context:
        ws.marks[token] |= 8
    for token in intro:
        ws.marks[token] |= 16
    context_weight = 1e-6
    for token in context:
        context_weight += ix.text_idf[token]
    row_begin, pair = 0, 0
    while row_begin < len(rows):
        row_end = row_begin
        while row_end < len(rows) and rows[row_end] == rows[row_begin]:
            row_end += 1
        for cell in range(row_begin, row_end):
            row_weight = _mark_row(ix, ws, cells, texts, row_begin, row_end, cell, True)
            head = columns[cell]
            head_weight, own_weight = 1e-6, 1e-6
            for at in range(header_offsets[head], header_offsets[head + 1]):
                ws.marks[header_tokens[at]] |= 4
                head_weight += ix.text_idf[header_tokens[at]]
            for at in range(cells.token_offsets[texts[cell]], cells.token_offsets[texts[cell] + 1]):
                if cells.tokens[at] >= 0:
                    own_weight += ix.text_idf[cells.tokens[at]]
            while pair < len(pair_cells) and pair_cells[pair] == cell:
                _pair(ix, ws, passages[pair], row_weight, context_weight, head_weight, own_weight, out[pair])
                out[pair, 6] = _type_share(aliases, header_keys[head], ix.types[passages[pair]])
                last = ix.title_offsets[passages[pair]] + ix.base_length[passages[pair]] - 1
                if last >= 0:
                    word = ix.title_tokens[last] + LAST_WORD
                    out[pair, 10] = _type_share(aliases, header_keys[head], word)
                out[pair, 7] = _type_share(aliases, header_keys[head], ix.disambiguators[passages[pair]])
                pair += 1
            for at in range(header_offsets[head], header_offsets[head + 1]):
                ws.marks[header_tokens[at]] &= 251
            _mark_row(ix, ws, cells, texts, row_begin, row_end, cell, False)
        row_begin = row_end
    for token in context:
        ws.marks[token] = 0
    for token in intro:
        ws.marks[token] = 0


@njit(cache=True)
def _mark_row(
    ix: IndexArrays, ws: Workspace, cells: Cells, texts: Array, begin: int, end: int, own: int, on: bool
) -> float:
    """Mark (or clear) the tokens of a row; the idf weight of the other cells' tokens."""
    weight = 1e-6
    for cell in range(begin, end):
        bit = np.uint8(1) if cell == own else np.uint8(2)
        for at in range(cells.token_offsets[texts[cell]], cells.token_offsets[texts[cell] + 1]):
            token = cells.tokens[at]
            if token < 0:
                continue
            if not on:
                ws.marks[token] &= 252
            else:
                if cell != own and not ws.marks[token] & 2:
                    weight += ix.text_idf[token]
                ws.marks[token] |= bit
    return weight


@njit(cache=True)
def _pair(
    ix: IndexArrays, ws: Workspace, passage: int, row_weight: float, context_weight: float,
    head_weight: float, own_weight: float, out: Array,
) -> None:  # fmt: skip
    row, context, head, own, words = 0.0, 0.0, 0.0, 0.0, 0
    for at in range(ix.text_offsets[passage], ix.text_offsets[passage + 1]):
        token = ix.text_tokens[at]
        mark = ws.marks[token]
        if mark & 15:
            idf = ix.text_idf[token]
            if mark & 2 and not mark & 1:
                row += idf
                words += 1
            if mark & 8:
                context += idf
            if mark & 4:
                head += idf
            if mark & 1:
                own += idf
    rest, in_row, in_head, in_intro, size = 1e-6, 0.0, 0.0, 0.0, 0
    for at in range(ix.title_offsets[passage], ix.title_offsets[passage + 1]):
        token = ix.title_tokens[at]
        mark = ws.marks[token]
        size += 1
        if mark & 4:
            in_head += 1
        if mark & 16:
            in_intro += 1
        if not mark & 1:
            rest += ix.title_idf[token]
            if mark & 2:
                in_row += ix.title_idf[token]
    out[0] = row / row_weight
    out[1] = words
    out[2] = in_row / rest
    out[3] = context / context_weight
    out[4] = head / head_weight
    out[5] = in_head
    out[8] = own / own_weight
    out[9] = in_intro / max(size, 1)


@njit(cache=True)
def _type_share(aliases: BoundAliases, header: int, number: int) -> float:
    if number == 0:
        return -1.0
    key = header ^ (np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15))
    at = np.searchsorted(aliases.pair_hashes, key)
    if at < len(aliases.pair_hashes) and aliases.pair_hashes[at] == key:
        return float(aliases.pair_shares[at])
    return 0.0


def collective(pairs: Pairs, scores: Array, encoded: EncodedTable, index: IndexArrays) -> Array:
    """float32[N, len(COLLECTIVE_FEATURES)]: what the other cells' first scores say about a pair."""
    out = np.zeros((len(scores), len(COLLECTIVE_FEATURES)), dtype=np.float32)
    if len(scores):
        _collective(
            index, pairs.cells, pairs.passages, pairs.features[:, :WIDTH], scores.astype(np.float32),
            encoded.rows, encoded.columns, out,
        )  # fmt: skip
    return out


@njit(cache=True, nogil=True)
def _collective(
    ix: IndexArrays, cells: Array, passages: Array, features: Array, scores: Array, rows: Array,
    columns: Array, out: Array,
) -> None:  # fmt: skip
    cell_count = len(rows)
    width = columns.max() + 1
    best = np.zeros(cell_count, dtype=np.float32)
    second = np.zeros(cell_count, dtype=np.float32)
    top = np.full(cell_count, -1, dtype=np.int64)
    _ranks(cells, scores, out, best, second, top)
    column_best = np.zeros(width)
    column_count = np.zeros(width)
    row_best = np.zeros(rows.max() + 1)
    for cell in range(cell_count):
        column_best[columns[cell]] += best[cell]
        column_count[columns[cell]] += 1
        row_best[rows[cell]] = max(row_best[rows[cell]], best[cell])
    profiles = _profiles(ix, passages, features, columns, width, best, top)
    same_column, same_table = _repeats(cells, passages, scores, columns, width)
    for pair in range(len(scores)):
        cell = cells[pair]
        column = columns[cell]
        score = scores[pair]
        out[pair, 0] = score
        out[pair, 2] = score - (best[cell] if out[pair, 1] > 0 else second[cell])
        out[pair, 3] = best[cell]
        out[pair, 4] = (column_best[column] - best[cell]) / max(column_count[column] - 1.0, 1.0)
        own = best[cell] if top[cell] >= 0 else 0.0
        weight = max(column_best[column] - own, 0.0) + 0.5
        for kind in range(4):
            value = _signature(ix, passages[pair], features[pair], kind)
            mine = _signature(ix, passages[top[cell]], features[top[cell]], kind)
            total = profiles[kind].get(value * width + column, 0.0) - (own if mine == value else 0.0)
            out[pair, (5, 6, 7, 11)[kind]] = max(total, 0.0) / weight
        out[pair, 8] = same_column[pair]
        out[pair, 9] = same_table[pair]
        out[pair, 10] = row_best[rows[cell]]
        out[pair, 12] = second[cell]
        out[pair, 13] = cell / cell_count


@njit(cache=True)
def _ranks(cells: Array, scores: Array, out: Array, best: Array, second: Array, top: Array) -> None:
    begin = 0
    while begin < len(cells):
        end = begin
        while end < len(cells) and cells[end] == cells[begin]:
            end += 1
        order = np.argsort(-scores[begin:end], kind="mergesort")
        cell = cells[begin]
        for rank in range(len(order)):
            out[begin + order[rank], 1] = rank
        best[cell] = scores[begin + order[0]]
        second[cell] = scores[begin + order[1]] if len(order) > 1 else 0.0
        top[cell] = begin + order[0]
        begin = end


@njit(cache=True)
def _signature(ix: IndexArrays, passage: int, features: Array, kind: int) -> int:
    """The kind of thing a candidate is: type noun, disambiguator, last title word, shape of the rest."""
    if kind == 0:
        return int(ix.types[passage])
    if kind == 1:
        return int(ix.disambiguators[passage])
    if kind == 2:
        end = ix.title_offsets[passage] + ix.base_length[passage]
        return int(ix.title_tokens[end - 1]) if end > ix.title_offsets[passage] else 0
    return int(features[19]) * 64 + int(features[21]) * 8 + int(features[1])


@njit(cache=True)
def _profiles(
    ix: IndexArrays, passages: Array, features: Array, columns: Array, width: int, best: Array, top: Array
) -> list[dict[int, float]]:
    """Per signature kind: signature * width + column → sum of the best scores of cells that have it."""
    profiles = [{-1: 0.0}, {-1: 0.0}, {-1: 0.0}, {-1: 0.0}]
    for cell in range(len(columns)):
        if top[cell] < 0:
            continue
        for kind in range(4):
            key = _signature(ix, passages[top[cell]], features[top[cell]], kind) * width + columns[cell]
            profiles[kind][key] = profiles[kind].get(key, 0.0) + best[cell]
    return profiles


@njit(cache=True)
def _repeats(cells: Array, passages: Array, scores: Array, columns: Array, width: int) -> tuple[Array, Array]:
    """Per pair: the sum of the other cells' scores for the same passage in the column, and in the table."""
    column_sums = {np.int64(-1): 0.0}
    table_sums = {np.int64(-1): 0.0}
    for pair in range(len(cells)):
        key = np.int64(passages[pair])
        table_sums[key] = table_sums.get(key, 0.0) + scores[pair]
        key = key * width + columns[cells[pair]]
        column_sums[key] = column_sums.get(key, 0.0) + scores[pair]
    same_column = np.empty(len(cells), dtype=np.float32)
    same_table = np.empty(len(cells), dtype=np.float32)
    for pair in range(len(cells)):
        key = np.int64(passages[pair])
        same_table[pair] = table_sums[key] - scores[pair]
        same_column[pair] = column_sums[key * width + columns[cells[pair]]] - scores[pair]
    return same_column, same_table

"""How well a candidate's title and text match a cell: the features of the pool, and the mention's span.

Compiled kernels; a feature's column is its place in POOL_FEATURES.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from helios.models.linker.aliases import BoundAliases
from helios.models.linker.arrays import Cells, IndexArrays, Workspace

Array = npt.NDArray[Any]

POOL_FEATURES = (
    "title_hit_tokens", "title_hit_kinds", "title_hit_share", "title_hit_ambiguity", "title_hit_is_mention",
    "title_hit_capitals", "alias_count", "alias_share", "alias_nil_share", "alias_seen", "alias_span_share",
    "alias_is_mention", "popularity", "bm25_title", "bm25_text", "context_title", "context_text",
    "mention_covered", "title_covered", "title_uncovered_tokens", "rest_in_context", "disambiguator_tokens",
    "disambiguator_in_context", "mention_tokens", "mention_share", "cell_tokens", "mentions",
)  # fmt: skip

WIDTH = len(POOL_FEATURES)


@njit(cache=True)
def describe(
    ix: IndexArrays, aliases: BoundAliases, ws: Workspace, cells: Cells, cell: int, pooled: Array,
    hits: Array, found: int, context: Array, first: Array, last: Array, features: Array, size: int,
) -> None:  # fmt: skip
    """Write spans and features of one cell's pool at `size`."""
    begin, end = cells.token_offsets[cell], cells.token_offsets[cell + 1]
    tokens = cells.tokens[begin:end]
    for token in context:
        ws.marks[token] |= 2
    for number in range(found):
        out = features[size + number]
        passage = pooled[number]
        hit = hits[number]
        mention = _match_mention(ix, ws, cells, cell, tokens, passage, out)
        span = _span(cells, mention, tokens, ix, passage, hit)
        first[size + number], last[size + number] = span
        _describe_hits(hit, out, len(tokens), cells, cell)
        out[12] = np.log1p(aliases.popularity[passage])
        out[13], out[14] = _bm25(ix, tokens, cells.mention_first[mention], cells.mention_last[mention], passage)
        out[15] = ws.context_title[passage]
        out[16] = ws.context_text[passage]
        out[25] = len(tokens)
        out[26] = cells.mention_offsets[cell + 1] - cells.mention_offsets[cell]
    for token in context:
        ws.marks[token] = 0


@njit(cache=True)
def _match_mention(
    ix: IndexArrays, ws: Workspace, cells: Cells, cell: int, tokens: Array, passage: int, out: Array
) -> int:
    """The mention that agrees best with the title; writes the agreement's features (17 to 24)."""
    title = ix.title_tokens[ix.title_offsets[passage] : ix.title_offsets[passage + 1]]
    base = ix.base_length[passage]
    for token in title:
        ws.marks[token] |= 1
    chosen, chosen_score = cells.mention_offsets[cell], -1.0
    for mention in range(cells.mention_offsets[cell], cells.mention_offsets[cell + 1]):
        covered, total = 0.0, 1e-6
        for at in range(cells.mention_first[mention], cells.mention_last[mention]):
            idf = ix.title_idf[tokens[at]] if tokens[at] >= 0 else 12.0
            total += idf
            if tokens[at] >= 0 and ws.marks[tokens[at]] & 1:
                covered += idf
        score = covered * covered / total
        if score > chosen_score:
            chosen, chosen_score = mention, score
            out[17] = covered / total
    for token in title:
        ws.marks[token] &= 2
    width = cells.mention_last[chosen] - cells.mention_first[chosen]
    out[23] = width
    out[24] = width / max(len(tokens), 1)
    _match_title(ix, ws, tokens[cells.mention_first[chosen] : cells.mention_last[chosen]], title, base, out)
    return int(chosen)


@njit(cache=True)
def _match_title(ix: IndexArrays, ws: Workspace, mention: Array, title: Array, base: int, out: Array) -> None:
    for token in mention:
        if token >= 0:
            ws.marks[token] |= 4
    covered, total, rest, explained, uncovered = 0.0, 1e-6, 0.0, 0.0, 0
    for at in range(base):
        idf = ix.title_idf[title[at]]
        total += idf
        if ws.marks[title[at]] & 4:
            covered += idf
        else:
            uncovered += 1
            rest += idf
            if ws.marks[title[at]] & 2:
                explained += idf
    known = 0.0
    for at in range(base, len(title)):
        if ws.marks[title[at]] & 6:
            known += 1.0
    out[18] = covered / total
    out[19] = uncovered
    out[20] = explained / rest if rest > 0 else 1.0
    out[21] = len(title) - base
    out[22] = known / (len(title) - base) if len(title) > base else -1.0
    for token in mention:
        if token >= 0:
            ws.marks[token] &= 3


@njit(cache=True)
def _describe_hits(hit: Array, out: Array, width: int, cells: Cells, cell: int) -> None:
    out[0] = hit[0]
    out[1] = hit[1]
    out[2] = hit[0] / max(width, 1)
    out[3] = hit[2]
    out[4] = _is_mention(cells, cell, int(hit[3]), int(hit[3] + hit[0])) if hit[0] > 0 else 0.0
    out[5] = hit[4]
    out[6] = np.log1p(hit[5])
    out[7] = hit[6]
    out[8] = hit[7] if hit[10] > 0 else -1.0
    out[9] = np.log1p(hit[8])
    out[10] = hit[10] / max(width, 1)
    out[11] = _is_mention(cells, cell, int(hit[9]), int(hit[9] + hit[10])) if hit[10] > 0 else 0.0


@njit(cache=True)
def _is_mention(cells: Cells, cell: int, first: int, last: int) -> float:
    for mention in range(cells.mention_offsets[cell], cells.mention_offsets[cell + 1]):
        if cells.mention_first[mention] == first and cells.mention_last[mention] == last:
            return 1.0
    return 0.0


@njit(cache=True)
def _span(cells: Cells, mention: int, tokens: Array, ix: IndexArrays, passage: int, hit: Array) -> tuple[int, int]:
    """Token span: the longest title or alias hit, else the mention cut to the words of the title."""
    if hit[0] > 0 and hit[0] >= hit[10]:
        return int(hit[3]), int(hit[3] + hit[0])
    if hit[10] > 0:
        return int(hit[9]), int(hit[9] + hit[10])
    first, last = cells.mention_first[mention], cells.mention_last[mention]
    low, high = last, first
    for at in range(first, last):
        for title in range(ix.title_offsets[passage], ix.title_offsets[passage + 1]):
            if ix.title_tokens[title] == tokens[at]:
                low = min(low, at)
                high = max(high, at + 1)
                break
    return (low, high) if low < high else (first, last)


@njit(cache=True)
def _bm25(ix: IndexArrays, tokens: Array, first: int, last: int, passage: int) -> tuple[float, float]:
    title_score, text_score = 0.0, 0.0
    for at in range(first, last):
        token = tokens[at]
        if token < 0 or seen_before(tokens, first, at):
            continue
        for title in range(ix.title_offsets[passage], ix.title_offsets[passage + 1]):
            if ix.title_tokens[title] == token:
                title_score += ix.title_idf[token] * 2.2 / (1.0 + ix.title_norm[passage])
                break
        for text in range(ix.text_offsets[passage], ix.text_offsets[passage + 1]):
            if ix.text_tokens[text] == token:
                text_score += ix.text_idf[token]
                break
    return title_score, text_score


@njit(cache=True)
def seen_before(tokens: Array, first: int, at: int) -> bool:
    for earlier in range(first, at):  # noqa: SIM110 - numba compiles no generators
        if tokens[earlier] == tokens[at]:
            return True
    return False

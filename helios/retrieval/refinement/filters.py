"""Which rows a question speaks of: phrases of the question bound to cells, years, and words of rows and passages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from helios.retrieval.refinement.columns import Kind
from helios.retrieval.refinement.dates import year_of
from helios.retrieval.refinement.restoring import RestoredTable
from helios.retrieval.refinement.values import tidy
from helios.retrieval.refinement.wording import Cue, stem, stems, words_of

Mask = NDArray[np.bool_]
MOST_FILTERS = 6
BEFORE, AFTER = 4, 9
"""Words around a cue that say which rows it compares: "the oldest Spanish player of 1991"."""
MOST_SHARE = 0.7
"""A word that more of the rows hold tells them apart too little."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows (rows) of one table, in words, and how the question named them."""

    mask: Mask
    words: str
    kind: Literal["all", "cell", "year", "text", "both"] = "all"
    strength: float = 0.0
    """Words of the question that it uses up, weighted by how rare they are in the table."""


_STOP_WORDS = (
    "a an the of in on at to for by from with and or is was were are be been has have had did do does that this which "
    "who whom whose what when where how many much it its their his her they he she as than not no s there name one "
    "during between after before since until into out up down over under also only same other any all each person "
    "people team year player"
)
_STOP = frozenset(_STOP_WORDS.split())
_YEAR = re.compile(r"\b(1\d{3}|20\d{2})(s)?\b")
_SPAN = re.compile(r"\b(?:from|between)\s+(1\d{3}|20\d{2})\s+(?:to|and|until|through|-)\s+(1\d{3}|20\d{2})\b")
_SIDE = re.compile(r"\b(before|after|since|prior to|until|or later|or earlier)\b")


def row_filters(question: str, table: RestoredTable, cues: Sequence[Cue]) -> list[RowFilter]:
    """All rows first, then filters that the question binds, the stronger the earlier; each leaves two rows or more."""
    count = len(table.table.rows)
    cue_words = frozenset(stem(word) for cue in cues for word in words_of(cue.word))
    everything = RowFilter(np.ones(count, bool), "all rows")
    cells = _cell_filters(question, table, cue_words)
    years = _year_filters(question, table)
    texts = _text_filters(question, table, cues)
    single = [*cells[:3], *years[:2]]
    pairs = [_both(a, b) for n, a in enumerate(single) for b in [*single[n + 1 :], *texts[:1]]]
    chosen: list[RowFilter] = [everything]
    seen = {everything.mask.tobytes()}
    for found in [*single, *texts, *pairs]:
        if 1 < found.mask.sum() < count and found.mask.tobytes() not in seen:
            seen.add(found.mask.tobytes())
            chosen.append(found)
    return chosen[: MOST_FILTERS + 1]


def _cell_filters(question: str, table: RestoredTable, cue_words: frozenset[str]) -> list[RowFilter]:
    """Rows whose cell stands in the question, word by word."""
    question_stems = stems(question)
    asked, asked_words = f" {' '.join(question_stems)} ", frozenset(question_stems)
    rows_of: dict[tuple[int, str], list[int]] = {}
    for number, row in enumerate(table.table.rows):
        if asked_words.isdisjoint(table.cell_words[number]):
            continue
        for column, cell in enumerate(row):
            for phrase in _phrases(cell) if not asked_words.isdisjoint(stems(cell)) else ():
                if f" {phrase} " in asked and phrase not in cue_words:
                    rows_of.setdefault((column, phrase), []).append(number)
    found = []
    for (column, phrase), rows in rows_of.items():
        mask = np.zeros(len(table.table.rows), bool)
        mask[rows] = True
        strength = len(phrase.split()) * np.log(len(mask) / mask.sum())
        words = f'{table.table.header[column] or "cell"} is "{phrase}"'
        found.append(RowFilter(mask, words, "cell", float(strength)))
    return sorted(found, key=lambda item: -item.strength)


def _phrases(cell: str) -> set[str]:
    """A cell's words as one phrase, and the parts between commas, brackets and slashes."""
    clean = tidy(cell)
    parts = [clean, re.sub(r"\(.*?\)", "", clean), *re.split(r"[,;/()]| - ", clean)]
    return {
        phrase
        for part in parts
        if (phrase := " ".join(stems(part))) and len(phrase) > 2 and phrase not in _STOP and len(phrase) < 60
    }


def _year_filters(question: str, table: RestoredTable) -> list[RowFilter]:
    """Rows in, before or after the years that the question names."""
    asked = question.casefold()
    span = _SPAN.search(asked)
    limits: list[tuple[int, int]] = []
    if span:
        limits.append((int(span[1]), int(span[2])))
    for found in [] if span else _YEAR.finditer(asked):
        year = int(found[1])
        side = _SIDE.search(
            asked[max(0, found.start() - 10) : found.start()] + " " + asked[found.end() : found.end() + 10]
        )
        if found[2]:
            limits.append((year, year + 9))
        elif side:
            early = side[1] in ("before", "prior to", "until", "or earlier")
            limits.append((0, year) if early else (year, 3000))
        else:
            limits.append((year, year))
    filters = []
    for column in table.columns:
        if column.kind is not Kind.DATE:
            continue
        years = np.array([np.nan if np.isnan(days) else year_of(days) for days in column.values])
        for low, high in limits:
            mask = (years >= low) & (years <= high)
            if mask.any():
                words = f"{column.header or 'date'} in {low}" if low == high else f"{column.header} in {low}-{high}"
                filters.append(RowFilter(mask, words, "year", float(np.log(len(mask) / mask.sum()))))
    return filters


def _text_filters(question: str, table: RestoredTable, cues: Sequence[Cue]) -> list[RowFilter]:
    """Rows whose cells and passages hold the most of the telling words about the cues."""
    words = words_of(question)
    near = {n for cue in cues for n in range(cue.start - BEFORE, cue.start + AFTER)}
    taken = {stem(word) for cue in cues for word in words_of(cue.word)}
    telling = [
        word
        for word in dict.fromkeys(stem(word) for n, word in enumerate(words) if n in near)
        if word not in _STOP and word not in taken and word not in table.title_words and len(word) > 2
    ]
    filters = []
    for source, rows in (("cells", table.cell_words), ("text", table.row_words)):
        scores = np.zeros(len(rows))
        used = []
        for word in telling:
            holds = np.array([word in words for words in rows])
            share = holds.mean() if len(rows) else 0.0
            if 0 < share <= MOST_SHARE:
                scores += holds * np.log(1 / share)
                used.append(word)
        if used:
            mask = scores >= 0.99 * scores.max()
            filters.append(RowFilter(mask, f"{source} hold {', '.join(used[:4])}", "text", float(scores.max())))
    return filters


def _both(one: RowFilter, other: RowFilter) -> RowFilter:
    return RowFilter(one.mask & other.mask, f"{one.words} and {other.words}", "both", one.strength + other.strength)

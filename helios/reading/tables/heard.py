"""What the reader of columns hears in a question that no word of a list says: operations, and columns that select rows.

"what does the hospice still have to pay" is a difference without a word for one, and "which jobs are still open" means
the rows in which a day is empty. Programs are made of what is heard as of what is said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from helios.models.encoder import TokenVectors
from helios.reading.tables.columns import ColumnReading
from helios.reading.tables.compared import beside
from helios.reading.tables.matching import Match, Word, empty_cells, is_flag, like, said_near, said_yes
from helios.reading.tables.programs import OPS, Op
from helios.reading.tables.sheet import Kind, Sheet

LEAST_OP, LEAST_SELECTS, LEAST_TABLE = 0.08, 0.3, 0.04
"""How likely an operation, a column that selects rows, and the table itself must be."""
MOST_COLUMNS, MOST_VALUES = 4, 3
"""Columns that select unheard, the likeliest first, and values of one, the nearest first."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Operations, and columns that select rows, the likeliest first."""

    ops: frozenset[Op] = frozenset()
    selecting: tuple[int, ...] = ()


NOTHING = Heard()


def heard_in(reading: ColumnReading) -> Heard:
    """What a reading of a table leaves likely; nothing where the question is about another table."""
    if reading.table < np.log(LEAST_TABLE / (1 - LEAST_TABLE)):
        return NOTHING
    selects = reading.selected[:, 1] if len(reading.selected) else np.zeros(0, np.float32)
    likely = [int(at) for at in np.argsort(-selects) if selects[at] >= np.log(LEAST_SELECTS)]
    ops = frozenset(op for op, said in zip(OPS, reading.op, strict=True) if said >= np.log(LEAST_OP))
    return Heard(ops, tuple(likely[:MOST_COLUMNS]))


def heard_matches(
    heard: Heard, matches: Sequence[Match], words: Sequence[Word], question: TokenVectors, sheet: Sheet,
    values: Sequence[tuple[int, int, TokenVectors]],
) -> Iterator[Match]:  # fmt: skip
    """What columns that are heard may select where no word names a value of theirs: cells that are empty or filled,
    yes or no, the values nearest in meaning, and of two columns of a kind what is more in one of them."""
    named = {match.column for match in matches if match.words}
    columns = [at for at in heard.selecting if at not in named]
    known = {match.text for match in matches}
    for at in columns:
        found = [*_filled(at, sheet), *_nearest(at, words, question, sheet, values)]
        yield from (match for match in found if match.text not in known)
    for one, other in permutations(columns, 2):
        kinds = {sheet.columns[one].kind, sheet.columns[other].kind}
        if len(kinds) == 1 and kinds <= {Kind.NUMBER, Kind.DATE} and one < sheet.own > other:
            match = beside(sheet, one, "<", other, frozenset())
            if match is not None and match.text not in known:
                yield match


def _filled(at: int, sheet: Sheet) -> Iterator[Match]:
    column = sheet.columns[at]
    flag, nothing = is_flag(column), empty_cells(column)
    if flag or (nothing.any() and not nothing.all()):
        yes, said = (said_yes(column), ("yes", "no")) if flag else (~nothing, ("given", "empty"))
        for rows, operator, text in ((yes, "yes", said[0]), (~yes, "no", said[1])):
            yield Match(at, rows, frozenset(), 0.0, 1, operator, text=f"{column.header} is {text}")


def _nearest(
    at: int, words: Sequence[Word], question: TokenVectors, sheet: Sheet,
    values: Sequence[tuple[int, int, TokenVectors]],
) -> Iterator[Match]:  # fmt: skip
    found: list[tuple[float, int, NDArray[np.float32]]] = []
    for owner, key, vectors in values:
        if owner == at and len(vectors.vectors) and len(question.vectors):
            similar = vectors.vectors @ question.vectors.T
            found.append((float(similar.max(axis=1).mean()), key, similar.max(axis=0)))
    for near, key, similar in sorted(found, key=lambda one: -one[0])[:MOST_VALUES]:
        yield like(sheet, at, key, near, said_near(words, question, similar))

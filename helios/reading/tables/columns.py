"""A small model that reads a question beside the columns of a table: is it about this table, which column is asked
for, which ones select rows or order them, and what is to be done.

    how long do we wait for a delivery from Ostby? | suppliers | Supplier = Ostby Friluft | Lead time : 7 wks

It is the shared encoder with an adapter; a column is read from the vectors of its header's tokens and of the separator
after its values. Headers that share no word with the question are found so.

Shape legend: C columns, N programs, L tokens, D hidden size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from helios.models.base import BaseModel
from helios.models.glossary import language_of
from helios.models.headed import HeadedEncoder, PlainTokenizer
from helios.models.routes import Runtime
from helios.reading.tables.headers import spelled_out
from helios.reading.tables.matching import Match
from helios.reading.tables.programs import OPS, selected
from helios.reading.tables.sheet import Sheet

if TYPE_CHECKING:
    from helios.reading.tables.candidates import TablePrograms

FloatArray = NDArray[np.float32]
FILE = "columns.safetensors"
ROLE = "table-columns"
MAX_TOKENS = 256
MAX_COLUMNS = 24
QUESTION_TOKENS, TITLE_TOKENS, HEADER_TOKENS, VALUE_TOKENS = 48, 20, 8, 14
VALUES = 2
"""Cells of a column that are shown: that of the row which the question seems to mean, then the first ones."""
LONGEST_CELL = 24
"""Characters of a cell that are shown."""
UNSEEN = -12.0
"""Log-probability of a column that did not fit."""
FEATURES = (
    "read_table", "read_table_rank", "read_op", "read_column", "read_column_gap", "read_order", "read_where",
    "read_total",
)  # fmt: skip
HEADS = {"column": (2, 3), "question": (1, len(OPS) + 2)}
"""Outputs of the heads: asked, ordered and selected of a column; operations, descending and table of a question."""


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as the model reads it."""

    title: str
    headers: tuple[str, ...]
    values: tuple[str, ...]
    matched: frozenset[int]
    """Columns of which the question names a value."""

    @classmethod
    def of(cls, sheet: Sheet, sets: Sequence[Sequence[Match]]) -> "TableText":
        """A sheet with the values that a question names in it; `sets` are its matches, most words first."""
        named: dict[int, list[str]] = {}
        for match in (match for chosen in sets for match in chosen):
            if match.column >= 0 and match.operator in "=~":
                row = int(np.flatnonzero(match.rows)[0])
                named.setdefault(match.column, []).append(sheet.columns[match.column].cells[row])
        title = " ".join(dict.fromkeys(filter(None, (sheet.table.source, sheet.table.title, sheet.table.section))))
        meant = np.flatnonzero(selected(sheet, sets[0]))[:1] if sets and sets[0] else ()
        first = [[column.cells[row] for row in meant] for column in sheet.columns]
        values = tuple(_shown(column.cells, named.get(at) or first[at]) for at, column in enumerate(sheet.columns))
        return cls(title, tuple(column.header for column in sheet.columns), values, frozenset(named))


def _shown(cells: Sequence[str], best: Sequence[str]) -> str:
    """The first of the best cells, `-` where it is empty, and the first others."""
    shown = [best[0].strip() or "-"] if best else []
    for cell in cells:
        if len(shown) >= VALUES:
            break
        if cell.strip() and cell not in shown:
            shown.append(cell)
    return " , ".join(" ".join(cell.split())[:LONGEST_CELL] for cell in shown)


@dataclass(frozen=True, slots=True)
class TokenisedTable:
    """A question and a table as token numbers, with (first, after the header, separator) of each column that fits."""

    ids: list[int]
    columns: list[tuple[int, int, int]]


class TableTokeniser:
    """Questions and tables as token numbers; threads may share it."""

    def __init__(self, base: BaseModel) -> None:
        self._plain = PlainTokenizer(base)

    def of(self, question: str, table: TableText) -> TokenisedTable:
        """Question, title, and as many columns as fit."""
        end, language = [self._plain.separator], language_of(" ; ".join((*table.headers, *table.values, table.title)))
        named = partial(self._plain.ids, language=language)
        title = named(table.title.translate(_IN_TITLE), TITLE_TOKENS)
        ids = [self._plain.opening, *self._plain.ids(question, QUESTION_TOKENS), *end, *title, *end]
        places = []
        for at, (header, value) in enumerate(zip(table.headers[:MAX_COLUMNS], table.values, strict=False)):
            name = named(spelled_out(header.translate(_IN_HEADER)) or "-", HEADER_TOKENS)
            shown = named(("= " if at in table.matched else ": ") + value, VALUE_TOKENS)
            if len(ids) + len(name) + len(shown) + 1 > MAX_TOKENS:
                break
            places.append((len(ids), len(ids) + len(name), len(ids) + len(name) + len(shown)))
            ids += [*name, *shown, *end]
        return TokenisedTable(ids, places)


_IN_TITLE, _IN_HEADER = str.maketrans("/_#", "   "), str.maketrans("_.", "  ")
"""Signs that part words in the names of files, and of columns."""


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """Log-probabilities of a question and a table, over the columns that were seen (C)."""

    table: float
    """Log-odds that the question is about this table."""
    op: FloatArray
    asked: FloatArray
    ordered: FloatArray
    descending: tuple[float, float]
    """Smallest first, largest first."""
    selected: FloatArray
    """(C, 2): that a column does not select rows, and that it does."""


class ColumnReader:
    """The model with its heads; threads may share it. The weights are read on first use."""

    def __init__(self, base: BaseModel, weights: Path, *, runtime: Runtime = "auto", threads: int = 1) -> None:
        self._encoder = HeadedEncoder(base, weights, HEADS, runtime=runtime, threads=threads)
        self._tokeniser = TableTokeniser(base)

    def read(self, question: str, tables: Sequence[TableText]) -> list[ColumnReading]:
        """A reading of each table; ModelError for weights that cannot be used."""
        tokenised = [self._tokeniser.of(question, table) for table in tables]
        vectors = self._encoder.encode([one.ids for one in tokenised])
        return [self._reading(one, found) for one, found in zip(tokenised, vectors, strict=True)]

    def _reading(self, table: TokenisedTable, vectors_LD: FloatArray) -> ColumnReading:
        said = self._encoder.head("question", vectors_LD[0])
        size = vectors_LD.shape[1]
        columns_C2D = np.zeros((len(table.columns), 2 * size), np.float32)
        for row, (first, after, separator) in enumerate(table.columns):
            columns_C2D[row, :size] = vectors_LD[first:after].mean(axis=0)
            columns_C2D[row, size:] = vectors_LD[separator]
        logits_C3 = self._encoder.head("column", columns_C2D)
        down = float(said[len(OPS)])
        return ColumnReading(
            float(said[len(OPS) + 1]), _log_softmax(said[: len(OPS)]), _log_softmax(logits_C3[:, 0]),
            _log_softmax(logits_C3[:, 1]), (_log_sigmoid(-down), _log_sigmoid(down)),
            np.stack([-np.logaddexp(0, logits_C3[:, 2]), -np.logaddexp(0, -logits_C3[:, 2])], axis=1),
        )  # fmt: skip


def column_features(programs: "Sequence[TablePrograms]", readings: Sequence[ColumnReading]) -> list[FloatArray]:
    """float32 (N, len(FEATURES)) of each table's programs, what the readings say of them."""
    order = sorted(range(len(readings)), key=lambda at: -readings[at].table)
    ranks = {at: float(rank) for rank, at in enumerate(order)}
    pairs = zip(programs, readings, strict=True)
    return [_features(one, reading, ranks[at]) for at, (one, reading) in enumerate(pairs)]


def _features(programs: "TablePrograms", reading: ColumnReading, rank: float) -> FloatArray:
    op, chosen, column, order, down, _ = programs.parts.T
    asked, ordered = (np.append(values, [UNSEEN]) for values in (reading.asked, reading.ordered))
    seen = len(reading.asked)
    of_column = np.where(column >= 0, asked[np.minimum(column, seen)], 0.0)
    of_order = np.where(order >= 0, ordered[np.minimum(order, seen)] + np.array(reading.descending)[down], 0.0)
    selects = np.zeros((len(programs.sets), seen), bool)
    for number, matches in enumerate(programs.sets):
        selects[number, [match.column for match in matches if 0 <= match.column < seen]] = True
    of_rows = np.where(selects, reading.selected[:, 1], reading.selected[:, 0]).sum(axis=1)[chosen]
    total = reading.op[op] + of_column + of_order + of_rows
    gap = of_column - reading.asked.max(initial=UNSEEN)
    constant = np.ones(len(op))
    return np.column_stack([
        reading.table * constant, rank * constant, reading.op[op], of_column, gap, of_order, of_rows, total,
    ]).astype(np.float32)  # fmt: skip


def _log_softmax(values: Any) -> FloatArray:
    if not len(values):
        return np.zeros(0, np.float32)
    shifted = values - values.max()
    found: FloatArray = (shifted - np.log(np.exp(shifted).sum())).astype(np.float32)
    return found


def _log_sigmoid(value: float) -> float:
    return float(-np.logaddexp(0.0, -value))

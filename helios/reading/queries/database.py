"""A few tables of a corpus as one SQLite database in memory, described as a registered source is.

Rows keep their numbers (`rowid` is the row's number plus one), rows that are totals of others are left out, numbers
and dates are stored as such. Only queries that were written here run on it, each with a deadline.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from threading import Lock
from time import monotonic
from weakref import finalize

import numpy as np

from helios.errors import QueryFailed, QueryTimeout
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.reading.tables.headers import spelled_out
from helios.reading.tables.keys import key_columns, references
from helios.reading.tables.sheet import Kind, Sheet, SheetColumn
from helios.routing.formulation.plan import Beginning, ColumnRef
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.sql import quoted
from helios.sources.base import ValueHit
from helios.sources.descriptor import Column, Descriptor, ForeignKey, RelationalSchema, TableSchema
from helios.sources.lookup import StoredValue, ValueLookup

SECONDS = 1.0
"""Deadline of a query."""
MOST_ROWS = 200
SAMPLES = 5
MOST_COLUMNS = 200
"""Columns of a table that are asked; a wider one is left to the other readers from there on."""
MOST_NAME = 80
"""Characters of a name."""
LARGEST_WHOLE = 2**62
"""Whole numbers up to which they are stored as such."""
STEPS = 10_000
"""Instructions of SQLite between two looks at the clock."""


class TableDatabase:
    """Tables by the names that queries know them by; threads may share it."""

    kind = "tables"
    language = Language.SQL

    def __init__(self, sheets: Mapping[str, Sheet]) -> None:
        """`sheets` by the ids of their tables, best first."""
        self.name = "tables"
        self.sheets = {name: sheet for name, sheet in zip(_table_names(sheets), sheets.values(), strict=True)}
        self.columns = {name: _column_names(sheet) for name, sheet in self.sheets.items()}
        schema = RelationalSchema("sqlite", tuple(self._described()))
        self.view = SchemaView.of(schema)
        self._descriptor = Descriptor(self.name, self.kind, self.language, schema, "")
        self._values = ValueLookup.build(self._stored())
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        finalize(self, self._connection.close)  # those that nobody keeps any more are still asked by whoever has them
        self._lock = Lock()
        for name, sheet in self.sheets.items():
            self._fill(name, sheet)
        self._connection.execute("PRAGMA query_only = 1")

    def __repr__(self) -> str:
        return f"TableDatabase({', '.join(self.sheets)})"

    def descriptor(self) -> Descriptor:
        """Tables, columns, and the keys that names and values tell."""
        return self._descriptor

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """Cells of text that resemble the phrases."""
        return self._values.find(phrases, limit=limit)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run a query; QueryTimeout after a second, QueryFailed where SQLite refuses it."""
        with self._lock:
            until = monotonic() + SECONDS
            self._connection.set_progress_handler(lambda: int(monotonic() > until), STEPS)
            try:
                cursor = self._connection.execute(query.text)
                rows = cursor.fetchmany(MOST_ROWS + 1)
            except sqlite3.Error as error:
                if monotonic() > until:
                    raise QueryTimeout(SECONDS) from None
                raise QueryFailed(f"{self.name}: {error}") from None
        names = tuple(str(column[0]) for column in cursor.description or ())
        return ResultSet(names, tuple(rows[:MOST_ROWS]), truncated="rows" if len(rows) > MOST_ROWS else None)

    def refresh(self) -> None:
        """Nothing changes."""

    def check(self) -> None:
        """It is open."""

    def close(self) -> None:
        """Let go of the memory."""
        self._connection.close()

    def is_date(self, column: ColumnRef) -> bool:
        """Whether a column holds dates."""
        return type(column) is ColumnRef and self._column(column).kind is Kind.DATE

    def is_key(self, column: ColumnRef) -> bool:
        """Whether a column has each value once."""
        return type(column) is ColumnRef and self._column(column).is_key

    def is_amount(self, column: ColumnRef) -> bool:
        """Whether a column holds numbers that can be added: no keys of rows, no numbers that name them, no years."""
        if isinstance(column, Beginning):
            return False
        found = self._column(column)
        seen = self.view.column(column)
        return found.is_amount and not seen.key and seen.words[-1:] != ("year",)

    def _column(self, column: ColumnRef) -> SheetColumn:
        return self.sheets[column.table].columns[self.columns[column.table].index(column.column)]

    def cell(self, table: str, row: int, column: str) -> tuple[int, str]:
        """(number of the column, its text) of a cell; `row` counts from 0."""
        number = self.columns[table].index(column)
        return number, self.sheets[table].columns[number].cells[row]

    def _described(self) -> Iterator[TableSchema]:
        stored = (
            key_columns(name, ((column.header, column.cells) for column in sheet.columns[: len(self.columns[name])]))
            for name, sheet in self.sheets.items()
        )
        found = references(chain.from_iterable(stored), {name: name for name in self.sheets})
        referred = {(one.referred, one.key) for one in found}
        for name, sheet in self.sheets.items():
            own = self.columns[name]
            foreign = {one.column: one for one in found if one.table == name}
            keys = [number for number in range(len(own)) if (name, number) in referred]
            if not keys:
                keys = [number for number in range(min(1, len(own))) if _is_named_key(sheet.columns[number])]
            columns = tuple(
                Column(
                    own[at], _type(sheet.columns[at]), samples=_samples(sheet.columns[at]), primary_key=at in keys[:1]
                )
                for at in range(len(own))
            )
            joins = tuple(
                ForeignKey((own[at],), one.referred, (self.columns[one.referred][one.key],))
                for at, one in foreign.items()
            )
            yield TableSchema(name, columns, joins, row_count=sheet.size)

    def _stored(self) -> Iterator[StoredValue]:
        for name, sheet in self.sheets.items():
            for label, column in zip(self.columns[name], sheet.columns, strict=False):
                if column.kind in (Kind.TEXT, Kind.TIME):
                    said = column.said if column.people else column.cells.__getitem__
                    cells = (said(int(at)).strip() for at in np.flatnonzero(sheet.counted))
                    for value in filter(None, map(_stored, dict.fromkeys(cells))):
                        yield StoredValue((name, label), value)

    def _fill(self, name: str, sheet: Sheet) -> None:
        own = self.columns[name]
        kinds = {Kind.NUMBER: "NUMERIC", Kind.DATE: "TEXT", Kind.TIME: "TEXT", Kind.TEXT: "TEXT"}
        described = ", ".join(f"{quoted(own[at])} {kinds[sheet.columns[at].kind]}" for at in range(len(own)))
        self._connection.execute(f"CREATE TABLE {quoted(name)} ({described})")
        stored = [_values(column) for column in sheet.columns[: len(own)]]
        rows = ([int(at) + 1, *(column[at] for column in stored)] for at in np.flatnonzero(sheet.counted).tolist())
        marks = ", ".join("?" * (len(own) + 1))
        labels = ", ".join(["rowid", *map(quoted, own)])
        self._connection.execute("BEGIN")
        self._connection.executemany(f"INSERT INTO {quoted(name)} ({labels}) VALUES ({marks})", rows)
        self._connection.execute("COMMIT")


def _table_names(sheets: Mapping[str, Sheet]) -> list[str]:
    """A name of its own for each table: the last part of its title, with the section where that is not enough."""
    titles = [_named(re.split(r"[/\\]", sheet.table.title or "")[-1]) or "table" for sheet in sheets.values()]
    counts = Counter(title.casefold() for title in titles)
    names: dict[str, None] = {}
    for title, sheet in zip(titles, sheets.values(), strict=True):
        name = title
        if counts[title.casefold()] > 1 and sheet.table.section:
            name = _named(f"{title} {sheet.table.section}")
        if name.casefold() in {known.casefold() for known in names}:
            name = next(f"{name} {n}" for n in range(2, len(sheets) + 2) if f"{name} {n}" not in names)
        names[name] = None
    return list(names)


def _column_names(sheet: Sheet) -> list[str]:
    """A name of its own for each column of the file, short forms written out; `rowid` is taken."""
    headers = [column.header for column in sheet.columns[: len(sheet.columns) - bool(sheet.names)]][:MOST_COLUMNS]
    names: list[str] = []
    for number, header in enumerate(headers, start=1):
        name = _named(spelled_out(header)) or f"column {number}"
        taken = {"rowid", "oid", "_rowid_", *(known.casefold() for known in names)}
        while name.casefold() in taken:
            name = f"{name} {number}"
        names.append(name)
    return names


def _named(text: str) -> str:
    """A name that SQL can say: printable characters, no longer than can be read."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:MOST_NAME].strip()


def _stored(text: str) -> str | None:
    """A cell's text as it is stored, None for nothing; halves of characters are replaced."""
    return text.strip().encode("utf-8", "replace").decode("utf-8") or None


def _is_named_key(column: SheetColumn) -> bool:
    return column.is_key and column.header.casefold().endswith("id")


def _type(column: SheetColumn) -> str:
    if column.kind is Kind.NUMBER:
        return "INTEGER" if _are_whole(column) else "REAL"
    return "DATE" if column.kind is Kind.DATE else "TEXT"


def _are_whole(column: SheetColumn) -> bool:
    known = column.values[np.isfinite(column.values)]
    return bool((known == np.floor(known)).all() and (np.abs(known) < LARGEST_WHOLE).all())


def _samples(column: SheetColumn) -> tuple[str, ...]:
    counts = Counter(str(value) for value in _values(column) if value is not None)
    return tuple(value[:40] for value, _ in counts.most_common(SAMPLES))


def _values(column: SheetColumn) -> list[str | int | float | None]:
    """The cells as they are stored: numbers, ISO dates, texts, None for nothing."""
    if column.kind in (Kind.TEXT, Kind.TIME):
        return [_stored(column.said(row)) if column.people else _stored(cell) for row, cell in enumerate(column.cells)]
    whole = _are_whole(column)
    return [
        _stored(cell) if not np.isfinite(value)
        else _iso(float(value)) if column.kind is Kind.DATE
        else int(value) if whole else float(value)
        for cell, value in zip(column.cells, column.values.tolist(), strict=True)
    ]  # fmt: skip


def _iso(days: float) -> str | None:
    try:
        return date.fromordinal(int(days)).isoformat()
    except (OverflowError, ValueError):
        return None

"""What a table's codes stand for: the columns of other tables that it refers to, beside its own.

    orders: Order, Customer no, Status        customers: No, Name, Town      status codes: Code, Meaning
    → Order, Customer no, Status, Name, Town, Meaning

Only a corpus of a folder's size is looked through. In a larger one, columns agree by chance.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Protocol

import numpy as np

from helios.reading.tables.keys import KeyColumn, Reference, key_columns, references
from helios.reading.tables.sheet import Joined, Sheet, is_form
from helios.types import Table, TableKind

MOST_TABLES = 200
"""Tables of a corpus that is looked through."""
MOST_ROWS, MOST_CELLS = 50_000, 200_000
"""And their rows and cells."""
MOST_BESIDE = 6
"""Columns of a table that are joined to one that refers to it, the first ones."""
MOST_JOINED = 12
"""Columns that are joined to a table in all."""


class Tables(Protocol):
    """Tables by their ids."""

    def ids(self) -> Iterator[str]:
        """All ids."""

    def get(self, record_id: str) -> Table:
        """The table with this id."""

    def __len__(self) -> int: ...


class Corpus(Protocol):
    """What is read of a corpus (`helios.index.reader.Corpus`)."""

    @property
    def tables(self) -> Tables: ...

    @property
    def segment_count(self) -> int:
        """Rows of all tables together."""


class Joins:
    """The references between the tables of a corpus, found when they are first asked for; threads may share it."""

    def __init__(self, corpus: Corpus, sheet: Callable[[str], Sheet | None]) -> None:
        """`sheet` reads a table by its id."""
        self.corpus, self.tables, self.sheet = corpus, corpus.tables, sheet
        self._lock = Lock()

    def tables_of_a_folder(self) -> list[str]:
        """The ids of all tables; none of a corpus that is too large to be looked through."""
        return self._ids

    def referred(self, table_id: str) -> set[str]:
        """The tables that a table refers to."""
        return {one.referred for one in self.references(table_id)}

    def references(self, table_id: str) -> list[Reference]:
        """What the columns of a table refer to."""
        with self._lock:
            return self._references.get(table_id, [])

    def of(self, sheet: Sheet) -> list[Joined]:
        """The columns of other tables that belong beside a table's rows."""
        known = self.references(sheet.table.table_id)
        return list(islice((one for reference in known for one in self._joined(sheet, reference)), MOST_JOINED))

    @cached_property
    def _references(self) -> Mapping[str, list[Reference]]:
        found: dict[str, list[Reference]] = {}
        columns = list(self._columns())
        names = {column.table: "" for column in columns}
        for table_id in names:
            table = self.tables.get(table_id)
            names[table_id] = " ".join(filter(None, (Path(table.source).stem, table.title, table.section)))
        for reference in references(columns, names):
            found.setdefault(reference.table, []).append(reference)
        return found

    @cached_property
    def _ids(self) -> list[str]:
        if len(self.tables) > MOST_TABLES or self.corpus.segment_count > MOST_ROWS:
            return []
        ids, cells = list(self.tables.ids()), 0
        for table in map(self.tables.get, ids):
            cells += len(table.rows) * len(table.header)
            if cells > MOST_CELLS:
                return []
        return ids

    def _columns(self) -> Iterator[KeyColumn]:
        for table_id in self._ids:
            table = self.tables.get(table_id)
            cells_of = ((header, [row[at] for row in table.rows]) for at, header in enumerate(table.header))
            yield from key_columns(table_id, cells_of)[: 1 if is_form(table) else None]

    def _joined(self, sheet: Sheet, reference: Reference) -> Iterator[Joined]:
        """The columns beside the key that is referred to."""
        if sheet.lies:
            return
        other = self.sheet(reference.referred)
        if other is None:
            return
        if other.lies:  # a list of codes and what they mean
            other = Sheet.of(replace(other.table, kind=TableKind.TABLE))
        key = other.columns[reference.key]
        at = {" ".join(cell.split()).casefold(): row for row, cell in enumerate(key.cells)}
        cells = sheet.columns[reference.column].cells
        rows = np.array([at.get(" ".join(cell.split()).casefold(), -1) for cell in cells], np.int64)
        beside = (number for number, column in enumerate(other.columns) if number != reference.key and column.distinct)
        for number in islice(beside, MOST_BESIDE):
            yield Joined(other, number, reference.column, rows)

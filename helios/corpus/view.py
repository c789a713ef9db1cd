"""Some records of one or several stores, under one numbering: what a search sees of a corpus.

Parts of an index each have a store, and deleted or filtered-out records are in none of them for a reader. A view
numbers what is left: tables part by part, segments in the order of tables and rows, passages part by part. A table
of which some rows are hidden keeps the others, and their segments keep the row numbers that they had.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from helios.corpus.store import CorpusStore, Records
from helios.types import Passage, Segment, SegmentId, Table

Record = TypeVar("Record", Table, Passage)
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shown:
    """What is visible of one store: numbers of its segments and of its passages, ascending."""

    store: CorpusStore
    segments: Numbers
    passages: Numbers

    @property
    def whole(self) -> bool:
        """Whether nothing is hidden."""
        return len(self.segments) == self.store.segment_count and len(self.passages) == len(self.store.passages)

    def tables(self) -> Numbers:
        """Numbers of the tables of which something is visible; a table without rows hides nothing."""
        offsets = self.store.segment_offsets
        visible = np.searchsorted(self.segments, offsets[1:]) > np.searchsorted(self.segments, offsets[:-1])
        return np.flatnonzero(visible | (offsets[1:] == offsets[:-1]))


def corpus_of(shown: Sequence[Shown]) -> "CorpusStore | CorpusView":
    """What is visible of the stores as one corpus; a store that is alone and whole is itself."""
    if len(shown) == 1 and shown[0].whole:
        return shown[0].store
    return CorpusView(shown)


class CorpusView:
    """Tables, segments and passages of several stores by one numbering; reads as `CorpusStore` does."""

    def __init__(self, shown: Sequence[Shown]) -> None:
        tables = [one.tables() for one in shown]
        rows = [_rows_of(one, numbers) for one, numbers in zip(shown, tables, strict=True)]
        self._shown = tuple(shown)
        self._segments_before = _before([len(one.segments) for one in shown])
        self.tables: ShownRecords[Table] = ShownTables([one.store.tables for one in shown], tables, rows)
        self.passages: ShownRecords[Passage] = ShownRecords(
            [one.store.passages for one in shown], [one.passages for one in shown]
        )
        counts = [len(own) for own in (own for of_part in rows for own in of_part)]
        self.segment_offsets: Numbers = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        """int64[T+1]: the number of the first segment of every table, then the number of all segments."""

    def __repr__(self) -> str:
        counts = f"tables={len(self.tables)}, segments={self.segment_count}, passages={len(self.passages)}"
        return f"CorpusView({counts})"

    @property
    def segment_count(self) -> int:
        """Visible rows of all tables together."""
        return int(self.segment_offsets[-1])

    def segment(self, number: int) -> Segment:
        """The segment with this number."""
        part, own = self._segment(number)
        return self._shown[part].store.segment(own)

    def segment_id(self, number: int) -> SegmentId:
        """Table id and row of the segment with this number."""
        part, own = self._segment(number)
        return self._shown[part].store.segment_id(own)

    def segment_number(self, segment_id: SegmentId) -> int:
        """The number of a segment; KeyError where the table or the row is not visible."""
        table = self.tables.number(segment_id.table_id)
        part, own = self.tables.locate(table)
        wanted = self._shown[part].store.segment_number(segment_id)
        shown = self._shown[part].segments
        place = int(np.searchsorted(shown, wanted))
        if place == len(shown) or shown[place] != wanted:
            raise KeyError(f"table {segment_id.table_id!r} has no row {segment_id.row} any more")
        return int(self._segments_before[part]) + place

    def table_of(self, segment: int) -> int:
        """The number of the table that a segment is a row of."""
        if not 0 <= segment < self.segment_count:
            raise IndexError(f"segment number {segment} of {self.segment_count}")
        return int(np.searchsorted(self.segment_offsets, segment, side="right")) - 1

    def segments(self) -> Iterator[Segment]:
        """All segments in number order."""
        for number in range(self.segment_count):
            yield self.segment(number)

    def _segment(self, number: int) -> tuple[int, int]:
        """The part that holds a segment, and its number there."""
        if not 0 <= number < self.segment_count:
            raise IndexError(f"segment number {number} of {self.segment_count}")
        part = int(np.searchsorted(self._segments_before, number, side="right")) - 1
        return part, int(self._shown[part].segments[number - int(self._segments_before[part])])


class ShownRecords(Sequence[Record], Generic[Record]):
    """Visible records of several stores, in order: `len`, `[number]`, iteration and lookup by id."""

    def __init__(self, stores: Sequence[Records[Record]], numbers: Sequence[Numbers]) -> None:
        self._stores: tuple[Records[Record], ...] = tuple(stores)
        self._numbers = tuple(numbers)
        self._before = _before([len(own) for own in numbers])

    def __len__(self) -> int:
        return int(self._before[-1])

    @overload
    def __getitem__(self, number: int) -> Record: ...
    @overload
    def __getitem__(self, number: slice) -> list[Record]: ...
    def __getitem__(self, number: int | slice) -> Record | list[Record]:
        if isinstance(number, slice):
            return [self[position] for position in range(*number.indices(len(self)))]
        part, own = self.locate(number)
        return self._shown(part, own, number)

    def __iter__(self) -> Iterator[Record]:
        return self.between(0, len(self))

    def between(self, start: int, stop: int) -> Iterator[Record]:
        """Records number `start` to `stop` (excluded)."""
        for number in range(start, stop):
            yield self[number]

    def ids(self) -> Iterator[str]:
        """All ids in number order."""
        for store, numbers in zip(self._stores, self._numbers, strict=True):
            yield from _picked(store.ids(), numbers)

    def titles(self) -> Iterator[str]:
        """All titles in number order."""
        for store, numbers in zip(self._stores, self._numbers, strict=True):
            yield from _picked(store.titles(), numbers)

    def column(self, name: str) -> list[str]:
        """One field of all records in number order."""
        found: list[str] = []
        for store, numbers in zip(self._stores, self._numbers, strict=True):
            values = store.column(name)
            found += [values[number] for number in numbers.tolist()]
        return found

    def id(self, number: int) -> str:
        """The id of one record."""
        part, own = self.locate(number)
        return self._stores[part].id(own)

    def find(self, record_id: str) -> int | None:
        """The number of the visible record with this id, the newest if there are several; None where there is none."""
        for part in reversed(range(len(self._stores))):
            own = self._stores[part].find(record_id)
            if own is None:
                continue
            place = int(np.searchsorted(self._numbers[part], own))
            if place < len(self._numbers[part]) and self._numbers[part][place] == own:
                return int(self._before[part]) + place
        return None

    def number(self, record_id: str) -> int:
        """The number of the record with this id; KeyError where there is none."""
        number = self.find(record_id)
        if number is None:
            raise KeyError(f"no record with id {record_id!r}")
        return number

    def get(self, record_id: str) -> Record:
        """The record with this id; KeyError where there is none."""
        return self[self.number(record_id)]

    def locate(self, number: int) -> tuple[int, int]:
        """The store that holds a record, and its number there; IndexError out of range."""
        position = number + len(self) if number < 0 else number
        if not 0 <= position < len(self):
            raise IndexError(f"record number {number} of {len(self)}")
        part = int(np.searchsorted(self._before, position, side="right")) - 1
        return part, int(self._numbers[part][position - int(self._before[part])])

    def _shown(self, part: int, own: int, number: int) -> Record:
        return self._stores[part][own]


class ShownTables(ShownRecords[Table]):
    """Visible tables, each with its visible rows."""

    def __init__(
        self, stores: Sequence[Records[Table]], numbers: Sequence[Numbers], rows: Sequence[Sequence[Numbers]]
    ) -> None:
        super().__init__(stores, numbers)
        self._rows = [own for of_part in rows for own in of_part]

    def _shown(self, part: int, own: int, number: int) -> Table:
        table, rows = self._stores[part][own], self._rows[number]
        if len(rows) == len(table.rows):
            return table
        place = {row: at for at, row in enumerate(rows.tolist())}
        links = [replace(link, row=place[link.row]) for link in table.hyperlinks if link.row in place]
        return replace(table, rows=tuple(table.rows[row] for row in rows.tolist()), hyperlinks=tuple(links))


def _rows_of(shown: Shown, tables: Numbers) -> list[Numbers]:
    """For each of these tables its visible rows."""
    offsets = shown.store.segment_offsets
    starts, ends = offsets[tables], offsets[tables + 1]
    spans = zip(
        np.searchsorted(shown.segments, starts).tolist(), np.searchsorted(shown.segments, ends).tolist(),
        starts.tolist(), strict=True,
    )  # fmt: skip
    return [shown.segments[first:last] - start for first, last, start in spans]


def _before(counts: Sequence[int]) -> Numbers:
    """How many records come before each store's, then all of them."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def _picked(values: Iterator[str], numbers: Numbers) -> Iterator[str]:
    wanted = iter(numbers.tolist())
    following = next(wanted, None)
    for number, value in enumerate(values):
        if number == following:
            yield value
            following = next(wanted, None)

"""Random access to a stored corpus through memory maps: by number, by id, and in order.

Opening reads a small manifest and maps files; no id or text is read before it is asked for.
`CorpusWriter` (helios.corpus.writer) makes the directory; helios.corpus.layout describes it.
"""

import json
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from helios.corpus import layout
from helios.corpus.writer import CorpusWriter
from helios.errors import IndexFormatError
from helios.index.arrays import check_offsets, map_array
from helios.index.durable import read_record
from helios.types import Hyperlink, Metadata, Passage, Segment, SegmentId, Table, TableKind

__all__ = ["CorpusStore", "CorpusWriter", "PassageRecords", "Records", "TableRecords"]

Record = TypeVar("Record", Table, Passage)
_CACHED_BATCHES = 256
BLOCK_ROWS = 5000
LINK_FIELDS = ("link_rows", "link_columns", "link_passages")
"""Rows of a large table that are read at once."""


class Records(Sequence[Record], Generic[Record]):
    """The tables or the passages of a store, in order: `len`, `[number]`, iteration and lookup by id."""

    def __init__(self, directory: Path, kind: str, *, count: int) -> None:
        arrow, batches, hashes, numbers = layout.record_files(kind)
        self._kind = kind
        self._count = count
        self._path = directory / arrow
        self._reader = _open_arrow(self._path, layout.SCHEMAS[kind])
        self._starts = map_array(directory / batches, np.int64)
        self._hashes = map_array(directory / hashes, np.uint64)
        self._numbers = map_array(directory / numbers, np.uint32)
        self._cache: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._checked: set[int] = set()
        batches_held = self._reader.num_record_batches
        if len(self._hashes) != count or len(self._numbers) != count or batches_held != len(self._starts) - 1:
            raise IndexFormatError(f"{directory}: {kind} files disagree with {layout.MANIFEST} on {count} records")
        check_offsets(directory / batches, self._starts, count)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Record: ...
    @overload
    def __getitem__(self, number: slice) -> list[Record]: ...
    def __getitem__(self, number: int | slice) -> Record | list[Record]:
        if isinstance(number, slice):
            return [self[position] for position in range(*number.indices(self._count))]
        columns, row = self._locate(number)
        with _decoding(self._path):
            return self._record({name: column[row].as_py() for name, column in columns.items()})

    def __iter__(self) -> Iterator[Record]:
        return self.between(0, self._count)

    def between(self, start: int, stop: int) -> Iterator[Record]:
        """Records number `start` to `stop` (excluded), batch by batch."""
        names = self._reader.schema.names
        for values in self._rows(names, start, stop):
            with _decoding(self._path):
                record = self._record(dict(zip(names, values, strict=True)))
            yield record

    def ids(self) -> Iterator[str]:
        """All ids in number order, without reading anything else."""
        return (values[0] for values in self._rows(["id"], 0, self._count))

    def titles(self) -> Iterator[str]:
        """All titles in number order, without reading anything else."""
        return (values[0] for values in self._rows(["title"], 0, self._count))

    def column(self, name: str) -> list[str]:
        """One field of all records in number order, without reading anything else; empty texts where none is stored."""
        if name not in self._reader.schema.names:
            return [""] * self._count
        return [values[0] for values in self._rows([name], 0, self._count)]

    def id(self, number: int) -> str:
        """The id of one record."""
        columns, row = self._locate(number)
        with _decoding(self._path):
            return str(columns["id"][row].as_py())

    def find(self, record_id: str) -> int | None:
        """The number of the record with this id, None where there is none."""
        wanted = np.uint64(layout.id_hash(record_id))
        position = int(np.searchsorted(self._hashes, wanted))
        while position < self._count and self._hashes[position] == wanted:
            number = int(self._numbers[position])
            if number >= self._count:
                raise IndexFormatError(
                    f"{self._path}: damaged: record {number} of {self._count}; build the index again"
                )
            if self.id(number) == record_id:
                return number
            position += 1
        return None

    def number(self, record_id: str) -> int:
        """The number of the record with this id; KeyError where there is none."""
        number = self.find(record_id)
        if number is None:
            raise KeyError(f"no {self._kind.removesuffix('s')} with id {record_id!r}")
        return number

    def get(self, record_id: str) -> Record:
        """The record with this id; KeyError where there is none."""
        return self[self.number(record_id)]

    @abstractmethod
    def _record(self, fields: dict[str, Any]) -> Record:
        """A record of its stored fields."""

    def _rows(self, names: list[str], start: int, stop: int) -> Iterator[tuple[Any, ...]]:
        while start < stop:
            batch = int(np.searchsorted(self._starts, start, side="right")) - 1
            first = int(self._starts[batch])
            end = min(stop, int(self._starts[batch + 1]))
            columns = self._columns(batch)
            with _decoding(self._path):
                parts = [columns[name].slice(start - first, end - start).to_pylist() for name in names]
            yield from zip(*parts, strict=True)
            start = end

    def _locate(self, number: int) -> tuple[dict[str, Any], int]:
        """The columns of the batch that holds a record, and its row there; IndexError out of range."""
        position = number + self._count if number < 0 else number
        if not 0 <= position < self._count:
            raise IndexError(f"{self._kind} number {number} of {self._count}")
        batch = int(np.searchsorted(self._starts, position, side="right")) - 1
        return self._columns(batch), position - int(self._starts[batch])

    def _columns(self, batch: int) -> dict[str, Any]:
        columns = self._cache.get(batch)
        if columns is None:
            read = self._batch(batch)
            columns = dict(zip(read.schema.names, read.columns, strict=True))
            self._cache[batch] = columns
            while len(self._cache) > _CACHED_BATCHES:
                self._cache.popitem(last=False)
        return columns

    def _batch(self, number: int) -> Any:
        """A record batch; when it is read first, what its columns are followed by is checked, and no text is read."""
        try:
            batch = self._reader.get_batch(number)
            if number not in self._checked:
                batch.validate()
                size = int(self._starts[number + 1] - self._starts[number])
                if batch.num_rows != size or not all(_is_sound(column) for column in batch.columns):
                    raise ValueError(f"batch {number} does not hold {size} whole records")
                self._checked.add(number)
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            raise IndexFormatError(f"{self._path}: damaged: {error}; build the index again") from error
        return batch


class PassageRecords(Records[Passage]):
    """The passages of a store in number order."""

    def _record(self, fields: dict[str, Any]) -> Passage:
        return Passage(
            fields["id"], fields["title"], fields["text"], fields["url"], fields.get("source", ""), _metadata(fields)
        )


class TableRecords(Records[Table]):
    """The tables of a store in number order."""

    def segment(self, number: int, row: int) -> Segment:
        """One row of a table, without reading the others."""
        columns, position = self._locate(number)
        with _decoding(self._path):
            header = tuple(columns["header"][position].as_py())
            cells = columns["cells"]
            first, last = cells.offsets[position : position + 2].to_pylist()
            start = first + row * len(header)
            if start + len(header) > last:
                raise ValueError(f"table {number} has no row {row}")
            return Segment(
                SegmentId(columns["id"][position].as_py(), row),
                columns["title"][position].as_py(),
                columns["section"][position].as_py(),
                header,
                tuple(cells.values.slice(start, len(header)).to_pylist()),
                TableKind(columns["kind"][position].as_py()),
            )

    def block(self, number: int, start: int, stop: int, *, links: bool = True) -> Table:
        """Rows [start, stop) of a table as a table, with their hyperlinks if wanted; the others are not read."""
        columns, position = self._locate(number)
        unread = {"cells"} if links else {"cells", *LINK_FIELDS}
        with _decoding(self._path):
            fields = {name: column[position].as_py() for name, column in columns.items() if name not in unread}
            fields |= {name: [] for name in unread - {"cells"}}
            width, cells = len(fields["header"]), columns["cells"]
            first, last = cells.offsets[position : position + 2].to_pylist()
            begin, end = first + start * width, min(first + stop * width, last)
            found = zip(*(fields[name] for name in LINK_FIELDS), strict=True)
            own = [(row - start, column, passage) for row, column, passage in found if start <= row < stop]
            fields |= {name: [link[part] for link in own] for part, name in enumerate(LINK_FIELDS)}
            return self._record(fields | {"cells": cells.values.slice(begin, max(0, end - begin)).to_pylist()})

    def _record(self, fields: dict[str, Any]) -> Table:
        header = tuple(fields["header"])
        cells, width = fields["cells"], len(header)
        links = zip(fields["link_rows"], fields["link_columns"], fields["link_passages"], strict=True)
        return Table(
            table_id=fields["id"],
            title=fields["title"],
            header=header,
            rows=tuple(tuple(cells[start : start + width]) for start in range(0, len(cells), width)),
            section=fields["section"],
            intro=fields["intro"],
            url=fields["url"],
            kind=TableKind(fields["kind"]),
            hyperlinks=tuple(Hyperlink(row, column, passage_id) for row, column, passage_id in links),
            source=fields.get("source", ""),
            metadata=_metadata(fields),
        )


class CorpusStore:
    """A complete corpus on disk. Segments are numbered in table order, then row order."""

    def __init__(
        self,
        directory: Path,
        tables: TableRecords,
        passages: PassageRecords,
        segment_offsets: npt.NDArray[np.int64],
    ) -> None:
        self.directory = directory
        self.tables = tables
        self.passages = passages
        self.segment_offsets = segment_offsets
        """int64[T+1]: the number of the first segment of every table, then the number of all segments."""

    def __repr__(self) -> str:
        counts = f"tables={len(self.tables)}, segments={self.segment_count}, passages={len(self.passages)}"
        return f"CorpusStore({str(self.directory)!r}, {counts})"

    @classmethod
    def open(cls, directory: Path | str) -> "CorpusStore":
        """Map a store; IndexFormatError names the file that is missing, damaged, foreign or too new."""
        directory = Path(directory)
        manifest = _read_manifest(directory)
        tables = TableRecords(directory, layout.TABLES, count=manifest["tables"])
        passages = PassageRecords(directory, layout.PASSAGES, count=manifest["passages"])
        segment_offsets = map_array(directory / layout.SEGMENTS, np.int64)
        if len(segment_offsets) != len(tables) + 1 or segment_offsets[-1] != manifest["segments"]:
            raise IndexFormatError(f"{directory / layout.SEGMENTS}: disagrees with {layout.MANIFEST}")
        check_offsets(directory / layout.SEGMENTS, segment_offsets, manifest["segments"])
        return cls(directory, tables, passages, segment_offsets)

    @property
    def segment_count(self) -> int:
        """Rows of all tables together."""
        return int(self.segment_offsets[-1])

    def segment(self, number: int) -> Segment:
        """The segment with this number."""
        table, row = self._table_and_row(number)
        return self.tables.segment(table, row)

    def segment_id(self, number: int) -> SegmentId:
        """Table id and row of the segment with this number."""
        table, row = self._table_and_row(number)
        return SegmentId(self.tables.id(table), row)

    def segment_number(self, segment_id: SegmentId) -> int:
        """The number of a segment; KeyError where the table or the row does not exist."""
        table = self.tables.number(segment_id.table_id)
        start, stop = int(self.segment_offsets[table]), int(self.segment_offsets[table + 1])
        if not 0 <= segment_id.row < stop - start:
            raise KeyError(f"table {segment_id.table_id!r} has {stop - start} rows, no row {segment_id.row}")
        return start + segment_id.row

    def table_of(self, segment: int) -> int:
        """The number of the table that a segment is a row of."""
        return self._table_and_row(segment)[0]

    def segments(self, start: int = 0, stop: int | None = None) -> Iterator[Segment]:
        """Segments [start, stop) in number order, all by default, read by blocks of a table's rows."""
        stop = self.segment_count if stop is None else min(stop, self.segment_count)
        while start < stop:
            number, first = self._table_and_row(start)
            end = min(first + stop - start, first + BLOCK_ROWS, int(self.segment_offsets[number + 1]) - start + first)
            table = self.tables.block(number, first, end, links=False)
            if len(table.rows) != end - first:
                raise IndexFormatError(f"{self.directory / layout.SEGMENTS}: damaged: table {number} has fewer rows")
            for row, cells in enumerate(table.rows, start=first):
                segment_id = SegmentId(table.table_id, row)
                yield Segment(segment_id, table.title, table.section, table.header, cells, table.kind)
            start += end - first

    def blocks(self) -> npt.NDArray[np.int64]:
        """(table, first row, row after the last) of what fits well into memory: a table, or rows of a large one."""
        rows = np.diff(self.segment_offsets)
        counts = np.maximum(1, -(-rows // BLOCK_ROWS))
        tables = np.repeat(np.arange(len(rows)), counts)
        starts = (np.arange(len(tables)) - np.repeat(np.cumsum(counts) - counts, counts)) * BLOCK_ROWS
        return np.stack([tables, starts, np.minimum(starts + BLOCK_ROWS, rows[tables])], axis=1)

    def _table_and_row(self, segment: int) -> tuple[int, int]:
        if not 0 <= segment < self.segment_count:
            raise IndexError(f"segment number {segment} of {self.segment_count}")
        table = int(np.searchsorted(self.segment_offsets, segment, side="right")) - 1
        return table, segment - int(self.segment_offsets[table])


def _metadata(fields: dict[str, Any]) -> Metadata:
    """A record's own fields, sorted by name."""
    stored = fields.get("metadata")
    return tuple(sorted(json.loads(stored).items())) if stored else ()


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / layout.MANIFEST
    if not path.exists():
        raise IndexFormatError(f"{path}: not found; {directory} holds no complete corpus")
    manifest = read_record(path)
    if manifest.get("format") != layout.FORMAT:
        raise IndexFormatError(f"{path}: not a HELIOS corpus")
    if manifest.get("version") not in layout.READABLE:
        raise IndexFormatError(
            f"{path}: version {manifest.get('version')}, this code reads up to {layout.VERSION}: upgrade HELIOS"
        )
    try:
        for name, size in manifest["files"].items():
            if (directory / name).stat().st_size != size:
                raise IndexFormatError(f"{directory / name}: damaged, expected {size} bytes")
        if not all(isinstance(manifest[name], int) for name in ("tables", "passages", "segments")):
            raise IndexFormatError(f"{path}: counts are not numbers")
    except FileNotFoundError as error:
        raise IndexFormatError(f"{error.filename}: missing from the corpus") from error
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise IndexFormatError(f"{path}: damaged, lacks {error}") from error
    return manifest


def _open_arrow(path: Path, expected: pa.Schema) -> Any:
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        stored = {field.name: field.type for field in reader.schema}
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:  # a name that is no text is a ValueError
        raise IndexFormatError(f"{path}: not a readable Arrow file ({error})") from error
    wanted = {field.name: field.type for field in expected if field.name in stored or field.name not in layout.LATER}
    if stored != wanted or len(stored) != len(reader.schema):
        raise IndexFormatError(f"{path}: damaged: its columns are not those of a corpus; build the index again")
    return reader


def _is_sound(column: Any) -> bool:
    """Whether a column holds no null, and its offsets rise within what they lead to."""
    if column.null_count:
        return False
    if pa.types.is_list(column.type):
        end = len(column.values)
        if not _is_sound(column.values):
            return False
    elif pa.types.is_string(column.type):
        text = column.buffers()[2]
        end = text.size if text is not None else 0
    else:
        return True
    offsets = np.zeros(1, np.int32)
    if len(column):  # from the buffer: pyarrow's own way to numpy imports pandas, half a second
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    return bool(offsets[0] >= 0 and offsets[-1] <= end and np.all(offsets[:-1] <= offsets[1:]))


@contextmanager
def _decoding(path: Path) -> Iterator[None]:
    """IndexFormatError for stored values that are none."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise IndexFormatError(f"{path}: damaged: {error}; build the index again") from error

"""Writing a corpus store: bounded memory, byte-identical for the same input, atomic at `finish`."""

import json
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from helios.corpus import layout
from helios.errors import CorpusError
from helios.index.durable import fsync_path, remove, rename
from helios.types import Metadata, Passage, Table

_TEMPORARY = ".partial"


class CorpusWriter:
    """Writes tables and passages, in the order added, to a directory; nothing is visible before `finish`.

    As a context manager it finishes on success and discards everything on an exception. A directory that
    holds a complete store is refused with CorpusError unless `replace` is true.
    """

    def __init__(self, directory: Path | str, *, replace: bool = False) -> None:
        self.directory = Path(directory)
        manifest = self.directory / layout.MANIFEST
        if manifest.exists() and not replace:
            raise CorpusError(f"{self.directory} already holds a corpus; choose another directory or replace it")
        self.directory.mkdir(parents=True, exist_ok=True)
        self._tables = _RecordWriter(self.directory, layout.TABLES, layout.TABLE_SCHEMA)
        self._passages = _RecordWriter(self.directory, layout.PASSAGES, layout.PASSAGE_SCHEMA)
        self._segment_offsets = array("q", [0])
        self._begun: list[_Piece] = []

    def __enter__(self) -> "CorpusWriter":
        return self

    def __len__(self) -> int:
        """Records added so far."""
        return self._tables.count + self._passages.count

    def counts(self) -> dict[str, int]:
        """Tables, segments and passages added so far."""
        return {
            "tables": self._tables.count,
            "segments": self._segment_offsets[-1],
            "passages": self._passages.count,
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            self.discard()

    def add(self, record: Table | Passage, *, more: bool = False) -> None:
        """Append one record. CorpusError for a table that is not rectangular or text that is not Unicode.

        A large table may come in pieces, all but the last with `more`; the last one has its titles and its header,
        and earlier ones may have fewer columns. One without a last piece is not stored.
        """
        if self._begun and not (isinstance(record, Table) and self._begun[0].table_id == record.table_id):
            self._begun.clear()
        if isinstance(record, Table) and (more or self._begun):
            self._begun.append(_Piece.of(record))
            if not more:
                self._add_pieces(record, self._begun)
                self._begun = []
            return
        if isinstance(record, Passage):
            passage = record
            self._passages.add(
                passage.passage_id,
                (passage.title, passage.text, passage.url, passage.source, _as_json(passage.metadata)),
            )
            return
        table = record
        _check_shape(table)
        cells = [cell for row in table.rows for cell in row]
        links = table.hyperlinks
        self._tables.add(
            table.table_id,
            (table.title, table.section, table.intro, table.url, table.kind.value, table.header, cells),
            ([link.row for link in links], [link.column for link in links]),
            ([link.passage_id for link in links], table.source, _as_json(table.metadata)),
        )
        self._segment_offsets.append(self._segment_offsets[-1] + len(table.rows))

    def _add_pieces(self, table: Table, pieces: "list[_Piece]") -> None:
        """Append a table of pieces whose last one this is."""
        width, rows = len(table.header), sum(piece.rows for piece in pieces)
        _check_links(table, rows)
        try:
            cells = pa.concat_arrays([piece.padded(width) for piece in pieces])
        except pa.ArrowException as error:
            raise CorpusError(f"table {table.table_id!r}: more text than a table can have, 2 GB ({error})") from None
        if cells.nbytes <= layout.BATCH_BYTES:
            flat = cells.to_pylist()
            self.add(replace(table, rows=tuple(tuple(flat[at * width : (at + 1) * width]) for at in range(rows))))
            return
        links = table.hyperlinks
        self._tables.add_alone(
            table.table_id,
            (table.title, table.section, table.intro, table.url, table.kind.value, table.header),
            cells,
            ([link.row for link in links], [link.column for link in links]),
            ([link.passage_id for link in links], table.source, _as_json(table.metadata)),
        )
        self._segment_offsets.append(self._segment_offsets[-1] + rows)

    def finish(self) -> None:
        """Write what is buffered, sync it and make the store visible; CorpusError on a duplicate id."""
        for records in (self._tables, self._passages):
            records.close()
        _save(self.directory, layout.SEGMENTS, np.frombuffer(self._segment_offsets, dtype=np.int64))
        names = [*layout.record_files(layout.TABLES), *layout.record_files(layout.PASSAGES), layout.SEGMENTS]
        sizes = {name: (self.directory / (name + _TEMPORARY)).stat().st_size for name in names}
        manifest = {
            "format": layout.FORMAT,
            "version": layout.VERSION,
            "tables": self._tables.count,
            "passages": self._passages.count,
            "segments": self._segment_offsets[-1],
            "files": sizes,
        }
        remove(self.directory / layout.MANIFEST)
        fsync_path(self.directory)
        for name in names:
            rename(self.directory / (name + _TEMPORARY), self.directory / name)
        text = json.dumps(manifest, indent=2) + "\n"
        _write(self.directory / (layout.MANIFEST + _TEMPORARY), lambda file: file.write(text.encode()))
        fsync_path(self.directory)
        rename(self.directory / (layout.MANIFEST + _TEMPORARY), self.directory / layout.MANIFEST)
        fsync_path(self.directory)

    def discard(self) -> None:
        """Remove everything written so far; a complete store that was there before stays."""
        for records in (self._tables, self._passages):
            records.abandon()
        for path in self.directory.glob(f"*{_TEMPORARY}"):
            path.unlink()


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of a large table, as compact as they will be on the disk."""

    table_id: str
    width: int
    rows: int
    cells: pa.Array

    @classmethod
    def of(cls, table: Table) -> "_Piece":
        """CorpusError for a piece that is not rectangular."""
        _check_shape(replace(table, hyperlinks=()))
        flat = [cell for row in table.rows for cell in row]
        _utf8_size(table.table_id, flat)
        return cls(table.table_id, len(table.header), len(table.rows), pa.array(flat, type=pa.utf8()))

    def padded(self, width: int) -> pa.Array:
        """The cells with empty ones after each row that is shorter."""
        if width == self.width:
            return self.cells
        rows, own = np.arange(self.rows)[:, None], np.arange(width)[None, :]
        places = np.where(own < self.width, rows * self.width + own, len(self.cells))
        return pa.concat_arrays([self.cells, pa.array([""], type=pa.utf8())]).take(pa.array(places.ravel()))


class _RecordWriter:
    """One Arrow file with its batch starts and its id index."""

    def __init__(self, directory: Path, kind: str, schema: pa.Schema) -> None:
        self._directory = directory
        self._kind = kind
        self._schema = schema
        self._path = directory / (layout.record_files(kind)[0] + _TEMPORARY)
        self._sink = pa.OSFile(str(self._path), "wb")
        self._file = pa.ipc.new_file(self._sink, schema)
        self._columns: list[list[Any]] = [[] for _ in schema]
        self._buffered_bytes = 0
        self._hashes = array("Q")
        self._starts = array("q", [0])

    @property
    def count(self) -> int:
        """Records added so far."""
        return len(self._hashes)

    def add(
        self,
        record_id: str,
        texts: tuple[str | tuple[str, ...] | list[str], ...],
        numbers: tuple[list[int], ...] = (),
        last: tuple[str | list[str], ...] = (),
    ) -> None:
        values: tuple[Any, ...] = (record_id, *texts, *numbers, *last)
        size = sum(_utf8_size(record_id, value) for value in values)
        if self._buffered_bytes and self._buffered_bytes + size > layout.BATCH_BYTES:
            self._flush()
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        self._buffered_bytes += size
        self._hashes.append(layout.id_hash(record_id))
        if len(self._columns[0]) >= layout.BATCH_RECORDS:
            self._flush()

    def add_alone(
        self, record_id: str, texts: tuple[str | tuple[str, ...], ...], cells: pa.Array,
        numbers: tuple[list[int], ...], last: tuple[str | list[str], ...],
    ) -> None:  # fmt: skip
        """Append a table that fills a batch by itself, whose cells are an array already."""
        for value in (*texts, *last):
            _utf8_size(record_id, value)
        self._flush()
        values = [*(record_id, *texts), None, *numbers, *last]
        arrays = [pa.array([value], type=field.type) for value, field in zip(values, self._schema, strict=True)]
        arrays[values.index(None)] = pa.ListArray.from_arrays(pa.array([0, len(cells)], pa.int32()), cells)
        self._file.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._hashes.append(layout.id_hash(record_id))
        self._starts.append(self.count)

    def _flush(self) -> None:
        if not self._columns[0]:
            return
        arrays = [pa.array(column, type=field.type) for column, field in zip(self._columns, self._schema, strict=True)]
        self._file.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._columns = [[] for _ in self._schema]
        self._buffered_bytes = 0
        self._starts.append(self.count)

    def close(self) -> None:
        self._flush()
        self._file.close()
        self._sink.close()
        fsync_path(self._path)
        hashes = np.frombuffer(self._hashes, dtype=np.uint64) if self.count else np.empty(0, np.uint64)
        order = np.argsort(hashes, kind="stable").astype(np.uint32)
        hashes = hashes[order]
        self._refuse_duplicates(hashes, order)
        _, batches, hash_name, numbers = layout.record_files(self._kind)
        _save(self._directory, batches, np.frombuffer(self._starts, dtype=np.int64))
        _save(self._directory, hash_name, hashes)
        _save(self._directory, numbers, order)

    def _refuse_duplicates(self, hashes: np.ndarray, order: np.ndarray) -> None:
        """Compare the ids behind equal hashes; different ids may share a hash, the same id may not return."""
        repeated = np.isin(hashes, hashes[1:][hashes[1:] == hashes[:-1]])
        if not repeated.any():
            return
        seen: dict[str, int] = {}
        starts = np.frombuffer(self._starts, dtype=np.int64)
        with pa.memory_map(str(self._path)) as source:
            reader = pa.ipc.open_file(source)
            for number in order[repeated].tolist():
                batch = int(np.searchsorted(starts, number, side="right")) - 1
                record_id = reader.get_batch(batch).column(0)[number - int(starts[batch])].as_py()
                if record_id in seen:
                    raise CorpusError(
                        f"duplicate id {record_id!r} in {self._kind}: records {seen[record_id]} "
                        f"and {number}; ids must be unique among tables and among passages"
                    )
                seen[record_id] = number

    def abandon(self) -> None:
        if not self._sink.closed:
            self._file.close()
            self._sink.close()


def _check_shape(table: Table) -> None:
    """CorpusError unless there is a header, every row is as wide, and every hyperlink points to a cell."""
    width = len(table.header)
    if not width:
        raise CorpusError(f"table {table.table_id!r} has no columns")
    for number, row in enumerate(table.rows):
        if len(row) != width:
            raise CorpusError(f"table {table.table_id!r}, row {number}: {len(row)} cells, expected {width}")
    _check_links(table, len(table.rows))


def _check_links(table: Table, rows: int) -> None:
    for link in table.hyperlinks:
        if not (0 <= link.row < rows and 0 <= link.column < len(table.header)):
            raise CorpusError(f"table {table.table_id!r}: hyperlink to missing cell ({link.row}, {link.column})")


def _as_json(metadata: Metadata) -> str:
    return json.dumps(dict(metadata), ensure_ascii=False, sort_keys=True) if metadata else ""


def _utf8_size(record_id: str, value: str | tuple[str, ...] | list[str] | list[int]) -> int:
    if isinstance(value, str):
        parts: tuple[str, ...] | list[str] = (value,)
    elif value and isinstance(value[0], int):
        return 4 * len(value)
    else:
        parts = value  # type: ignore[assignment]
    try:
        return len("".join(parts).encode()) + 4 * len(parts)
    except UnicodeEncodeError as error:
        raise CorpusError(f"record {record_id!r} has text that is not Unicode: {error.reason}") from error


def _save(directory: Path, name: str, values: np.ndarray) -> None:
    _write(directory / (name + _TEMPORARY), lambda file: np.save(file, values, allow_pickle=False))


def _write(path: Path, write: Callable[[Any], object]) -> None:
    with path.open("wb") as file:
        write(file)
    fsync_path(path)

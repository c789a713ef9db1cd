"""Parquet: rows that are passages or tables of a known schema, or one table a file."""

import datetime
import decimal
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from helios.corpus.budget import RecordShapeError, check, check_cells
from helios.corpus.record import Parsed, parse_record, record_id
from helios.corpus.rejects import Rejection
from helios.corpus.shape import PIECE_CELLS, shaped_table
from helios.corpus.source import SourceFile
from helios.errors import RecordError

_IDS = {"id", "_id", "uid"}
_BATCH_ROWS = 256
_PIECE_TEXT = 8 << 20
"""Characters of a piece of a large table, about."""


def detect(source: SourceFile) -> bool:
    """By the file's first bytes or its ending."""
    return source.head.startswith(b"PAR1") or source.suffix in (".parquet", ".pq")


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Records where the columns are those of a record (id, and text or header and rows), else one table."""
    try:
        with source.seekable() as raw, pq.ParquetFile(raw) as file:
            names = file.schema_arrow.names
            if _IDS & set(names) and ("text" in names or {"header", "rows"} <= set(names)):
                yield from _read_records(source, file, rejection)
            else:
                yield from _read_table(source, file)
    except MemoryError:
        raise
    except RecordShapeError as error:
        rejection.reject(source.error(error))
    except (pa.ArrowException, OSError) as error:
        rejection.reject(RecordError(source.path, None, f"not a readable Parquet file ({error})"))


def _read_records(source: SourceFile, file: pq.ParquetFile, rejection: Rejection) -> Iterator[Parsed]:
    number = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
        for value in batch.to_pylist():
            number += 1
            source.reached(number, file.metadata.num_rows)
            try:
                yield Parsed(parse_record(value, budget=source.budget), number)
            except RecordShapeError as error:
                found = record_id(value)
                rejection.reject(
                    RecordError(source.path, number, str(error), record_id=found),
                    json.dumps(value, default=str),
                )


def _read_table(source: SourceFile, file: pq.ParquetFile) -> Iterator[Parsed]:
    """The table of a file, a large one in pieces."""
    names = file.schema_arrow.names
    if not names:
        raise pa.ArrowInvalid("no columns")
    total = file.metadata.num_rows
    check_cells(source.budget, source.size, len(names) * total, "cells of the table")
    rows: list[tuple[str, ...]] = []
    length = number = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
        if len(rows) * len(names) > PIECE_CELLS or length > _PIECE_TEXT:
            source.reached(number, total)
            yield Parsed(shaped_table(source.base_id, source.title, names, rows, budget=source.budget), more=True)
            rows, length = [], 0
        columns = [[_text(value) for value in column.to_pylist()] for column in batch.columns]
        rows.extend(zip(*columns, strict=True))
        number += batch.num_rows
        length += sum(len(value) for column in columns for value in column if isinstance(value, str))
        check(source.budget, "text_mb", length, "text of the table")
    yield Parsed(shaped_table(source.base_id, source.title, names, rows, budget=source.budget))


def _text(value: Any) -> Any:
    """Plain values stay; times become ISO, bytes text or hexadecimal, nested values JSON."""
    match value:
        case datetime.datetime() if value.time() == datetime.time() and value.tzinfo is None:
            return value.date().isoformat()
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case bytes():
            return value.decode("utf-8") if _is_utf8(value) else value.hex()
        case dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=str)
    return value


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

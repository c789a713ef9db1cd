"""Records of any shape as passages, by the fields that `--map` names: JSON, JSON lines, CSV and Parquet.

A file in which no record has any of these fields is read as it is without a map.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import ijson
import pyarrow as pa
import pyarrow.parquet as pq

from helios.corpus.budget import RecordShapeError, check
from helios.corpus.mapping import field_values
from helios.corpus.readers import data, delimited, parquet
from helios.corpus.readers.ottqa import Bounded
from helios.corpus.record import Parsed, field_value
from helios.corpus.rejects import Rejection
from helios.corpus.source import DAMAGED, SourceFile
from helios.errors import RecordError

_PROBED_RECORDS = 1000
"""Records that say which fields a file has."""
_BATCH_ROWS = 256
_UNREADABLE = (*DAMAGED, ijson.JSONError, UnicodeDecodeError, pa.ArrowException, OSError, RecordShapeError)
Numbered = tuple[int | None, object]
"""A record with its line, or its number in the file; None where it has neither."""


def detect(source: SourceFile) -> bool:
    """Where there is a map, by the kind of file."""
    if source.mapping is None or source.suffix in data.YAML:
        return False
    return any(kind.detect(source) for kind in (parquet, data, delimited))


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """A passage for every record; one that lacks a field is rejected alone."""
    assert source.mapping is not None
    try:
        names = _names(source)
        if unknown := source.mapping.unknown(names):
            if not source.mapping_is_strict and not set(source.mapping.roles().values()) & set(names):
                yield from _unmapped(source, rejection)
                return
            raise RecordShapeError(unknown)
        for number, (line, record) in enumerate(_records(source, rejection), 1):
            default_id = f"{source.base_id}#passage-{number}"
            try:
                yield Parsed(source.mapping.passage(record, default_id=default_id, budget=source.budget), line)
            except RecordShapeError as error:
                written = json.dumps(record, ensure_ascii=False, default=str)
                rejection.reject(RecordError(source.path, line, str(error)), written)
    except DAMAGED as error:
        rejection.reject(source.damaged(error))
    except (ijson.JSONError, UnicodeDecodeError) as error:
        rejection.reject(RecordError(source.path, None, f"not valid JSON: {' '.join(str(error).split())}"))
    except (pa.ArrowException, OSError) as error:
        rejection.reject(RecordError(source.path, None, f"not a readable Parquet file ({error})"))
    except RecordShapeError as error:
        rejection.reject(source.error(error))


def _unmapped(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    from helios.corpus.readers.registry import FORMATS

    known = next(known for known in FORMATS if known.detect(source))
    rejection.begin(source.name, known.name)
    yield from known.read(source, rejection)


def _names(source: SourceFile) -> Mapping[str, object]:
    """The fields of the first records, in order, also of those before damage."""
    names: dict[str, object] = {}
    try:
        for _, record in islice(_records(source, Rejection("skip")), _PROBED_RECORDS):
            if isinstance(record, Mapping):
                names.update(dict.fromkeys(field_values(record)))
    except _UNREADABLE:
        if not names:
            raise
    return names


def _records(source: SourceFile, rejection: Rejection) -> Iterator[Numbered]:
    if parquet.detect(source):
        return _of_parquet(source)
    if delimited.detect(source):
        return _of_rows(source, rejection)
    if source.suffix in data.LINES:
        return data.lines(source, rejection)
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return _of_array(source)
    return ((None, record) for record in _found(data.whole(source, rejection)))


def _of_array(source: SourceFile) -> Iterator[Numbered]:
    with source.stream() as file:
        bounded = Bounded(file, source)
        for value in ijson.items(bounded, "item", use_float=True):
            bounded.begin_record()
            yield None, value


def _found(value: object) -> list[Any]:
    """The records of a JSON value: the longest list of objects in it, or else the value itself."""
    best: list[Any] = []
    left = [value]
    while left:
        inner = left.pop()
        if isinstance(inner, Mapping):
            left.extend(inner.values())
        elif isinstance(inner, list) and len(inner) > len(best) and any(isinstance(one, Mapping) for one in inner):
            best = inner
    return best or [value]


def _of_rows(source: SourceFile, rejection: Rejection) -> Iterator[Numbered]:
    """Objects of the rows below the first one, which has the names."""
    rows = delimited.streamed_rows(source, rejection)
    _, header = next(((line, row) for line, row in rows if any(row)), (0, ()))
    for line, row in rows:
        if any(row):
            if len(row) > len(header):
                check(source.budget, "cells", len(row), f"cells of line {line}")
            cells = (*row, *[""] * (len(header) - len(row)))
            names = (*header, *(f"column {number}" for number in range(len(header) + 1, len(cells) + 1)))
            yield line, {name: field_value(cell) for name, cell in zip(names, cells, strict=True) if name}


def _of_parquet(source: SourceFile) -> Iterator[Numbered]:
    number = 0
    with source.seekable() as raw, pq.ParquetFile(raw) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
            for record in batch.to_pylist():
                number += 1
                source.reached(number, file.metadata.num_rows)
                yield number, record

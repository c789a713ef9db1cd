"""CSV and TSV: the tables of a file, mostly one; encoding, delimiter, title lines and header are found out.

The encoding comes from charset-normalizer where it is not UTF-8; Python's csv module parses, under the
delimiter that splits the beginning of the file most evenly. A large file is read row by row.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator

from helios.corpus.budget import RecordShapeError, check
from helios.corpus.encoding import broken_reason, decode, encoding_of, is_broken
from helios.corpus.grid import Row, grid_records, sheet_grids
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import DAMAGED, SourceFile
from helios.corpus.streamed import streamed_tables
from helios.errors import RecordError

_SUFFIXES = (".csv", ".tsv", ".tab")
_DELIMITERS = (",", "\t", ";", "|")
_PROBED_ROWS = 100
_FIELD_LIMIT = 1 << 30
_SNIFFED = 1 << 20
"""Characters that the delimiter is found out from."""
_STREAMED_BYTES = 4 << 20
"""A larger file is read row by row; a packed one if it is larger than an eighth of that."""


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in _SUFFIXES


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """The tables of the file; rows that cannot be parsed or decoded are rejected one by one."""
    try:
        if source.size > (_STREAMED_BYTES // 8 if source.packed else _STREAMED_BYTES):
            yield from streamed_tables(source, streamed_rows(source, rejection))
        else:
            yield from table_records(source, decode(source.read()), rejection)
    except DAMAGED as error:
        rejection.reject(source.damaged(error))
    except RecordError as error:
        rejection.reject(error)
    except RecordShapeError as error:
        rejection.reject(source.error(error))


def table_records(source: SourceFile, text: str, rejection: Rejection) -> Iterator[Parsed]:
    """The tables of decoded text, the first with the file's id."""
    lines, rows = [], []
    cells = 0
    delimiter = sniff_delimiter(text[:_SNIFFED], suffix=source.suffix)
    for line, row in _rows(source, io.StringIO(text, newline=""), delimiter, rejection):
        cells += len(row)
        check(source.budget, "cells", cells, "cells of the table")
        lines.append(line)
        rows.append(tuple(map(str.strip, row)))
    for record in grid_records(source.base_id, source.title, sheet_grids(rows), budget=source.budget):
        yield Parsed(record, lines[0])


def streamed_rows(source: SourceFile, rejection: Rejection) -> Iterator[tuple[int, Row]]:
    """(line, cells) of every row as it is read; a row that cannot be parsed or decoded is rejected alone."""
    encoding, errors = encoding_of(_chunks(source))
    with io.TextIOWrapper(source.stream(), encoding, errors, newline="") as text:
        delimiter = sniff_delimiter(text.read(_SNIFFED), suffix=source.suffix)
    with io.TextIOWrapper(source.stream(), encoding, errors, newline="") as text:
        for line, row in _rows(source, text, delimiter, rejection):
            check(source.budget, "cells", len(row), f"cells of line {line}")
            yield line, tuple(map(str.strip, row))


def _chunks(source: SourceFile) -> Iterator[bytes]:
    """The file's content bit by bit; RecordShapeError for too much of it."""
    size = 0
    with source.stream() as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
            check(source.budget, "file_mb", size, "size of the file")
            yield chunk


def sniff_delimiter(text: str, *, suffix: str = "") -> str:
    """The delimiter that gives most rows the same number of cells, more than one; by the ending in doubt."""
    default = "," if suffix == ".csv" else "\t"
    best, best_score = default, 0.0
    for delimiter in (default, *(other for other in _DELIMITERS if other != default)):
        widths: Counter[int] = Counter()
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            for row in reader:
                widths[len(row)] += 1
                if widths.total() >= _PROBED_ROWS:
                    break
        except csv.Error:
            pass
        del widths[0]
        if not widths:
            continue
        width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1]))
        score = 0.0 if width < 2 else count / widths.total() + min(width, 20) / 100
        if score > best_score + 1e-9:
            best, best_score = delimiter, score
    return best


def _rows(
    source: SourceFile, text: Iterable[str], delimiter: str, rejection: Rejection
) -> Iterator[tuple[int, list[str]]]:
    """(line of the start, cells) of every row that is well formed."""
    lines = _Lines(text)
    old_limit = csv.field_size_limit(_FIELD_LIMIT)
    try:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            start = lines.number + 1
            lines.raw.clear()
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                _reject(source, start, f"not valid CSV: {error}", lines, rejection)
                continue
            raw = "".join(lines.raw)
            if is_broken(raw):
                _reject(source, start, broken_reason(raw), lines, rejection)
                continue
            yield start, row
    finally:
        csv.field_size_limit(old_limit)


def _reject(source: SourceFile, line: int, reason: str, lines: "_Lines", rejection: Rejection) -> None:
    raw = "".join(lines.raw).rstrip("\r\n")
    rejection.reject(RecordError(source.path, line, reason, record_id=source.base_id), raw)


class _Lines:
    """Physical lines for the csv parser; keeps those of the row in work, for the rejects file."""

    def __init__(self, text: Iterable[str]) -> None:
        self._lines = iter(text)
        self.number = 0
        self.raw: list[str] = []

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        self.raw.append(line)
        return line

"""XLSX: the tables of every sheet; merged cells are filled, formulas give the value that was last computed.

A formula that was never computed (a file written by a program that does not calculate) is an empty cell. A book with a
large sheet is read row by row, and the first rows of that sheet say what its titles, header and columns are.
"""

import datetime
import posixpath
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import IO, Any

import openpyxl

from helios.corpus.budget import RecordShapeError
from helios.corpus.grid import Area, Grid, Row, areas, grid_records, split_grid_by, with_notes
from helios.corpus.readers.extra import parsing
from helios.corpus.readers.workbook_parts import Part, checked_parts
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.shape import cell_text
from helios.corpus.source import SourceFile
from helios.corpus.streamed import streamed_tables

_SUFFIXES = (".xlsx", ".xlsm")
STREAMED_CELLS = 1 << 20
"""A book with a sheet of more cells is read row by row, if rows and cells are in order."""


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in _SUFFIXES


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables in sheet order, those of a large sheet in pieces; chart sheets and empty sheets are passed over."""
    try:
        with source.seekable() as raw:
            with parsing("XLSX"):
                parts = checked_parts(source, raw)
            with closing(_opened(raw, read_only=_is_streamed(parts.values()))) as book:
                if not book.read_only:
                    yield from _read_whole(source, book)
                    return
                if _tells_sheets_apart(book, parts):
                    yield from _read_on(source, book, parts)
                    return
            with closing(_opened(raw, read_only=False)) as book:
                yield from _read_whole(source, book)
    except RecordShapeError as error:
        rejection.reject(source.error(error))


def _opened(raw: IO[bytes], *, read_only: bool) -> Any:
    with parsing("XLSX"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return openpyxl.load_workbook(raw, data_only=True, read_only=read_only)


def _read_whole(source: SourceFile, book: Any) -> Iterator[Parsed]:
    """The tables of a book whose cells are all in memory."""
    for sheet in book.worksheets:
        spans = [(area.min_row - 1, area.min_col - 1, area.max_row, area.max_col) for area in sheet.merged_cells.ranges]
        cells = ([_cell(cell) for cell in row] for row in sheet.iter_rows())
        grids = _sheet_grids([tuple(map(cell_text, row)) for row in _filled(cells, spans)], spans)
        base_id = f"{source.base_id}#{sheet.title}"
        for record in grid_records(base_id, source.title, grids, section=sheet.title, budget=source.budget):
            yield Parsed(record)


def _read_on(source: SourceFile, book: Any, parts: Mapping[str, Part]) -> Iterator[Parsed]:
    """The tables of a book that is read row by row; the position in the file goes along."""
    sheets = [(sheet, parts[_part_of(sheet)]) for sheet in book.worksheets]
    total, before = sum(part.written for _, part in sheets), 0
    for sheet, part in sheets:
        for parsed, row in _sheet_records(source, sheet, part):
            source.reached(before + part.written * row // max(1, part.rows), total)
            yield parsed
        before += part.written


def _is_streamed(parts: Iterable[Part]) -> bool:
    """Whether a sheet is large, and all of them can be read in the order of the file."""
    parts = list(parts)
    return max((part.written for part in parts), default=0) > STREAMED_CELLS and all(part.in_order for part in parts)


def _tells_sheets_apart(book: Any, parts: Mapping[str, Part]) -> bool:
    """Whether every sheet has a name of its own and a part that is known."""
    titles = {sheet.title.casefold() for sheet in book.worksheets}
    return (
        "" not in titles and len(titles) == len(book.worksheets) and all(_part_of(s) in parts for s in book.worksheets)
    )


def _part_of(sheet: Any) -> str:
    """The name of a sheet's part, which openpyxl knows and does not say."""
    return posixpath.normpath(str(sheet._worksheet_path)).lstrip("/")  # noqa: SLF001


def _sheet_records(source: SourceFile, sheet: Any, part: Part) -> Iterator[tuple[Parsed, int]]:
    """The tables of a sheet that is read row by row, each with the row that was last read."""
    base_id = f"{source.base_id}#{sheet.title}"
    cells = islice(_rows(sheet), part.rows)  # blank ones behind the last cell may be a million
    texts = (tuple(map(cell_text, row)) for row in _filled(cells, part.merged))
    rows = (row + ("",) * (part.columns - len(row)) if any(row) else () for row in texts)
    if part.written <= STREAMED_CELLS:
        grids = _sheet_grids(list(rows), part.merged)
        for record in grid_records(base_id, source.title, grids, section=sheet.title, budget=source.budget):
            yield Parsed(record), part.rows
        return
    numbered = _Counted(rows)
    depth = partial(_header_depth, part.merged)
    for parsed in streamed_tables(source, numbered, base_id=base_id, section=sheet.title, header_depth=depth):
        yield parsed._replace(line=None), numbered.row


class _Counted:
    """Rows with their numbers, of which the last one taken is known."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = enumerate(rows, 1)
        self.row = 0

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return self

    def __next__(self) -> tuple[int, Row]:
        self.row, cells = next(self._rows)
        return self.row, cells


def _rows(sheet: Any) -> Iterator[list[object]]:
    """The values of a sheet row by row; RecordShapeError where it is damaged."""
    sheet.reset_dimensions()  # what a sheet says of its size may be wrong
    with parsing("XLSX"):
        for row in sheet.iter_rows():
            yield list(map(_cell, row))


def _filled(rows: Iterable[list[object]], merged: Iterable[tuple[int, int, int, int]]) -> Iterator[list[object]]:
    """Rows whose merged ranges hold the value of their first cell throughout."""
    begins: dict[int, list[tuple[int, int, int]]] = {}
    for top, left, bottom, right in merged:
        begins.setdefault(top, []).append((left, bottom, right))
    open_: list[tuple[int, int, int, object]] = []
    for number, row in enumerate(rows):
        open_ = [one for one in open_ if one[1] > number]
        for left, bottom, right in begins.get(number, ()):
            open_.append((left, bottom, right, row[left] if left < len(row) else None))
        for left, _, right, value in open_:
            row += [None] * (right - len(row))
            row[left:right] = [value] * (right - left)
        yield row


def _sheet_grids(rows: list[Row], spans: Sequence[tuple[int, int, int, int]]) -> Iterator[Grid]:
    """The tables of a sheet that is read whole."""
    for area in areas(rows):
        grid = split_grid_by(rows, area, partial(_header_depth, spans))
        yield with_notes(grid, rows, area)


def _header_depth(spans: Sequence[tuple[int, int, int, int]], area: Area, header: int) -> int:
    """Header rows: a cell merged downwards spans them all, one merged sideways has names below it."""
    if header >= len(area.rows):
        return 1
    row = area.rows[header]
    depth = 1
    for top, left, bottom, right in spans:
        if top == row and left in area.columns:
            depth = max(depth, bottom - top, 2 if right - left > 1 and bottom - top == 1 else 1)
    return min(depth, len(area.rows) - header)


def _cell(cell: Any) -> object:
    """The value as a reader of the sheet sees it: ISO dates, percentages as such."""
    value = cell.value
    match value:
        case datetime.datetime() if value.time() == datetime.time():
            return value.date().isoformat()
        case datetime.datetime():
            return value.isoformat(sep=" ", timespec="seconds")
        case datetime.date() | datetime.time() | datetime.timedelta():
            return str(value)
        case int() | float() if not isinstance(value, bool) and "%" in str(cell.number_format):
            return f"{value * 100:.10g}%"
    return value

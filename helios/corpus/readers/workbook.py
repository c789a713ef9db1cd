"""XLSX: one table a sheet; merged cells are filled, formulas give the value that was last computed.

A formula that was never computed (a file written by a program that does not calculate) is an empty cell.
"""

import datetime
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

import openpyxl
from lxml import etree
from openpyxl.utils import range_boundaries
from openpyxl.utils.exceptions import InvalidFileException

from helios.corpus.budget import RecordShapeError, check, check_expansion
from helios.corpus.grid import Grid, split_grid
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.shape import shaped_table
from helios.corpus.source import SourceFile
from helios.errors import RecordError

_SUFFIXES = (".xlsx", ".xlsm")
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, InvalidFileException),
    *(KeyError, ValueError, TypeError, AttributeError, SyntaxError, OSError, EOFError),
)
"""What openpyxl and the XML parser below it raise on damaged files (its parse errors are SyntaxErrors)."""


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in _SUFFIXES


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables in sheet order; chart sheets and empty sheets are passed over."""
    try:
        _check_archive(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            book = openpyxl.load_workbook(source.path, data_only=True)
    except RecordShapeError as error:
        rejection.reject(source.error(error))
        return
    except _UNREADABLE as error:
        rejection.reject(RecordError(source.path, None, f"not a readable XLSX file ({error})"))
        return
    try:
        for sheet in book.worksheets:
            grid = _sheet_grid(sheet)
            if grid is not None:
                yield Parsed(_sheet_table(source, sheet.title, grid))
    except RecordShapeError as error:
        rejection.reject(source.error(error))
    finally:
        book.close()


def _check_archive(source: SourceFile) -> None:
    """RecordShapeError where the parts unpack to too much, or a sheet reaches over too many cells.

    openpyxl makes an object of every cell that a merged range covers.
    """
    with zipfile.ZipFile(source.path) as archive:
        parts = archive.infolist()
        size = sum(part.file_size for part in parts)  # zipfile unpacks no more of a part than this says
        check(source.budget, "file_mb", size, "size of the unpacked file")
        check_expansion(source.budget, source.size, size, "unpacked data")
        for part in parts:
            with archive.open(part) as content:
                check(source.budget, "cells", _reach(content), f"cells that {part.filename} reaches over")


def _reach(content: IO[bytes]) -> int:
    """Cells of the smallest rectangle from A1 that holds all cells of a sheet, and those of its merged ranges."""
    rows = columns = merged = 0
    try:
        for _, element in etree.iterparse(content, tag=("{*}c", "{*}mergeCell"), resolve_entities=False):
            left, top, right, bottom = range_boundaries(element.get("r") or element.get("ref") or "A1")
            if element.get("ref"):
                merged += (right - left + 1) * (bottom - top + 1)
            rows, columns = max(rows, bottom), max(columns, right)
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    except (etree.XMLSyntaxError, ValueError, TypeError):
        pass  # no sheet, or openpyxl will say what is wrong with it
    return max(rows * columns, merged)


def _sheet_table(source: SourceFile, sheet: str, grid: Grid) -> Any:
    title, *notes = grid.titles or (source.stem.replace("_", " "),)
    intro = "\n".join(notes)
    table_id = f"{source.base_id}#{sheet}"
    return shaped_table(table_id, title, grid.header, grid.rows, section=sheet, intro=intro, budget=source.budget)


def _sheet_grid(sheet: Any) -> Grid | None:
    """The sheet's cells without blank rows and outer blank columns; None if it has no value."""
    rows = [[_cell(cell) for cell in row] for row in sheet.iter_rows()]
    spans = [(area.min_row - 1, area.min_col - 1, area.max_row, area.max_col) for area in sheet.merged_cells.ranges]
    for top, left, bottom, right in spans:
        value = rows[top][left] if top < len(rows) and left < len(rows[top]) else None
        for row in rows[top:bottom]:
            row[left:right] = [value] * len(row[left:right])
    used_rows = [number for number, row in enumerate(rows) if any(_present(cell) for cell in row)]
    if not used_rows:
        return None
    used = [
        column
        for column in range(max(map(len, rows)))
        if any(column < len(rows[number]) and _present(rows[number][column]) for number in used_rows)
    ]
    cells = [rows[number][used[0] : used[-1] + 1] for number in used_rows]
    grid = split_grid(cells)
    depth = _header_depth(spans, used_rows, grid.first_row - bool(grid.header))
    return split_grid(cells, header_rows=depth) if depth > 1 else grid


def _header_depth(spans: list[tuple[int, int, int, int]], used_rows: list[int], header: int) -> int:
    """Header rows: a cell merged downwards spans them all, one merged sideways has names below it."""
    if header >= len(used_rows):
        return 1
    row = used_rows[header]
    depth = 1
    for top, left, bottom, right in spans:
        if top == row:
            depth = max(depth, bottom - top, 2 if right - left > 1 and bottom - top == 1 else 1)
    return min(depth, len(used_rows) - header)


def _present(value: object) -> bool:
    return value is not None and value != ""


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

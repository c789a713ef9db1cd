"""XLSX: one table a sheet; merged cells are filled, formulas give the value that was last computed.

A formula that was never computed (a file written by a program that does not calculate) is an empty cell.
"""

import datetime
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            book = openpyxl.load_workbook(source.path, data_only=True)
    except _UNREADABLE as error:
        rejection.reject(RecordError(source.path, None, f"not a readable XLSX file ({error})"))
        return
    try:
        for sheet in book.worksheets:
            grid = _sheet_grid(sheet)
            if grid is not None:
                yield Parsed(_sheet_table(source, sheet.title, grid))
    finally:
        book.close()


def _sheet_table(source: SourceFile, sheet: str, grid: Grid) -> Any:
    title, *notes = grid.titles or (source.stem.replace("_", " "),)
    return shaped_table(
        f"{source.base_id}#{sheet}", title, grid.header, grid.rows, section=sheet, intro="\n".join(notes)
    )


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

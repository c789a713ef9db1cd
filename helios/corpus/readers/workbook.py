"""XLSX: the tables of every sheet; merged cells are filled, formulas give the value that was last computed.

A formula that was never computed (a file written by a program that does not calculate) is an empty cell.
"""

import datetime
import posixpath
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

import openpyxl
from lxml import etree
from openpyxl.utils import range_boundaries
from openpyxl.utils.exceptions import InvalidFileException

from helios.corpus.budget import RecordShapeError, check, check_expansion
from helios.corpus.grid import Area, Grid, areas, grid_records, split_grid, with_notes
from helios.corpus.readers.extra import check_parts
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.shape import cell_text
from helios.corpus.source import SourceFile
from helios.errors import RecordError

_SUFFIXES = (".xlsx", ".xlsm")
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, InvalidFileException),
    *(KeyError, ValueError, TypeError, AttributeError, SyntaxError, OSError, EOFError),
)
"""What openpyxl and the XML parser below it raise on damaged files (its parse errors are SyntaxErrors)."""
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in _SUFFIXES


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables in sheet order; chart sheets and empty sheets are passed over."""
    try:
        _check_archive(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            book = openpyxl.load_workbook(source.seekable(), data_only=True)
    except RecordShapeError as error:
        rejection.reject(source.error(error))
        return
    except _UNREADABLE as error:
        rejection.reject(RecordError(source.path, None, f"not a readable XLSX file ({error})"))
        return
    try:
        for sheet in book.worksheets:
            base_id, grids = f"{source.base_id}#{sheet.title}", _sheet_grids(sheet)
            for record in grid_records(base_id, source.title, grids, section=sheet.title, budget=source.budget):
                yield Parsed(record)
    except RecordShapeError as error:
        rejection.reject(source.error(error))
    finally:
        book.close()


def _check_archive(source: SourceFile) -> None:
    """RecordShapeError where the parts unpack to too much, or the sheets reach over too many cells.

    openpyxl makes an object of every cell, those that a merged range covers too, and reads a part once for each sheet
    that names it.
    """
    size = cells = 0
    with source.seekable() as raw, zipfile.ZipFile(raw) as archive:
        check_parts(source, archive)
        named = _sheets_by_part(archive)
        for part in archive.infolist():
            times = max(1, named[part.filename])
            size += times * part.file_size
            check_expansion(source.budget, source.size, size, f"unpacked data, {part.filename} read {times:,} times")
            with archive.open(part) as content:
                cells += times * _reach(content)
            check(source.budget, "cells", cells, f"cells that the sheets up to {part.filename} reach over")


def _sheets_by_part(archive: zipfile.ZipFile) -> Counter[str]:
    """How many sheets of the book name each part."""
    targets = {
        one.get("Id"): one.get("Target", "") for one in _elements(archive, "xl/_rels/workbook.xml.rels", "Relationship")
    }
    sheets = (targets.get(one.get(_RELATION), "") for one in _elements(archive, "xl/workbook.xml", "sheet"))
    return Counter(posixpath.normpath(posixpath.join("/xl", target)).lstrip("/") for target in sheets)


def _elements(archive: zipfile.ZipFile, part: str, name: str) -> list[Any]:
    """The elements of a name in a part; none where there is no such part or it cannot be read."""
    try:
        with archive.open(part) as content:
            return [one for _, one in etree.iterparse(content, tag=f"{{*}}{name}", resolve_entities=False)]
    except (KeyError, etree.XMLSyntaxError, *_UNREADABLE):
        return []  # openpyxl will say what is wrong with it


def _reach(content: IO[bytes]) -> int:
    """How many cells a sheet is about, whichever is most: those of the smallest rectangle from A1 that holds all of
    them, those of its merged ranges, or those that it writes, one place again and again.
    """
    rows = columns = merged = written = 0
    try:
        for _, element in etree.iterparse(content, tag=("{*}c", "{*}mergeCell"), resolve_entities=False):
            left, top, right, bottom = range_boundaries(element.get("r") or element.get("ref") or "A1")
            if element.get("ref"):
                merged += (right - left + 1) * (bottom - top + 1)
            rows, columns, written = max(rows, bottom), max(columns, right), written + 1
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    except (etree.XMLSyntaxError, ValueError, TypeError):
        pass  # no sheet, or openpyxl will say what is wrong with it
    return max(rows * columns, merged, written)


def _sheet_grids(sheet: Any) -> Iterator[Grid]:
    """The tables of a sheet, mostly one."""
    cells = [[_cell(cell) for cell in row] for row in sheet.iter_rows()]
    spans = [(area.min_row - 1, area.min_col - 1, area.max_row, area.max_col) for area in sheet.merged_cells.ranges]
    for top, left, bottom, right in spans:
        value = cells[top][left] if top < len(cells) and left < len(cells[top]) else None
        for row in cells[top:bottom]:
            row[left:right] = [value] * len(row[left:right])
    rows = [tuple(map(cell_text, row)) for row in cells]
    for area in areas(rows):
        own = area.cells(rows)
        grid = split_grid(own)
        depth = _header_depth(spans, area, grid.first_row - bool(grid.header))
        if depth > 1 and not grid.is_form:
            grid = split_grid(own, header_rows=depth)
        yield with_notes(grid, rows, area)


def _header_depth(spans: list[tuple[int, int, int, int]], area: Area, header: int) -> int:
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

"""XLSX: the tables of every sheet; merged cells are filled, formulas give the value that was last computed.

A formula that was never computed (a file written by a program that does not calculate) is an empty cell. A large sheet
is read row by row: its first rows say what its titles, header and columns are.
"""

import datetime
import posixpath
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple
from xml.parsers import expat

import openpyxl
from lxml import etree
from openpyxl.utils import get_column_letter, range_boundaries

from helios.corpus.budget import RecordShapeError, check_cells, check_expansion
from helios.corpus.grid import Area, Grid, Row, areas, grid_records, split_grid, with_notes
from helios.corpus.readers.extra import check_parts, parsing
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.shape import cell_text
from helios.corpus.source import SourceFile
from helios.corpus.streamed import streamed_tables

_SUFFIXES = (".xlsx", ".xlsm")
STREAMED_CELLS = 1 << 19
"""A sheet of more cells is read row by row."""
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in _SUFFIXES


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables in sheet order, those of a large sheet in pieces; chart sheets and empty sheets are passed over."""
    try:
        with source.seekable() as raw:
            with parsing("XLSX"), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                parts = _checked(source, raw)
                book = openpyxl.load_workbook(raw, data_only=True, read_only=True)
            yield from _records(source, book, parts)
    except RecordShapeError as error:
        rejection.reject(source.error(error))


def _records(source: SourceFile, book: Any, parts: Mapping[str, "Part"]) -> Iterator[Parsed]:
    """What the sheets hold; the position in the file goes along."""
    sheets = [(sheet, parts.get(_part_of(sheet), NO_PART)) for sheet in book.worksheets]
    total, before = sum(part.cells for _, part in sheets), 0
    for sheet, part in sheets:
        for parsed, row in _sheet_records(source, sheet, part):
            done = before + part.cells * row // max(1, part.rows)
            source.position.consumed = source.size * done // max(1, total)
            yield parsed
        before += part.cells


class Part(NamedTuple):
    """What a sheet's part of the archive reaches over, and its merged ranges: top, left, bottom, right, from 0."""

    cells: int
    rows: int
    columns: int
    merged: tuple[tuple[int, int, int, int], ...]


NO_PART = Part(0, 0, 0, ())


def _part_of(sheet: Any) -> str:
    """The name of a sheet's part, which openpyxl knows and does not say."""
    return posixpath.normpath(str(sheet._worksheet_path)).lstrip("/")  # noqa: SLF001


def _checked(source: SourceFile, raw: IO[bytes]) -> dict[str, Part]:
    """The parts that sheets are in; RecordShapeError where they unpack to too much, or reach over too many cells.

    A part is read once for each sheet that names it.
    """
    size = cells = 0
    parts = {}
    with zipfile.ZipFile(raw) as archive:
        check_parts(source, archive)
        named = _sheets_by_part(archive)
        for part in archive.infolist():
            times = max(1, named[part.filename])
            size += times * part.file_size
            check_expansion(source.budget, source.size, size, f"unpacked data, {part.filename} read {times:,} times")
            with archive.open(part) as content:
                reach = _reach(content)
            if named[part.filename]:
                parts[part.filename] = reach
            cells += times * reach.cells
            what = f"cells that the sheets up to {part.filename} reach over"
            check_cells(source.budget, source.size, cells, what)
    return parts


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
    except (KeyError, etree.XMLSyntaxError, zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError):
        return []  # openpyxl will say what is wrong with it


def _reach(content: IO[bytes]) -> Part:
    """How many cells a part is about, whichever is most: those of the smallest rectangle from A1 that holds all of
    them, those of its merged ranges, or those that it writes, one place again and again.
    """
    extent = _Extent()
    parser = expat.ParserCreate()
    parser.StartElementHandler = extent.element
    with suppress(expat.ExpatError, ValueError, TypeError):  # no sheet, or openpyxl will say what is wrong with it
        parser.ParseFile(content)
    columns = max(extent.columns.values(), default=0)
    cells = max(extent.rows * columns, extent.covered, extent.written)
    return Part(cells, extent.rows, columns, tuple(extent.merged))


class _Extent:
    """What the cells and merged ranges of a part reach over, one element after the other."""

    def __init__(self) -> None:
        self.rows = self.covered = self.written = 0
        self.columns: dict[str, int] = {}
        """By letters, as they are written."""
        self.merged: list[tuple[int, int, int, int]] = []

    def element(self, name: str, attributes: dict[str, str]) -> None:
        """Count a cell or a range; ValueError for a reference that is none."""
        local = name.rpartition(":")[2]
        if local == "c":
            self.written += 1
            reference = attributes.get("r", "A1")
            letters = reference.rstrip("0123456789")
            if letters in self.columns and len(letters) < len(reference):
                self.rows = max(self.rows, int(reference[len(letters) :]))
            else:
                self._reached(letters, range_boundaries(reference))
        elif local == "mergeCell":
            left, top, right, bottom = area = range_boundaries(attributes.get("ref", "A1"))
            self.covered += (right - left + 1) * (bottom - top + 1)
            self.merged.append((top - 1, left - 1, bottom, right))
            self._reached(get_column_letter(right), area)

    def _reached(self, letters: str, area: tuple[int, int, int, int]) -> None:
        _, _, right, bottom = area
        self.rows = max(self.rows, bottom)
        self.columns[letters] = max(right, self.columns.get(letters, 0))


def _sheet_records(source: SourceFile, sheet: Any, part: Part) -> Iterator[tuple[Parsed, int]]:
    """The tables of a sheet, mostly one, each with the row that was last read."""
    base_id = f"{source.base_id}#{sheet.title}"
    rows = (tuple(map(cell_text, row)) for row in _filled(_rows(sheet), part.merged))
    if part.cells <= STREAMED_CELLS:
        grids = _sheet_grids([row + ("",) * (part.columns - len(row)) for row in rows], part.merged)
        for record in grid_records(base_id, source.title, grids, section=sheet.title, budget=source.budget):
            yield Parsed(record), part.rows
        return
    numbered = _Counted(rows)
    for parsed in streamed_tables(source, numbered, base_id=base_id, section=sheet.title):
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
        own = area.cells(rows)
        grid = split_grid(own)
        depth = _header_depth(spans, area, grid.first_row - bool(grid.header))
        if depth > 1 and not grid.is_form:
            grid = split_grid(own, header_rows=depth)
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

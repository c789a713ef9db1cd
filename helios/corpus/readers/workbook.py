"""XLSX: the tables of every sheet; merged cells are filled, formulas give the value that was last computed.

A formula that was never computed (a file written by a program that does not calculate) is an empty cell. A book with a
large sheet is read row by row, and the first rows of that sheet say what its titles, header and columns are.
"""

import datetime
import posixpath
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import IO, Any, NamedTuple
from xml.parsers import expat

import openpyxl
from lxml import etree
from openpyxl.utils import get_column_letter, range_boundaries

from helios.corpus.budget import RecordShapeError, check_cells, check_expansion
from helios.corpus.grid import Area, Grid, Row, areas, grid_records, split_grid_by, with_notes
from helios.corpus.readers.extra import check_parts, parsing
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.shape import cell_text
from helios.corpus.source import SourceFile
from helios.corpus.streamed import streamed_tables

_SUFFIXES = (".xlsx", ".xlsm")
STREAMED_CELLS = 1 << 20
"""A book with a sheet of more cells is read row by row, if rows and cells are in order."""
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in _SUFFIXES


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables in sheet order, those of a large sheet in pieces; chart sheets and empty sheets are passed over."""
    try:
        with source.seekable() as raw:
            with parsing("XLSX"):
                parts = _checked(source, raw)
            book = _opened(raw, read_only=_is_streamed(parts.values()))
            if book.read_only and not _tells_sheets_apart(book, parts):
                book.close()
                book = _opened(raw, read_only=False)
            yield from _read_on(source, book, parts) if book.read_only else _read_whole(source, book)
            book.close()
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


def _read_on(source: SourceFile, book: Any, parts: Mapping[str, "Part"]) -> Iterator[Parsed]:
    """The tables of a book that is read row by row; the position in the file goes along."""
    sheets = [(sheet, parts[_part_of(sheet)]) for sheet in book.worksheets]
    total, before = max(1, sum(part.written for _, part in sheets)), 0
    for sheet, part in sheets:
        for parsed, row in _sheet_records(source, sheet, part):
            if not source.depth:
                done = before + part.written * row // max(1, part.rows)
                source.position.consumed = source.size * done // total
            yield parsed
        before += part.written


def _is_streamed(parts: Iterable["Part"]) -> bool:
    """Whether a sheet is large, and all of them can be read in the order of the file."""
    parts = list(parts)
    return max((part.written for part in parts), default=0) > STREAMED_CELLS and all(part.in_order for part in parts)


def _tells_sheets_apart(book: Any, parts: Mapping[str, "Part"]) -> bool:
    """Whether every sheet has a name of its own and a part that is known."""
    titles = {sheet.title.casefold() for sheet in book.worksheets}
    return (
        "" not in titles and len(titles) == len(book.worksheets) and all(_part_of(s) in parts for s in book.worksheets)
    )


class Part(NamedTuple):
    """What a sheet's part of the archive holds."""

    cells: int
    """How many it is about, whichever is most: those of the smallest rectangle from A1 that holds all of them, those of
    its merged ranges, or those that it writes, one place again and again."""
    written: int
    rows: int
    """Up to the last with a cell."""
    columns: int
    merged: tuple[tuple[int, int, int, int], ...]
    """Ranges: top, left, bottom, right, from 0."""
    in_order: bool
    """Whether all rows and cells say where they are, in the order of the sheet."""


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
    extent = _Extent()
    parser = expat.ParserCreate()
    parser.StartElementHandler = extent.element
    with suppress(expat.ExpatError, ValueError, TypeError):  # no sheet, or openpyxl will say what is wrong with it
        parser.ParseFile(content)
    return extent.part()


class _Extent:
    """What the cells and merged ranges of a part reach over, one element after the other."""

    def __init__(self) -> None:
        self._last = self._covered = self._written = 0
        """The last row with a cell or a merged range."""
        self._columns: dict[str, int] = {}
        """By letters, as they are written."""
        self._merged: list[tuple[int, int, int, int]] = []
        self._row = self._column = self._rows = 0
        self._in_order = True

    def part(self) -> Part:
        """All of it."""
        columns = max(self._columns.values(), default=0)
        cells = max(self._last * columns, self._covered, self._written)
        return Part(cells, self._written, self._rows, columns, tuple(self._merged), self._in_order)

    def element(self, name: str, attributes: dict[str, str]) -> None:
        """Count a row, a cell or a range; ValueError for a reference that is none."""
        local = name.rpartition(":")[2]
        if local == "c":
            self._cell(attributes.get("r", ""))
        elif local == "row":
            number = attributes.get("r", "")
            after = number.isdecimal() and int(number) > self._row
            self._in_order = self._in_order and after
            self._row, self._column = int(number) if after else self._row, 0
        elif local == "mergeCell":
            left, top, right, bottom = area = range_boundaries(attributes.get("ref", "A1"))
            self._covered += (right - left + 1) * (bottom - top + 1)
            self._merged.append((top - 1, left - 1, bottom, right))
            self._reached(get_column_letter(right), area)

    def _cell(self, reference: str) -> None:
        self._written += 1
        letters = reference.rstrip("0123456789")
        if letters not in self._columns or len(letters) == len(reference):
            self._reached(letters, range_boundaries(reference or "A1"))
        column, row = self._columns[letters], int(reference[len(letters) :] or 1)
        self._last, self._rows = max(self._last, row), max(self._rows, row)
        self._in_order = self._in_order and bool(reference) and row == self._row and column > self._column
        self._column = column

    def _reached(self, letters: str, area: tuple[int, int, int, int]) -> None:
        _, _, right, bottom = area
        self._last = max(self._last, bottom)
        self._columns[letters] = max(right, self._columns.get(letters, 0))


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

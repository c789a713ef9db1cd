"""The first pass over a workbook (XLSX): what the parts that sheets are in hold, before any cell becomes an object."""

import posixpath
import zipfile
import zlib
from collections import Counter
from contextlib import suppress
from typing import IO, Any, NamedTuple
from xml.parsers import expat

from lxml import etree
from openpyxl.utils import get_column_letter, range_boundaries

from helios.corpus.budget import check_cells, check_expansion
from helios.corpus.readers.extra import check_parts
from helios.corpus.source import SourceFile

_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


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


def checked_parts(source: SourceFile, raw: IO[bytes]) -> dict[str, Part]:
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

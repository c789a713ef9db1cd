"""XLS, XLSB and ODS: the tables of every sheet, with the values that were last computed; merged cells are filled."""

import datetime
import zipfile
from collections.abc import Iterator
from typing import Any

from helios.corpus.budget import check
from helios.corpus.encoding import readable
from helios.corpus.grid import grid_records, sheet_grids
from helios.corpus.readers.extra import check_parts, library, parsing
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.shape import cell_text
from helios.corpus.source import SourceFile

_SUFFIXES = (".xls", ".xlsb", ".ods")


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in _SUFFIXES


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables in sheet order; empty sheets and charts are passed over."""
    kind = source.suffix[1:].upper()
    calamine = library("python_calamine", kind)
    with parsing(kind), source.seekable() as raw:
        if zipfile.is_zipfile(raw):
            with zipfile.ZipFile(raw) as archive:
                check_parts(source, archive)
        raw.seek(0)
        book = calamine.CalamineWorkbook.from_filelike(raw)
        for name in book.sheet_names:
            yield from _sheet(source, readable(name), book.get_sheet_by_name(name))


def _sheet(source: SourceFile, name: str, sheet: Any) -> Iterator[Parsed]:
    check(source.budget, "cells", sheet.total_height * sheet.total_width, f"cells that sheet {name} reaches over")
    cells = [list(map(_cell, row)) for row in sheet.to_python(skip_empty_area=False)]
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        value = cells[top][left] if top < len(cells) and left < len(cells[top]) else ""
        for row in cells[top : bottom + 1]:
            row[left : right + 1] = [value] * len(row[left : right + 1])
    base_id, grids = f"{source.base_id}#{name}", sheet_grids([tuple(row) for row in cells])
    for record in grid_records(base_id, source.title, grids, section=name, budget=source.budget):
        yield Parsed(record)


def _cell(value: object) -> str:
    match value:
        case datetime.datetime() if value.time() == datetime.time():
            return value.date().isoformat()
        case datetime.datetime():
            return value.isoformat(sep=" ", timespec="seconds")
    return readable(cell_text(value))

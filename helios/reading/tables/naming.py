"""Codes of an answer with what they stand for in another table: "Kasia Venn (KV)", and the cells that say so."""

from dataclasses import dataclass

import numpy as np

from helios.reading.tables.programs import COMPUTING, Program, Result
from helios.reading.tables.sheet import Joined, Kind, Place, SheetColumn

LONGEST_CODE = 4
"""Letters of a code that has no digit: initials."""
YEARS = (1900, 2100)
NAMES = frozenset(
    ("name", "names", "nm", "title", "description", "desc", "descr", "meaning", "label", "stands")
    + ("titel", "bezeichnung", "beschreibung", "bedeutung", "nom", "titre", "libellé", "intitulé", "désignation")
    + ("nombre", "título", "descripción", "significado")
)
"""Words of headers above what codes stand for; Chinese ones hold the sign for name."""


@dataclass(frozen=True, slots=True)
class Named:
    """An answer with the names of its codes, and where they stand."""

    text: str
    places: tuple[Place, ...]


def with_names(program: Program, result: Result) -> Named | None:
    """The answer with what its codes stand for. None where it has no codes that refer to another table, where that
    table does not say which of its columns has the names, or where one of them has none."""
    if program.reference >= 0 or program.op in COMPUTING:
        return None
    column = program.sheet.columns[program.column]
    joined = next((one for one in program.sheet.joined if one.by == program.column), None)
    if joined is None or column.kind in (Kind.DATE, Kind.TIME):
        return None
    at = _names_of(joined)
    if at < 0:
        return None
    names, said, places = joined.sheet.columns[at], dict[str, str](), list[Place]()
    for row, cell in result.cells:
        other = int(joined.rows[row])
        if cell == program.column and other >= 0 and column.said(row) not in said:
            said[column.said(row)] = names.said(other)
            places += joined.sheet.places(other, at)
    if not said or not all(said.get(item) and is_code(item) for item in result.items):
        return None
    return Named(", ".join(f"{said[item]} ({item})" for item in result.items), tuple(places))


def is_code(text: str) -> bool:
    """Whether a cell is a code: one word with a digit that is no year, or initials."""
    if any(map(str.isdigit, text)):
        return " " not in text and not (text.isdecimal() and YEARS[0] <= int(text) < YEARS[1])
    return text.isascii() and text.isupper() and text.isalpha() and len(text) <= LONGEST_CODE


def _names_of(joined: Joined) -> int:
    """The column of the other table that tells its rows by names: whole names of people, one that is called so, or the
    only text that is another one in each row; -1 for none."""
    sheet = joined.sheet
    if sheet.names:
        return sheet.own - 1
    telling = [at for at in range(sheet.own) if _tells(sheet.columns[at])]
    called = [at for at in telling if not NAMES.isdisjoint(sheet.columns[at].words) or "名" in sheet.columns[at].header]
    if called:
        return called[0]
    texts = sum(_is_text(column) for column in sheet.columns[: sheet.own])
    return telling[0] if len(telling) == texts == 1 else -1


def _tells(column: SheetColumn) -> bool:
    filled = int(np.count_nonzero(column.keys >= 0))
    return _is_text(column) and filled == column.distinct > 1


def _is_text(column: SheetColumn) -> bool:
    return column.kind is Kind.TEXT and not all(is_code(cell.strip()) for cell in column.cells if cell.strip())

"""Answers of programs as they are read beside those of other readers (`helios.reading.rivals`).

    85: price, service gold; prices 2024

What was computed, of which rows, and the table: as much as tells it from the others.
"""

import numpy as np

from helios.reading.rivals import SHOWN, Rival
from helios.reading.tables.headers import spelled_out
from helios.reading.tables.matching import Match
from helios.reading.tables.programs import SAID, Op, Program, Result, in_order

NAMING = 2
"""Cells that name a row which is chosen by the evidence."""


def rival_of(program: Program, result: Result) -> Rival:
    """The answer of a program, and how it comes about."""
    matches = [*program.matches[:-2], *in_order(program.matches[-2:])] if program.compares else program.matches
    where = " , ".join(_said(program, match) for match in matches)
    return Rival(result.text[: 3 * SHOWN], _done(program), where, program.sheet.name)


def _done(program: Program) -> str:
    columns = program.sheet.columns
    name = spelled_out(columns[program.column].header) if program.column >= 0 else ""
    text = SAID[program.op].format(name=name, how="most" if program.descending else "least")
    if program.compares:
        return f"whether {'less' if program.descending else 'more'} {name}".strip()
    if program.op is Op.DIFFERENCE and program.order == program.column >= 0:
        return f"difference of largest and smallest {name}"
    if program.op is Op.DIFFERENCE and program.order >= 0:
        return f"{text} and {spelled_out(columns[program.order].header)}"
    if program.order >= 0:
        which = "largest" if program.descending else "smallest"
        of = " sum of" if program.op is Op.TOP_SUM else ""
        place = f" {program.place}." if program.place > 1 else f" {-program.place}" if program.place < 0 else ""
        text += f" of{place} {which}{of} {spelled_out(columns[program.order].header)}"
    return text


def _said(program: Program, match: Match) -> str:
    """A condition in words, with the cell that holds for it."""
    columns = program.sheet.columns
    row = int(np.argmax(match.rows))
    if match.column < 0:
        cells = [(column.header, column.cells[row]) for column in columns if column.cells[row].strip()]
        return " ".join(f"{spelled_out(header)} {cell[:SHOWN]}" for header, cell in cells[:NAMING])
    if match.operator in "=~≈" and match.values == 1:
        return f"{spelled_out(columns[match.column].header)} {columns[match.column].cells[row][:SHOWN]}"
    return match.text if match.operator not in "=~" else f"{columns[match.column].header} {match.text}"

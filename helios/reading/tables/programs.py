"""What is computed of a table's rows, and the cells that were used."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from helios.reading.tables.dates import DAY_MINUTES, as_long_as, has_clock_times
from helios.reading.tables.matching import COMPARING, Match
from helios.reading.tables.sheet import Kind, Sheet

MOST_ITEMS = 30
"""Values of an answer that are listed."""
MOST_CELLS = 50
"""Cells that an answer names as used."""


UNIT = frozenset(["unit", "units", "einheit", "unité", "unite", "unidad", "单位"])
"""Last words of the names of columns that hold the units of the column before them."""


class Op(StrEnum):
    """What is done with the selected rows."""

    LOOKUP = "lookup"
    """Their values in a column."""
    COUNT = "count"
    """How many there are."""
    DISTINCT = "distinct"
    """How many different values they have in a column."""
    SUM = "sum"
    AVERAGE = "average"
    EXTREME = "extreme"
    """The value in a column of the row that comes first by another."""
    MODE = "mode"
    """The value of a column that most of the rows have, or fewest."""
    TOP_SUM = "top sum"
    """The value of a column whose rows add up to most in another, or to least."""
    DIFFERENCE = "difference"
    """Between two rows, or between two columns of one row."""
    WHETHER = "whether"
    """Whether there is any; of two values of a column, whether the rows of one are more than those of the other, or add
    up to more in another column; or to less."""


OPS = tuple(Op)
COMPUTING = (Op.COUNT, Op.DISTINCT, Op.SUM, Op.AVERAGE, Op.DIFFERENCE, Op.WHETHER)
"""Those whose value stands in no cell."""
SAID = {
    Op.LOOKUP: "{name}",
    Op.COUNT: "number of rows",
    Op.DISTINCT: "number of different {name}",
    Op.SUM: "sum of {name}",
    Op.AVERAGE: "average of {name}",
    Op.EXTREME: "{name}",
    Op.MODE: "{how} frequent {name}",
    Op.TOP_SUM: "{name}",
    Op.DIFFERENCE: "difference of {name}",
    Op.WHETHER: "whether there are rows",
}
"""Operations in words, for reports."""


@dataclass(frozen=True, slots=True)
class Program:
    """A question as it may be meant of one table."""

    sheet: Sheet
    op: Op
    matches: tuple[Match, ...] = ()
    column: int = -1
    order: int = -1
    descending: bool = False
    place: int = 1
    """The place in the order that is meant; below 0 so many that come first, in their order."""

    def __str__(self) -> str:
        columns = self.sheet.columns
        name = f'"{columns[self.column].header}"' if self.column >= 0 else "rows"
        text = SAID[self.op].format(name=name, how="most" if self.descending else "least")
        if self.compares:
            one, other = map(self._said, in_order(self.matches[-2:]))
            of_time = self.column >= 0 and columns[self.column].kind is not Kind.NUMBER
            more, less = ("later", "earlier") if of_time else ("more", "less")
            text = f"whether {less if self.descending else more} {name} where {one} than where {other}"
        if self.op is Op.DIFFERENCE and self.order == self.column >= 0:
            text = f"difference of the largest and the smallest {name}"
        elif self.op is Op.DIFFERENCE and self.order >= 0:
            text += f' and "{columns[self.order].header}"'
        elif self.order >= 0:
            which = "largest" if self.descending else "smallest"
            ordinal = f"{self.place}. " if self.place > 1 else f"{-self.place} " if self.place < 0 else ""
            of = "sum of " if self.op is Op.TOP_SUM else ""
            text += f' of the {ordinal}{which} {of}"{columns[self.order].header}"'
        if where := self.matches[:-2] if self.compares else self.matches:
            text += " where " + " and ".join(map(self._said, where))
        return text

    @property
    def compares(self) -> bool:
        """Whether two values of a column are compared with each other."""
        two = self.matches[-2:]
        return self.op is Op.WHETHER and len(two) == 2 and are_rivals(*two)

    @property
    def reference(self) -> int:
        """-1 where the column refers to another table, so that a value stands for something there; 1 for a column that
        was looked up there; 0 for all others."""
        if self.column >= self.sheet.own and self.sheet.joined:
            return 1
        return -1 if any(joined.by == self.column for joined in self.sheet.joined) else 0

    def _said(self, match: Match) -> str:
        if match.column < 0 or match.operator not in "=~":
            return match.text
        return f'{self.sheet.columns[match.column].header} has "{match.text}"'


@dataclass(frozen=True, slots=True)
class Result:
    """What a program gives: values as they are shown, and the cells that they rest on, as (row, column)."""

    items: tuple[str, ...]
    cells: tuple[tuple[int, int], ...]
    value: float | None = None
    """The number, where one was computed."""
    yes: bool | None = None
    ordered: bool = False
    """Whether the order of the items is a part of the answer."""

    @property
    def text(self) -> str:
        """The answer in one line."""
        return ", ".join(self.items)

    @property
    def key(self) -> str:
        """The same for results that name the same."""
        names = [item.casefold() for item in self.items]
        return " | ".join(names if self.ordered else sorted(names))


def are_rivals(one: Match, other: Match) -> bool:
    """Whether two matches are different values of one column."""
    alike = one.column == other.column >= 0 and one.operator in "=~" and other.operator in "=~"
    return alike and bool(one.words) and bool(other.words)


def in_order(matches: Sequence[Match]) -> list[Match]:
    """Matches as the question says them."""
    return sorted(matches, key=lambda match: min(match.words))


def selected(sheet: Sheet, matches: Sequence[Match]) -> NDArray[np.bool_]:
    """bool (R): rows that all matches hold for."""
    rows = np.ones(sheet.size, bool)
    for match in matches:
        rows &= match.rows
    return rows


def execute(program: Program) -> Result | None:
    """The answer of a program; None where it has none (no rows, no values, a tie for the first place)."""
    sheet, op = program.sheet, program.op
    if op is Op.DIFFERENCE:
        return _difference(program)
    if program.compares:
        return _outdone(program)
    rows = selected(sheet, program.matches)
    if (rows & sheet.counted).any():
        rows = rows & sheet.counted  # a total is an answer only where nothing else is meant
    if op is Op.WHETHER:
        found = np.flatnonzero(rows)
        return Result(("yes",) if len(found) else ("no",), _cells(found, program.matches), yes=bool(len(found)))
    if op is not Op.LOOKUP or not program.matches or any(match.operator in COMPARING for match in program.matches):
        rows = rows & sheet.counted  # a total that is named or found may be asked for, one that is merely large is not
    at = np.flatnonzero(rows)
    if not len(at):
        return None
    match op:
        case Op.LOOKUP:
            return _listed(program, at)
        case Op.COUNT:
            return Result((str(len(at)),), _cells(at, program.matches), float(len(at)))
        case Op.DISTINCT:
            keys = sheet.columns[program.column].keys[at]
            count = len(set(keys[keys >= 0].tolist()))
            return Result((str(count),), tuple((int(row), program.column) for row in at[:MOST_CELLS]), float(count))
        case Op.SUM | Op.AVERAGE:
            return _summed(program, at)
        case Op.EXTREME:
            return _extreme(program, at)
    return _grouped(program, at)


def _listed(program: Program, at: NDArray[np.int64]) -> Result | None:
    column = program.sheet.columns[program.column]
    found: dict[int, int] = {}
    for row in at.tolist():
        if column.keys[row] >= 0:
            found.setdefault(int(column.keys[row]), row)
    if not found or len(found) > MOST_ITEMS:
        return None
    items = tuple(shown(program.sheet, row, program.column) for row in found.values())
    return Result(items, tuple((row, program.column) for row in found.values()))


def shown(sheet: Sheet, row: int, column: int) -> str:
    """A cell in one line, with its unit where the column beside it holds units."""
    text = sheet.columns[column].said(row)
    if sheet.columns[column].kind is Kind.NUMBER and column + 1 < len(sheet.columns):
        beside = sheet.columns[column + 1]
        if not UNIT.isdisjoint(beside.words[-1:]):
            return f"{text} {beside.cells[row].strip()}".strip()
    return text


def _summed(program: Program, at: NDArray[np.int64]) -> Result | None:
    values = program.sheet.columns[program.column].values[at]
    known = at[np.isfinite(values)]
    if not len(known):
        return None
    values = values[np.isfinite(values)]
    value = float(values.sum() if program.op is Op.SUM else values.mean())
    text = number_text(value) if program.op is Op.SUM else average_text(value)
    return Result((text,), tuple((int(row), program.column) for row in known[:MOST_CELLS]), value)


def _extreme(program: Program, at: NDArray[np.int64]) -> Result | None:
    order, column = program.sheet.columns[program.order], program.sheet.columns[program.column]
    values = order.values[at]
    known = at[np.isfinite(values)]
    if len(known) < max(2, program.place):
        return None
    values = order.values[known]
    if program.place < 0:
        return _first_ones(program, known, values)
    steps = np.unique(values)
    if len(steps) < program.place or len(steps) < 2:
        return None
    wanted = steps[-program.place] if program.descending else steps[program.place - 1]
    chosen = known[values == wanted]
    if len(chosen) > 5:
        return None
    items = tuple(dict.fromkeys(column.said(int(row)) for row in chosen if column.keys[row] >= 0))
    if not items:
        return None
    cells = [(int(row), program.column) for row in chosen] + [(int(row), program.order) for row in chosen]
    return Result(items, tuple(dict.fromkeys(cells)), float(wanted))


def _first_ones(program: Program, known: NDArray[np.int64], values: NDArray[np.float64]) -> Result | None:
    """So many that come first, in their order; None where others are level with the last one, all are level, one has no
    name, or a whole order is longer than what can be listed."""
    column, count = program.sheet.columns[program.column], -program.place
    ranked = np.argsort(-values if program.descending else values, kind="stable")
    kept, following = ranked[:count], ranked[count:]
    level = len(following) > 0 and values[following[0]] == values[kept[-1]]
    if level or len(np.unique(values)) < 2 or (count >= MOST_ITEMS and len(following)):
        return None
    rows = [int(row) for row in known[kept]]
    items = tuple(dict.fromkeys(map(column.said, rows)))
    if len(items) < 2 or not all(items):
        return None
    cells = tuple(dict.fromkeys((row, at) for row in rows for at in (program.column, program.order)))
    return Result(items, cells, float(values[kept[-1]]), ordered=True)


def _grouped(program: Program, at: NDArray[np.int64]) -> Result | None:
    column = program.sheet.columns[program.column]
    keys = column.keys[at]
    at, keys = at[keys >= 0], keys[keys >= 0]
    if not len(at):
        return None
    if program.op is Op.MODE:
        totals = np.bincount(keys).astype(float)
        totals[totals == 0] = np.nan
    else:
        values = program.sheet.columns[program.order].values[at]
        at, keys, values = at[np.isfinite(values)], keys[np.isfinite(values)], values[np.isfinite(values)]
        if not len(at):
            return None
        totals = np.bincount(keys, weights=values)
        totals[np.bincount(keys) == 0] = np.nan
    steps = np.unique(totals[np.isfinite(totals)])
    if len(steps) < max(2, program.place):
        return None
    wanted = steps[-program.place] if program.descending else steps[program.place - 1]
    chosen = np.flatnonzero(totals == wanted)
    if len(chosen) > 3:
        return None
    items = [column.said(int(at[keys == key][0])) for key in chosen]
    cells = [(int(row), program.column) for key in chosen for row in at[keys == key]]
    return Result(tuple(items), tuple(cells[:MOST_CELLS]), float(wanted))


def _difference(program: Program) -> Result | None:
    """Of the values of two rows: the only two that are selected, or those which the last two matches select while the
    others hold for both; where these select several rows, of what each add up to, or of how many there are. Or of two
    columns of the one row that is selected, or of the largest and the smallest value of one."""
    columns = program.sheet.columns
    column = columns[program.column]
    cells: list[tuple[int, int]] = []
    rows = np.flatnonzero(selected(program.sheet, program.matches) & program.sheet.counted)
    if program.column < 0:
        return _counted_apart(program)
    if program.order == program.column:
        known = rows[np.isfinite(column.values[rows])]
        if len(known) > 1:
            ends = (known[np.argmax(column.values[known])], known[np.argmin(column.values[known])])
            cells = [(int(row), program.column) for row in ends]
    elif program.order >= 0:
        cells = [(int(row), at) for row in rows for at in (program.column, program.order)]
    elif len(rows) == 2 and len({match.column for match in program.matches[-2:]}) == len(program.matches[-2:]):
        cells = [(int(row), program.column) for row in rows]
    elif len(program.matches) < 2:
        return None
    else:
        *common, first, second = program.matches
        totals = []
        for match in (first, second):
            at = np.flatnonzero(selected(program.sheet, [*common, match]) & program.sheet.counted)
            at = at[np.isfinite(column.values[at])]
            if len(at) != 1 and not (len(at) and column.is_amount and match.operator == "="):
                return None
            totals.append(float(column.values[at].sum()))
            cells += [(int(row), program.column) for row in at]
        if len(cells) > 2:
            value = abs(totals[0] - totals[1])
            return Result((number_text(value),), tuple(cells[:MOST_CELLS]), value)
    values = [float(columns[at].values[row]) for row, at in cells]
    if len(values) != 2 or not np.isfinite(values).all():
        return None
    value = abs(values[0] - values[1])
    if column.kind is Kind.DATE:
        return Result((f"{value:.0f} days",), tuple(cells), value)
    if column.kind is Kind.TIME:
        clock = has_clock_times(column.cells)
        if clock and program.order >= 0 and values[1] < values[0]:
            value = min(value, DAY_MINUTES - value)  # a shift from 22:00 to 06:00; due at 5:30, there at 6:10
        return Result((f"{number_text(value)} minutes" if clock else as_long_as(value),), tuple(cells), value)
    return Result((number_text(value),), tuple(cells), value)


def _counted_apart(program: Program) -> Result | None:
    """How many rows more one of the last two matches selects than the other."""
    *common, first, second = program.matches
    found = [np.flatnonzero(selected(program.sheet, [*common, one]) & program.sheet.counted) for one in (first, second)]
    if not all(map(len, found)):
        return None
    value = float(abs(len(found[0]) - len(found[1])))
    cells = [(int(row), one.column) for one, at in zip((first, second), found, strict=True) for row in at]
    return Result((number_text(value),), tuple(cells[:MOST_CELLS]), value)


def _outdone(program: Program) -> Result | None:
    """Of the two values that the last matches select, the one said first against the other; None for two that are
    equal, of which one has no number, or which several days or years stand for."""
    totals: list[float] = []
    cells: list[tuple[int, int]] = []
    for match in in_order(program.matches[-2:]):
        at = np.flatnonzero(selected(program.sheet, [*program.matches[:-2], match]) & program.sheet.counted)
        if program.column >= 0:
            column = program.sheet.columns[program.column]
            values = column.values
            at = at[np.isfinite(values[at])]
            if len(at) > 1 and not column.is_amount:
                return None
            totals.append(float(values[at].sum()) if len(at) else np.nan)
        else:
            totals.append(float(len(at)))
        cells += [(int(row), program.column if program.column >= 0 else match.column) for row in at]
    if not np.isfinite(totals).all() or totals[0] == totals[1]:
        return None
    yes = totals[0] < totals[1] if program.descending else totals[0] > totals[1]
    return Result(("yes",) if yes else ("no",), tuple(cells[:MOST_CELLS]), yes=yes)


def number_text(value: float) -> str:
    """A number as a person writes it, to twelve digits."""
    if not math.isfinite(value):
        return f"{value}"
    rounded = float(f"{value:.12g}")
    return (
        str(int(rounded))
        if rounded == int(rounded) and abs(rounded) < 1e15
        else f"{rounded:.6g}"
        if abs(rounded) < 1
        else f"{rounded:.12g}"
    )


def average_text(value: float) -> str:
    """A quotient as a person writes it: two places, or three digits where it is small; 91.36 and not 91.3603604."""
    return number_text(round(value, 2) if abs(value) >= 1 else float(f"{value:.3g}"))


def _cells(at: NDArray[np.int64], matches: Sequence[Match]) -> tuple[tuple[int, int], ...]:
    columns = [match.column for match in matches if match.column >= 0] or [0]
    return tuple((int(row), column) for row in at[:MOST_CELLS].tolist() for column in columns)[:MOST_CELLS]

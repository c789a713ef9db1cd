"""Tables of a folder that go on in one another: last year's list and this year's, a sheet for each month or branch.

    prices 2023: Loaf, Price            list          Loaf      Price
    prices 2024: Loaf, Price     ->     prices 2023   Dark rye  4.40
                                        prices 2024   Dark rye  4.80

One below the other, they are asked like one table: how much dearer something became, how many there are in all.
Only a corpus of a folder's size is looked through.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock

import numpy as np

from helios.reading.tables.keys import header_words
from helios.reading.tables.sheet import Joined, Kind, Place, Sheet, SheetColumn, column_of

MOST_TABLES = 12
"""Tables of a stack."""
MOST_COLUMNS = 40
"""Columns of a table that is looked at."""
MOST_ROWS = 5000
"""Rows of a stack."""
MOST_NAMES = 4
"""Columns of names that are put beside a stack."""
LEAST_ALIKE = 0.6
"""Share of the columns of the narrower of two tables that the other must have too."""
LEAST_COLUMNS = 2
LEAST_SHARED = 3
"""Different values that two lists of the same things have in common at least, and half of the shorter one's."""
_UNNAMED = re.compile(r"column \d+$")
_NO_NAME = re.compile(r"^column \d+$|\([^)]*\)|(?<!\d)(?:19|20)\d\d(?!\d)|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Stack:
    """Where the cells of a stack stand: sheets one below the other, the columns of each in the order of the first."""

    sheets: tuple[Sheet, ...] = field(repr=False)
    columns: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    """The first row of each."""

    def places(self, row: int, column: int) -> tuple[Place, ...]:
        """Where a cell stands; the name of a list is cited by the row's first cell."""
        at = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.sheets[at].places(row - self.starts[at], self.columns[at][max(0, column - 1)])


@dataclass(frozen=True, slots=True)
class _Layer:
    """A table as others are compared with it: what its columns are called, and the things that some of them name."""

    sheet: Sheet = field(repr=False)
    headers: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    """The words of the headers but for years and units."""
    things: tuple[frozenset[str], ...]
    """The values of a column of texts that are different in most rows; empty for any other."""

    @classmethod
    def of(cls, sheet: Sheet) -> "_Layer":
        columns = sheet.columns[: sheet.own]
        headers = tuple("" if _UNNAMED.match(column.header) else column.header.casefold() for column in columns)
        return cls(sheet, headers, tuple(map(_name, columns)), tuple(map(_things, columns)))

    def kind(self, column: int) -> Kind:
        return self.sheet.columns[column].kind


class Stacks:
    """The stacks of a folder's tables, found when they are first asked for; threads may share it."""

    def __init__(
        self, ids: Callable[[], Sequence[str]], sheet: Callable[[str], Sheet | None],
        joined: Callable[[str], Sheet | None] | None = None,
    ) -> None:  # fmt: skip
        """`sheet` reads a table by its id, `joined` with the columns of those that it refers to."""
        self._ids, self._sheet, self._joined = ids, sheet, joined or sheet
        self._lock = Lock()

    def of(self, table_id: str) -> Sequence[int]:
        """The numbers of the stacks that a table is in."""
        with self._lock:
            return self._numbers.get(table_id, ())

    def sheet(self, number: int) -> Sheet:
        """A stack by its number."""
        with self._lock:
            tables = self._found[number]
        below = stacked([sheet for table in tables if (sheet := self._sheet(table)) is not None])
        return below.joining(_names_beside(below, [sheet for table in tables if (sheet := self._joined(table))]))

    @cached_property
    def _found(self) -> list[list[str]]:
        known: list[tuple[str, _Layer]] = []
        stacks: list[list[tuple[str, _Layer]]] = []
        for table_id in self._ids():
            sheet = self._sheet(table_id)
            if sheet is None or sheet.lies or sheet.size < 2 or sheet.own > MOST_COLUMNS:
                continue
            one = (table_id, _Layer.of(sheet))
            open_ones = [stack for stack in stacks if len(stack) < MOST_TABLES and _go_on([*_layers(stack), one[1]])]
            for stack in open_ones:
                stack.append(one)
            if not open_ones:
                below = next((other for other in known if _go_on([other[1], one[1]])), None)
                stacks += [] if below is None else [[below, one]]
            known.append(one)
        kept = [stack for stack in stacks if sum(layer.sheet.size for layer in _layers(stack)) <= MOST_ROWS]
        return [[table_id for table_id, _ in stack] for stack in kept]

    @cached_property
    def _numbers(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for number, tables in enumerate(self._found):
            for table in tables:
                found.setdefault(table, []).append(number)
        return found


def stacked(sheets: Sequence[Sheet]) -> Sheet:
    """Tables one below the other: the columns that all share with the first one, after the name of the list."""
    shared = _shared([_Layer.of(sheet) for sheet in sheets])
    columns = [tuple(numbers[at] for numbers in shared) for at in range(len(sheets))]
    names = [sheet.name for sheet in sheets]
    lists = tuple(name for name, sheet in zip(names, sheets, strict=True) for _ in range(sheet.size))
    cells = [column_of("list", lists)]
    for place, numbers in enumerate(columns[0]):
        own = zip(sheets, columns, strict=True)
        parts = [sheet.columns[at[place]] for sheet, at in own]
        below = column_of(sheets[0].columns[numbers].header, tuple(cell for part in parts for cell in part.cells))
        if len({part.kind for part in parts}) == 1:  # each table writes numbers and dates in its own way
            below = replace(below, kind=parts[0].kind, values=np.concatenate([part.values for part in parts]))
        cells.append(below)
    starts = np.cumsum([0, *(sheet.size for sheet in sheets[:-1])])
    source = Stack(tuple(sheets), tuple(columns), tuple(map(int, starts)))
    return Sheet.made(sheets[0].table, tuple(cells), np.concatenate([sheet.counted for sheet in sheets]), source)


def _names_beside(stack: Sheet, sheets: Sequence[Sheet]) -> Iterator[Joined]:
    """Names that one of the lists has beside the codes by which all of them list their things."""
    assert isinstance(stack.source, Stack)
    places = stack.source.columns
    codes = (
        at for at in range(len(places[0]))
        if all(_are_codes(sheet.columns[numbers[at]]) for sheet, numbers in zip(sheets, places, strict=True))
    )  # fmt: skip
    code = next(codes, -1)
    if code < 0:
        return
    cells = [" ".join(cell.split()).casefold() for cell in stack.columns[code + 1].cells]
    known = {column.header.casefold() for column in stack.columns}
    for sheet, numbers in zip(sheets, places, strict=True):
        at = {" ".join(cell.split()).casefold(): row for row, cell in enumerate(sheet.columns[numbers[code]].cells)}
        rows = np.array([at.get(cell, -1) for cell in cells], np.int64)
        for number, column in enumerate(sheet.columns):
            header = column.header.casefold()
            names = column.kind is Kind.TEXT and 2 * column.distinct > sheet.size and number not in numbers
            if names and header not in known and len(known) < len(stack.columns) + MOST_NAMES:
                known.add(header)
                yield Joined(sheet, number, code + 1, rows)


def _are_codes(column: SheetColumn) -> bool:
    """Whether a column tells the rows apart by what is no name: most cells have a digit, or capitals alone."""
    plain = column.kind in (Kind.TEXT, Kind.NUMBER) and not column.is_amount
    return plain and column.is_key and 2 * sum(map(_is_code, column.cells)) > len(column.cells)


def _is_code(cell: str) -> bool:
    return any(map(str.isdigit, cell)) or (cell.isascii() and cell.isupper())


def _layers(stack: Sequence[tuple[str, _Layer]]) -> list[_Layer]:
    return [layer for _, layer in stack]


def _go_on(layers: Sequence[_Layer]) -> bool:
    """Whether tables have enough in common to stand one below the other: what names their rows, and more than names or
    three columns. A copy adds nothing."""
    shared = _shared(layers)
    first, last = layers[0], layers[-1]
    naming = next((at for at in range(len(first.names)) if first.kind(at) is Kind.TEXT), -1)
    named = naming in (-1, *(numbers[0] for numbers in shared))
    same = any(_same_things(first.things[numbers[0]], last.things[numbers[-1]]) for numbers in shared)
    if not (named or same) or _are_copies(layers[:-1], last, shared):
        return False
    only_two = len(shared) == LEAST_COLUMNS and any(first.kind(numbers[0]) is not Kind.TEXT for numbers in shared)
    return len(shared) > LEAST_COLUMNS or only_two


def _are_copies(layers: Sequence[_Layer], last: _Layer, shared: Sequence[tuple[int, ...]]) -> bool:
    """Whether the last table holds what one of the others does."""
    own = [last.sheet.columns[numbers[-1]].cells for numbers in shared]
    rest = ([layer.sheet.columns[numbers[n]].cells for numbers in shared] for n, layer in enumerate(layers))
    return any(other == own for other in rest)


def _shared(layers: Sequence[_Layer]) -> list[tuple[int, ...]]:
    """The columns that all tables have, by their number in each."""
    first, *others = layers
    pairs = [dict(_pairs(first, other)) for other in others]
    own = range(len(first.names))
    return [(at, *(found[at] for found in pairs)) for at in own if all(at in found for found in pairs)]


def _pairs(one: _Layer, other: _Layer) -> list[tuple[int, int]]:
    """Columns of two tables that hold the same; none where the tables do not go on in one another.

    They do if most columns have the same names, or if both say amounts of the same things.
    """
    named = _by_name(one, other)
    if len(named) >= max(LEAST_COLUMNS, LEAST_ALIKE * min(len(one.names), len(other.names))):
        return named
    taken, met = {a for a, _ in named}, {b for _, b in named}
    free = [(a, b) for a in range(len(one.names)) if a not in taken for b in range(len(other.names)) if b not in met]
    things = [pair for pair in free if _same_things(one.things[pair[0]], other.things[pair[1]])]
    amounts = [(a, b) for a, b in free if _are_numbers(one, a, other, b) and set(one.names[a]) & set(other.names[b])]
    pairs = sorted({*named, *things[:1], *(amounts if len(amounts) == 1 else ())})
    same = any(_same_things(one.things[a], other.things[b]) for a, b in pairs)
    return pairs if same and any(_are_numbers(one, a, other, b) for a, b in pairs) else []


def _by_name(one: _Layer, other: _Layer) -> list[tuple[int, int]]:
    """Columns with the same header, or with the same name but for years and units, and of the same kind.

    A name that several columns of a table have says nothing.
    """
    found: dict[int, int] = {}
    for names, others in ((one.headers, other.headers), (one.names, other.names)):
        alone, places = Counter(names), {name: at for at, name in enumerate(others)}
        met = set(found.values())
        found |= {
            at: places[name]
            for at, name in enumerate(names)
            if name and at not in found and alone[name] == Counter(others)[name] == 1 and places[name] not in met
        }
    return sorted((a, b) for a, b in found.items() if one.kind(a) is other.kind(b))


def _are_numbers(one: _Layer, a: int, other: _Layer, b: int) -> bool:
    return one.kind(a) is other.kind(b) is Kind.NUMBER


def _same_things(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two columns name the same things."""
    shared = len(one & other)
    return shared >= LEAST_SHARED and 2 * shared >= min(len(one), len(other))


def _name(column: SheetColumn) -> tuple[str, ...]:
    words = header_words(_NO_NAME.sub(" ", column.header))
    return tuple(word for word in words if len(word) > 1 or not word.isascii())


def _things(column: SheetColumn) -> frozenset[str]:
    if column.kind is not Kind.TEXT or 2 * column.distinct < len(column.cells):
        return frozenset()
    return frozenset(" ".join(cell.split()).casefold() for cell in column.cells) - {""}

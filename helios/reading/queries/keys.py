"""Which column of a table refers to which of another, read from names and values: files declare no keys.

A column refers to another one that has each of its values in one row only, where nearly all of its own values stand
there. Numbers and short codes agree by chance, so their names must agree too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helios.reading.tables.sheet import Kind, Sheet, SheetColumn
from helios.routing.formulation.words import name_words

LEAST_HELD = 0.9
"""Share of a column's different values that the other one must hold."""
LEAST_TEXTS = 3
"""Different texts from which a column may refer to one of another name."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column of a table and the key of another one that its values stand in; columns by their numbers."""

    table: str
    column: int
    referred: str
    key: int


@dataclass(frozen=True, slots=True)
class _Key:
    """A column that has each value once."""

    table: str
    number: int
    words: tuple[str, ...]
    values: frozenset[str]


def is_key(column: SheetColumn) -> bool:
    """Whether every row has a value of its own."""
    return len(column.keys) > 1 and column.distinct == len(column.keys)


def references(sheets: Mapping[str, Sheet], names: Mapping[str, str]) -> list[Reference]:
    """At most one reference of each column; `names` are the tables' names in words."""
    keys = [
        _Key(table, number, name_words(column.header), values_of(column))
        for table, sheet in sheets.items()
        for number, column in enumerate(sheet.columns[: len(sheet.columns) - bool(sheet.names)])
        if is_key(column)
    ]
    own = {table: set(name_words(name)) for table, name in names.items()}
    found: list[Reference] = []
    for table, sheet in sheets.items():
        for number, column in enumerate(sheet.columns[: len(sheet.columns) - bool(sheet.names)]):
            values = values_of(column)
            fits = [
                (score, -len(key.values), key) for key in keys
                if key.table != table and (score := _fit(column, values, key, own[key.table])) > 0
            ]  # fmt: skip
            if fits:
                _, _, best = max(fits, key=lambda fit: fit[:2])
                if not _is_mirrored(found, table, number, best):
                    found.append(Reference(table, number, best.table, best.number))
    return found


def values_of(column: SheetColumn) -> frozenset[str]:
    """The different values, blind to case and spaces."""
    return frozenset(key for cell in column.cells if (key := " ".join(cell.split()).casefold()))


def _fit(column: SheetColumn, values: frozenset[str], key: _Key, table_words: set[str]) -> float:
    """How well a column seems to refer to a key; 0 where it does not."""
    if not values or len(values & key.values) < LEAST_HELD * len(values):
        return 0.0
    words = name_words(column.header)
    same = words == key.words or set(words) == table_words | set(key.words)
    named = bool(set(words) & table_words) and key.number == 0
    if same and (len(words) > 1 or words not in (("id",), ("number",), ("code",), ("name",))):
        return 3.0
    if named or (words == key.words and words and column.kind is Kind.TEXT):
        return 2.0
    texts = column.kind is Kind.TEXT and len(values) >= LEAST_TEXTS and _is_wordy(values)
    return 1.0 if texts else 0.0


def _is_wordy(values: frozenset[str]) -> bool:
    """Whether most values have a letter and more than two characters: neither numbers nor yes and no."""
    return sum(len(value) > 2 and any(c.isalpha() for c in value) for value in values) > 0.8 * len(values)


def _is_mirrored(found: Sequence[Reference], table: str, number: int, key: _Key) -> bool:
    """Whether the key already refers to this column: one of the two is enough."""
    return Reference(key.table, key.number, table, number) in found

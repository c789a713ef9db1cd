"""Which column of a table refers to which of another, read from names and values: files declare no keys.

A column refers to another one that has each of its values in one row only, where nearly all of its own values stand
there. Numbers and single letters agree by chance, so their names must agree too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from helios.reading.tables.sheet import words_of
from helios.routing.formulation.words import name_words

LEAST_HELD = 0.9
"""Share of a column's different values that the other one must hold."""
LEAST_TEXTS = 3
"""Different texts from which a column may refer to one of another name."""
LEAST_FILLED = 0.8
"""Share of a key's rows that have a value."""
LEAST_TELLING = 0.7
"""Share of a column's rows that have different values, where it tells them apart."""
GENERIC = (("id",), ("number",), ("code",), ("name",))
"""Names of columns that say nothing about which table they belong to."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column of a table and the key of another one that its values stand in; columns by their numbers."""

    table: str
    column: int
    referred: str
    key: int


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """What tells whether a column is a key or refers to one."""

    table: str
    number: int
    words: tuple[str, ...]
    values: frozenset[str]
    """The different values, blind to case and spaces."""
    is_key: bool
    """Whether each value stands in one row, and few rows have none."""
    beside: int = 0
    """Other columns of texts that tell the rows apart: a list of staff has names, a rota has none."""


def key_columns(table: str, columns: Iterable[tuple[str, Sequence[str]]]) -> list[KeyColumn]:
    """All columns of a table, given as (header, cells)."""
    found, telling = [], []
    for number, (header, cells) in enumerate(columns):
        different = set(cells)
        blank = sum(cells.count(cell) for cell in different if not cell.strip())
        values = frozenset(" ".join(cell.split()).casefold() for cell in different) - {""}
        is_key = 1 < len(values) == len(cells) - blank >= LEAST_FILLED * len(cells)
        found.append(KeyColumn(table, number, header_words(header), values, is_key))
        telling.append(_are_texts(values) and len(values) >= LEAST_TELLING * len(cells))
    return [replace(one, beside=sum(telling) - own) for one, own in zip(found, telling, strict=True)]


def header_words(header: str) -> tuple[str, ...]:
    """The words of a column's or a table's name, abbreviations written out where it is plain letters."""
    return name_words(header) if header.isascii() else tuple(words_of(header))


def references(columns: Iterable[KeyColumn], names: Mapping[str, str]) -> list[Reference]:
    """At most one reference of each column; `names` are the tables' names in words."""
    known = list(columns)
    keys = [column for column in known if column.is_key]
    own = {table: set(header_words(name)) for table, name in names.items()}
    holding: dict[str, list[int]] = {}
    for at, key in enumerate(keys):
        for value in key.values:
            holding.setdefault(value, []).append(at)
    found: list[Reference] = []
    mirrored: set[Reference] = set()
    for column in known:
        fits = [
            (score, key.beside, -len(key.values), key) for key in _holders(column, keys, holding)
            if (score := _fit(column, key, own[key.table])) > 0
        ]  # fmt: skip
        if fits:
            best = max(fits, key=lambda fit: fit[:3])[3]
            reference = Reference(column.table, column.number, best.table, best.number)
            if reference not in mirrored:  # one of the two is enough
                found.append(reference)
                mirrored.add(Reference(best.table, best.number, column.table, column.number))
    onward = {(one.table, one.column): (one.referred, one.key) for one in found}
    return [_followed(one, onward) for one in found]


def _followed(reference: Reference, onward: Mapping[tuple[str, int], tuple[str, int]]) -> Reference:
    """A key that refers to another one itself is passed over: what is listed there is explained in the other table."""
    referred, key = onward.get((reference.referred, reference.key), (reference.table, reference.column))
    return reference if referred == reference.table else replace(reference, referred=referred, key=key)


def _holders(column: KeyColumn, keys: Sequence[KeyColumn], holding: Mapping[str, list[int]]) -> list[KeyColumn]:
    """The keys of other tables that hold nearly all values of a column, in their order."""
    counts: dict[int, int] = {}
    for value in column.values:
        for at in holding.get(value, ()):
            counts[at] = counts.get(at, 0) + 1
    least = LEAST_HELD * len(column.values)
    return [keys[at] for at in sorted(counts) if counts[at] >= least and keys[at].table != column.table]


def _fit(column: KeyColumn, key: KeyColumn, table_words: set[str]) -> float:
    """How well a column seems to refer to a key that holds its values; 0 where it does not."""
    words = column.words
    same = bool(words) and (words == key.words or set(words) == table_words | set(key.words))
    if same and (len(words) > 1 or words not in GENERIC):
        return 3.0
    named = bool(set(words) & table_words) and key.number == 0
    if named or (words and words == key.words and _are_texts(column.values)):
        return 2.0
    return 1.0 if len(column.values) >= LEAST_TEXTS and _are_texts(column.values) else 0.0


def _are_texts(values: frozenset[str]) -> bool:
    """Whether most values have a letter and more than one character: neither numbers nor marks."""
    return sum(len(value) > 1 and any(c.isalpha() for c in value) for value in values) > 0.8 * len(values)

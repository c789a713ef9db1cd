"""Nested data (of JSON, YAML, XML) as the blocks of a page: tables by fields, attributes, long texts.

- a list of objects is a table, a row for each; fields of objects within are named `outer.inner`, and a list of objects
  within becomes a table of its own, whose rows begin with the first fields of the object that they are in
- an object whose members are objects with the same fields is such a table too, its first column `key`
- an object whose members are lists of the same length is a table by columns
- the other plain values of an object are attributes, as of an infobox
- a text of many words is a passage, with the title and the short fields of the object that it is in
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from helios.config import CorpusBudget
from helios.corpus.budget import RecordShapeError, check, limited
from helios.corpus.encoding import readable
from helios.corpus.grid import split_grid
from helios.corpus.page import Block, Heading, PageTable, Paragraph, Place
from helios.corpus.record import check_name
from helios.corpus.shape import cell_text
from helios.types import TableKind

LONG_TEXT = 40
"""Words from which on a value is a text to read and no cell of a table."""
_TITLES = ("title", "name", "headline", "subject", "label")
_CARRIED = 2
_ALIKE = 0.5
_METADATA_LENGTH = 200
_FREE_VALUES = 100_000

Object = Mapping[str, Any]
Path = tuple[str, ...]


def checked(value: object, budget: CorpusBudget, *, size: int) -> object:
    """The same value if it is not nested too deeply, and does not repeat itself into more than `size` bytes can say."""
    count = 0
    left = [(value, 0)]
    while left:
        inner, depth = left.pop()
        count += 1
        if depth > budget.depth:
            raise RecordShapeError(f"nested too deeply: advanced.corpus.depth allows {budget.depth} levels")
        if count > max(size, _FREE_VALUES):
            raise RecordShapeError(f"its references expand to more than {max(size, _FREE_VALUES):,} values")
        if isinstance(inner, Mapping):
            left.extend((each, depth + 1) for each in inner.values())
        elif isinstance(inner, list):
            left.extend((each, depth + 1) for each in inner)
    return value


def title_of(value: object) -> str:
    """The text that an object calls its title or name, empty if it has none."""
    if not isinstance(value, Mapping):
        return ""
    names = {str(name).lower(): name for name in value}
    found = (value[names[name]] for name in _TITLES if name in names)
    return next((" ".join(text.split()) for text in found if isinstance(text, str) and _is_short(text)), "")


def data_blocks(value: object, budget: CorpusBudget, path: Path = ()) -> Iterator[Block]:
    """Tables, attributes and texts of a value, under headings for the `path` that leads to it."""
    yield from _headings(path)
    match value:
        case Mapping():
            yield from _object(value, budget, path)
        case list():
            yield from _list(value, budget, path)
        case _ if _text(value):
            yield Paragraph(_text(value))


def _headings(path: Path) -> Iterator[Heading]:
    return (Heading(min(level, 6), name) for level, name in enumerate(path, 1))


def _object(value: Object, budget: CorpusBudget, path: Path) -> Iterator[Block]:
    if (columns := _columns(value)) is not None:
        yield PageTable([readable(str(name)) for name in value], columns)
        return
    if _is_collection(value):
        yield from _records([{"key": key, **inner} for key, inner in value.items()], budget, path)
        return
    parts = _Parts.of(value)
    texts = [(inner, text) for inner, text in parts.plain if not _is_short(text)]
    short = ((" / ".join(inner), text) for inner, text in parts.plain if _is_short(text))
    if rows := list(limited(short, budget)):
        yield PageTable((), rows, kind=TableKind.INFOBOX)
    for inner, text in texts:
        yield from _headings(path + inner)
        yield from _paragraphs(text)
    for inner, collection in parts.collections:
        yield from data_blocks(collection, budget, path + inner)


def _list(values: list[Any], budget: CorpusBudget, path: Path) -> Iterator[Block]:
    objects = [value for value in values if isinstance(value, Mapping)]
    if len(values) == len(objects) == 1:
        yield from _object(objects[0], budget, path)
    elif objects:
        yield from _records(
            [value if isinstance(value, Mapping) else {"value": value} for value in values], budget, path
        )
    elif any(isinstance(value, list) for value in values):
        rows = [value if isinstance(value, list) else [value] for value in values]
        grid = split_grid([[_text(cell) for cell in row] for row in rows])
        yield PageTable(grid.header, grid.rows, notes=grid.titles)
    elif all(_is_short(_text(value)) for value in values):
        if values:
            yield PageTable((path[-1] if path else "value",), [(_text(value),) for value in values])
    else:
        for value in values:
            yield from _paragraphs(_text(value))


def _records(records: Sequence[Object], budget: CorpusBudget, path: Path) -> Iterator[Block]:
    """A table of the short fields, passages of the long ones, then the tables within, a table for each field."""
    parts = [_Parts.of(record) for record in records]
    rows = [dict(limited(((".".join(inner), text) for inner, text in part.plain), budget)) for part in parts]
    names = [
        name
        for name, _ in limited(((name, "") for name in dict.fromkeys(name for row in rows for name in row)), budget)
    ]
    check(budget, "cells", len(names) * len(rows), "cells of the table")
    long = {name for name in names if _is_long([row[name] for row in rows if row.get(name)])}
    short = [name for name in names if name not in long]
    if len(short) > 1 or (short and not long):
        yield PageTable(short, [[row.get(name, "") for name in short] for row in rows])
    for record, row in zip(records, rows, strict=True):
        texts = [row[name] for name in names if name in long and row.get(name)]
        if texts:
            fields = sorted((name, row[name]) for name in short if 0 < len(row.get(name, "")) <= _METADATA_LENGTH)
            yield Place(tuple(fields), title_of(record) or next((row[name] for name in short if row.get(name)), ""))
            for text in texts:
                yield from _paragraphs(text)
    if long:
        yield Place()
    collections: dict[Path, list[Object]] = {}
    for part, row in zip(parts, rows, strict=True):
        carried = {name: row[name] for name in [name for name in short if row.get(name)][:_CARRIED]}
        for inner, collection in part.collections:
            collections.setdefault(inner, []).extend(_with_owner(collection, carried, inner))
    for inner, within in collections.items():
        yield from data_blocks(within, budget, path + inner)


def _with_owner(collection: Any, carried: Mapping[str, str], path: Path) -> Iterator[Object]:
    """The members of a collection as objects that begin with fields of the object that it is in."""
    if isinstance(collection, Mapping):
        collection = [{"key": key, **inner} for key, inner in collection.items()]
    for member in collection:
        own = member if isinstance(member, Mapping) else {path[-1]: member}
        yield {**{name if name not in own else f"owner {name}": text for name, text in carried.items()}, **own}


@dataclass(frozen=True, slots=True)
class _Parts:
    """An object taken apart: its plain values as text by their path, and the collections within it."""

    plain: list[tuple[Path, str]]
    collections: list[tuple[Path, Any]]

    @classmethod
    def of(cls, value: Object) -> "_Parts":
        parts = cls([], [])
        parts._add(value, ())
        return parts

    def _add(self, value: Object, path: Path) -> None:
        for name, inner in value.items():
            here = (*path, readable(str(name)))
            check_name(sum(map(len, here)))
            if _is_collection(inner):
                self.collections.append((here, inner))
            elif isinstance(inner, Mapping):
                self._add(inner, here)
            elif inner != []:
                self.plain.append((here, _text(inner)))


def _is_collection(value: object) -> bool:
    """A list with objects or lists in it, or an object whose members are objects that share most of their fields."""
    if isinstance(value, list):
        return any(isinstance(inner, Mapping | list) for inner in value)
    if not isinstance(value, Mapping) or len(value) < 2 or not all(isinstance(one, Mapping) for one in value.values()):
        return False
    fields = {name for inner in value.values() for name in inner}
    return sum(map(len, value.values())) > _ALIKE * len(fields) * len(value)


def _columns(value: Object) -> list[tuple[str, ...]] | None:
    """The rows of an object whose members are lists of plain values of the same length, at least two of each."""
    columns = list(value.values())
    if len(columns) < 2 or not all(isinstance(column, list) and len(column) > 1 for column in columns):
        return None
    if len({len(column) for column in columns}) > 1 or any(map(_is_collection, columns)):
        return None
    return list(zip(*([_text(cell) for cell in column] for column in columns), strict=True))


def _text(value: object) -> str:
    """A plain value as text, the members of a list one after the other."""
    if isinstance(value, list):
        return "; ".join(filter(None, map(_text, value)))
    return "" if isinstance(value, Mapping) else readable(cell_text(value))


def _paragraphs(text: str) -> Iterator[Paragraph]:
    for piece in text.split("\n\n"):
        if plain := " ".join(piece.split()):
            yield Paragraph(plain)


def _is_short(text: str) -> bool:
    return len(text.split(maxsplit=LONG_TEXT)) < LONG_TEXT


def _is_long(texts: Sequence[str]) -> bool:
    """Whether the texts of a field are mostly long."""
    return bool(texts) and median(not _is_short(text) for text in texts) > 0.5

"""A database's schema as a context is gathered from it: the columns that are given, the keys to follow, the times.

What the source's `access` hides is not in its descriptor, and so not here; columns that it masks are counted as masked,
and keys over them are not followed, since their values never leave the database.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from helios.augment.context import Kind
from helios.augment.settings import AugmentSettings, read_key
from helios.augment.words import kind_of
from helios.errors import ConfigError, ContextError
from helios.sources.descriptor import Column, Descriptor, ForeignKey, RelationalSchema, TableSchema

_WRITTEN = re.compile(r"creat|insert|written|posted|sent|opened|ordered|added|received|submitted|reviewed|purchased")
"""Names of columns that say when a row was written."""
_ID = re.compile(r"(?:^|_)(?:[iI][dD]|ID|uuid)$|[a-z]I[dD]$")
_ANY = ("*", "?")


@dataclass(frozen=True, slots=True)
class GivenColumn:
    """A column whose values a question is given, or that is masked: then they are only counted."""

    column: Column
    kind: Kind
    masked: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is read."""

    schema: TableSchema
    given: tuple[GivenColumn, ...]
    primary: tuple[str, ...]
    time: str | None
    guessed: bool
    """Whether the time column was chosen by its name and type."""
    read: tuple[str, ...]
    """All columns that are selected, each once: given ones, keys, the time."""

    @property
    def name(self) -> str:
        return self.schema.name

    def column(self, name: str) -> Column | None:
        """A column by its name, whatever its capitals."""
        return next((one for one in self.schema.columns if one.name.casefold() == name.casefold()), None)


@dataclass(frozen=True, slots=True)
class Step:
    """A key followed in one direction: rows of `table` lead by `own` to those of `other` with the same `referred`."""

    table: str
    own: tuple[str, ...]
    other: str
    referred: tuple[str, ...]
    down: bool
    """Whether from what is referred to, to the rows that refer: one to many."""

    def __str__(self) -> str:
        return f"{_side(self.table, self.own)} {'<' if self.down else '>'} {_side(self.other, self.referred)}"

    def reverses(self, step: "Step") -> bool:
        """Whether it goes back over the same key."""
        return (self.table, self.own, self.other, self.referred) == (step.other, step.referred, step.table, step.own)


class Plan:
    """The tables of a source and the steps from each; immutable, so threads may share it."""

    def __init__(self, descriptor: Descriptor, settings: AugmentSettings) -> None:
        """ConfigError for settings that name what is not there, ContextError for a source that is no database."""
        schema = descriptor.schema
        if not isinstance(schema, RelationalSchema):
            raise ContextError(f"source {descriptor.source!r}: expected a database that is asked in SQL for a context")
        self.source = descriptor.source
        self.dialect = schema.dialect
        self.notes: tuple[str, ...] = ()
        self._schemas = {table.name.casefold(): table for table in schema.tables}
        self._check_names(settings)
        keys = list(self._keys(settings))
        self.tables = {name: self._table(table, keys, settings) for name, table in self._schemas.items()}
        self.steps = {name: tuple(self._steps(name, keys)) for name in self.tables}

    def table(self, name: str) -> Table:
        """A table by its name; ContextError says which there are."""
        found = self.tables.get(name.casefold())
        if found is None:
            known = ", ".join(table.name for table in list(self.tables.values())[:20])
            raise ContextError(f"source {self.source!r}: no table {name!r}, or it is not to be seen; there are {known}")
        return found

    def joins_two(self, table: Table) -> bool:
        """Whether a table says nothing itself: it only joins others."""
        return not table.given

    def start_of_value(self, name: str) -> tuple[Table, str]:
        """Where a value such as `user_id` or `users.id` stands; ContextError where that is not one place."""
        owner, dot, column = name.partition(".")
        if dot:
            table = self.table(owner)
            found = table.column(column)
            if found is None:
                raise ContextError(f"value {name!r}: the table {table.name} has no such column")
            return table, found.name
        wanted = name.casefold()
        places = {
            (step.other.casefold(), step.referred[0])
            for steps in self.steps.values() for step in steps
            if not step.down and len(step.own) == 1 and step.own[0].casefold() == wanted
        }  # fmt: skip
        if not places:
            places = {
                (key, found.name) for key, table in self.tables.items() if (found := table.column(name)) is not None
            }
        if len(places) == 1:
            ((key, column),) = places
            return self.tables[key], column
        if not places:
            raise ContextError(f"value {name!r}: no table of {self.source!r} has this column; write table.column")
        shown = ", ".join(sorted(f"{self.tables[key].name}.{column}" for key, column in places))
        raise ContextError(f"value {name!r} could be any of {shown}; write table.column")

    def _keys(self, settings: AugmentSettings) -> Iterable[tuple[str, ForeignKey]]:
        """Declared keys and those of the settings, each once, with names as the database spells them."""
        declared = [(table.name, key) for table in self._schemas.values() for key in table.foreign_keys]
        seen, notes = set(), []
        for told, (table, key) in [
            *((False, one) for one in declared),
            *((True, read_key(text)) for text in settings.keys),
        ]:
            own, other = self._schemas.get(table.casefold()), self._schemas.get(key.table.casefold())
            problem = _missing(table, own, key.columns) or _missing(key.table, other, key.referred)
            if problem and told:
                raise ConfigError(f"keys: {_side(table, key.columns)} -> {_side(key.table, key.referred)}: {problem}")
            if problem or own is None or other is None:
                notes.append(f"the key {_side(table, key.columns)} is not followed: {problem}")
                continue
            key = ForeignKey(_spelled(own, key.columns), other.name, _spelled(other, key.referred))
            closed = [
                f"{side.name}.{name}"
                for side, names in ((own, key.columns), (other, key.referred)) for name in names
                if _fits(f"{side.name}.{name}", settings.exclude) or _is_masked(side, name)
                or _fits(side.name, settings.exclude)
            ]  # fmt: skip
            if not closed and (own.name, key) not in seen:
                seen.add((own.name, key))
                yield own.name, key
        self.notes = (*self.notes, *notes)

    def _table(self, schema: TableSchema, keys: Sequence[tuple[str, ForeignKey]], settings: AugmentSettings) -> Table:
        own = [key.columns for table, key in keys if table == schema.name]
        own += [key.columns for key in schema.foreign_keys]
        referred = [key.referred for _, key in keys if key.table == schema.name]
        told = next(
            (names for name, names in settings.primary.items() if name.casefold() == schema.name.casefold()), None
        )
        primary = tuple(column.name for column in schema.columns if column.primary_key and not column.masked)
        primary = primary if told is None else _spelled(schema, told)
        time, guessed = _time_of(schema, settings)
        foreign = {name.casefold() for names in own for name in names}
        given = tuple(
            GivenColumn(column, kind, column.masked or _fits(f"{schema.name}.{column.name}", settings.mask))
            for column in schema.columns
            if column.name.casefold() not in foreign and _is_given(schema, column, settings)
            and (kind := _kind(schema, column, settings)) is not None
            and not (_is_id(column, primary) and not _is_told(schema, column, settings))
            and not any(column.name in names for names in referred if _is_number(column))
        )  # fmt: skip
        shown = [one.column.name for one in given if not one.masked]
        names = [*primary, *shown, *(name for names in [*own, *referred] for name in names), *([time] if time else [])]
        readable = {column.name for column in schema.columns if not column.masked}
        read = tuple(dict.fromkeys(name for name in names if name in readable))
        read += tuple(one.column.name for one in given if one.masked and one.column.name not in read)
        return Table(schema, given, primary, time, guessed, read)

    def _steps(self, name: str, keys: Sequence[tuple[str, ForeignKey]]) -> Iterable[Step]:
        for table, key in keys:
            if table.casefold() == name:
                yield Step(table, key.columns, key.table, key.referred, down=False)
            if key.table.casefold() == name:
                yield Step(key.table, key.referred, table, key.columns, down=True)

    def _check_names(self, settings: AugmentSettings) -> None:
        """A name that fits nothing is a slip that would give what should be kept back."""
        tables = [table.name for table in self._schemas.values()]
        columns = [f"{table.name}.{column.name}" for table in self._schemas.values() for column in table.columns]
        for key in ("include", "exclude", "mask", "kinds"):
            for pattern in getattr(settings, key):
                known = any(
                    _fits(name, (pattern,)) for name in (columns if key in ("mask", "kinds") else [*tables, *columns])
                )
                if not known and not any(sign in pattern for sign in _ANY):
                    raise ConfigError(
                        f"{key}: source {self.source!r} has no table or column {pattern!r} that may be seen"
                    )
        for key, named in (("primary", settings.primary), ("time", {t: (c,) for t, c in settings.time.items() if c})):
            for table, names in named.items():
                if problem := _missing(table, self._schemas.get(table.casefold()), names):
                    raise ConfigError(f"{key}: {problem}")


def _time_of(schema: TableSchema, settings: AugmentSettings) -> tuple[str | None, bool]:
    """The column that says when a row was written, and whether that is a guess."""
    for table, column in settings.time.items():
        if table.casefold() == schema.name.casefold():
            return (None if column is None else _spelled(schema, (column,))[0]), False
    dates = [one.name for one in schema.columns if not one.masked and kind_of(one) is Kind.DATE]
    named = [name for name in dates if _WRITTEN.search(name.lower())]
    if named or len(dates) == 1:
        return (named or dates)[0], True
    return None, False


def _kind(schema: TableSchema, column: Column, settings: AugmentSettings) -> Kind | None:
    for name, kind in settings.kinds.items():
        if _fits(f"{schema.name}.{column.name}", (name,)):
            return kind
    return kind_of(column)


def _is_given(schema: TableSchema, column: Column, settings: AugmentSettings) -> bool:
    names = (schema.name, f"{schema.name}.{column.name}")
    included = not settings.include or any(_fits(name, settings.include) for name in names)
    return included and not any(_fits(name, settings.exclude) for name in names)


def _is_number(column: Column) -> bool:
    return kind_of(replace(column, samples=())) is Kind.NUMBER or "UUID" in column.type.upper()


def _is_id(column: Column, primary: Sequence[str]) -> bool:
    """Whether a column holds numbers that name rows, declared or not."""
    return _is_number(column) and (column.name in primary or _ID.search(column.name) is not None)


def _is_told(schema: TableSchema, column: Column, settings: AugmentSettings) -> bool:
    return any(_fits(f"{schema.name}.{column.name}", (name,)) for name in settings.kinds)


def _is_masked(schema: TableSchema, name: str) -> bool:
    return any(column.masked for column in schema.columns if column.name == name)


def _missing(name: str, schema: TableSchema | None, columns: Sequence[str]) -> str:
    """What of a table and its columns is not there, in words; empty where all is."""
    if schema is None:
        return f"there is no table {name!r} that may be seen"
    known = {column.name.casefold() for column in schema.columns}
    absent = [column for column in columns if column.casefold() not in known]
    return f"the table {schema.name} has no column {', '.join(map(repr, absent))}" if absent else ""


def _spelled(schema: TableSchema, names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns as the table has them."""
    own = {column.name.casefold(): column.name for column in schema.columns}
    return tuple(own[name.casefold()] for name in names)


def _side(table: str, columns: Sequence[str]) -> str:
    return f"{table}.{columns[0]}" if len(columns) == 1 else f"{table}({', '.join(columns)})"


def _fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether a table (`a`) or a column (`a.b`) is meant; a pattern without a dot means tables alone."""
    return any(
        ("." in pattern) == ("." in name) and fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns
    )

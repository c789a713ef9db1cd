"""From a row of a database to its context: keys followed in both directions, a query a table (DAQu 3.1).

    with Registry.open("helios-sources.yaml") as registry:
        augmenter = Augmenter(registry.source("helpdesk"))
        context = augmenter.of_row("tickets", "17")

Every query goes through the guarded, read-only executor of the source, so that its `access` (columns, masks, row
filters) and its limits hold here too. Nothing that was written after the question's own time is given: rows of a table
with a time column must be older for sure, and one whose time cannot be read is left out.

Which rows of many are given depends on the seed and on each row's own key alone: a row more, or one that is left
out, changes nothing of the choice among the others.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from hashlib import blake2b
from math import inf
from pathlib import Path
from threading import Lock
from time import monotonic, perf_counter
from time import time as now
from typing import Any, Protocol, TypeVar

from helios.augment.context import Attribute, Context, ContextColumn, Kind
from helios.augment.schema import GivenColumn, Plan, Step, Table
from helios.augment.settings import AugmentSettings, read_settings
from helios.augment.words import cleaned, in_words, instant_of, iso_form
from helios.errors import ContextError, QueryFailed, QueryRejected, QueryTimeout, SourceError
from helios.executors.base import Language, Limits, NativeQuery, Outcome, ResultSet, execute_many
from helios.executors.values import Value
from helios.sources.descriptor import Descriptor
from helios.sources.registry import Registry

POOL = 10_000
"""Rows behind a key among which is sampled; those beyond are not looked at."""
SIZES = (1, 4, 16, 64, 256, 1024)
"""How many values a query's lists have: the last is repeated, so that the guard knows the text from the time before."""
SHORTEST = 0.02
"""Seconds below which a query is not begun."""

Key = tuple[Value, ...]
Row = Mapping[str, Value]
T = TypeVar("T")
Asking = Generator[NativeQuery, ResultSet, T]
"""What asks queries one after the other and comes to something; a query that fails is raised where it was asked."""


class Database(Protocol):
    """What is needed of a source (`helios.sources.base.Source`)."""

    @property
    def name(self) -> str: ...

    def descriptor(self) -> Descriptor: ...

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet: ...


def open_augmenter(registry: Registry, name: str, settings: Path | str | None = None) -> "Augmenter":
    """The augmenter of a registered source, with the settings of a file, or of the one that is kept beside the sources.

    For `helios-sources.yaml` and a source `shop` that is `helios-sources.augment/shop.yaml`. ConfigError.
    """
    source = registry.source(name)
    kept = registry.path.with_suffix(".augment") / f"{name}.yaml"
    return Augmenter(source, settings if settings is not None else kept if kept.exists() else None)


class Augmenter:
    """Gathers contexts from one source; threads may share it."""

    def __init__(self, source: Database, settings: AugmentSettings | Path | str | None = None) -> None:
        """`settings` may be the path of a YAML file (`helios.augment.settings`); ConfigError if it is wrong."""
        self.source = source
        self.settings = settings if isinstance(settings, AugmentSettings) else (
            AugmentSettings() if settings is None else read_settings(settings)
        )  # fmt: skip
        self._plan: tuple[Descriptor, Plan] | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"Augmenter({self.source.name!r})"

    @property
    def plan(self) -> Plan:
        """Tables and keys as the source describes them now."""
        descriptor = self.source.descriptor()
        with self._lock:
            if self._plan is None or self._plan[0] is not descriptor:
                self._plan = (descriptor, Plan(descriptor, self.settings))
            return self._plan[1]

    def of(self, row: str, *, at: datetime | None = None) -> Context:
        """The context of a row by its name, such as `tickets:17`; of a composite key `lines:12,3`."""
        table, colon, key = row.partition(":")
        if not colon or not table or not key:
            raise ContextError(f"{row!r}: expected a row as table:key, such as tickets:17")
        return self.of_row(table, key, at=at)

    def of_row(self, table: str, key: Value, *, at: datetime | None = None) -> Context:
        """The context of one row: its own values, and those of the rows that keys lead to.

        `key` is the primary key's value; of a composite one a tuple, or a text with commas. `at` is the question's
        time: by default what the row's time column says, now where it has none. ContextError for a table, a key or a
        row that is not there.
        """
        plan = self.plan
        found = plan.table(table)
        values = _key_of(found, key)
        name = f"{found.name}:{','.join(map(_shown, values))}"
        walk = _Walk(self, plan, name, is_row=True)
        walk.start(found, found.primary, values, at)
        return walk.context()

    def of_values(self, values: Mapping[str, Value], *, at: datetime | None = None) -> Context:
        """The context of values that name rows: `{"user_id": 5}`, or `{"users.id": 5}` where that could be several.

        A question that is no row yet is asked now, or `at`. ContextError where no row has such a value.
        """
        if not values:
            raise ContextError("no values: expected at least one, such as {'user_id': 5}")
        plan = self.plan
        starts: dict[str, tuple[Table, list[str], list[Value]]] = {}
        for name, value in values.items():
            table, column = plan.start_of_value(name)
            _, columns, given = starts.setdefault(table.name, (table, [], []))
            columns.append(column)
            given.append(_typed(table, column, value))
        walk = _Walk(self, plan, ", ".join(f"{name}={_shown(value)}" for name, value in values.items()), is_row=False)
        for table, columns, given in starts.values():
            walk.start(table, columns, given, at or datetime.now(UTC))
        return walk.context()


@dataclass(slots=True)
class _Group:
    """Rows of one table that were reached in one way."""

    table: Table
    rows: list[Row]
    path: tuple[Step, ...]
    depth: int

    def ages(self, at: float) -> list[float | None]:
        """How many seconds before `at` each row was written; None where that is not known."""
        if self.table.time is None:
            return [None] * len(self.rows)
        instants = [instant_of(row[self.table.time]) for row in self.rows]
        return [None if instant is None else max(0.0, at - instant.first) for instant in instants]

    def names(self) -> list[str]:
        """Each row's name: its table and its key."""
        if not self.table.primary:
            return [self.table.name] * len(self.rows)
        return [f"{self.table.name}:{','.join(map(_shown, _identity(self.table, row)))}" for row in self.rows]


@dataclass(frozen=True, slots=True)
class _Way:
    """Keys of a group's rows, and the table that they lead to."""

    table: Table
    keys: list[Key]
    path: tuple[Step, ...]
    depth: int


@dataclass(slots=True)
class _Sample:
    """Some of the rows with some keys."""

    rows: list[Row] = field(default_factory=list)
    found: int = 0
    """How many rows there are, as far as they were counted."""
    seconds: float = 0.0

    def of(self, rows: list[Row], found: int | None = None) -> "_Sample":
        self.rows, self.found = rows, len(rows) if found is None else found
        return self


@dataclass(slots=True)
class _Walk:
    """One row's way through the tables, and what was found on it."""

    augmenter: Augmenter
    plan: Plan
    name: str
    is_row: bool
    """Whether it begins at one row, which is given whatever its time, or at all that have some values."""
    at: float = 0.0
    began: float = field(default_factory=perf_counter)
    until: float = inf
    """When no more keys are followed; begins with the question's own row, since an engine may have to start before."""
    seen: set[tuple[str, Key]] = field(default_factory=set)
    starts: list[_Group] = field(default_factory=list)
    columns: list[ContextColumn] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    truncated: bool = False

    def __post_init__(self) -> None:
        self.notes = dict.fromkeys(self.plan.notes)

    @property
    def settings(self) -> AugmentSettings:
        return self.augmenter.settings

    def start(self, table: Table, columns: Sequence[str], values: Sequence[Value], at: datetime | None) -> None:
        """Read the question's own row, and with it the question's time; ContextError where it is not there."""
        asked = ", ".join(f"{column}={_shown(value)}" for column, value in zip(columns, values, strict=True))
        started = perf_counter()
        if at is not None:
            self.at = _utc(at).timestamp()
        reading = self._rows(table, columns, [tuple(values)], limit=self.settings.per_column, timed=not self.is_row)
        (rows,) = self._together([reading])
        if isinstance(rows, SourceError):
            raise ContextError(f"{table.name}: the row with {asked} cannot be read: {rows}") from rows
        rows = rows if self.is_row else self._in_time(table, rows)
        if not rows:
            raise ContextError(f"{table.name}: there is no row with {asked}, or it is not to be seen")
        if at is None:
            self.at = self._time_of(table, rows[0])
        self.until = min(self.until, monotonic() + self.settings.seconds)
        self.starts.append(self._taken(_Group(table, rows, (), 0), len(rows), perf_counter() - started))

    def context(self) -> Context:
        """Follow the keys, nearest first, and put what was found together."""
        reached = list(self.starts)
        while reached and (ways := [way for group in reached for way in self._ways(group)]):
            if self.until - monotonic() < SHORTEST:
                self.truncated = True
                self.notes[f"after {self.settings.seconds:g} s some keys were not followed"] = None
                break
            reached = self._follow(ways)
        columns, cut = _shared_out(self.columns, self.settings.attributes)
        if cut:
            self.truncated = True
            self.notes[f"{cut} values are left out: {self.settings.attributes} are given at most"] = None
        return Context(tuple(columns), self.name, self.truncated, perf_counter() - self.began, tuple(self.notes))

    def _ways(self, group: _Group) -> Iterator[_Way]:
        """Where the keys of a group's rows lead."""
        for step in self.plan.steps[group.table.name.casefold()]:
            table = self.plan.table(step.other)
            depth = group.depth + (not self.plan.joins_two(table))
            if depth <= self.settings.depth and _leads_on(group.path, step):
                keys = _keys(group.rows, step.own)
                if keys:
                    yield _Way(table, keys, (*group.path, step), depth)

    def _follow(self, ways: Sequence[_Way]) -> list[_Group]:
        """The rows that keys lead to, without those that were met before."""
        asked = [self._sampled(way.table, way.path[-1].referred, way.keys) for way in ways]
        groups = []
        for way, outcome in zip(ways, self._together(asked), strict=True):
            table = way.table
            match outcome:
                case QueryTimeout():
                    self.truncated = True
                    self.notes[f"{table.name} by {way.path[-1]}: stopped at the deadline"] = None
                case QueryFailed() | QueryRejected():
                    self.truncated = True
                    said = cleaned(str(outcome))[:200]
                    self.notes[f"{table.name} cannot be read and is left out: {said}"] = None
                case SourceError():
                    raise outcome
                case sample:
                    rows = sample.rows
                    new = [row for row in rows if (table.name, _identity(table, row)) not in self.seen]
                    if new:
                        found = sample.found - len(rows) + len(new)
                        groups.append(self._taken(_Group(table, new, way.path, way.depth), found, sample.seconds))
        return groups

    def _together(self, asking: Sequence[Asking[T]]) -> list[T | SourceError]:
        """What each comes to when all that they ask is asked together, as often as one of them has a query."""
        outcomes: dict[int, T | SourceError] = {}
        replies: dict[int, Outcome | None] = dict.fromkeys(range(len(asking)))
        while replies:
            queries: dict[int, NativeQuery] = {}
            for number, reply in replies.items():
                try:
                    if isinstance(reply, SourceError):
                        queries[number] = asking[number].throw(reply)
                    else:
                        queries[number] = asking[number].send(reply)  # type: ignore[arg-type]  # None begins one
                except StopIteration as end:
                    outcomes[number] = end.value
                except SourceError as error:
                    outcomes[number] = error
            replies = dict(zip(queries, self._asked(list(queries.values())), strict=True))
        return [outcomes[number] for number in range(len(asking))]

    def _asked(self, queries: Sequence[NativeQuery]) -> list[Outcome]:
        """What becomes of queries in the time that is left."""
        if not queries:
            return []
        left = self.until - monotonic()
        if left < SHORTEST:
            return [QueryTimeout(self.settings.seconds) for _ in queries]
        source = self.augmenter.source
        own = getattr(getattr(source, "spec", None), "limits", None) or Limits()
        limits = own.model_copy(update={"timeout": min(left, own.timeout), "max_rows": POOL + 1})
        try:
            return execute_many(source, queries, limits, min(left, own.timeout * len(queries)))
        except SourceError as error:
            return [error for _ in queries]

    def _taken(self, group: _Group, found: int, seconds: float) -> _Group:
        """The same, with its values added to the context."""
        self.seen.update((group.table.name, _identity(group.table, row)) for row in group.rows)
        sampled = found > len(group.rows)
        ages, names = group.ages(self.at), group.names()
        for given in group.table.given:
            column = self._column(group, given, seconds, ages, names)
            if column.found:
                self.columns.append(_with_found(column, found) if sampled else column)
        return group

    def _column(
        self, group: _Group, given: GivenColumn, seconds: float, ages: Sequence[float | None], names: Sequence[str]
    ) -> ContextColumn:
        """The distinct values of a column in some rows, whose ages and names are given."""
        table, name = group.table, f"{group.table.name}.{given.column.name}"
        values: dict[str, Attribute] = {}
        count = 0
        for row, age, called in zip(group.rows, ages, names, strict=True):
            value = row[given.column.name]
            if value in (0, 1) and "BOOL" in given.column.type.upper():
                value = bool(value)  # SQLite has no other
            if given.kind is Kind.DATE and given.column.name != table.time and not _is_by(value, self.at):
                continue
            text = in_words(given.column.name, given.kind, value, characters=self.settings.characters)
            count += bool(text)
            if text and not given.masked and text not in values:
                values[text] = Attribute(name, text, called, given.kind, age)
        path = tuple(str(step) for step in group.path)
        return ContextColumn(name, path, tuple(values.values()), count, seconds)

    def _sampled(self, table: Table, columns: Sequence[str], keys: Sequence[Key]) -> Asking[_Sample]:
        """Some of the rows with these keys, and how many there are as far as they were counted."""
        most = self.settings.per_column
        sample = _Sample()
        rows = yield from self._rows(table, columns, keys, limit=most + 1, sample=sample)
        if len(rows) <= most:
            return sample.of(self._in_time(table, rows))
        if not table.primary:
            self.truncated = True
            self.notes[f"{table.name}: has no primary key, so the first {most} rows are given"] = None
            return sample.of(self._in_time(table, rows[:most]), len(rows))
        named = (*table.primary, *([table.time] if table.time else []))
        read = dict.fromkeys(named)
        pool = yield from self._rows(table, columns, keys, limit=POOL + 1, read=read, sample=sample)
        pool = self._in_time(table, pool)
        if len(pool) > POOL:
            self.notes[f"{table.name}: more than {POOL:,} rows; sampled from the first {POOL:,}"] = None
        chosen = [_identity(table, row) for row in sorted(pool[:POOL], key=lambda row: self._lot(table, row))[:most]]
        self.truncated = self.truncated or len(pool) > most
        if not chosen:
            return sample
        rows = yield from self._rows(table, table.primary, chosen, limit=most, sample=sample)
        return sample.of(self._in_time(table, rows), len(pool))

    def _rows(
        self,
        table: Table,
        columns: Sequence[str],
        keys: Sequence[Key],
        *,
        limit: int,
        read: Iterable[str] | None = None,
        timed: bool = True,
        sample: _Sample | None = None,
    ) -> Asking[list[Row]]:
        """Rows of which these columns have one of these values, those first that are first in the database."""
        names = tuple(table.read if read is None else read)
        time = self._limit_of_time(table) if timed else None
        result = yield _query(self.plan.dialect, table, names, columns, keys, time, limit, self.settings)
        if sample is not None:
            sample.seconds += result.milliseconds / 1e3
        if result.truncated == "bytes":
            self.truncated = True
            self.notes[f"{table.name}: the rows have more bytes than the source's limits allow; some are left out"] = (
                None
            )
        return [dict(zip(names, row, strict=True)) for row in result.rows]

    def _limit_of_time(self, table: Table) -> tuple[str, str, Value] | None:
        """Column, comparison and value that leave out in the database what is later, where it can compare them."""
        column = table.column(table.time) if table.time and self.at else None
        if column is None or table.time is None:
            return None
        asked, dialect, declared = datetime.fromtimestamp(self.at, UTC), self.plan.dialect, column.type.upper()
        if dialect != "sqlite" and ("TIMESTAMP" in declared or "DATETIME" in declared):
            aware = "WITH TIME ZONE" in declared or declared == "TIMESTAMPTZ"
            return table.time, "<=", asked if aware else asked.replace(tzinfo=None)
        if dialect != "sqlite" and declared == "DATE":
            return table.time, "<", asked.date()
        form = iso_form(column.samples)
        if form == "date":
            return table.time, "<", asked.date().isoformat()
        return None if form is None else (table.time, "<=", asked.strftime(f"%Y-%m-%d{form}%H:%M:%S.%f"))

    def _in_time(self, table: Table, rows: list[Row]) -> list[Row]:
        """Those that were there at the question's time, for sure."""
        if table.time is None:
            return rows
        kept, unread = [], 0
        for row in rows:
            instant = instant_of(row[table.time])
            unread += instant is None
            if instant is not None and instant.is_by(self.at):
                kept.append(row)
        if unread:
            self.notes[f"{table.name}: rows whose {table.time} cannot be read as a time are left out"] = None
        return kept

    def _time_of(self, table: Table, row: Row) -> float:
        if table.time is None:
            return now()
        instant = instant_of(row[table.time])
        if instant is None:
            shown = _shown(row[table.time])
            raise ContextError(
                f"{self.name}: its time, {table.name}.{table.time}, is {shown!r}: expected a date such as "
                "2024-03-01T12:00:00 or seconds since 1970; name another column in the settings (`time`), or give `at`"
            )
        return instant.first

    def _lot(self, table: Table, row: Row) -> bytes:
        text = f"{self.settings.seed} {table.name} {_identity(table, row)!r}"
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _leads_on(path: Sequence[Step], step: Step) -> bool:
    """Whether a step leads to other rows than the way so far: not back up a key, and not down, up and down again."""
    if not path:
        return True
    if not step.down and path[-1].reverses(step):
        return False
    if any(step == other for other in path):
        return False
    turned = any(before.down and not after.down for before, after in zip(path, path[1:], strict=False))
    return not (turned and step.down)


def _query(
    dialect: str, table: Table, names: Sequence[str], columns: Sequence[str], keys: Sequence[Key],
    time: tuple[str, str, Value] | None, limit: int, settings: AugmentSettings,
) -> NativeQuery:  # fmt: skip
    """One statement, with every value bound."""
    mark = "$" if dialect == "duckdb" else ":"
    size = next((size for size in SIZES if size >= len(keys)), len(keys))
    padded = [*keys, *[keys[-1]] * (size - len(keys))]
    parameters: dict[str, Value] = {}
    long = {given.column.name for given in table.given if given.kind is Kind.TEXT and not given.masked}
    long = {name for name in long if _is_text(table, name)}
    selected = ", ".join(
        f"substr({(column := f't.{_quoted(dialect, name)}')}, 1, {settings.characters + 1})" if name in long
        else f"t.{_quoted(dialect, name)}" for name in names
    )  # fmt: skip
    for number, key in enumerate(padded):
        parameters |= {f"k{number}_{place}": value for place, value in enumerate(key)}
    if len(columns) == 1:
        listed = ", ".join(f"{mark}k{number}_0" for number in range(size))
        condition = f"t.{_quoted(dialect, columns[0])} IN ({listed})"
    else:
        alternatives = [
            " AND ".join(f"t.{_quoted(dialect, c)} = {mark}k{number}_{place}" for place, c in enumerate(columns))
            for number in range(size)
        ]
        condition = "(" + " OR ".join(f"({one})" for one in alternatives) + ")"
    if time is not None:
        column, comparison, value = time
        condition += f" AND t.{_quoted(dialect, column)} {comparison} {mark}at"
        parameters["at"] = value
    text = f"SELECT {selected} FROM {_quoted(dialect, table.name)} AS t WHERE {condition} LIMIT {limit}"
    if dialect == "tsql":
        text = f"SELECT TOP {limit} {selected} FROM {_quoted(dialect, table.name)} AS t WHERE {condition}"
    return NativeQuery(Language.SQL, text, parameters)


def _quoted(dialect: str, name: str) -> str:
    mark = "`" if dialect in ("mysql", "bigquery") else '"'
    return mark + name.replace(mark, mark * 2) + mark


def _is_text(table: Table, name: str) -> bool:
    column = table.column(name)
    declared = "" if column is None else column.type.upper()
    return any(part in declared for part in ("CHAR", "TEXT", "STRING", "CLOB"))


def _key_of(table: Table, key: Value) -> Key:
    """The values of a row's primary key, in the types of its columns; ContextError."""
    if not table.primary:
        raise ContextError(
            f"{table.name}: has no primary key, so no row of it can be named; say `primary: {{{table.name}: column}}` "
            "in the settings, or give values such as column=value"
        )
    if isinstance(key, list | tuple):
        parts: Sequence[Value] = key
    elif len(table.primary) > 1 and isinstance(key, str):
        parts = [part.strip() for part in key.split(",")]
    else:
        parts = (key,)
    if len(parts) != len(table.primary):
        raise ContextError(
            f"{table.name}: its key is {', '.join(table.primary)}: expected {len(table.primary)} values, "
            f"got {len(parts)}"
        )
    return tuple(_typed(table, column, part) for column, part in zip(table.primary, parts, strict=True))


def _typed(table: Table, name: str, value: Value) -> Value:
    """A value of the command line as its column has it; ContextError for one that it cannot have."""
    column = table.column(name)
    declared = "" if column is None else column.type.upper()
    if not isinstance(value, str) or not any(part in declared for part in ("INT", "SERIAL")):
        return value
    try:
        return int(value)
    except ValueError:
        raise ContextError(
            f"{table.name}.{name}: expected a whole number ({column and column.type}), got {value!r}"
        ) from None


def _shown(value: Value) -> str:
    """A value in a message or a name."""
    return cleaned(str(value))[:100]


def _keys(rows: Iterable[Row], columns: Sequence[str]) -> list[Key]:
    """The distinct keys of rows, in their order, without those that have a NULL."""
    found = dict.fromkeys(tuple(row[column] for column in columns) for row in rows)
    return [key for key in found if all(part is not None for part in key)]


def _identity(table: Table, row: Row) -> Key:
    """What tells a row from others: its key, or all of it."""
    return tuple(row[name] for name in table.primary) if table.primary else tuple(str(value) for value in row.values())


def _shared_out(columns: Sequence[ContextColumn], most: int) -> tuple[list[ContextColumn], int]:
    """At most so many attributes, of every column as many as of the others as long as it has them."""
    total = sum(column.kept for column in columns)
    if total <= most:
        return list(columns), 0
    quota, left = [0] * len(columns), most
    while left:
        for number, column in enumerate(columns):
            if left and quota[number] < column.kept:
                quota[number] += 1
                left -= 1
    cut = [replace(column, attributes=column.attributes[:count]) for column, count in zip(columns, quota, strict=True)]
    return cut, total - most


def _with_found(column: ContextColumn, found: int) -> ContextColumn:
    return replace(column, found=max(found, column.found))


def _is_by(value: Any, at: float) -> bool:
    """Whether a date was known at a time; what is no date is left to the words."""
    instant = instant_of(value)
    return instant is None or instant.first <= at


def _utc(at: datetime | date) -> datetime:
    moment = at if isinstance(at, datetime) else datetime(at.year, at.month, at.day)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

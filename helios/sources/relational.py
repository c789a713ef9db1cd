"""What the relational sources share: a schema with counts and samples, the lookup of stored values, guarded queries.

Questions' queries go through the guarded executor. The catalogue is read beside it, by a `Reader` that runs only
statements written here: the guard rightly refuses what a catalogue needs (system tables, table-valued pragmas), and an
exception for our own statements would be one for everybody's. Readers are read-only and have deadlines too.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Protocol

from helios.errors import QueryFailed, QueryTimeout
from helios.executors.base import Executor, Language, Limits, NativeQuery, Outcome, ResultSet, execute_many
from helios.executors.pool import Engine, WorkerPool
from helios.executors.sql.access import SqlAccess
from helios.executors.values import Value
from helios.once import once
from helios.sources.access import Access, checked_condition, seen_tables, sql_access
from helios.sources.base import ValueHit
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Column, Descriptor, RelationalSchema, TableSchema
from helios.sources.lookup import MAX_PLACE_VALUES, MAX_VALUE_LENGTH, LazyLookup, StoredValue
from helios.sources.spec import SourceSpec

log = logging.getLogger(__name__)

SAMPLE_ROWS = 2000
"""Rows of a table that its sample values are taken from."""
SAMPLES = 5
SAMPLE_LENGTH = 40
"""Characters of a sample value; longer ones are shown cut."""
WIDE = 100
"""Columns that are sampled with one statement."""
STATEMENT_SECONDS = 10.0
CATALOGUE_SECONDS = 60.0
"""After this long, the tables that are left get neither counts nor samples."""

Row = tuple[Value, ...]


class Reader(Protocol):
    """Runs the catalogue statements of this package, read-only, each with a deadline."""

    def rows(self, statement: str, parameters: Sequence[Value] = (), *, limit: int = 100_000) -> Sequence[Row]:
        """Rows of a statement, `limit` at most; QueryTimeout, QueryFailed or SourceUnavailable."""

    def close(self) -> None:
        """End the process or the connection."""


class WorkerReader:
    """Reads with an embedded engine in a process of its own, which can be killed."""

    def __init__(self, engine: Engine) -> None:
        self._pool = WorkerPool(engine, size=1)

    def rows(self, statement: str, parameters: Sequence[Value] = (), *, limit: int = 100_000) -> Sequence[Row]:
        limits = Limits(timeout=STATEMENT_SECONDS, max_rows=limit, max_bytes=2**26)
        bound: dict[str, Value] = {str(number): value for number, value in enumerate(parameters, start=1)}
        return self._pool.run(NativeQuery(Language.SQL, statement, bound), limits).rows

    def close(self) -> None:
        self._pool.close()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """How a dialect tells its schema, and how it makes text of a column."""

    dialect: str
    tables: Callable[[Reader], Sequence[TableSchema]]
    """Tables and views with columns, keys and comments; without counts and samples."""
    text: Callable[[str, Column], str | None]
    """An expression with the text of a (quoted) column, None where it has none (bytes); NULL for bytes in a row."""
    words: Callable[[str, Column], str | None]
    """The same for columns whose values people would name in a question; None for numbers and dates."""
    condition: Callable[[str], str] = lambda table: ""
    """What the rows of a table that may be seen fulfil, as the reader's statements have it; empty for all."""
    standard: Callable[[str], str] = str
    """A condition of a registration as the reader's statements have it."""


class RelationalSource:
    """A database that is asked in SQL."""

    language = Language.SQL

    def __init__(
        self, name: str, spec: SourceSpec, *, catalogue: Catalogue, reader: Callable[[], Reader],
        executor: Callable[[], Executor], cache: SourceCache, schemas: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """`schemas`: names that a query may give the schema that is described, where not all may be seen."""
        self.name = name
        self.kind = spec.kind
        self.spec = spec
        self._schemas = schemas
        self._access = getattr(spec, "access", Access())
        self._whole = catalogue
        self._catalogue = self._limited(catalogue) if self._access.limits() else catalogue
        self._open_reader = reader
        self._open_executor = executor
        self._lookup = LazyLookup(self._values, cache)
        self._descriptor: Descriptor | None = None

    @once
    def executor(self) -> Executor:
        """The guarded executor; it reads what may be seen, where that is not everything."""
        executor = self._open_executor()
        if self._access.limits():
            executor.guard.access = self._sql_access()  # type: ignore[attr-defined]
        return executor

    def descriptor(self) -> Descriptor:
        """CREATE TABLE as fields: keys, comments, row counts and frequent values."""
        if self._descriptor is None:
            reader = self._open_reader()
            try:
                schema = read_schema(reader, self._catalogue)
            finally:
                reader.close()
            self._descriptor = Descriptor(self.name, self.kind, self.language, schema, self.spec.description)
        return self._descriptor

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """Stored texts that resemble the phrases; the first call reads the columns that hold words."""
        return self._lookup.find(phrases, limit=limit)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run SQL through the guarded executor."""
        return self.executor.execute(query, self.spec.limits if limits is None else limits)

    def execute_many(self, queries: Sequence[NativeQuery], limits: Limits, seconds: float) -> list[Outcome]:
        """Run queries that do not need each other's rows; what became of each, in their order."""
        return execute_many(self.executor, queries, limits, seconds)

    def refresh(self) -> None:
        """Forget the descriptor and the lookup."""
        self._descriptor = None
        self._lookup.forget()

    def check(self) -> None:
        """Open the source and read one thing; with `access`, also whether what it names is there."""
        reader = self._open_reader()
        try:
            reader.rows("SELECT 1")
            self._catalogue.tables(reader)
        finally:
            reader.close()
        if self._access.limits():
            _ = self.executor

    def close(self) -> None:
        """End processes and connections."""
        if "executor" in self.__dict__:
            self.executor.close()

    def _limited(self, catalogue: Catalogue) -> Catalogue:
        """The catalogue of what may be seen, without the values of masked columns."""

        def tables(reader: Reader) -> Sequence[TableSchema]:
            return seen_tables(self._access, catalogue.tables(reader))

        def text(column: str, described: Column) -> str | None:
            return None if described.masked else catalogue.text(column, described)

        def words(column: str, described: Column) -> str | None:
            return None if described.masked else catalogue.words(column, described)

        return replace(catalogue, tables=tables, text=text, words=words, condition=self._condition)

    def _condition(self, table: str) -> str:
        condition = checked_condition(self._access, self._whole.dialect, table)
        return self._whole.standard(condition) if condition else ""

    def _sql_access(self) -> SqlAccess:
        reader = self._open_reader()
        try:
            tables = self._whole.tables(reader)
        finally:
            reader.close()
        seen = seen_tables(self._access, tables)
        return sql_access(self._access, self._whole.dialect, tables, seen, schemas=self._schemas)

    def _values(self) -> Iterator[StoredValue]:
        """The distinct texts of every column that holds words."""
        reader = self._open_reader()
        try:
            for table in self._catalogue.tables(reader):
                for column in table.columns:
                    yield from self._column_values(reader, table, column)
        finally:
            reader.close()

    def _column_values(self, reader: Reader, table: TableSchema, column: Column) -> Iterator[StoredValue]:
        text = self._catalogue.words(quoted(column.name), column)
        if text is None:
            return
        condition = self._catalogue.condition(table.name)
        statement = (
            f"SELECT DISTINCT {text} FROM {quoted(table.name)} WHERE {f'({condition}) AND ' if condition else ''}"
            f"length({text}) BETWEEN 1 AND {MAX_VALUE_LENGTH} LIMIT {MAX_PLACE_VALUES + 1}"
        )
        try:
            rows = reader.rows(statement, limit=MAX_PLACE_VALUES + 1)
        except (QueryTimeout, QueryFailed) as error:
            log.warning("%s: the values of %s.%s cannot be looked up: %s", self.name, table.name, column.name, error)
            return
        for (value,) in rows:
            if isinstance(value, str):
                yield StoredValue((table.name, column.name), value)


def read_schema(reader: Reader, catalogue: Catalogue) -> RelationalSchema:
    """All tables with counts and samples; tables that take too long go without."""
    deadline = monotonic() + CATALOGUE_SECONDS
    tables = []
    for table in catalogue.tables(reader):
        if monotonic() < deadline:
            table = _measured(reader, catalogue, table)
        tables.append(table)
    return RelationalSchema(catalogue.dialect, tuple(tables))


def quoted(name: str) -> str:
    """An identifier that any name may be, in standard SQL."""
    return '"' + name.replace('"', '""') + '"'


def _where(catalogue: Catalogue, table: TableSchema) -> str:
    condition = catalogue.condition(table.name)
    return f" WHERE ({condition})" if condition else ""


def _measured(reader: Reader, catalogue: Catalogue, table: TableSchema) -> TableSchema:
    try:
        ((count,),) = reader.rows(f"SELECT COUNT(*) FROM {quoted(table.name)}{_where(catalogue, table)}")
        if isinstance(count, int):
            table = replace(table, row_count=count)
        return replace(table, columns=tuple(_sampled(reader, catalogue, table)))
    except (QueryTimeout, QueryFailed) as error:
        log.warning("%s: goes without samples: %s", table.name, error)
        return table


def _sampled(reader: Reader, catalogue: Catalogue, table: TableSchema) -> Iterator[Column]:
    for start in range(0, len(table.columns), WIDE):
        columns = table.columns[start : start + WIDE]
        texts = [catalogue.text(quoted(column.name), column) or "NULL" for column in columns]
        parts = ", ".join(f"substr({text}, 1, {SAMPLE_LENGTH + 1})" for text in texts)
        rows = reader.rows(
            f"SELECT {parts} FROM {quoted(table.name)}{_where(catalogue, table)} LIMIT {SAMPLE_ROWS}", limit=SAMPLE_ROWS
        )
        for place, column in enumerate(columns):
            yield replace(column, samples=samples(row[place] for row in rows))


def samples(values: Iterator[Value]) -> tuple[str, ...]:
    """The most frequent values as short text, first come first among equals."""
    counts: Counter[str] = Counter()
    for value in values:
        if value is not None and (text := " ".join(str(value).split())):
            counts[text if len(text) <= SAMPLE_LENGTH else f"{text[: SAMPLE_LENGTH - 1]}…"] += 1
    return tuple(text for text, _ in counts.most_common(SAMPLES))

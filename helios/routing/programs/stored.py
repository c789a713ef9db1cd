"""The tables of a small database or graph in memory, as the reader of tables takes them, with the values as stored."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from helios.executors.base import Deadline, Executing, Language, Limits, NativeQuery
from helios.executors.values import Value
from helios.routing.formulation.cypher import render_cypher
from helios.routing.formulation.graph_tables import GraphTables
from helios.routing.formulation.plan import ColumnRef, Plan, Term
from helios.routing.formulation.sql import render
from helios.sources.descriptor import GraphSchema, RelationalSchema, TableSchema
from helios.types import Table

MOST_TABLES = 60
MOST_CELLS = 100_000
"""Cells of all tables together; a larger database is not read."""
Write = Callable[[Plan], NativeQuery]
"""How plans are written in the language of a source."""
LIMITS = Limits(timeout=5.0, max_rows=MOST_CELLS, max_bytes=16 * 2**20)
"""Of the query that reads a table; all together have as many seconds."""


@dataclass(frozen=True)
class StoredTables:
    """The rows of every table (R, C), by its name; a corpus of tables for `helios.reading.tables.reader.Sheets`."""

    columns: Mapping[str, tuple[str, ...]]
    """Names of the columns of every table, without masked ones."""
    rows: Mapping[str, tuple[tuple[Value, ...], ...]]
    texts: Mapping[str, Table]
    write: Write
    """How plans over the tables are written."""

    @classmethod
    def of(cls, source: Executing, schema: RelationalSchema | GraphSchema) -> "StoredTables | None":
        """All tables, read through the source's guard; None for a database with more than is kept in memory.

        Views are left out: they say again what tables say. Raises SourceError where a table cannot be read.
        """
        schema, write = _as_tables(schema)
        columns = {table.name: _seen(table) for table in schema.tables if not table.view and _seen(table)}
        known = sum((table.row_count or 0) * len(columns.get(table.name, ())) for table in schema.tables)
        if not columns or len(columns) > MOST_TABLES or known > MOST_CELLS:
            return None
        rows: dict[str, tuple[tuple[Value, ...], ...]] = {}
        cells, deadline = 0, Deadline.after(LIMITS.timeout)
        for name, own in columns.items():
            plan = Plan(name, tuple(Term(ColumnRef(name, column)) for column in own))
            limits = LIMITS.model_copy(update={"timeout": deadline.left()})
            found = source.execute(write(plan), limits)
            cells += len(found) * len(own)
            if found.truncated is not None or cells > MOST_CELLS:
                return None
            rows[name] = found.rows
        return cls(columns, rows, {name: _as_text(name, columns[name], rows[name]) for name in rows}, write)

    @property
    def tables(self) -> "StoredTables":
        """The tables by their ids, which are their names."""
        return self

    @property
    def segment_count(self) -> int:
        """Rows of all tables."""
        return sum(map(len, self.rows.values()))

    def ids(self) -> Iterator[str]:
        """Names of the tables."""
        return iter(self.texts)

    def get(self, record_id: str) -> Table:
        """A table as text."""
        return self.texts[record_id]

    def __len__(self) -> int:
        return len(self.texts)


def _as_tables(schema: RelationalSchema | GraphSchema) -> tuple[RelationalSchema, Write]:
    """The tables of a source, and how plans over them are written; a graph's nodes are given by their ids."""
    if isinstance(schema, RelationalSchema):
        dialect = schema.dialect
        return schema, lambda plan: NativeQuery(Language.SQL, render(plan, dialect))
    tables = GraphTables.of(schema)
    return tables.schema, lambda plan: render_cypher(plan, tables, keys=True)


def _seen(table: TableSchema) -> tuple[str, ...]:
    """The columns whose values may be read."""
    return tuple(column.name for column in table.columns if not column.masked)


def _as_text(name: str, columns: tuple[str, ...], rows: tuple[tuple[Value, ...], ...]) -> Table:
    return Table(name, name, columns, tuple(tuple(map(text_of, row)) for row in rows))


def text_of(value: Value) -> str:
    """A stored value as a cell; nothing for NULL, and for what is no text."""
    return "" if value is None or isinstance(value, bytes) else str(value)

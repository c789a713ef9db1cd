"""SQLite files as sources.

The schema is read by a process with a read-only connection (`mode=ro`, `query_only`, untrusted schema): the guard of
the executor refuses table-valued pragmas and system tables.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from helios.errors import QueryFailed
from helios.executors.base import Executor
from helios.executors.pool import Engine
from helios.executors.values import Value
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Column, ForeignKey, TableSchema
from helios.sources.relational import Catalogue, Reader, RelationalSource, WorkerReader
from helios.sources.spec import SourceSpec, SqliteSpec

TABLES = """
SELECT m.name, m.type = 'view' FROM sqlite_master m JOIN pragma_table_list l ON l.name = m.name
WHERE m.type IN ('table', 'view') AND l.schema = 'main' AND l.type <> 'shadow' AND m.name NOT GLOB 'sqlite_*'
ORDER BY m.rowid"""
COLUMNS = "SELECT name, type, pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid"
FOREIGN_KEYS = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?1) ORDER BY id, seq'
DEFINITION = "SELECT sql FROM sqlite_master WHERE name = ?1 AND type IN ('table', 'view')"
COMMENT = re.compile(
    r"""^\s*(?:"((?:[^"]|"")+)"|`([^`]+)`|\[([^\]]+)\]|(\w+))"""  # a name, in any of the quotes
    r"""[^\n]*?(?:--\s*|/\*\s*)(.*?)\s*(?:\*/\s*)?,?\s*$"""
)
"""A line of a CREATE TABLE that begins with a column's name and ends with a comment."""


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> RelationalSource:
    """A SQLite source from its registration."""
    assert isinstance(spec, SqliteSpec)
    (path,) = spec.paths(folder)

    def executor() -> Executor:
        from helios.executors.sqlite import SqliteExecutor

        filtered = {table.casefold() for table in spec.access.rows}  # whose condition may name a column that is closed
        closed = [name for name in spec.access.exclude if name.partition(".")[0].casefold() not in filtered]
        return SqliteExecutor(
            path, limits=spec.limits, system_tables=spec.system_tables,
            closed=() if filtered and any("*" in name or "?" in name for name in closed) else closed,
        )  # fmt: skip

    return RelationalSource(
        name,
        spec,
        catalogue=CATALOGUE,
        reader=lambda: sqlite_reader(path),
        executor=executor,
        cache=cache,
        schemas=("main",),
    )


def sqlite_reader(path: Path) -> Reader:
    """Reads the catalogue in a process of its own."""
    return WorkerReader(Engine("helios.sources.reading:open_sqlite", {"path": str(path)}))


def tables(reader: Reader) -> list[TableSchema]:
    """Tables and views of the main database; what cannot be read (a view over a missing table) is left out."""
    views = {str(name): bool(view) for name, view in reader.rows(TABLES)}
    keys: dict[str, tuple[str, ...]] = {}
    found = []
    for name in views:
        try:
            rows = reader.rows(COLUMNS, [name])
        except QueryFailed:
            continue
        definition = "".join(str(sql) for (sql,) in reader.rows(DEFINITION, [name]) if sql)
        comments = comments_of(definition)
        columns = tuple(
            Column(str(column), str(kind or ""), comments.get(str(column).lower(), ""), primary_key=bool(place))
            for column, kind, place in rows
        )
        keys[name.lower()] = tuple(str(row[0]) for row in sorted(rows, key=lambda row: int(str(row[2]))) if row[2])
        found.append((name, columns))
    return [
        TableSchema(name, columns, _foreign_keys(reader, name, keys), view=views[name])
        for name, columns in found if columns
    ]  # fmt: skip


def comments_of(definition: str) -> dict[str, str]:
    """Comments at the end of the lines of a CREATE TABLE, by the lower-case name of the line's column."""
    comments = {}
    for line in definition.splitlines():
        if match := COMMENT.match(line):
            name = next(group for group in match.groups()[:4] if group is not None)
            comments[name.replace('""', '"').lower()] = match[5]
    return comments


def _foreign_keys(reader: Reader, name: str, keys: Mapping[str, tuple[str, ...]]) -> tuple[ForeignKey, ...]:
    grouped: dict[Value, list[tuple[str, str, str | None]]] = {}
    for number, table, column, referred in reader.rows(FOREIGN_KEYS, [name]):
        grouped.setdefault(number, []).append((str(table), str(column), None if referred is None else str(referred)))
    found = []
    for parts in grouped.values():
        table = parts[0][0]
        named = tuple(referred for _, _, referred in parts if referred is not None)
        referred = named if len(named) == len(parts) else keys.get(table.lower(), ())  # none named: the primary key
        if len(referred) == len(parts):
            found.append(ForeignKey(tuple(column for _, column, _ in parts), table, referred))
    return tuple(found)


def _text(column: str, _: Column) -> str:
    return f"CASE typeof({column}) WHEN 'blob' THEN NULL ELSE CAST({column} AS TEXT) END"


def _words(column: str, _: Column) -> str:
    return f"CASE typeof({column}) WHEN 'text' THEN {column} END"


CATALOGUE = Catalogue("sqlite", tables, _text, _words)

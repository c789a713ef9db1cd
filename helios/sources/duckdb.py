"""DuckDB files, and Parquet and CSV files as tables, as sources.

The schema is read by a process with a read-only connection that may open the registered files and no others.
"""

from collections.abc import Mapping
from pathlib import Path

from helios.executors.base import Executor
from helios.executors.pool import Engine
from helios.executors.sql.data_files import file_reader
from helios.executors.values import Value
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Column, ForeignKey, TableSchema
from helios.sources.relational import Catalogue, Reader, RelationalSource, WorkerReader
from helios.sources.spec import DuckDbSpec, SourceSpec

TABLES = """
SELECT table_name, comment, false FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal
UNION ALL SELECT view_name, comment, true FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal"""
COLUMNS = """
SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal
ORDER BY table_name, column_index"""
CONSTRAINTS = """
SELECT table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
FROM duckdb_constraints() WHERE schema_name = 'main' AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')"""
NOT_WORDS = ("INT", "DECIMAL", "DOUBLE", "FLOAT", "REAL", "NUMERIC", "BOOL", "DATE", "TIME", "INTERVAL", "BLOB", "BIT")
"""Beginnings and parts of the types that nobody names in a question."""


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> RelationalSource:
    """A DuckDB source from its registration."""
    assert isinstance(spec, DuckDbSpec)
    path = spec.paths(folder)[0] if spec.path else None
    files = spec.tables(folder)
    for file in files.values():
        file_reader(file)

    def executor() -> Executor:
        from helios.executors.duckdb import DuckdbExecutor

        return DuckdbExecutor(path, files=files or None, limits=spec.limits, system_tables=spec.system_tables)

    return RelationalSource(
        name,
        spec,
        catalogue=CATALOGUE,
        reader=lambda: duckdb_reader(path, files),
        executor=executor,
        cache=cache,
        schemas=("main",),
    )


def duckdb_reader(path: Path | None, files: Mapping[str, Path]) -> Reader:
    """Reads the catalogue in a process of its own."""
    options = {"path": None if path is None else str(path), "files": {name: str(file) for name, file in files.items()}}
    return WorkerReader(Engine("helios.sources.reading:open_duckdb", options))


def tables(reader: Reader) -> list[TableSchema]:
    """Tables and views of the schema `main`."""
    columns: dict[str, list[Column]] = {}
    for table, name, kind, comment in reader.rows(COLUMNS):
        columns.setdefault(str(table), []).append(Column(str(name), str(kind), str(comment or "")))
    keys: dict[str, tuple[str, ...]] = {}
    foreign: dict[str, list[ForeignKey]] = {}
    for table, kind, names, other, referred in reader.rows(CONSTRAINTS):
        if kind == "PRIMARY KEY":
            keys[str(table)] = _names(names)
        else:
            foreign.setdefault(str(table), []).append(ForeignKey(_names(names), str(other), _names(referred)))
    found = []
    for name, comment, view in reader.rows(TABLES):
        table = str(name)
        key = keys.get(table, ())
        described = tuple(
            Column(column.name, column.type, column.comment, primary_key=column.name in key)
            for column in columns.get(table, ())
        )
        found.append(
            TableSchema(table, described, tuple(foreign.get(table, ())), comment=str(comment or ""), view=bool(view))
        )
    return found


def _names(value: Value) -> tuple[str, ...]:
    return tuple(str(name) for name in value) if isinstance(value, (list, tuple)) else ()


def _text(column: str, described: Column) -> str | None:
    return None if described.type.startswith(("BLOB", "BIT")) else f"CAST({column} AS VARCHAR)"


def _words(column: str, described: Column) -> str | None:
    kind = described.type.upper()
    numeric = kind.startswith(NOT_WORDS) or any(part in kind for part in ("INT", "STRUCT", "MAP", "[", "UNION"))
    return None if numeric else f"CAST({column} AS VARCHAR)"


CATALOGUE = Catalogue("duckdb", tables, _text, _words)

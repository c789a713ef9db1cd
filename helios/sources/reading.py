"""The worker's side of reading a catalogue: read-only connections that run the statements of this package.

Runs inside `helios.executors.worker`; imports nothing heavy, so that a process is up quickly.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from helios.errors import QueryFailed, SourceUnavailable
from helios.executors.sql.data_files import allowed_paths, select_from
from helios.executors.sql.sqlite_file import FileState
from helios.executors.values import Value


def open_sqlite(options: Mapping[str, Any]) -> "SqliteReading":
    """Inside the worker: a read-only connection; SourceUnavailable for what is no SQLite file."""
    path = options["path"]
    if not Path(path).is_file():
        raise SourceUnavailable(f"{path}: no such file")
    try:
        mode = "mode=ro&immutable=1" if FileState.of(Path(path)).immutable else "mode=ro"
        connection = sqlite3.connect(f"file:{quote(path)}?{mode}", uri=True)
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA trusted_schema = 0")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, OSError) as error:
        raise SourceUnavailable(f"{path}: cannot be read as SQLite ({error})") from None
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return SqliteReading(connection)


class SqliteReading:
    """Runs catalogue statements."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterable[Sequence[Value]]]:
        try:
            cursor = self._connection.execute(text, list(parameters.values()))
            return [column[0] for column in cursor.description or ()], cursor.fetchall()
        except sqlite3.Error as error:
            raise QueryFailed(str(error)) from None


def open_duckdb(options: Mapping[str, Any]) -> "DuckDbReading":
    """Inside the worker: a locked, read-only connection; SourceUnavailable for what DuckDB cannot open."""
    import duckdb

    path, files = options["path"], options["files"]
    try:
        connection = duckdb.connect(path or ":memory:", read_only=path is not None)
        connection.execute("SET threads = 1")
        for name, file in files.items():
            identifier = '"' + name.replace('"', '""') + '"'
            connection.execute(f"CREATE VIEW {identifier} AS {select_from(Path(file))}")
        if files:
            connection.execute(allowed_paths(map(Path, files.values())))
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        raise SourceUnavailable(f"{path or ', '.join(files.values())}: cannot be read with DuckDB ({error})") from None
    return DuckDbReading(connection)


class DuckDbReading:
    """Runs catalogue statements."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterable[Sequence[Value]]]:
        import duckdb

        try:
            result = self._connection.execute(text, list(parameters.values()))
            return [column[0] for column in result.description], result.fetchall()
        except duckdb.Error as error:
            raise QueryFailed(str(error)) from None

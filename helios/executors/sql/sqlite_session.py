"""SQLite inside a worker process: what stands behind the guard.

The file is opened read-only, `query_only` is on, the authorizer knows what may be read and called,
nothing can be attached, lengths and memory are limited, temporary data stays in memory.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from helios.errors import QueryFailed, QueryRejected, SourceUnavailable
from helios.executors.sql.functions import SQLITE, SQLITE_OPERATORS, SYSTEM_TABLES
from helios.executors.values import Value

CACHE_KIB = 16 * 1024
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 64 * 2**20,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 200,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 250_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
READ_PRAGMAS = frozenset({"data_version", "page_size"})
"""What full-text tables ask of the database while they are read."""


def open_session(options: Mapping[str, Any]) -> "SqliteSession":
    """Open a database in a worker; SourceUnavailable where it is none."""
    path = Path(options["path"])
    if not path.is_file():
        raise SourceUnavailable(f"{path}: there is no such database file")
    try:
        return SqliteSession(_connect(path, options["max_memory"]))
    except (sqlite3.Error, OSError) as error:
        raise SourceUnavailable(f"{path} cannot be opened as a SQLite database: {error}") from error


class SqliteSession:
    """An open database inside a worker."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterator[Sequence[Value]]]:
        """Columns and rows, read as they are wanted; QueryRejected or QueryFailed."""
        try:
            cursor = self._connection.execute(text, {name: _bound(value) for name, value in parameters.items()})
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeEncodeError) as error:
            raise _failure(error) from error
        return [column[0] for column in cursor.description or ()], _rows(cursor)


def _rows(cursor: sqlite3.Cursor) -> Iterator[Sequence[Value]]:
    try:
        yield from cursor
    except sqlite3.Error as error:
        raise _failure(error) from error
    finally:
        cursor.close()


def _failure(error: Exception) -> QueryFailed | QueryRejected:
    message = str(error)
    if "not authorized" in message or "prohibited" in message or "unsafe use" in message:
        return QueryRejected("the database does not allow this", message)
    return QueryFailed(message)


def _connect(path: Path, max_memory: int) -> sqlite3.Connection:
    connection = sqlite3.connect(_uri(path), uri=True, isolation_level=None, cached_statements=16)
    connection.text_factory = _text
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    for pragma in (
        "query_only = 1", "trusted_schema = 0", "cell_size_check = 1", "mmap_size = 0", "temp_store = 2",
        f"cache_size = -{CACHE_KIB}", f"hard_heap_limit = {max_memory // 2}",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    connection.set_authorizer(_authorized)
    return connection


def _uri(path: Path) -> str:
    """Read-only; immutable only where the file is in WAL mode and has no log: reading it would have to write one."""
    with path.open("rb") as file:
        header = file.read(20)
    log = path.with_name(path.name + "-wal")
    immutable = header[18:20] == b"\x02\x02" and not log.exists()
    return f"file:{quote(str(path))}?mode=ro" + ("&immutable=1" if immutable else "")


def _authorized(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    """Reading tables and calling known functions; nothing else."""
    match action:
        case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
            return sqlite3.SQLITE_OK
        case sqlite3.SQLITE_READ:
            name = (first or "").casefold()
            closed = name.startswith(("sqlite_", "pragma_", "dbstat")) and name not in SYSTEM_TABLES["sqlite"]
            return sqlite3.SQLITE_DENY if closed else sqlite3.SQLITE_OK
        case sqlite3.SQLITE_FUNCTION:
            known = (second or "").casefold() in SQLITE | SQLITE_OPERATORS
            return sqlite3.SQLITE_OK if known else sqlite3.SQLITE_DENY
        case sqlite3.SQLITE_PRAGMA:
            reads = (first or "").casefold() in READ_PRAGMAS and not second
            return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_DENY


def _text(data: bytes) -> str:
    """Text as stored; what is not UTF-8 shows as U+FFFD."""
    return data.decode(errors="replace")


def _bound(value: Value) -> Value:
    """A parameter as SQLite has it: dates and exact numbers as text."""
    match value:
        case date() | time() | datetime():
            return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
        case Decimal() | UUID():
            return str(value)
    return value

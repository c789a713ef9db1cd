"""SQLite inside a worker process: what stands behind the guard.

The file is opened read-only, `query_only` is on, the authorizer knows what may be read and called,
nothing can be attached, lengths and memory are limited, temporary data stays in memory.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any
from urllib.parse import quote
from uuid import UUID

from helios.errors import QueryFailed, QueryRejected, SourceUnavailable
from helios.executors.sql.functions import SQLITE, SQLITE_OPERATORS, SYSTEM_PREFIXES, SYSTEM_TABLES
from helios.executors.values import Value

CACHE_KIB = 16 * 1024
_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
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
FUNCTIONS = SQLITE | SQLITE_OPERATORS
TABLES = frozenset({"json_each", "json_tree"})
"""What may be read beside the tables of the file."""
READ_PRAGMAS = frozenset({"data_version", "page_size"})
"""What full-text tables ask of the database while they are read."""


def open_session(options: Mapping[str, Any]) -> "SqliteSession":
    """Open a database in a worker; SourceUnavailable where it is none."""
    path = Path(options["path"])
    if not path.is_file():
        raise SourceUnavailable(f"{path}: there is no such database file")
    try:
        return SqliteSession(_connect(path, options["max_memory"]), system_tables=options.get("system_tables", False))
    except (sqlite3.Error, OSError) as error:
        raise SourceUnavailable(f"{path} cannot be opened as a SQLite database: {error}") from error


class SqliteSession:
    """An open database inside a worker."""

    def __init__(self, connection: sqlite3.Connection, *, system_tables: bool) -> None:
        self._connection = connection
        self._open = TABLES | (SYSTEM_TABLES["sqlite"] if system_tables else frozenset())
        self._tables: frozenset[str] = frozenset()
        self._shadows: frozenset[str] = frozenset()
        """Where virtual tables keep their data: read by these alone."""
        self._planning = False
        self._read_tables()

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterator[Sequence[Value]]]:
        """Columns and rows, read as they are wanted; QueryRejected or QueryFailed."""
        try:
            return self._run(text, parameters)
        except QueryRejected:
            self._read_tables()  # the schema may have changed since
            return self._run(text, parameters)

    def _run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterator[Sequence[Value]]]:
        bound = {name: _bound(value) for name, value in parameters.items()}
        try:
            self._plan(text, bound)
            cursor = self._connection.execute(text, bound)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeEncodeError) as error:
            raise _failure(error) from error
        return [column[0] for column in cursor.description or ()], _rows(cursor)

    def _plan(self, text: str, bound: Mapping[str, Value]) -> None:
        """Have the authorizer look at what the text itself reads, before virtual tables read for it."""
        self._planning = True
        try:
            self._connection.execute(f"EXPLAIN {text}", bound).close()
        finally:
            self._planning = False

    def _read_tables(self) -> None:
        """Note which tables there are, and connect the virtual ones: their constructors ask for more."""
        connection = self._connection
        connection.set_authorizer(None)
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        own = {name: (sql or "").upper() for name, sql in found if not _lower(name).startswith("sqlite_")}
        self._tables = self._open | {_lower(name) for name in own}
        kinds = connection.execute("SELECT name FROM pragma_table_list WHERE type = 'shadow'").fetchall()
        self._shadows = frozenset(_lower(name) for (name,) in kinds)
        virtual = [name.replace('"', '""') for name, sql in own.items() if sql.startswith("CREATE VIRTUAL")]
        for name in ("json_each", "json_tree", *virtual):
            with suppress(sqlite3.Error):
                connection.execute(f'SELECT 1 FROM "{name}" LIMIT 0').fetchall()
        connection.set_authorizer(self._authorized)

    def _authorized(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        """Reading tables of the file and calling known functions; nothing else."""
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                allowed = True
            case sqlite3.SQLITE_READ:
                name = _lower(first or "")
                unread = not second and not name.startswith(SYSTEM_PREFIXES)  # a name of the query: WITH t AS …
                allowed = (name in self._tables or unread) and not (self._planning and name in self._shadows)
            case sqlite3.SQLITE_FUNCTION:
                allowed = _lower(second or "") in FUNCTIONS
            case sqlite3.SQLITE_PRAGMA:
                allowed = _lower(first or "") in READ_PRAGMAS and not second
            case _:
                allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _rows(cursor: sqlite3.Cursor) -> Iterator[Sequence[Value]]:
    try:
        yield from cursor
    except sqlite3.Error as error:
        raise _failure(error) from error
    finally:
        cursor.close()


def _failure(error: Exception) -> QueryFailed | QueryRejected:
    message = str(error)
    if "not authorized" in message or "prohibited" in message or "unsafe use" in message or "vtable" in message:
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
    return connection


def _uri(path: Path) -> str:
    """Read-only; immutable only where the file is in WAL mode and has no log: reading it would have to write one."""
    with path.open("rb") as file:
        header = file.read(20)
    log = path.with_name(path.name + "-wal")
    immutable = header[18:20] == b"\x02\x02" and not log.exists()
    return f"file:{quote(str(path))}?mode=ro" + ("&immutable=1" if immutable else "")


def _lower(name: str) -> str:
    """As SQLite compares names: letters of ASCII alone."""
    return name.translate(_ASCII_LOWER)


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

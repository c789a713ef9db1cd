"""SQLite inside a worker process: what stands behind the guard.

The file is opened read-only, `query_only` is on, the authorizer knows what may be read and called,
nothing can be attached, lengths and memory are limited, temporary data stays in memory.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any
from urllib.parse import quote
from uuid import UUID

from helios.errors import QueryFailed, QueryRejected, SourceUnavailable
from helios.executors.sql.access import token
from helios.executors.sql.functions import SQLITE, SQLITE_OPERATORS, SYSTEM_PREFIXES, SYSTEM_TABLES
from helios.executors.sql.sqlite_file import FileState
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
FUNCTIONS = SQLITE | SQLITE_OPERATORS | {"helios_mask"}
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
        return SqliteSession(
            path,
            options["max_memory"],
            system_tables=options.get("system_tables", False),
            closed=options.get("closed", ()),
        )
    except (sqlite3.Error, OSError) as error:
        raise SourceUnavailable(f"{path} cannot be opened as a SQLite database: {error}") from error


class SqliteSession:
    """An open database inside a worker; it is opened anew where its file is another one than before."""

    def __init__(self, path: Path, max_memory: int, *, system_tables: bool, closed: Sequence[str] = ()) -> None:
        self._path = path
        self._closed = tuple(pattern.casefold() for pattern in closed)
        self._max_memory = max_memory
        self._state = FileState.of(path)
        self._connection = _connect(path, max_memory, immutable=self._state.immutable)
        self._open = TABLES | (SYSTEM_TABLES["sqlite"] if system_tables else frozenset())
        self._tables: frozenset[str] = frozenset()
        self._shadows: frozenset[str] = frozenset()
        """Where virtual tables keep their data: read by these alone."""
        self._planning = False
        self._read_tables()

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterator[Sequence[Value]]]:
        """Columns and rows, read as they are wanted; QueryRejected or QueryFailed."""
        self._follow()
        try:
            columns, rows = self._run(text, parameters)
        except QueryRejected:
            self._read_tables()  # the schema may have changed since
            columns, rows = self._run(text, parameters)
        return columns, self._unchanged(rows) if self._state.immutable else rows

    def _follow(self) -> None:
        """Open the file anew where another process has written it, or put another one in its place."""
        try:
            state = FileState.of(self._path)
            if state == self._state:
                return
            connection = _connect(self._path, self._max_memory, immutable=state.immutable)
        except (sqlite3.Error, OSError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)  # without the path
            raise QueryFailed(f"the database file has changed and cannot be opened again: {reason}") from error
        self._connection.close()
        self._connection, self._state = connection, state
        self._read_tables()

    def _unchanged(self, rows: Iterator[Sequence[Value]]) -> Iterator[Sequence[Value]]:
        """Rows of a file that is read without locks: QueryFailed where somebody wrote it meanwhile."""
        yield from rows
        if FileState.of(self._path) != self._state:
            raise QueryFailed("another process wrote the database while the query read it; ask again")

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
                allowed = allowed and not (self._closed and self._is_closed(name, (second or "").casefold()))
            case sqlite3.SQLITE_FUNCTION:
                allowed = _lower(second or "") in FUNCTIONS
            case sqlite3.SQLITE_PRAGMA:
                allowed = _lower(first or "") in READ_PRAGMAS and not second
            case _:
                allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _is_closed(self, table: str, column: str) -> bool:
        """Whether a table or a column is one that nobody is to see."""
        table = table.casefold()
        return any(
            fnmatchcase(f"{table}.{column}", pattern) if "." in pattern else fnmatchcase(table, pattern)
            for pattern in self._closed
        )


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


def _connect(path: Path, max_memory: int, *, immutable: bool) -> sqlite3.Connection:
    uri = f"file:{quote(str(path))}?mode=ro" + ("&immutable=1" if immutable else "")
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=16)
    connection.text_factory = _text
    connection.create_function("helios_mask", 2, token, deterministic=True)
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    for pragma in (
        "query_only = 1", "trusted_schema = 0", "cell_size_check = 1", "mmap_size = 0", "temp_store = 2",
        f"cache_size = -{CACHE_KIB}", f"hard_heap_limit = {max_memory // 2}",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    return connection


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

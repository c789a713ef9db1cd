"""DuckDB inside a worker process: what stands behind the guard.

The file is opened read-only, nothing outside of it can be reached, settings are locked, no extension is loaded or
fetched, memory and threads are limited, nothing is spilt to disk.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from helios.errors import ConfigError, QueryFailed, QueryRejected, SourceUnavailable
from helios.executors.sql.data_files import PACKED, allowed_paths, file_reader, select_from
from helios.executors.sql.functions import BEFORE_PARENTHESIS, DUCKDB, SYSTEM_PREFIXES
from helios.executors.values import Value

DEFINITIONS = """
    SELECT view_name, sql FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name, string_agg(macro_definition, ' ') FROM duckdb_functions()
        WHERE NOT internal AND macro_definition IS NOT NULL GROUP BY function_name
"""
KNOWN = DUCKDB | BEFORE_PARENTHESIS | {"count_star", "list_value", "struct_pack"}
_STRING = re.compile(r"'(?:[^']|'')*'")
_NAME = re.compile(r'"((?:[^"]|"")+)"|([^\W\d]\w*)')
_CALLED = re.compile(rf"(?:{_NAME.pattern})\s*\(")
TEXT_BYTES = 2**25
"""CSV and JSON files up to this size are read into memory once; larger ones are read anew by every query."""
PACKED_BYTES = 2**22
"""The same for packed ones."""
CHUNK = 256
"""Rows fetched at once."""
OVERHEAD = 2**28
"""Bytes of a worker's cap that are left to Python and the engine's code."""


def open_session(options: Mapping[str, Any]) -> "DuckdbSession":
    """Open a database or load data files in a worker; SourceUnavailable where that fails."""
    import duckdb

    path = options["path"]
    if path is not None and not Path(path).is_file():
        raise SourceUnavailable(f"{path}: there is no such database file")
    settings: dict[str, Any] = {
        "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
        "allow_community_extensions": "false", "allow_unsigned_extensions": "false",
        "threads": str(options["threads"]), "temp_directory": "", "python_enable_replacements": "false",
        "memory_limit": f"{max(options['max_memory'] - OVERHEAD, options['max_memory'] // 2)}B",
    }  # fmt: skip
    try:
        connection = duckdb.connect(path or ":memory:", read_only=path is not None, config=settings)
        files = {name: Path(file) for name, file in options["files"].items()}
        views = {name.casefold() for name, file in files.items() if _add(connection, name, file)}
        if views:
            connection.execute(allowed_paths(file for name, file in files.items() if name.casefold() in views))
        for statement in ("SET enable_external_access = false", "SET lock_configuration = true"):
            connection.execute(statement)
    except (duckdb.Error, OSError) as error:
        raise SourceUnavailable(f"{path or 'the data files'} cannot be opened with DuckDB: {error}") from error
    return DuckdbSession(connection, closed_names(connection, ours=views))


class DuckdbSession:
    """An open database inside a worker."""

    def __init__(self, connection: Any, closed: Mapping[str, str]) -> None:
        self._connection = connection
        self._closed = closed
        """Views and macros of the file that do what a query may not, and what that is."""

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterator[Sequence[Value]]]:
        """Columns and rows, read as they are wanted; QueryRejected or QueryFailed."""
        import duckdb

        if self._closed and (named := sorted(names_in(text) & self._closed.keys())):
            raise QueryRejected(f"a view or macro of the file uses {self._closed[named[0]]}", named[0])
        try:
            result = self._connection.execute(text, list(parameters.values()))
        except (duckdb.Error, OverflowError, UnicodeEncodeError) as error:
            raise _failure(error) from error
        return [column[0] for column in result.description or ()], _rows(result)


def closed_names(connection: Any, *, ours: Collection[str] = ()) -> dict[str, str]:
    """Views and macros whose text calls what is not listed, reads tables of the system, or uses another such one.

    Views of `ours`, over data files, are none of the file's.
    """
    defined = connection.execute(DEFINITIONS).fetchall()
    bodies = {name.casefold(): text or "" for name, text in defined if name.casefold() not in ours}
    closed: dict[str, str] = {}
    for name, text in bodies.items():
        plain = _STRING.sub("''", text)
        called = {word.casefold() for word in _words(_CALLED, plain)} - KNOWN - bodies.keys()
        systems = {word for word in names_in(plain) if word.startswith(SYSTEM_PREFIXES) or word == "information_schema"}
        if found := sorted(called | systems):
            closed[name] = found[0]
    grown = True
    while grown:
        more = {
            name: found[0] for name, text in bodies.items()
            if name not in closed and (found := sorted((names_in(text) & closed.keys()) - {name}))
        }  # fmt: skip
        closed |= more
        grown = bool(more)
    return closed


def names_in(text: str) -> frozenset[str]:
    """Everything in a text that may be a name, in quotes or not."""
    return frozenset(word.casefold() for word in _words(_NAME, text))


def _words(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (quoted.replace('""', '"') or plain for quoted, plain in pattern.findall(text))


def _rows(result: Any) -> Iterator[Sequence[Value]]:
    import duckdb

    try:
        while rows := result.fetchmany(CHUNK):
            for row in rows:
                yield tuple(map(_value, row))
    except (duckdb.Error, OverflowError, ValueError, UnicodeDecodeError) as error:
        raise _failure(error) from error


def _failure(error: Exception) -> QueryFailed | QueryRejected:
    import duckdb

    if isinstance(error, duckdb.PermissionException):
        return QueryRejected("the database does not allow this", _said(error))
    return QueryFailed(_said(error))


def _said(error: Exception) -> str:
    """Without the lines of the statement: it holds conditions of rows that may be seen, which are nobody's affair."""
    return re.split(r"\n+(?:LINE \d+:|Stack Trace)", str(error), maxsplit=1)[0]


def _add(connection: Any, name: str, file: Path) -> bool:
    """Add a data file: Parquet and large files as views that are read when they are asked, small texts as tables.

    Whether it is a view.
    """
    try:
        rows, size = select_from(file), file.stat().st_size
    except ConfigError as error:
        raise SourceUnavailable(str(error)) from None
    view = file_reader(file) == "read_parquet" or size > (PACKED_BYTES if file.suffix.lower() in PACKED else TEXT_BYTES)
    quoted = name.replace('"', '""')
    connection.execute(f'CREATE {"VIEW" if view else "TABLE"} "{quoted}" AS {rows}')
    return view


def _value(value: Any) -> Value:
    """A value of DuckDB's own Python types as `helios.executors.values` has it."""
    match value:
        case None | bool() | int() | float() | str() | bytes() | timedelta():
            return value
        case list() | tuple():
            return [_value(item) for item in value]
        case dict():
            return {str(key): _value(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted(map(str, value))
    return _known(value)


def _known(value: Any) -> Value:
    from datetime import date, time
    from decimal import Decimal
    from uuid import UUID

    return value if isinstance(value, date | time | Decimal | UUID) else str(value)

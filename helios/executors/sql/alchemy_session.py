"""A database server inside a worker process, reached through SQLAlchemy: what stands behind the guard.

One connection, which is set to reading only by whatever means the server has, and a transaction for each query that is
rolled back. Rows are read as they come. After an error, or with rows left unread, the connection is dropped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.sql.guard import PLACE
from helios.executors.values import Value

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

CONNECT_SECONDS = 5
CHUNK = 100
"""Rows fetched at once."""
MARKS = {"qmark": "?", "format": "%s", "pyformat": "%({0})s", "named": ":{0}", "numeric": ":{1}"}
"""How a driver has its parameters written."""
_PLACED = re.compile(f"{PLACE}(\\d+){PLACE}")
LATE = {1028, 1317, 1969, 3024}
"""Numbers of MySQL and MariaDB for a statement that took too long or was ended."""
DENIED = {1044, 1142, 1143, 1227, 1290, 1370, 1792, 4134}
"""Numbers for what the role, or a transaction that may only read, does not allow."""
RIDDEN = {"ANSI", "ANSI_QUOTES", "DB2", "MAXDB", "MSSQL", "NO_BACKSLASH_ESCAPES", "ORACLE", "POSTGRESQL"}
"""Modes in which the server cuts SQL into other words than the guard does."""
HARMLESS = {"SELECT", "USAGE", "SHOW VIEW", "SHOW DATABASES", "PROCESS"}
WRITING = {
    "ALTER", "ALTER ROUTINE", "CREATE", "CREATE ROUTINE", "CREATE TEMPORARY TABLES", "CREATE VIEW", "DELETE",
    "DELETE HISTORY", "DROP", "EVENT", "EXECUTE", "INDEX", "INSERT", "LOCK TABLES", "REFERENCES", "TRIGGER", "UPDATE",
}  # fmt: skip
"""Rights that a transaction that may only read takes the edge off; all others make the role refused."""
_GRANT = re.compile(r"GRANT (.+?) ON (.+?) TO ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Role:
    """What the user of a server may do beyond reading."""

    powers: tuple[str, ...] = ()
    """What makes it refused: files, other people's sessions, everything."""
    problems: tuple[str, ...] = ()
    """What it should not have, and is stopped otherwise."""


def open_session(options: Mapping[str, Any]) -> "AlchemySession":
    """The session of a worker; it connects with its first query."""
    return AlchemySession(Server(**options))


class Server:
    """How a server is reached: `url` without a password, and the password."""

    def __init__(self, url: str, password: str | None, dialect: str, where: str, trusted_role: str | None) -> None:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
        from sqlalchemy.pool import NullPool

        self.dialect = dialect
        self.where = where
        self.user = make_url(url).username
        self.trusted_role = trusted_role
        arguments: dict[str, Any] = {}
        if dialect == "mysql":
            arguments = {"connect_timeout": CONNECT_SECONDS, "local_infile": False, "charset": "utf8mb4"}
        try:
            full = make_url(url) if password is None else make_url(url).set(password=password)
            self.engine: Engine = create_engine(full, poolclass=NullPool, connect_args=arguments)
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise SourceUnavailable(f"{where}: SQLAlchemy has no driver for this ({first_line(error)})") from None

    def connect(self, seconds: float) -> "tuple[Connection, Role]":
        """A connection that may only read, and what its role may do; SourceUnavailable."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            connection = self.engine.connect()
        except (SQLAlchemyError, OSError, ValueError) as error:
            raise SourceUnavailable(
                f"{self.where}: cannot connect ({first_line(error)}); is the server up, and are user and password_env "
                "right?"
            ) from None
        try:
            role = self._made_readonly(connection, seconds)
        except (SQLAlchemyError, OSError) as error:
            connection.invalidate()
            raise SourceUnavailable(f"{self.where}: cannot be set to reading only ({first_line(error)})") from None
        if role.powers and self.trusted_role != self.user:
            connection.invalidate()
            raise SourceUnavailable(
                f"the role {self.user} is refused: it has {role.powers[0]}. Ask as a role that may only SELECT, or set "
                f"trusted_role to {self.user!r} if it has to be this one"
            )
        return connection, role

    def _made_readonly(self, connection: "Connection", seconds: float) -> Role:
        role = Role()
        match self.dialect:
            case "mysql":
                role = role_of(str(row[0]) for row in connection.exec_driver_sql("SHOW GRANTS"))
                modes = connection.exec_driver_sql("SELECT @@SESSION.sql_mode").scalar() or ""
                kept = [mode for mode in str(modes).split(",") if mode and mode not in RIDDEN]
                connection.exec_driver_sql(f"SET SESSION sql_mode = '{','.join([*kept, 'IGNORE_SPACE'])}'")
                connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
                connection.exec_driver_sql("SET SESSION lock_wait_timeout = 5, innodb_lock_wait_timeout = 5")
                self.limit(connection, seconds)
            case "snowflake":
                connection.exec_driver_sql(f"ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = {int(seconds) + 1}")
            case "tsql":
                connection.exec_driver_sql(f"SET LOCK_TIMEOUT {int(seconds * 1000)}")
        connection.rollback()
        return role

    def limit(self, connection: "Connection", seconds: float) -> None:
        """Tell the server how long the next statement may take, where a statement can say so."""
        if self.dialect != "mysql":
            return
        if getattr(connection.dialect, "is_mariadb", False):
            connection.exec_driver_sql(f"SET SESSION max_statement_time = {seconds:.3f}")
        else:
            connection.exec_driver_sql(f"SET SESSION max_execution_time = {max(1, round(seconds * 1000))}")


class AlchemySession:
    """A connection to one database of a server, made anew after an error."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection: Connection | None = None
        self._role = Role()
        self._routines: frozenset[str] = frozenset()

    def run(self, text: str, parameters: Mapping[str, Any]) -> tuple[Sequence[str], Iterator[Sequence[Value]]]:
        """Columns and rows; `parameters` holds those of the query in order, and the `seconds` that it may take.

        An empty text asks what the role may do.
        """
        if not text:
            self._connected(parameters["seconds"])
            return ["problem"], iter([[problem] for problem in (*self._role.powers, *self._role.problems)])
        rows = self._rows(text, parameters["values"], parameters["seconds"])
        return next(rows), rows

    def _rows(self, text: str, parameters: Mapping[str, Value], seconds: float) -> Iterator[Any]:
        """The columns, then rows."""
        from sqlalchemy.exc import SQLAlchemyError

        connection = self._connected(seconds)
        self._check_routines(text)
        whole = False
        try:
            self._server.limit(connection, seconds)
            if self._server.dialect == "mysql":
                connection.exec_driver_sql("START TRANSACTION READ ONLY")
            options = {"stream_results": True, "no_parameters": not parameters, "max_row_buffer": CHUNK}
            statement, values = written(text, parameters, connection.dialect.paramstyle)
            result = connection.execution_options(**options).exec_driver_sql(statement, values or None)
            if not result.returns_rows:
                raise QueryRejected("only queries are allowed", text[:200])
            yield list(result.keys())
            while found := result.fetchmany(CHUNK):
                for row in found:
                    yield [value_of(value) for value in row]
            connection.rollback()
            whole = True
        except (SQLAlchemyError, OSError, OverflowError, ValueError, TypeError) as error:
            raise explained(error, self._server.where, seconds) from None
        finally:
            if not whole:
                self._hang_up()

    def _check_routines(self, text: str) -> None:
        """A stored function of the database may have the name of a listed one that this server lacks."""
        if self._routines:
            called = {name.casefold() for name in re.findall(r"`?([^\W\d]\w*)`?\s*\(", text)}
            if found := sorted(called & self._routines):
                raise QueryRejected("the database has a function of its own by this name", found[0])

    def _connected(self, seconds: float) -> "Connection":
        if self._connection is None:
            self._connection, self._role = self._server.connect(seconds)
            if self._server.dialect == "mysql":
                asked = "SELECT lower(routine_name) FROM information_schema.routines"
                self._routines = frozenset(str(row[0]) for row in self._connection.exec_driver_sql(asked))
                self._connection.rollback()
        return self._connection

    def _hang_up(self) -> None:
        """Drop the connection without reading what the server still sends."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(Exception):  # the line may be in any state: it is only to be closed
            raw = connection.connection.dbapi_connection
            end = getattr(raw, "_force_close", None)  # PyMySQL's `close` would say goodbye first
            if end is not None:
                end()
        with suppress(Exception):
            connection.invalidate()
            connection.close()


def written(text: str, parameters: Mapping[str, Value], style: str) -> tuple[str, Any]:
    """The text with its parameters as the driver wants them, and their values."""
    if not parameters:
        return text, None
    values = list(parameters.values())
    mark = MARKS[style]
    if style in ("format", "pyformat"):
        text = text.replace("%", "%%")
    numbers = [int(number) for number in _PLACED.findall(text)]
    made = _PLACED.sub(lambda found: mark.format(f"p{found[1]}", found[1]), text)
    if style in ("pyformat", "named"):
        return made, {f"p{number}": values[number - 1] for number in numbers}
    if style == "numeric":
        return made, tuple(values)
    return made, tuple(values[number - 1] for number in numbers)


def role_of(grants: Iterator[str]) -> Role:
    """What a role may do, from the lines of SHOW GRANTS."""
    powers: list[str] = []
    problems: list[str] = []
    for line in grants:
        found = _GRANT.match(line)
        if found is None:
            continue
        rights = [" ".join(re.sub(r"\([^)]*\)", "", right).split()).upper() for right in found[1].split(",")]
        for right in rights:
            if right in HARMLESS or not re.fullmatch(r"[A-Z ]+", right):
                continue
            (problems if right in WRITING else powers).append(f"{right} on {found[2].replace('`', '')}")
        if "WITH GRANT OPTION" in line.upper():
            powers.append(f"GRANT OPTION on {found[2].replace('`', '')}")
    return Role(tuple(powers), tuple(problems))


def explained(error: Exception, where: str, seconds: float) -> Exception:
    """What an error of SQLAlchemy, or of the driver below it, means."""
    from sqlalchemy.exc import DBAPIError

    original = error.orig if isinstance(error, DBAPIError) else error
    number = original.args[0] if original is not None and original.args else None
    if number in LATE:
        return QueryTimeout(seconds)
    if number in DENIED:
        return QueryRejected("the database does not allow this", first_line(error))
    if isinstance(error, DBAPIError) and error.connection_invalidated or isinstance(error, OSError):
        return SourceUnavailable(f"{where}: the connection broke ({first_line(error)})")
    return QueryFailed(first_line(error))


def first_line(error: BaseException) -> str:
    """An error without SQLAlchemy's additions: the statement, the parameters, a link."""
    original = getattr(error, "orig", None) or error
    arguments = [str(part) for part in original.args if not isinstance(part, int)]
    return " ".join((arguments[-1] if arguments else str(original)).split())[:300] or type(original).__name__


def value_of(value: Any) -> Value:
    """A value of a driver's as one of ours; what we lack as text."""
    from datetime import date, time, timedelta
    from decimal import Decimal
    from uuid import UUID

    match value:
        case None | bool() | int() | float() | str() | bytes() | Decimal() | date() | time() | timedelta() | UUID():
            return value
        case bytearray() | memoryview():
            return bytes(value)
        case dict():
            return {str(key): value_of(item) for key, item in value.items()}
        case list() | tuple():
            return [value_of(item) for item in value]
        case set() | frozenset():
            return sorted(map(str, value))
    return str(value)

"""PostgreSQL servers: guarded queries over psycopg, read through a server-side cursor (design: executors).

Behind the guard: a read-only transaction that is always rolled back, `statement_timeout` and `lock_timeout` at the
server, and at the deadline a cancel request from here, then the end of the connection, whether the server answers or
not; a process of the server that does not obey is told to end, and it is said if it does not. Results come as text, a
few rows at a time, and are counted in bytes before they are read. The role should only be able to SELECT: `problems`
says where it can do more, and a warning is logged. What the server's own memory and disk may be used for is the
server's to limit (`work_mem`, `temp_file_limit`, a role for this).
"""

import logging
import os
import re
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.base import Deadline, Language, Limits, NativeQuery, ResultSet
from helios.executors.sql.embedded import checked_parameters, guarded
from helios.executors.sql.guard import CheckedQuery, SqlGuard
from helios.executors.sql.postgresql_names import check_names
from helios.executors.sql.postgresql_values import CURSOR, read_rows, register_loaders, text_of
from helios.executors.sql.postgresql_watch import QueryWatch, hang_up
from helios.executors.values import Value

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5
REPLY_FACTOR = 8
"""The server may send so many times as many bytes as the values may have, before the connection is given up."""
REPLY_EXTRA = 2**22
END_SECONDS, END_PATIENCE = 300, 5
"""How long a process of the server is told to end, and after how many seconds it is said that it does not."""
WORK_MEM_MB = 32

_POWERS = """
    SELECT 'it is a superuser' FROM pg_roles WHERE rolname = current_user AND rolsuper
    UNION ALL SELECT 'it is a member of ' || r.rolname FROM pg_roles r
        WHERE r.rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program',
                            'pg_signal_backend', 'pg_write_all_data')
          AND pg_has_role(current_user, r.oid, 'MEMBER')
"""
"""What makes a role refused: one slip of the guard would reach the server's files or other people's sessions."""
_END = """
    SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
    WHERE pid = %s AND usename = current_user AND application_name = 'helios' AND state = 'active'
      AND pg_catalog.clock_timestamp() - query_start >= pg_catalog.make_interval(secs => %s / 2)
"""
_PROBLEMS = """
    SELECT 'it may create roles or databases' FROM pg_roles
        WHERE rolname = current_user AND (rolcreaterole OR rolcreatedb)
    UNION ALL (SELECT 'it may write to the table ' || c.oid::regclass FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
          AND n.nspname NOT LIKE 'pg\\_t%'
          AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') ORDER BY 1 LIMIT 3)
    UNION ALL SELECT 'it may create objects in the schema ' || nspname FROM pg_namespace
        WHERE nspname NOT LIKE 'pg\\_%' AND has_schema_privilege(oid, 'CREATE')
    UNION ALL SELECT 'its temporary files are not limited (temp_file_limit)'
        WHERE current_setting('temp_file_limit') = '-1'
"""


@dataclass(frozen=True, slots=True)
class PostgresqlAddress:
    """Where a server is and who asks; the password comes from the environment variable `password_env` alone."""

    host: str
    database: str
    user: str
    port: int = 5432
    password_env: str | None = None
    schema: str = "public"
    """Where tables without a schema are looked for."""
    sslmode: str = "prefer"
    trusted_role: str | None = None
    """The user's own name where it is meant to be a superuser, or one that reaches files and other sessions."""


class PostgresqlExecutor:
    """Guarded queries against one database; threads share it, each query has a connection of its own."""

    language = Language.SQL

    def __init__(
        self, address: PostgresqlAddress, *, limits: Limits | None = None, connections: int = 4,
        system_tables: bool = False,
    ) -> None:  # fmt: skip
        self.address = address
        self.limits = limits or Limits()
        self.guard = SqlGuard("postgres", system_tables=system_tables)
        self._slots = threading.BoundedSemaphore(connections)
        self._idle: deque[psycopg.Connection[Any]] = deque()
        self._busy: set[psycopg.Connection[Any]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._problems: tuple[str, ...] | None = None
        self._powers: tuple[str, ...] = ()

    def check(self, query: NativeQuery) -> None:
        """The guard alone; QueryRejected."""
        checked_parameters(query, guarded(self.guard, query))

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Guard and run a query; QueryRejected, QueryTimeout, QueryFailed or SourceUnavailable."""
        limits = limits or self.limits
        started = monotonic()
        checked = guarded(self.guard, query, deadline=Deadline.after(limits.timeout))
        parameters = list(checked_parameters(query, checked).values())
        with self._connection(started + limits.timeout) as connection:
            return self._run(connection, checked, parameters, limits, started)

    def problems(self) -> tuple[str, ...]:
        """What the role may do beyond reading, in words; empty for a role that can only SELECT."""
        with self._connection(monotonic() + self.limits.timeout):
            return self._problems or ()

    def close(self) -> None:
        """End all connections; a query under way ends with SourceUnavailable."""
        with self._lock:
            self._closed = True
            idle, self._idle = list(self._idle), deque()
            for connection in self._busy:
                _hang_up(connection)
        for connection in idle:
            connection.close()

    def _run(
        self, connection: "psycopg.Connection[Any]", checked: CheckedQuery, parameters: Sequence[Value],
        limits: Limits, started: float,
    ) -> ResultSet:  # fmt: skip
        import psycopg

        room = limits.max_bytes * REPLY_FACTOR + REPLY_EXTRA
        watch = QueryWatch(connection, deadline=started + limits.timeout, room=room)
        try:
            with watch:
                columns, rows, truncated = self._read(connection, checked, parameters, limits, started)
        except psycopg.Error as error:
            if self._closed:
                raise SourceUnavailable("the source was closed while it ran the query") from error
            if watch.overfull:
                raise QueryFailed(f"the server sends more than the {room} bytes that it may") from error
            raise _failure(error, limits, watch) from error
        except (OverflowError, UnicodeError, ValueError) as error:
            raise QueryFailed(str(error)) from error
        finally:
            if watch.ignored:
                ends = threading.Thread(
                    target=self._see_off, args=(watch.process, limits), name="query-end", daemon=True
                )
                ends.start()
            if watch.late:
                connection.close()  # the cancel request may still be under way, and would hit the next query
        return ResultSet(columns, rows, truncated, (monotonic() - started) * 1e3, checked.rewritten)

    def _read(
        self, connection: "psycopg.Connection[Any]", checked: CheckedQuery, parameters: Sequence[Value],
        limits: Limits, started: float,
    ) -> tuple[tuple[str, ...], tuple[tuple[Value, ...], ...], str | None]:  # fmt: skip
        import psycopg

        left = max(1, round((started + limits.timeout - monotonic()) * 1e3))
        connection.execute(
            f"BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = {left}; SET LOCAL lock_timeout = {left}"
        )
        try:
            check_names(connection, checked.text, deadline=Deadline(started + limits.timeout, limits.timeout))
            psycopg.RawCursor(connection).execute(f"DECLARE {CURSOR} NO SCROLL CURSOR FOR {checked.text}", parameters)
            columns, rows, truncated = read_rows(connection, limits, started + limits.timeout)
        finally:
            with suppress(psycopg.Error):
                connection.rollback()
                connection.execute("DISCARD ALL")  # locks and settings of the session outlive a transaction
        return columns, tuple(rows), truncated

    def _see_off(self, process: int, limits: Limits) -> None:
        """End the server's process that did not obey a cancel request; it keeps one of our places until it is gone."""
        import psycopg

        said = False
        with self._slots:
            for second in range(END_SECONDS):
                try:
                    with self._connect(monotonic() + CONNECT_SECONDS) as other:
                        alive = other.execute(_END, [process, limits.timeout]).fetchone()
                except (SourceUnavailable, psycopg.Error) as error:
                    log.warning("process %d of the server may run on: %s", process, _first_line(error))
                    return
                if alive is None or self._closed:
                    return
                if second >= END_PATIENCE and not said:
                    log.warning("process %d of the server runs on past its end; only its operator can stop it", process)
                    said = True
                sleep(1.0)

    @contextmanager
    def _connection(self, deadline: float) -> Iterator["psycopg.Connection[Any]"]:
        import psycopg

        if not self._slots.acquire(timeout=max(0.0, deadline - monotonic())):
            raise SourceUnavailable("all connections to the source are busy; ask again later")
        try:
            connection = self._take(deadline)
            try:
                yield connection
            finally:
                with self._lock:
                    self._busy.discard(connection)
                    usable = not self._closed and not connection.closed
                    usable = usable and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
                    if usable:
                        self._idle.append(connection)
                if not usable:
                    connection.close()
        finally:
            self._slots.release()

    def _take(self, deadline: float) -> "psycopg.Connection[Any]":
        """An idle connection that is still alive, or a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise SourceUnavailable("the source was closed")
                connection = self._idle.pop() if self._idle else None
                if connection is not None and not _has_ended(connection):
                    self._busy.add(connection)
                    return connection
            if connection is None:
                break
            connection.close()
        connection = self._connect(deadline)
        with self._lock:
            self._busy.add(connection)
        if self._problems is None:
            self._inspect(connection)
        if self._powers and self.address.trusted_role != self.address.user:
            with self._lock:
                self._busy.discard(connection)
            connection.close()
            raise SourceUnavailable(
                f"the role {self.address.user} is refused: {self._powers[0]}. Ask as a role that may only SELECT, or "
                f"set trusted_role to {self.address.user!r} if it has to be this one"
            )
        return connection

    def _connect(self, deadline: float) -> "psycopg.Connection[Any]":
        import psycopg

        address = self.address
        seconds = max(2, min(CONNECT_SECONDS, round(deadline - monotonic())))
        settings = (
            "default_transaction_read_only=on", "standard_conforming_strings=on", 
            f"work_mem={WORK_MEM_MB}MB", "idle_in_transaction_session_timeout=60000", "bytea_output=hex",
            "max_parallel_workers_per_gather=0", "jit=off", "statement_timeout=30000",
            f"search_path={psycopg.sql.Identifier(address.schema).as_string()}",
        )  # fmt: skip
        try:
            connection = psycopg.connect(
                host=address.host, port=address.port, dbname=address.database, user=address.user,
                password=_password(address), passfile=os.devnull, sslmode=address.sslmode, connect_timeout=seconds,
                application_name="helios", tcp_user_timeout=seconds * 1000,
                options=" ".join(f"-c {_escaped(setting)}" for setting in settings), autocommit=True,
                prepare_threshold=None,
            )  # fmt: skip
        except psycopg.Error as error:
            where = f"{address.user}@{address.host}:{address.port}/{address.database}"
            raise SourceUnavailable(f"{where}: {_first_line(error)}") from error
        register_loaders(connection)
        return connection

    def _inspect(self, connection: "psycopg.Connection[Any]") -> None:
        """Note what the role may do; logged once."""
        import psycopg

        try:
            self._powers, more = (
                tuple(text_of(row[0]) for row in connection.execute(asked).fetchall()) for asked in (_POWERS, _PROBLEMS)
            )
            self._problems = (*self._powers, *more)
        except psycopg.Error as error:
            self._problems = (f"what it may do cannot be found out: {_first_line(error)}",)
        for problem in self._problems:
            log.warning("the role %s should only be able to SELECT: %s", self.address.user, problem)


def _escaped(setting: str) -> str:
    """A setting as the server splits its start-up options: a backslash before spaces and backslashes."""
    return re.sub(r"([\\\s])", r"\\\1", setting)


def _hang_up(connection: "psycopg.Connection[Any]") -> None:
    import psycopg

    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
        hang_up(line)


def _has_ended(connection: "psycopg.Connection[Any]") -> bool:
    """Whether the server has ended an idle connection: it would have said so."""
    import select

    return connection.closed or bool(select.select([connection.fileno()], [], [], 0)[0])


def _password(address: PostgresqlAddress) -> str | None:
    if address.password_env is None:
        return None
    if (password := os.environ.get(address.password_env)) is None:
        raise SourceUnavailable(f"the environment variable {address.password_env} with the password is not set")
    return password


def _failure(error: "psycopg.Error", limits: Limits, watch: QueryWatch) -> Exception:
    import psycopg

    match error:
        case psycopg.OperationalError() if watch.ignored:
            return QueryTimeout(limits.timeout, "the server did not stop when asked and is told to end its process")
        case psycopg.errors.QueryCanceled():
            return QueryTimeout(limits.timeout)
        case psycopg.errors.InsufficientPrivilege() | psycopg.errors.ReadOnlySqlTransaction():
            return QueryRejected("the database does not allow this", _first_line(error))
        case psycopg.OperationalError() if watch.late:
            return QueryTimeout(limits.timeout)
        case psycopg.OperationalError() if error.sqlstate is None:
            return SourceUnavailable(f"the connection was lost: {_first_line(error)}")
    return QueryFailed(_first_line(error))  # what follows is the statement, with conditions of rows that may be seen


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

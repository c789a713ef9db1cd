"""Property graphs behind a Bolt server (Neo4j and what speaks its protocol), asked in Cypher through the guard.

The server gets a read transaction with a timeout of its own and is never asked to commit; a client-side deadline closes
the connection of a server that does not keep to it. Servers differ in what `read` means to them, so the guard is what
keeps queries from writing; an account that may only read belongs to it.
"""

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from helios.errors import QueryFailed, QueryTimeout, SourceError, SourceUnavailable
from helios.executors.address import BOLT_SCHEMES, read_address, shown
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.cypher.growth import check_growth
from helios.executors.cypher.guard import CheckedQuery, can_limit, check
from helios.executors.cypher.render import Renderer
from helios.executors.rows import Row, capped
from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Value

if TYPE_CHECKING:
    from neo4j import Driver

CONNECT_SECONDS = 5.0
FETCH_ROWS = 200
"""Rows that the server sends at once, so that few come too many."""
TIMED_OUT = ("TransactionTimedOut", "TransactionTerminated", "LockClientStopped")


@dataclass(slots=True)
class _Query:
    """A query under way in a thread of its own, and what came of it."""

    text: str
    parameters: dict[str, Any]
    limits: Limits
    done: threading.Event = field(default_factory=threading.Event)
    columns: tuple[str, ...] = ()
    rows: tuple[list[Row], str | None] = ([], None)
    error: SourceError | None = None


class BoltExecutor:
    """Runs Cypher against one database of a Bolt server; threads may share it, a connection each."""

    language = Language.CYPHER

    def __init__(
        self,
        uri: str,
        *,
        user: str = "",
        password: str = "",
        database: str | None = None,
        limits: Limits | None = None,
        connections: int = 4,
    ) -> None:
        self.uri = shown(uri)
        """The address as it may be shown."""
        self._uri = uri
        self.database = database
        self.limits = limits or Limits()
        self._auth = (user, password) if user else None
        self._free = threading.Semaphore(connections)
        self._idle: deque[Driver] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def check(self, query: NativeQuery) -> None:
        """The guard alone: QueryRejected for what is not on the allow-list or may fill the server's memory."""
        self._checked(query)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Guard and run a query; `limits` are the source's own where None."""
        limits = limits or self.limits
        checked = self._checked(query)
        text = Renderer().query(checked.query)
        if can_limit(checked):  # one row more than may be kept tells that there are more
            text += f" LIMIT {limits.max_rows + 1}"
        given = {name: query.parameters[name] for name in checked.parameters}
        return self._run(_Query(text, given, limits), checked.query.columns)

    def close(self) -> None:
        """Close idle connections; those at work are closed with their query."""
        with self._lock:
            self._closed = True
            idle, self._idle = list(self._idle), deque()
        for driver in idle:
            driver.close()

    def _checked(self, query: NativeQuery) -> CheckedQuery:
        checked = check(query)
        check_growth(checked.query)
        return checked

    def _run(self, query: _Query, columns: tuple[str, ...] | None) -> ResultSet:
        started, seconds = monotonic(), query.limits.timeout
        if not self._free.acquire(timeout=seconds):
            raise SourceUnavailable("all connections to the server are busy; ask again later")
        try:
            driver = self._take()
            thread = threading.Thread(target=self._ask, args=(driver, query), name="bolt-query", daemon=True)
            thread.start()
            if not query.done.wait(started + seconds - monotonic()):
                threading.Thread(target=driver.close, name="bolt-close", daemon=True).start()
                raise QueryTimeout(seconds)
        finally:
            self._free.release()
        if query.error is not None:
            threading.Thread(target=driver.close, name="bolt-close", daemon=True).start()
            raise query.error
        self._give(driver)
        rows, truncated = query.rows
        return ResultSet(columns or query.columns, tuple(rows), truncated, (monotonic() - started) * 1e3)

    def _ask(self, driver: "Driver", query: _Query) -> None:
        """Run a query in a read transaction that is always rolled back."""
        from neo4j import READ_ACCESS
        from neo4j.exceptions import AuthError, BrokenRecordError, DriverError, Neo4jError

        try:
            with driver.session(
                database=self.database, default_access_mode=READ_ACCESS, fetch_size=FETCH_ROWS
            ) as session:
                transaction = session.begin_transaction(timeout=query.limits.timeout)
                try:
                    result = transaction.run(query.text, query.parameters)
                    query.columns = tuple(result.keys())
                    limits = query.limits
                    query.rows = capped(_rows(result), max_rows=limits.max_rows, max_bytes=limits.max_bytes)
                finally:
                    transaction.close()
        except AuthError as error:
            query.error = SourceUnavailable(f"{self.uri}: the server does not know user or password ({error.message})")
        except Neo4jError as error:
            timed_out = any(mark in (error.code or "") for mark in TIMED_OUT)
            query.error = QueryTimeout(query.limits.timeout) if timed_out else QueryFailed(error.message or str(error))
        except (TypeError, ValueError, OverflowError, BrokenRecordError) as error:
            query.error = QueryFailed(f"a value does not fit Bolt or Python ({error})")
        except (DriverError, OSError) as error:
            query.error = SourceUnavailable(f"{self.uri}: the server cannot be asked ({error})")
        except Exception as error:  # noqa: BLE001 - what a server sends may break the driver anywhere; never no rows
            query.error = QueryFailed(f"{self.uri}: the server's reply cannot be read ({type(error).__name__})")
        finally:
            query.done.set()

    def _take(self) -> "Driver":
        """A driver of one connection: closing it ends one query and no other."""
        from neo4j import GraphDatabase
        from neo4j.exceptions import ConfigurationError

        with self._lock:
            if self._closed:
                raise SourceUnavailable("the source was closed")
            if self._idle:
                return self._idle.pop()
        try:
            read_address(self._uri, schemes=BOLT_SCHEMES, parameters=())
            return GraphDatabase.driver(
                self._uri,
                auth=self._auth,
                max_connection_pool_size=1,
                connection_timeout=CONNECT_SECONDS,
                connection_acquisition_timeout=CONNECT_SECONDS * 2,
                max_transaction_retry_time=0.0,
                telemetry_disabled=True,
                user_agent="helios",
            )
        except (ConfigurationError, ValueError) as error:
            raise SourceUnavailable(f"{self.uri}: not the address of a Bolt server ({error})") from None

    def _give(self, driver: "Driver") -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(driver)
                return
        driver.close()


def _rows(result: Any) -> Iterator[list[Value]]:
    for record in result:
        yield [_value(value) for value in record.values()]


def _value(value: Any) -> Value:
    """A value of the driver's as one of ours; what we lack as text."""
    from neo4j import graph, time

    match value:
        case graph.Node():
            return _node(value)
        case graph.Relationship():
            return _relationship(value)
        case graph.Path():
            return GraphPath(tuple(map(_node, value.nodes)), tuple(map(_relationship, value.relationships)))
        case time.Date() | time.DateTime() | time.Time():
            return value.to_native()
        case None | bool() | int() | float() | str() | bytes():
            return value
        case dict():
            return {str(key): _value(item) for key, item in value.items()}
        case list() | tuple() if type(value) in (list, tuple):
            return [_value(item) for item in value]
    return str(value)


def _node(node: Any) -> GraphNode:
    properties = {key: _value(value) for key, value in node.items()}
    return GraphNode(node.element_id, tuple(sorted(node.labels)), properties)


def _relationship(relationship: Any) -> GraphRelationship:
    start, end = (node.element_id if node is not None else "" for node in relationship.nodes)
    properties = {key: _value(value) for key, value in relationship.items()}
    return GraphRelationship(relationship.type, start, end, properties)

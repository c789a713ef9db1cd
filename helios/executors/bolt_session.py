"""The worker's side of a Bolt server: one connection, one query at a time, in read transactions that are rolled back.

The server is given the query's seconds too, so that it need not notice that nobody waits any more. A server whose
EXPLAIN tells what a query does is asked before each query that it has not been asked about.
"""

import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceError, SourceUnavailable
from helios.executors.address import shown
from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Value

if TYPE_CHECKING:
    from neo4j import Driver, Session

CONNECT_SECONDS = 5.0
FETCH_ROWS = 200
"""Rows that the server sends at once, so that few come too many."""
EXPLAINED = 512
"""Queries that a connection remembers as reading ones."""
READS = "r"
"""What a server calls a query that only reads."""
UPDATING = re.compile(
    r"Create|Delete|Detach|Drop(?!Result)|Foreach|Load|(Locking)?Merge|Remove|RunQueryAt|Set[A-Z]|SubqueryForeach|Transaction"
)
"""Operators of a plan that write, load files, or ask another database."""
PASSING = ("Transaction", "Memory", "Security", "Session", "Fatal")
"""Errors of a server that say nothing of whether it knows EXPLAIN."""
TIMED_OUT = ("TransactionTimedOut", "TransactionTerminated", "LockClientStopped")


def open_session(options: Mapping[str, Any]) -> "BoltSession":
    """The session of a worker; it connects with its first query."""
    for unused in ("numpy", "pandas", "pyarrow"):
        sys.modules.setdefault(unused, None)  # type: ignore[arg-type]  # where it is there, neo4j would load it
    try:
        import neo4j  # noqa: F401 (its import takes longer than most queries)
    except ImportError:
        raise SourceUnavailable(
            "needs neo4j, which is not installed: pip install 'helios-retrieval[sources]'"
        ) from None
    return BoltSession(**options)


class BoltSession:
    """A connection to one database of a server, made anew after an error."""

    def __init__(self, uri: str, user: str, password: str, database: str | None) -> None:
        self._uri = uri
        self._shown = shown(uri)
        self._auth = (user, password) if user else None
        self._database = database
        self._driver: Driver | None = None
        self._explains: bool | None = None
        self._read: OrderedDict[str, None] = OrderedDict()

    def run(self, text: str, parameters: Mapping[str, Any]) -> tuple[Sequence[str], Iterator[Sequence[Value]]]:
        """Columns and rows; `parameters` holds those of the query, the `seconds` that the server may take, and whether
        the server is to `explain` it first."""
        rows = self._rows(text, parameters["parameters"], parameters["seconds"], explain=parameters["explain"])
        return next(rows), rows

    def _rows(self, text: str, parameters: Mapping[str, Value], seconds: float, *, explain: bool) -> Iterator[Any]:
        """The columns, then rows."""
        from neo4j import READ_ACCESS

        try:
            driver = self._connected()
            with driver.session(
                database=self._database, default_access_mode=READ_ACCESS, fetch_size=FETCH_ROWS
            ) as session:
                given = {name: _listed(value) for name, value in parameters.items()}
                if explain:
                    self._check_plan(session, text, given, seconds)
                transaction = session.begin_transaction(timeout=seconds)
                try:
                    result = transaction.run(text, given)
                    yield list(result.keys())
                    for record in result:
                        yield [_value(value) for value in record.values()]
                finally:
                    transaction.close()
        except Exception as error:  # noqa: BLE001 - what a server sends may break the driver anywhere
            self._hang_up()
            raise self._explained(error, seconds) from None

    def _check_plan(self, session: "Session", text: str, given: Mapping[str, Any], seconds: float) -> None:
        """QueryRejected where the server's plan of a query does more than read.

        Neo4j tells; others call every EXPLAIN a write, or know none: the first query of a connection finds out.
        """
        from neo4j.exceptions import AuthError, ClientError, DatabaseError

        if self._explains is None:
            try:
                said, plan = _explain(session, "RETURN 1 AS one", {}, seconds)
            except (ClientError, DatabaseError) as error:
                if isinstance(error, AuthError) or any(mark in (error.code or "") for mark in PASSING):
                    raise
                said, plan = None, None
            self._explains = said == READS and plan is not None
        if not self._explains or text in self._read:
            return
        said, plan = _explain(session, text, given, seconds)
        if said != READS:
            raise QueryRejected("the server says that this query does more than read", f"type {said}")
        if writing := [operator for operator in _operators(plan) if UPDATING.match(operator)]:
            raise QueryRejected("the server's plan of this query does more than read", writing[0])
        self._read[text] = None
        while len(self._read) > EXPLAINED:
            self._read.popitem(last=False)

    def _explained(self, error: Exception, seconds: float) -> SourceError:
        """What an error of the driver means; what a server sends may break it anywhere."""
        from neo4j.exceptions import AuthError, BrokenRecordError, DriverError, Neo4jError

        match error:
            case SourceError():
                return error
            case AuthError():
                said = f"the server does not know user or password ({error.message})"
                return SourceUnavailable(f"{self._shown}: {said}")
            case Neo4jError() if any(mark in (error.code or "") for mark in TIMED_OUT):
                return QueryTimeout(seconds)
            case Neo4jError():
                return QueryFailed(error.message or str(error))
            case TypeError() | ValueError() | OverflowError() | BrokenRecordError():
                return QueryFailed(f"a value does not fit Bolt or Python ({error})")
            case DriverError() | OSError():
                return SourceUnavailable(f"{self._shown}: the server cannot be asked ({error})")
        return QueryFailed(f"{self._shown}: the server's reply cannot be read ({type(error).__name__})")

    def _connected(self) -> "Driver":
        from neo4j import GraphDatabase
        from neo4j.exceptions import ConfigurationError

        if self._driver is None:
            try:
                self._driver = GraphDatabase.driver(
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
                raise SourceUnavailable(f"{self._shown}: not the address of a Bolt server ({error})") from None
        return self._driver

    def _hang_up(self) -> None:
        driver, self._driver, self._explains = self._driver, None, None
        self._read.clear()
        if driver is not None:
            driver.close()


def _explain(
    session: "Session", text: str, given: Mapping[str, Any], seconds: float
) -> tuple[str | None, Mapping[str, Any] | None]:
    """What the server calls a query, and its plan; the query does not run."""
    transaction = session.begin_transaction(timeout=seconds)
    try:
        summary = transaction.run(f"EXPLAIN {text}", dict(given)).consume()
    finally:
        transaction.close()
    return summary.query_type, summary.plan


def _operators(plan: Mapping[str, Any] | None) -> Iterator[str]:
    """The operators of a plan, as in `NodeByLabelScan@neo4j`."""
    pending = [] if plan is None else [plan]
    while pending:
        part = pending.pop()
        yield str(part.get("operatorType"))
        pending.extend(part.get("children") or [])


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


def _listed(value: Any) -> Any:
    """A parameter with lists where the border between processes made tuples."""
    if isinstance(value, Mapping):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, tuple) else value

"""Property graphs behind a Bolt server (Neo4j and what speaks its protocol), asked in Cypher through the guard.

The client runs in a worker process: what a server sends is unpacked there, within the memory of the limits, and the
process ends at the deadline, whatever the server does. Servers differ in what `read` means to them, so the guard is
what keeps queries from writing; where the server's EXPLAIN tells what a query does, it must say the same. An account
that may only read belongs to it.
"""

from collections.abc import Mapping
from dataclasses import replace

from helios.errors import QueryFailed, QueryRejected, SourceUnavailable
from helios.executors.address import BOLT_SCHEMES, read_address, shown
from helios.executors.base import Deadline, Language, Limits, NativeQuery, ResultSet
from helios.executors.cypher.growth import check_growth
from helios.executors.cypher.guard import CheckedQuery, can_limit, check, nesting
from helios.executors.cypher.render import Renderer
from helios.executors.pool import Engine, WorkerPool
from helios.executors.values import Value

PRIVILEGES = "SHOW USER PRIVILEGES YIELD access, action WHERE access = 'GRANTED' RETURN DISTINCT action ORDER BY action"
"""What Neo4j's editions with roles say of the user who asks."""
READING = ("access", "execute", "load", "match", "read", "show_constraint", "show_index", "traverse")
"""Actions that change nothing, or that the guard leaves no way to."""


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
        try:
            read_address(uri, schemes=BOLT_SCHEMES, parameters=())
        except ValueError as error:
            raise SourceUnavailable(f"{self.uri}: not the address of a Bolt server ({error})") from None
        self.database = database
        self.limits = limits or Limits()
        options = {"uri": uri, "user": user, "password": password, "database": database}
        engine = Engine("helios.executors.bolt_session:open_session", options, network=True)
        self._pool = WorkerPool(engine, size=connections)

    def check(self, query: NativeQuery) -> None:
        """The guard alone: QueryRejected for what is not on the allow-list or may fill the server's memory."""
        self._checked(query)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Guard and run a query; `limits` are the source's own where None."""
        limits = limits or self.limits
        deadline = Deadline.after(limits.timeout)
        checked = self._checked(query)
        with nesting():
            text = Renderer().query(checked.query)
        if can_limit(checked):  # one row more than may be kept tells that there are more
            text += f" LIMIT {limits.max_rows + 1}"
        given = {name: query.parameters[name] for name in checked.parameters}
        result = self._asked(text, given, limits, deadline)
        columns = checked.query.columns
        return result if columns is None else replace(result, columns=columns)

    def problems(self) -> list[str] | None:
        """What the user may do beyond reading; None where the server does not tell. SourceUnavailable."""
        try:
            actions = self._asked(PRIVILEGES, {}, self.limits, Deadline.after(self.limits.timeout), explain=False).rows
        except (QueryFailed, QueryRejected):
            return None
        return [f"the user is granted {action!s}" for (action,) in actions if action not in READING]

    def warm_up(self) -> None:
        """Have a process ready; it connects with its first query."""
        self._pool.warm_up()

    def close(self) -> None:
        """End all connections; a query under way ends with SourceUnavailable."""
        self._pool.close()

    def _asked(
        self, text: str, given: Mapping[str, Value], limits: Limits, deadline: Deadline, *, explain: bool = True
    ) -> ResultSet:
        asked: dict[str, Value] = {"parameters": dict(given), "seconds": limits.timeout, "explain": explain}
        return self._pool.run(NativeQuery(Language.CYPHER, text, asked), limits, deadline)

    def _checked(self, query: NativeQuery) -> CheckedQuery:
        checked = check(query)
        with nesting():
            check_growth(checked.query)
        return checked

"""Database servers through SQLAlchemy: guarded queries in worker processes, which hold the driver.

The guard reads the server's dialect. Tested with MariaDB; the dialects of other servers have a shorter list of
functions, and what their own means of reading only are worth was not tried.
"""

from dataclasses import replace

from helios.executors.base import Deadline, Language, Limits, NativeQuery, ResultSet
from helios.executors.pool import Engine
from helios.executors.sql.embedded import EmbeddedSqlExecutor, checked_parameters, guarded
from helios.executors.values import Value

ROLE_SECONDS = 10.0


class AlchemyExecutor(EmbeddedSqlExecutor):
    """Guarded queries against one database of a server; threads share it, a process and a connection each."""

    def __init__(
        self, url: str, dialect: str, *, password: str | None = None, where: str = "", limits: Limits | None = None,
        workers: int = 2, system_tables: bool = False, trusted_role: str | None = None,
    ) -> None:  # fmt: skip
        options = {
            "url": url, "password": password, "dialect": dialect, "where": where or dialect,
            "trusted_role": trusted_role,
        }  # fmt: skip
        engine = Engine("helios.executors.sql.alchemy_session:open_session", options, network=True)
        super().__init__(dialect, engine, limits=limits, workers=workers, system_tables=system_tables)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Guard and run a query; QueryRejected, QueryTimeout, QueryFailed or SourceUnavailable."""
        limits = limits or self.limits
        deadline = Deadline.after(limits.timeout)
        checked = guarded(self.guard, query, deadline=deadline)
        values = checked_parameters(query, checked)
        asked: dict[str, Value] = {"values": values, "seconds": limits.timeout}
        result = self._pool.run(NativeQuery(Language.SQL, checked.text, asked), limits, deadline)
        return replace(result, rewritten=checked.rewritten)

    def problems(self) -> tuple[str, ...]:
        """What the role may do beyond reading, in words; empty for one that can only SELECT, or where none can tell."""
        asked: dict[str, Value] = {"values": {}, "seconds": ROLE_SECONDS}
        result = self._pool.run(NativeQuery(Language.SQL, "", asked), Limits(timeout=ROLE_SECONDS))
        return tuple(str(problem) for (problem,) in result.rows)

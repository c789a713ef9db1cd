"""What the SQL engines inside a worker process share: guard here, engine there."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from secrets import token_hex
from uuid import UUID

from helios.errors import QueryRejected, QueryTimeout
from helios.executors.base import NEVER, Deadline, Language, Limits, NativeQuery, Outcome, ResultSet
from helios.executors.parameters import check_sizes
from helios.executors.pool import Engine, WorkerPool
from helios.executors.sql.access import KEY_NAME
from helios.executors.sql.guard import CheckedQuery, SqlGuard
from helios.executors.values import Value

PARAMETER_TYPES = (bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta, UUID, type(None))


class EmbeddedSqlExecutor:
    """Guarded queries of one dialect in worker processes; threads share it."""

    language = Language.SQL

    def __init__(
        self, dialect: str, engine: Engine, *, limits: Limits | None = None, workers: int = 2,
        system_tables: bool = False,
    ) -> None:  # fmt: skip
        self.limits = limits or Limits()
        self.guard = SqlGuard(dialect, system_tables=system_tables)
        self._pool = WorkerPool(engine, size=workers)

    def check(self, query: NativeQuery) -> None:
        """The guard alone; QueryRejected."""
        checked_parameters(query, guarded(self.guard, query))

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Guard and run a query; QueryRejected, QueryTimeout, QueryFailed or SourceUnavailable."""
        limits = limits or self.limits
        deadline = Deadline.after(limits.timeout)
        checked, rewritten = self._checked(query, deadline)
        return replace(self._pool.run(checked, limits, deadline), rewritten=rewritten)

    def execute_many(self, queries: Sequence[NativeQuery], limits: Limits, seconds: float) -> list[Outcome]:
        """Guard and run queries that do not need each other's rows; what became of each, in their order.

        Each has the limits' seconds, all have `seconds` together. SourceUnavailable is raised.
        """
        deadline = Deadline.after(seconds)
        outcomes: dict[int, Outcome] = {}
        waiting: list[tuple[int, NativeQuery, bool]] = []
        for number, query in enumerate(queries):
            try:
                waiting.append((number, *self._checked(query, deadline)))
            except (QueryRejected, QueryTimeout) as error:
                outcomes[number] = error
        while waiting:
            try:
                done = self._pool.run_many([query for _, query, _ in waiting], limits, deadline)
            except QueryTimeout as error:
                outcomes |= {number: error for number, _, _ in waiting}
                break
            for (number, _, rewritten), outcome in zip(waiting, done, strict=False):
                outcomes[number] = replace(outcome, rewritten=rewritten) if isinstance(outcome, ResultSet) else outcome
            waiting = waiting[len(done) :]
        return [outcomes[number] for number in range(len(queries))]

    def _checked(self, query: NativeQuery, deadline: Deadline) -> tuple[NativeQuery, bool]:
        """What the guard lets run, and whether that is another text."""
        checked = guarded(self.guard, query, deadline=deadline)
        return NativeQuery(Language.SQL, checked.text, checked_parameters(query, checked)), checked.rewritten

    def warm_up(self) -> None:
        """Have the parser and a process ready; SourceUnavailable where the engine cannot open the source."""
        self.guard.check("SELECT 1")
        self._pool.warm_up()

    def close(self) -> None:
        """End the processes; a query under way ends with SourceUnavailable."""
        self._pool.close()


def guarded(guard: SqlGuard, query: NativeQuery, *, deadline: Deadline = NEVER) -> CheckedQuery:
    """The text to execute; QueryRejected or QueryTimeout."""
    if query.language is not Language.SQL:
        raise QueryRejected("this source is asked in sql", query.language.value)
    return guard.check(query.text, deadline=deadline)


def checked_parameters(query: NativeQuery, checked: CheckedQuery) -> dict[str, Value]:
    """The values that the query names, in order; QueryRejected where one is missing or of no type of SQL."""
    named = [name for name in checked.parameters if name != KEY_NAME]
    for name in named:
        if name not in query.parameters:
            raise QueryRejected("a parameter has no value", name)
        if not isinstance(query.parameters[name], PARAMETER_TYPES):
            raise QueryRejected("a parameter has a type that SQL lacks", name)
    given = {name: query.parameters[name] for name in named}
    check_sizes(given)
    return given if len(named) == len(checked.parameters) else given | {KEY_NAME: token_hex(16)}

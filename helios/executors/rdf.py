"""RDF graphs in a worker process: a pyoxigraph store on disk, opened read-only, or files read into memory.

pyoxigraph has no deadline of its own and would follow SERVICE: the guard refuses that, and the process is killed at
its deadline. Files are read by every worker when it starts; what takes longer than a few seconds belongs into a store.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from helios.executors.base import Deadline, Language, Limits, NativeQuery, ResultSet
from helios.executors.pool import Engine, WorkerPool
from helios.executors.sparql.guard import SparqlGuard


class RdfExecutor:
    """Runs SPARQL over one store (a folder) or over files together; threads may share it."""

    language = Language.SPARQL

    def __init__(
        self, paths: Sequence[Path | str], *, prefixes: Mapping[str, str] | None = None, limits: Limits | None = None,
        union: bool = True, workers: int = 2, seen: Mapping[str, Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        """`prefixes` are lent to queries that do not declare them; `union`: all named graphs count as one.

        `seen`: patterns of classes and predicates to `include`, `exclude` and `mask`, where not all may be seen.
        """
        self.limits = limits or Limits()
        self.guard = SparqlGuard(prefixes)
        options: dict[str, Any] = {"paths": [str(Path(path).resolve()) for path in paths], "union": union}
        if seen:
            options["seen"] = {**{name: list(patterns) for name, patterns in seen.items()}, "key": token_hex(16)}
        self._engine = Engine("helios.executors.sparql.session:open_session", options)
        self._workers = workers
        self._pool = WorkerPool(self._engine, size=workers)

    def check(self, query: NativeQuery) -> None:
        """The guard alone."""
        self.guard.checked(query)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run a SELECT or an ASK; a variable without a value is None."""
        limits = limits or self.limits
        deadline = Deadline.after(limits.timeout)
        text = self.guard.checked(query, deadline=deadline)
        return self._pool.run(NativeQuery(self.language, text), limits, deadline)

    def read(self, statement: str, limits: Limits) -> ResultSet:
        """Run a statement of this package's own, past the guard; never one that came from outside."""
        return self._pool.run(NativeQuery(self.language, statement), limits)

    def restart(self) -> None:
        """End the workers; new ones open the graph as it is now."""
        old, self._pool = self._pool, WorkerPool(self._engine, size=self._workers)
        old.close()

    def warm_up(self) -> None:
        """Have the parser and a worker ready; SourceUnavailable where the graph cannot be opened."""
        self.guard.checked(NativeQuery(self.language, "ASK {}"))
        self._pool.warm_up()

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

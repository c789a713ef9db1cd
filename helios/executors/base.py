"""The contract of every executor: what goes in, what comes out, what may go wrong.

execute(query, limits) -> ResultSet        or QueryRejected, QueryTimeout, QueryFailed, SourceUnavailable
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from pydantic import Field

from helios.config import Section
from helios.errors import QueryTimeout, SourceError
from helios.executors.values import Value


class Language(StrEnum):
    """What a source is asked in."""

    SQL = "sql"
    SPARQL = "sparql"
    CYPHER = "cypher"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class NativeQuery:
    """A query in a source's own language; `parameters` are values that the engine binds, never text to paste."""

    language: Language
    text: str
    parameters: dict[str, Value] = field(default_factory=dict)


class Limits(Section):
    """What one query may use; the caps of a source's registration."""

    timeout: float = Field(default=10.0, gt=0.0, le=86_400.0)
    """Seconds until the query is stopped, a day at most."""
    max_rows: int = Field(default=1000, ge=1)
    max_bytes: int = Field(default=4 * 2**20, ge=1024)
    """Bytes of all values together, as text."""
    max_memory: int = Field(default=2**30, ge=2**26)
    """Bytes of memory that the process of an embedded engine may hold."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a query is given up, on the clock of the wall: reading it and waiting for an engine count too."""

    at: float
    """An instant of time.monotonic()."""
    seconds: float
    """What the query was given."""

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(monotonic() + seconds, seconds)

    def left(self) -> float:
        """Seconds until then; QueryTimeout where there are none."""
        left = self.at - monotonic()
        if left <= 0:
            raise QueryTimeout(self.seconds)
        return left


NEVER = Deadline(inf, inf)


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Rows of a query, with what was left out said out loud."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    truncated: str | None = None
    """Which cap ended the rows (`rows` or `bytes`); None where all of them are here."""
    milliseconds: float = 0.0
    rewritten: bool = False
    """Whether the query ran over what may be seen of the tables, and not as it was written (`access` of the source)."""

    def __len__(self) -> int:
        return len(self.rows)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data: values that JSON lacks as text (`helios.executors.values`)."""
        from helios.executors.values import plain

        return {
            "columns": list(self.columns), "rows": [[plain(value) for value in row] for row in self.rows],
            "truncated": self.truncated, "milliseconds": round(self.milliseconds, 3),
            **({"rewritten": True} if self.rewritten else {}),
        }  # fmt: skip


Outcome = ResultSet | SourceError
"""What became of one query of several."""


@runtime_checkable
class Batching(Protocol):
    """What runs several queries quicker together than one by one."""

    def execute_many(self, queries: Sequence[NativeQuery], limits: Limits, seconds: float) -> list[Outcome]: ...


class Executing(Protocol):
    """What runs one query."""

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet: ...


def execute_many(asked: Executing, queries: Sequence[NativeQuery], limits: Limits, seconds: float) -> list[Outcome]:
    """Run queries that do not need each other's rows; what became of each, in their order.

    Each has the limits' seconds, all have `seconds` together. SourceUnavailable may also be raised.
    """
    if isinstance(asked, Batching):
        return asked.execute_many(queries, limits, seconds)
    outcomes: list[Outcome] = []
    deadline = Deadline.after(seconds)
    for query in queries:
        try:
            own = limits.model_copy(update={"timeout": min(limits.timeout, deadline.left())})
            outcomes.append(asked.execute(query, own))
        except SourceError as error:
            outcomes.append(error)
    return outcomes


class Executor(Protocol):
    """Runs queries of one language against one source; threads may share it."""

    @property
    def language(self) -> Language: ...

    def check(self, query: NativeQuery) -> None:
        """The guard alone: QueryRejected for anything that is not on the allow-list."""

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Guard and run a query; `limits` are the source's own where None.

        Raises QueryRejected, QueryTimeout, QueryFailed or SourceUnavailable.
        """

    def close(self) -> None:
        """End processes and connections; a query under way ends with SourceUnavailable."""

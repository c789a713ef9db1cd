"""What a source is: it describes itself, looks up words, and runs queries of its language.

A source is opened from its registration (`helios.sources.registry`); what it can do beyond this protocol is its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.sources.descriptor import Descriptor


@dataclass(frozen=True, slots=True)
class ValueHit:
    """A stored value that resembles a phrase of a question, and where it stands."""

    phrase: str
    value: str
    place: tuple[str, ...]
    """(table, column), (label, property), or (predicate IRI,) of an entity's label."""
    score: float
    """1.0 for the same words, less for a part of them."""
    entity: str = ""
    """The IRI or the node id, where the value names an entity."""


@runtime_checkable
class Taught(Protocol):
    """A source that people have taught questions with their queries (`helios.sources.knowledge`)."""

    def examples(self, question: str) -> tuple[tuple[str, str], ...]:
        """Questions and queries that were taught and resemble the question, best first."""

    def recall(self, question: str) -> NativeQuery | None:
        """The query of a taught question that this one is, up to the literals of the query."""


class Source(Protocol):
    """One registered source; threads may share it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def language(self) -> Language: ...

    def descriptor(self) -> Descriptor:
        """The schema with counts and samples; read once and kept until `refresh`."""

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """The stored values that resemble each phrase best, `limit` of them a phrase at most, best first."""

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run a query through the guarded executor; see `helios.executors.base`."""

    def refresh(self) -> None:
        """Forget the descriptor and the value lookup: the data has changed."""

    def check(self) -> None:
        """Open the source and read one thing; SourceUnavailable says what to mend."""

    def close(self) -> None:
        """End processes and connections."""

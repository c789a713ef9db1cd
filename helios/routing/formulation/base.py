"""The role of a formulator: a question goes in, queries in a source's own language come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from helios.executors.base import NativeQuery
from helios.sources.base import Source


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query that may answer the question."""

    query: NativeQuery
    confidence: float
    """From 0 to 1: about how often queries like this one are right."""
    explanation: str
    """How the question was read, for people."""
    features: Mapping[str, float] = field(default_factory=dict, compare=False)
    """What the confidence was read from (`helios.routing.formulation.features`)."""


class Formulator(Protocol):
    """Writes queries of one language; threads may share it."""

    def formulate(self, question: str, source: Source) -> Sequence[Candidate]:
        """Queries best first; none where nothing in the question fits the source."""

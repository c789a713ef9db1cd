"""What RDF and property graphs share as sources: an executor, a descriptor read once, and the lookup of their texts."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from helios.errors import SourceUnavailable
from helios.executors.base import Executor, Language, Limits, NativeQuery, ResultSet
from helios.sources.base import ValueHit
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Descriptor, GraphSchema, RdfSchema
from helios.sources.lookup import LazyLookup, StoredValue

CHECK_LIMITS = Limits(timeout=30.0)


class ExecutedGraph(ABC):
    """A graph behind an executor, wherever it is; threads may share it."""

    language: Language

    def __init__(
        self, name: str, kind: str, executor: Executor, *, description: str = "",
        cache: SourceCache | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.kind = kind
        self.executor = executor
        self.description = description
        self._lookup = LazyLookup(self._values, cache)
        self._descriptor: Descriptor | None = None
        self._lock = threading.Lock()

    def descriptor(self) -> Descriptor:
        """The graph's schema with counts and samples; read by the first call."""
        with self._lock:
            if self._descriptor is None:
                described = self._schema()
                self._descriptor = Descriptor(self.name, self.kind, self.language, described, self.description)
            return self._descriptor

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """Labels and other short texts that resemble the phrases; the first call reads them all."""
        return self._lookup.find(phrases, limit=limit)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run a query through the guarded executor."""
        return self.executor.execute(query, limits)

    def refresh(self) -> None:
        """Forget descriptor and lookup."""
        with self._lock:
            self._descriptor = None
        self._lookup.forget()

    def check(self) -> None:
        """Read one part of the graph; SourceUnavailable says what to mend."""
        if not self._any().rows:
            raise SourceUnavailable(f"source {self.name!r}: the graph is empty")

    def close(self) -> None:
        """End processes and connections."""
        self.executor.close()

    @abstractmethod
    def _schema(self) -> RdfSchema | GraphSchema:
        """What the descriptor says."""

    @abstractmethod
    def _values(self) -> Iterable[StoredValue]:
        """Texts for the lookup."""

    @abstractmethod
    def _any(self) -> ResultSet:
        """One triple or node, no row where there is none."""

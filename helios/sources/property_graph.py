"""Property graphs as sources: a ladybug database on this machine, and what a Bolt server shares with it."""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from helios.errors import SourceUnavailable
from helios.executors.base import Executor, Language, Limits, NativeQuery, ResultSet
from helios.executors.property_graph import PropertyGraphExecutor
from helios.sources.base import SourceKind, ValueHit
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Descriptor, GraphSchema
from helios.sources.graph_schema import GraphReader
from helios.sources.lookup import LazyLookup, StoredValue
from helios.sources.spec import PropertyGraphSpec, SourceSpec

CHECK_LIMITS = Limits(timeout=30.0)


class CypherSource:
    """A graph that is asked in Cypher, wherever it is."""

    language = Language.CYPHER

    def __init__(
        self,
        name: str,
        kind: SourceKind,
        executor: Executor,
        *,
        description: str = "",
        cache: SourceCache | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.executor = executor
        self.description = description
        self._reader = GraphReader(executor.execute)
        self._lookup = LazyLookup(self._values, cache)
        self._descriptor: Descriptor | None = None
        self._lock = threading.Lock()

    def descriptor(self) -> Descriptor:
        """Labels, relationship types and typed properties with counts and samples."""
        with self._lock:
            if self._descriptor is None:
                schema = self._reader.schema()
                self._descriptor = Descriptor(self.name, str(self.kind), self.language, schema, self.description)
            return self._descriptor

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """Short texts of nodes that resemble the phrases; the first call reads them all."""
        return self._lookup.find(phrases, limit=limit)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run Cypher through the guarded executor."""
        return self.executor.execute(query, limits)

    def refresh(self) -> None:
        """Forget descriptor and lookup."""
        with self._lock:
            self._descriptor = None
        self._lookup.forget()

    def check(self) -> None:
        """Read one node; SourceUnavailable says what to mend."""
        query = NativeQuery(Language.CYPHER, "MATCH (n) RETURN labels(n) AS labels LIMIT 1")
        if not self.executor.execute(query, CHECK_LIMITS).rows:
            raise SourceUnavailable(f"source {self.name!r}: the graph is empty")

    def close(self) -> None:
        """End processes and connections."""
        self.executor.close()

    def _values(self) -> Iterable[StoredValue]:
        schema = self.descriptor().schema
        assert isinstance(schema, GraphSchema)
        return self._reader.values(schema)


class PropertyGraphSource(CypherSource):
    """A ladybug database; `refresh` opens the file anew."""

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        limits: Limits | None = None,
        description: str = "",
        cache: SourceCache | None = None,
    ) -> None:
        self._graph = PropertyGraphExecutor(path, limits)
        super().__init__(name, SourceKind.PROPERTY_GRAPH, self._graph, description=description, cache=cache)

    def refresh(self) -> None:
        """Forget descriptor and lookup, and open the database again."""
        self._graph.refresh()
        super().refresh()


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> PropertyGraphSource:
    """A property graph from its registration."""
    assert isinstance(spec, PropertyGraphSpec)
    (path,) = spec.paths(folder)
    return PropertyGraphSource(name, path, limits=spec.limits, description=spec.description, cache=cache)

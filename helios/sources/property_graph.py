"""Property graphs as sources: a ladybug database on this machine, and what a Bolt server shares with it."""

from collections.abc import Iterable
from pathlib import Path

from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.property_graph import PropertyGraphExecutor
from helios.sources.access import GraphAccess
from helios.sources.cache import SourceCache
from helios.sources.descriptor import GraphSchema
from helios.sources.graph import CHECK_LIMITS, ExecutedGraph
from helios.sources.graph_schema import GraphReader
from helios.sources.lookup import StoredValue
from helios.sources.spec import PropertyGraphSpec, SourceSpec


class CypherSource(ExecutedGraph):
    """A graph that is asked in Cypher, wherever it is."""

    language = Language.CYPHER

    def _schema(self) -> GraphSchema:
        """Labels, relationship types and typed properties with counts and samples."""
        return GraphReader(self.executor.execute).schema()

    def _values(self) -> Iterable[StoredValue]:
        schema = self.descriptor().schema
        assert isinstance(schema, GraphSchema)
        return GraphReader(self.executor.execute).values(schema)

    def _any(self) -> ResultSet:
        query = NativeQuery(Language.CYPHER, "MATCH (n) RETURN labels(n) AS labels LIMIT 1")
        return self.executor.execute(query, CHECK_LIMITS)


class PropertyGraphSource(CypherSource):
    """A ladybug database; `refresh` opens the file anew."""

    def __init__(
        self, name: str, path: Path, *, limits: Limits | None = None, description: str = "",
        cache: SourceCache | None = None, access: GraphAccess | None = None,
    ) -> None:  # fmt: skip
        """`access`: what may be seen; the workers hold nothing else."""
        self._graph = PropertyGraphExecutor(path, limits, seen=access.seen({}) if access is not None else None)
        super().__init__(name, "property_graph", self._graph, description=description, cache=cache)

    def refresh(self) -> None:
        """Forget descriptor and lookup, and open the database again."""
        self._graph.refresh()
        super().refresh()


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> PropertyGraphSource:
    """A property graph from its registration."""
    assert isinstance(spec, PropertyGraphSpec)
    (path,) = spec.paths(folder)
    return PropertyGraphSource(
        name, path, limits=spec.limits, description=spec.description, cache=cache, access=spec.access
    )

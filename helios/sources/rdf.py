"""RDF graphs as sources: a pyoxigraph store, or files read into memory; and what an endpoint shares with them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from helios.executors.base import Executor, Language, Limits, ResultSet
from helios.executors.rdf import RdfExecutor
from helios.sources.access import GraphAccess
from helios.sources.cache import SourceCache
from helios.sources.descriptor import RdfSchema
from helios.sources.graph import CHECK_LIMITS, ExecutedGraph
from helios.sources.lookup import StoredValue
from helios.sources.rdf_schema import SchemaReader
from helios.sources.rdf_values import stored_values
from helios.sources.spec import RdfSpec, SourceSpec

PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}
"""The W3C's own, which every source lends to queries besides those of its registration."""


class RdfReading(Executor, Protocol):
    """An executor that also runs this package's own statements."""

    def read(self, statement: str, limits: Limits) -> ResultSet: ...


class GraphSource(ExecutedGraph):
    """A graph that is asked in SPARQL, wherever it is."""

    language = Language.SPARQL

    def __init__(
        self, name: str, kind: str, executor: RdfReading, *, prefixes: Mapping[str, str],
        description: str = "", cache: SourceCache | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, kind, executor, description=description, cache=cache)
        self.prefixes = dict(prefixes)
        self._read = executor.read

    def _schema(self) -> RdfSchema:
        """Classes and predicates with counts, labels, samples, domain and range."""
        schema: RdfSchema = SchemaReader(self._read).schema(self.prefixes)
        return schema

    def _values(self) -> Iterable[StoredValue]:
        return stored_values(self._read)

    def _any(self) -> ResultSet:
        return self._read("SELECT ?s WHERE { ?s ?p ?o } LIMIT 1", CHECK_LIMITS)


class RdfSource(GraphSource):
    """A graph on this machine; `refresh` starts new workers, which read the files again."""

    def __init__(
        self, name: str, paths: Sequence[Path | str], *, prefixes: Mapping[str, str] | None = None,
        limits: Limits | None = None, description: str = "", cache: SourceCache | None = None,
        access: GraphAccess | None = None,
    ) -> None:  # fmt: skip
        """`access`: what may be seen; the workers hold nothing else."""
        lent = PREFIXES | dict(prefixes or {})
        seen = access.seen(lent) if access is not None else None
        executor = RdfExecutor(paths, prefixes=lent, limits=limits, seen=seen)
        super().__init__(name, "rdf", executor, prefixes=prefixes or {}, description=description, cache=cache)
        self._executor = executor

    def refresh(self) -> None:
        """Forget descriptor and lookup, and read the files again."""
        self._executor.restart()
        super().refresh()


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> RdfSource:
    """An RDF source from its registration."""
    assert isinstance(spec, RdfSpec)
    return RdfSource(
        name, spec.paths(folder), prefixes=spec.prefixes, limits=spec.limits, description=spec.description, cache=cache,
        access=spec.access,
    )  # fmt: skip

"""RDF graphs as sources: a pyoxigraph store, or files read into memory; and what an endpoint shares with them."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from helios.errors import SourceUnavailable
from helios.executors.base import Executor, Language, Limits, NativeQuery, ResultSet
from helios.executors.rdf import RdfExecutor
from helios.sources.base import SourceKind, ValueHit
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Descriptor, RdfSchema
from helios.sources.lookup import LazyLookup, StoredValue
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


class GraphSource:
    """A graph that is asked in SPARQL, wherever it is."""

    language = Language.SPARQL

    def __init__(
        self, name: str, kind: SourceKind, executor: RdfReading, *, prefixes: Mapping[str, str],
        description: str = "", cache: SourceCache | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.kind = kind
        self.executor = executor
        self.prefixes = dict(prefixes)
        self.description = description
        self._lookup = LazyLookup(self._values, cache)
        self._descriptor: Descriptor | None = None
        self._lock = threading.Lock()

    def descriptor(self) -> Descriptor:
        """Classes and predicates with counts, labels, samples, domain and range."""
        with self._lock:
            if self._descriptor is None:
                schema: RdfSchema = SchemaReader(self.executor.read).schema(self.prefixes)
                self._descriptor = Descriptor(self.name, str(self.kind), self.language, schema, self.description)
            return self._descriptor

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """Labels and other short texts that resemble the phrases; the first call reads them all."""
        return self._lookup.find(phrases, limit=limit)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run SPARQL through the guarded executor."""
        return self.executor.execute(query, limits)

    def refresh(self) -> None:
        """Forget descriptor and lookup."""
        with self._lock:
            self._descriptor = None
        self._lookup.forget()

    def check(self) -> None:
        """Read one triple; SourceUnavailable says what to mend."""
        if not self.executor.read("SELECT ?s WHERE { ?s ?p ?o } LIMIT 1", Limits(timeout=30.0)).rows:
            raise SourceUnavailable(f"source {self.name!r}: the graph is empty")

    def close(self) -> None:
        """End processes and connections."""
        self.executor.close()

    def _values(self) -> Iterable[StoredValue]:
        return stored_values(self.executor.read)


class RdfSource(GraphSource):
    """A graph on this machine; `refresh` starts new workers, which read the files again."""

    def __init__(
        self, name: str, paths: Sequence[Path | str], *, prefixes: Mapping[str, str] | None = None,
        limits: Limits | None = None, description: str = "", cache: SourceCache | None = None,
    ) -> None:  # fmt: skip
        lent = PREFIXES | dict(prefixes or {})
        executor = RdfExecutor(paths, prefixes=lent, limits=limits)
        super().__init__(name, SourceKind.RDF, executor, prefixes=prefixes or {}, description=description, cache=cache)
        self._executor = executor

    def refresh(self) -> None:
        """Forget descriptor and lookup, and read the files again."""
        self._executor.restart()
        super().refresh()


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> RdfSource:
    """An RDF source from its registration."""
    assert isinstance(spec, RdfSpec)
    return RdfSource(
        name, spec.paths(folder), prefixes=spec.prefixes, limits=spec.limits, description=spec.description, cache=cache
    )

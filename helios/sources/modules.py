"""The modules that each kind of source needs: those of the extra `sources` may be absent."""

from collections.abc import Iterable
from importlib.util import find_spec

from helios.errors import SourceUnavailable
from helios.extras import installation
from helios.sources.base import SourceKind

NEEDED: dict[SourceKind, tuple[str, ...]] = {
    SourceKind.CORPUS: (),
    SourceKind.SQLITE: ("sqlglot",),
    SourceKind.DUCKDB: ("sqlglot",),
    SourceKind.POSTGRESQL: ("sqlglot", "psycopg"),
    SourceKind.RDF: ("rdflib", "pyoxigraph"),
    SourceKind.SPARQL: ("rdflib",),
    SourceKind.PROPERTY_GRAPH: ("ladybug",),
    SourceKind.BOLT: ("neo4j",),
}
"""Imported where they are used, some of them in another process: so they are looked for before anything is opened."""


def require_modules(modules: Iterable[str], *, wanted_by: str) -> None:
    """SourceUnavailable names the modules that are not installed, who wants them, and how to install them."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        raise SourceUnavailable(
            f"{wanted_by} needs {' and '.join(missing)}, which {verb} not installed: {installation(missing[-1])}"
        )

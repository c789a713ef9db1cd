"""The worker's side of RDF graphs: a pyoxigraph store that runs queries and gives rows.

Runs inside `helios.executors.worker`; imports nothing heavy, so that a process is up quickly.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from helios.errors import QueryFailed, SourceUnavailable
from helios.executors.sparql.seen import SeenGraph
from helios.executors.sparql.terms import ASK_COLUMN, literal_value
from helios.executors.values import Iri, Value

ENDINGS = (".nt", ".ttl", ".nq", ".trig", ".rdf", ".owl", ".xml", ".jsonld", ".n3")
"""Files that can be read, each also with `.gz` behind it."""
ENGINE_ERRORS = (SyntaxError, RuntimeError, ValueError, OSError)


class RdfSession:
    """An open graph inside a worker."""

    def __init__(self, store: Any, *, union: bool) -> None:
        self._store = store
        self._union = union

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterable[Sequence[Value]]]:
        """Rows as the engine finds them; parameters are already terms of the text."""
        from pyoxigraph import QueryBoolean, QuerySolutions

        try:
            results = self._store.query(text, use_default_graph_as_union=self._union)
        except ENGINE_ERRORS as error:
            raise QueryFailed(str(error)) from None
        if isinstance(results, QueryBoolean):
            return [ASK_COLUMN], [(bool(results),)]
        if isinstance(results, QuerySolutions):
            return [variable.value for variable in results.variables], _rows(results)
        raise QueryFailed("the query gives triples, not rows")


def open_session(options: Mapping[str, Any]) -> RdfSession:
    """Open a store, or read files into one in memory; SourceUnavailable names the file that cannot be read."""
    from pyoxigraph import Store

    paths = [Path(path) for path in options["paths"]]
    for path in paths:
        if not path.exists():
            raise SourceUnavailable(f"{path}: no such file or folder")
    if len(paths) == 1 and paths[0].is_dir():
        try:
            return RdfSession(_seen(Store.read_only(str(paths[0])), options), union=options["union"])
        except ENGINE_ERRORS as error:
            raise SourceUnavailable(f"{paths[0]}: cannot be opened as a pyoxigraph store ({error})") from None
    store = Store()
    for path in paths:
        _load(store, path)
    return RdfSession(_seen(store, options), union=options["union"])


def _seen(store: Any, options: Mapping[str, Any]) -> Any:
    """The store, or a copy of what may be seen of it."""
    seen = options.get("seen")
    return SeenGraph.of(seen).copied(store) if seen else store


def _load(store: Any, path: Path) -> None:
    from pyoxigraph import RdfFormat

    endings = [ending.lower() for ending in path.suffixes]
    packed = endings[-1:] == [".gz"]
    ending = (endings[:-1] if packed else endings)[-1:] or [""]
    if ending[0] not in ENDINGS:
        raise SourceUnavailable(f"{path}: expected a file that ends in {', '.join(ENDINGS)}, or one of them and .gz")
    known = {".owl": "rdf", ".xml": "rdf"}.get(ending[0], ending[0][1:])
    try:
        with cast(BinaryIO, gzip.open(path)) if packed else path.open("rb") as file:
            store.bulk_load(file, RdfFormat.from_extension(known), base_iri=path.as_uri())
    except (*ENGINE_ERRORS, EOFError) as error:
        raise SourceUnavailable(f"{path}: cannot be read as RDF ({error})") from None


def _rows(solutions: Any) -> Iterator[Sequence[Value]]:
    try:
        for solution in solutions:
            yield [_value(term) for term in solution]
    except ENGINE_ERRORS as error:
        raise QueryFailed(str(error)) from None


def _value(term: Any) -> Value:
    from pyoxigraph import BlankNode, Literal, NamedNode

    match term:
        case None:
            return None
        case Literal():
            return literal_value(term.value, term.datatype.value, term.language or "")
        case NamedNode():
            return Iri(term.value)
        case BlankNode():
            return Iri(f"_:{term.value}")
    return [_value(part) for part in term]  # a triple as a term, as RDF 1.2 has them

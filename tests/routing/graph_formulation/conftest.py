"""Two small graphs of our own and sources over them: a lighthouse register as RDF, a library as a property graph."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from helios.errors import QueryFailed
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.values import Iri, Literal
from helios.routing.formulation.entity_linking import folded, similarity
from helios.sources.base import ValueHit
from helios.sources.descriptor import Column, Descriptor, GraphSchema, NodeLabel, RdfSchema, RdfTerm, RelationshipType
from helios.sources.graph_import import import_graph
from helios.sources.property_graph import PropertyGraphSource

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
DESCRIPTION = "http://schema.org/description"
BASE = "http://example.org/"
NAMES = {
    "kerrow": ("Kerrow Head Light", "lighthouse on a cape"), "kerrow_film": ("Kerrow Head", "1950 film"),
    "orr": ("Anna Orr", "engineer"), "vale": ("Sten Vale", "film maker"), "skarn": ("Skarn", "island nation"),
    "mull": ("Mullport", "harbour town"),
}  # fmt: skip
TRIPLES = [
    ("kerrow", "architect", "orr"), ("kerrow", "country", "skarn"), ("kerrow_film", "director", "vale"),
    ("orr", "birthplace", "mull"), ("vale", "birthplace", "mull"), ("orr", "deathplace", "skarn"),
]  # fmt: skip
PREDICATES = {
    "architect": "architect", "country": "country", "director": "director", "birthplace": "place of birth",
    "deathplace": "place of death",
}  # fmt: skip


class SmallRdf:
    """The register in pyoxigraph."""

    name, kind, language = "register", "rdf", Language.SPARQL

    def __init__(self) -> None:
        import pyoxigraph as ox

        self.store = ox.Store()
        for name, texts in NAMES.items():
            for predicate, text in zip((LABEL, DESCRIPTION), texts, strict=True):
                literal = ox.Literal(text, language="en")
                self.store.add(ox.Quad(ox.NamedNode(BASE + name), ox.NamedNode(predicate), literal))
        for subject, predicate, value in TRIPLES:
            self.store.add(ox.Quad(*(ox.NamedNode(BASE + part) for part in (subject, predicate, value))))

    def descriptor(self) -> Descriptor:
        predicates = tuple(RdfTerm(BASE + name, label, 1) for name, label in PREDICATES.items())
        return Descriptor(self.name, "rdf", self.language, RdfSchema((), (), predicates, len(self.store)))

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        return tuple(
            ValueHit(phrase, label, (LABEL,), similarity(phrase, label), BASE + name)
            for phrase in phrases
            for name, (label, _) in NAMES.items()
            if similarity(phrase, label) > 0.7
        )

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        import pyoxigraph as ox

        found: Any = self.store.query(query.text)

        def value(term: Any) -> Any:
            if isinstance(term, ox.NamedNode):
                return Iri(term.value)
            return Literal(term.value, language=term.language or "") if term is not None else None

        rows = tuple(tuple(map(value, solution)) for solution in found)
        return ResultSet(tuple(variable.value for variable in found.variables), rows)


NODES: dict[str, list[dict[str, Any]]] = {
    "Writer": [
        {"name": "Ida Berg", "born": 1901}, {"name": "Tom Lund", "born": 1950}, {"name": "Eva Holm", "born": 1972}
    ],
    "Book": [
        {"title": "North Wind", "pages": 320, "price": 12.5, "lent": True},
        {"title": "Salt", "pages": 90, "price": 7.0, "lent": False},
        {"title": "The Long Pier", "pages": 210, "price": 15.0, "lent": False},
        {"title": "Tide", "pages": 150, "price": 9.0, "lent": True},
    ],
    "Shelf": [{"shelfName": "Sea"}, {"shelfName": "Land"}],
}  # fmt: skip
EDGES: list[tuple[str, str, str, str, str]] = [
    ("Writer", "Ida Berg", "WROTE", "Book", "North Wind"), ("Writer", "Ida Berg", "WROTE", "Book", "Salt"),
    ("Writer", "Ida Berg", "WROTE", "Book", "Tide"), ("Writer", "Tom Lund", "WROTE", "Book", "The Long Pier"),
    ("Writer", "Eva Holm", "WROTE", "Book", "The Long Pier"),
    ("Book", "North Wind", "STANDS_ON", "Shelf", "Land"), ("Book", "Salt", "STANDS_ON", "Shelf", "Sea"),
    ("Book", "The Long Pier", "STANDS_ON", "Shelf", "Sea"), ("Book", "Tide", "STANDS_ON", "Shelf", "Sea"),
]  # fmt: skip
KEYS = {"Writer": "name", "Book": "title", "Shelf": "shelfName"}
TYPES = {str: "STRING", int: "INT64", float: "DOUBLE", bool: "BOOL"}


class SmallLibrary:
    """The library in ladybug."""

    name, kind, language = "library", "property_graph", Language.CYPHER

    def __init__(self) -> None:
        import ladybug

        self.connection = ladybug.Connection(ladybug.Database(":memory:"), num_threads=1)
        for label, nodes in NODES.items():
            columns = ", ".join(f"`{name}` {TYPES[type(value)]}" for name, value in nodes[0].items())
            self.connection.execute(f"CREATE NODE TABLE `{label}`({columns}, PRIMARY KEY(`{KEYS[label]}`))")
            for node in nodes:
                slots = ", ".join(f"`{name}`: ${name}" for name in node)
                self.connection.execute(f"CREATE (:`{label}` {{{slots}}})", node)
        for type_, start, end in (("WROTE", "Writer", "Book"), ("STANDS_ON", "Book", "Shelf")):
            self.connection.execute(f"CREATE REL TABLE `{type_}`(FROM `{start}` TO `{end}`)")
        for start, source, type_, end, target in EDGES:
            self.connection.execute(
                f"MATCH (a:`{start}`), (b:`{end}`) WHERE a.`{KEYS[start]}` = $a AND b.`{KEYS[end]}` = $b "
                f"CREATE (a)-[:`{type_}`]->(b)", {"a": source, "b": target},
            )  # fmt: skip
        self.schema = GraphSchema(
            tuple(NodeLabel(label, _columns(nodes), len(nodes)) for label, nodes in NODES.items()),
            (RelationshipType("WROTE", "Writer", "Book", (), 5), RelationshipType("STANDS_ON", "Book", "Shelf", (), 4)),
        )

    def descriptor(self) -> Descriptor:
        return Descriptor(self.name, "property_graph", self.language, self.schema)

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        return tuple(
            ValueHit(phrase, node[KEYS[label]], (label, KEYS[label]), 1.0)
            for phrase in phrases
            for label, nodes in NODES.items()
            for node in nodes
            if folded(phrase) == folded(node[KEYS[label]])
        )

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        try:
            result: Any = self.connection.execute(query.text, dict(query.parameters))
        except RuntimeError as error:
            raise QueryFailed(str(error)) from None
        rows = []
        while result.has_next():
            rows.append(tuple(result.get_next()))
        return ResultSet(tuple(result.get_column_names()), tuple(rows))


def _columns(nodes: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    return tuple(
        Column(name, TYPES[type(value)], samples=tuple(str(node[name]) for node in nodes))
        for name, value in nodes[0].items()
    )


@pytest.fixture(scope="module")
def register() -> SmallRdf:
    pytest.importorskip("pyoxigraph")
    return SmallRdf()


@pytest.fixture(scope="module")
def library() -> SmallLibrary:
    pytest.importorskip("ladybug")
    return SmallLibrary()


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., PropertyGraphSource]]:
    """Makes a property graph of (id, label, properties) and (start, type, end, properties)."""
    opened: list[PropertyGraphSource] = []

    def make(nodes: Sequence[tuple[Any, ...]], edges: Sequence[tuple[Any, ...]]) -> PropertyGraphSource:
        folder = tmp_path_factory.mktemp("graph")
        records = {
            "nodes": [{"id": key, "labels": [label], "properties": own} for key, label, own in nodes],
            "edges": [{"src": a, "dst": b, "type": type_, "properties": own} for a, type_, b, own in edges],
        }
        for name, lines in records.items():
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        import_graph(folder / "nodes.jsonl", folder / "edges.jsonl", folder / "graph.ladybug")
        opened.append(PropertyGraphSource("graph", folder / "graph.ladybug", description=""))
        return opened[-1]

    yield make
    for source in opened:
        source.close()

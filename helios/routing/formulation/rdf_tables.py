"""An RDF graph as tables, where it is built like them: classes, their literals, and the links between their resources.

class → table     predicate with literals → column     predicate between two classes → foreign key

The graph itself says how its parts belong together, whatever their names are: a literal that no two instances of a
class share may be its key, and a literal that equals the key of the linked resource is the foreign key written out.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from helios.errors import SourceError
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.sparql.terms import iri_text
from helios.routing.formulation.plan import ColumnRef
from helios.routing.formulation.properties import is_iri
from helios.routing.formulation.words import name_words
from helios.sources.base import Source, ValueHit
from helios.sources.descriptor import Column, ForeignKey, RdfSchema, RdfTerm, RelationalSchema, TableSchema
from helios.sources.rdf_schema import COMMENTS, LABELS, TYPES

log = logging.getLogger(__name__)

DESCRIBED = 0.9
"""The least share of triples whose subjects have a class."""
ASKED = Limits(timeout=5.0, max_rows=2000)
RESOURCE = "IRI"
"""The type of a column that holds resources."""
KEYS = ("id", "code", "key", "number")


@dataclass(frozen=True, slots=True)
class RdfColumn:
    """A predicate as a column of one class."""

    iri: str
    datatypes: tuple[str, ...]


@dataclass(frozen=True)
class RdfTables:
    """The tables of a graph, and what their names stand for in it."""

    schema: RelationalSchema
    classes: dict[str, str]
    """Class IRIs by table."""
    columns: dict[ColumnRef, RdfColumn]
    """The column with an empty name is the resource itself, and has no predicate."""
    links: dict[tuple[ColumnRef, ColumnRef], str]
    """For each foreign key (referring column, referred column) the predicate that leads there."""
    types: tuple[str, ...]
    """Predicates that give a resource its class."""
    places: dict[str, list[ColumnRef]] = field(default_factory=dict)
    """Columns by predicate."""

    @classmethod
    def of(cls, schema: RdfSchema, source: Source) -> "RdfTables | None":
        """The tables of a graph; None where its resources have no classes with literals."""
        types = tuple(p.iri for p in schema.predicates if p.iri in TYPES)
        facts = [p for p in schema.predicates if p.iri not in (*TYPES, *LABELS, *COMMENTS)]
        described = sum(p.count for p in facts if p.domain)
        literal = any(p.domain and _datatypes(p, schema) for p in facts)
        if not types or not literal or described < DESCRIBED * sum(p.count for p in facts):
            return None
        return _TableReader(schema, source, types).tables()

    def find_values(self, source: Source, phrases: Sequence[str]) -> list[ValueHit]:
        """Stored values with the table and the column that hold them; an entity's are in its own classes alone."""
        hits = [(hit, self.places.get(hit.place[0], [])) for hit in source.find_values(phrases) if hit.place]
        shared = {hit.entity for hit, places in hits if len(places) > 1 and is_iri(hit.entity)}
        classes = self._classes_of(source, sorted(shared)) if shared else {}
        return [
            ValueHit(hit.phrase, hit.value, (place.table, place.column), hit.score, hit.entity)
            for hit, places in hits
            for place in places
            if self.classes[place.table] in classes.get(hit.entity, (self.classes[place.table],))
        ]

    def _classes_of(self, source: Source, entities: Sequence[str]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        path = "|".join(map(iri_text, self.types))
        named = " ".join(map(iri_text, entities))
        for entity, class_ in _rows(source, f"SELECT ?e ?c WHERE {{ VALUES ?e {{ {named} }} ?e {path} ?c }}"):
            found.setdefault(str(entity), set()).add(str(class_))
        return found


class _TableReader:
    """Reads the tables of one graph: the descriptor says what there is, a query for each class and link the keys."""

    def __init__(self, schema: RdfSchema, source: Source, types: tuple[str, ...]) -> None:
        self.schema, self.source, self.types = schema, source, types
        self.path = "|".join(map(iri_text, types))
        self.names = _unique([c.label for c in schema.classes])
        self.table_of = {c.iri: name for c, name in zip(schema.classes, self.names, strict=True)}
        self.columns: dict[ColumnRef, RdfColumn] = {}
        self.links: dict[tuple[ColumnRef, ColumnRef], str] = {}
        self.foreign: dict[str, list[ForeignKey]] = {name: [] for name in self.names}
        self.keys: dict[str, str] = {}

    def tables(self) -> RdfTables:
        owned = {c.iri: self._owned(c) for c in self.schema.classes}
        for term in self.schema.classes:
            self._columns(self.table_of[term.iri], owned[term.iri])
        unique = {c.iri: self._unique_columns(c) for c in self.schema.classes}
        for term in self.schema.classes:
            for predicate in owned[term.iri]:
                for target in predicate.range:
                    if target in self.table_of:
                        self._link(term, predicate, target, unique[target])
        for term in self.schema.classes:
            self._key(self.table_of[term.iri], unique[term.iri])
        tables = [self._table(c) for c in self.schema.classes]
        found = RdfTables(
            RelationalSchema("sparql", tuple(tables)), {name: iri for iri, name in self.table_of.items()},
            self.columns, self.links, self.types,
        )  # fmt: skip
        for place, column in self.columns.items():
            found.places.setdefault(column.iri, []).append(place)
        return found

    def _owned(self, term: RdfTerm) -> list[RdfTerm]:
        return [
            p for p in self.schema.predicates
            if p.iri not in TYPES and (term.iri in p.domain or (p.iri in LABELS and p.domain))
        ]  # fmt: skip

    def _columns(self, table: str, predicates: Sequence[RdfTerm]) -> None:
        for predicate, name in zip(predicates, _unique([p.label for p in predicates]), strict=True):
            datatypes = _datatypes(predicate, self.schema)
            self.columns[ColumnRef(table, name)] = RdfColumn(predicate.iri, datatypes)

    def _unique_columns(self, term: RdfTerm) -> list[str]:
        """Columns that have one value an instance, and no value twice."""
        rows = _rows(
            self.source,
            f"SELECT ?p (COUNT(?o) AS ?n) (COUNT(DISTINCT ?o) AS ?d) (COUNT(DISTINCT ?s) AS ?i) "
            f"WHERE {{ ?s {self.path} {iri_text(term.iri)} ; ?p ?o FILTER(isLiteral(?o)) }} GROUP BY ?p",
        )
        single = {str(p) for p, *counts in rows if {int(str(n)) for n in counts} == {term.count}}
        table = self.table_of[term.iri]
        return [ref.column for ref, column in self.columns.items() if ref.table == table and column.iri in single]

    def _link(self, term: RdfTerm, predicate: RdfTerm, target: str, unique: Sequence[str]) -> None:
        """A foreign key: from the literal that is the target's key where there is one, else from the resource."""
        table, other = self.table_of[term.iri], self.table_of[target]
        iris = {column.iri: ref.column for ref, column in self.columns.items() if ref.table == other}
        own = {column.iri: ref for ref, column in self.columns.items() if ref.table == table}
        rows = _rows(
            self.source,
            f"SELECT ?d ?k (COUNT(*) AS ?n) WHERE {{ ?a {self.path} {iri_text(term.iri)} ; {iri_text(predicate.iri)} "
            f"?b . ?b {self.path} {iri_text(target)} ; ?k ?v . ?a ?d ?v FILTER(isLiteral(?v)) }} GROUP BY ?d ?k",
        )
        said = set(name_words(predicate.label))
        pairs = [
            (len(said & set(name_words(own[str(d)].column))), iris[str(k)] == self.keys.get(other), own[str(d)], str(k))
            for d, k, n in rows
            if str(d) in own and iris.get(str(k)) in unique and int(str(n)) == predicate.count
        ]
        pairs = [pair for pair in pairs if pair[0]]
        if pairs:
            *_, here, key = max(pairs)
            there = ColumnRef(other, iris[key])
            self.keys[other] = there.column
            self.columns.pop(own[predicate.iri], None)
        else:
            here, there = self._nameless(own[predicate.iri], said, other), ColumnRef(other, "")
        self.links[here, there] = predicate.iri
        self.foreign[table].append(ForeignKey((here.column,), other, (there.column,)))

    def _nameless(self, column: ColumnRef, said: set[str], other: str) -> ColumnRef:
        """A link that says no more than the class it leads to is no attribute: it gets a name without words."""
        if not said <= set(name_words(other)):
            return column
        bare = ColumnRef(column.table, "·" * (1 + len(self.links)))
        self.columns[bare] = self.columns.pop(column)
        return bare

    def _key(self, table: str, unique: Sequence[str]) -> None:
        """The key of a table that no link showed: a column without repeated values that is called one."""
        referring = {column for key in self.foreign[table] for column in key.columns}
        named = [c for c in unique if c not in referring and name_words(c) and name_words(c)[-1].endswith(KEYS)]
        own = set(name_words(table))
        if table not in self.keys and named:
            self.keys[table] = min(named, key=lambda c: len(set(name_words(c)) - own))

    def _table(self, term: RdfTerm) -> TableSchema:
        table = self.table_of[term.iri]
        predicates = {p.iri: p for p in self.schema.predicates}
        columns = [
            Column(
                ref.column, _type(column), predicates[column.iri].comment, predicates[column.iri].samples,
                ref.column == self.keys.get(table),
            )
            for ref, column in self.columns.items() if ref.table == table
        ]  # fmt: skip
        columns.append(Column("", RESOURCE, primary_key=table not in self.keys))
        return TableSchema(table, tuple(columns), tuple(self.foreign[table]), term.count, term.comment)


def _rows(source: Source, text: str) -> Sequence[Sequence[object]]:
    """Rows of a query that only helps; none where it fails."""
    try:
        return source.execute(NativeQuery(Language.SPARQL, text), ASKED).rows
    except SourceError as error:
        log.info("%s is read without %s: %s", source.name, text[:80], error)
        return ()


def _datatypes(predicate: RdfTerm, schema: RdfSchema) -> tuple[str, ...]:
    classes = {c.iri for c in schema.classes}
    return tuple(range_ for range_ in predicate.range if range_ not in classes)


def _type(column: RdfColumn) -> str:
    return column.datatypes[0].rpartition("#")[2] if column.datatypes else RESOURCE


def _unique(labels: Sequence[str]) -> list[str]:
    """Labels as names, a number behind those that stood before."""
    names: list[str] = []
    for label in labels:
        name, number = label, 2
        while name in names or not name:
            name, number = f"{label} {number}", number + 1
        names.append(name)
    return names

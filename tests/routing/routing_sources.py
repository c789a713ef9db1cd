"""Small real sources for tests: a SQLite file, an RDF graph in pyoxigraph, documents; no lookup index, no worker."""

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from helios.errors import QueryFailed, QueryRejected, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.values import Iri
from helios.sources.base import ValueHit
from helios.sources.descriptor import (
    Column,
    CorpusSchema,
    Descriptor,
    RdfSchema,
    RdfTerm,
    RelationalSchema,
    Schema,
    TableSchema,
)

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


class SmallSource(ABC):
    """A source over (place, value, entity) and a function that runs queries."""

    kind = "sqlite"
    language = Language.SQL

    def __init__(self, name: str, schema: Schema, values: Sequence[tuple[tuple[str, ...], str, str]] = ()) -> None:
        self.name = name
        self.schema = schema
        self.values = values
        self.queries: list[str] = []
        self.pause = 0.0
        self.dead = False

    def descriptor(self) -> Descriptor:
        self._live()
        return Descriptor(self.name, str(self.kind), self.language, self.schema)

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        self._live()
        hits = []
        for phrase in phrases:
            same = [v for v in self.values if v[1].casefold() == phrase.casefold()][:limit]
            hits += [ValueHit(phrase, value, place, 1.0, entity) for place, value, entity in same]
        return tuple(hits)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        self._live()
        time.sleep(self.pause)
        self.queries.append(query.text)
        columns, rows = self.run(query)
        return ResultSet(tuple(columns), tuple(tuple(row) for row in rows), None, 1.0)

    @abstractmethod
    def run(self, query: NativeQuery):
        """Columns and rows."""

    def refresh(self) -> None:  # noqa: B027 (nothing to do here is right)
        """Nothing is kept."""

    def check(self) -> None:
        self._live()

    def close(self) -> None:  # noqa: B027 (nothing to do here is right)
        """Nothing is open."""

    def _live(self) -> None:
        if self.dead:
            raise SourceUnavailable(f"{self.name}: the server does not answer")


class SmallDatabase(SmallSource):
    """Tables of texts and numbers in a SQLite file."""

    def __init__(self, name: str, path: Path, tables: dict[str, tuple[list[str], list[tuple]]]) -> None:
        self.path = path
        values, schemas = [], []
        with closing(sqlite3.connect(path)) as connection, connection:
            for table, (columns, rows) in tables.items():
                connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
                marks = ", ".join("?" * len(columns))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
                schemas.append(TableSchema(table, tuple(Column(column, "TEXT") for column in columns), (), len(rows)))
                for i, column in enumerate(columns):
                    values += [((table, column), row[i], "") for row in rows if isinstance(row[i], str)]
        connection.close()
        super().__init__(name, RelationalSchema("sqlite", tuple(schemas)), list(dict.fromkeys(values)))

    def run(self, query: NativeQuery):
        if not query.text.lstrip().lower().startswith(("select", "with")):
            raise QueryRejected("only SELECT is allowed", query.text.split()[0])
        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        try:
            cursor = connection.execute(query.text, query.parameters)
            return [column[0] for column in cursor.description], cursor.fetchall()
        except sqlite3.Error as error:
            raise QueryFailed(str(error)) from None
        finally:
            connection.close()


class SmallGraph(SmallSource):
    """Labelled entities and their triples in pyoxigraph."""

    kind = "rdf"
    language = Language.SPARQL

    def __init__(self, name: str, entities: dict[str, str], predicates: dict[str, str], triples: list[tuple]) -> None:
        import pyoxigraph as ox

        self.store = ox.Store()
        for iri, label in (entities | predicates).items():
            self.store.add(ox.Quad(ox.NamedNode(iri), ox.NamedNode(LABEL), ox.Literal(label)))
        for subject, predicate, object_ in triples:
            self.store.add(ox.Quad(*(ox.NamedNode(iri) for iri in (subject, predicate, object_))))
        terms = tuple(RdfTerm(iri, label, 1) for iri, label in predicates.items())
        schema = RdfSchema((), (), terms, len(triples))
        super().__init__(name, schema, [((LABEL,), label, iri) for iri, label in entities.items()])

    def run(self, query: NativeQuery):
        try:
            solutions = self.store.query(query.text)
        except (SyntaxError, ValueError) as error:
            raise QueryFailed(str(error)) from None
        names = [variable.value for variable in solutions.variables]
        return names, [[_value(solution[name]) for name in names] for solution in solutions]


class SmallCorpus(SmallSource):
    """Documents that are ranked by the words they share with the question."""

    kind = "corpus"
    language = Language.TEXT

    def __init__(self, name: str, documents: list[tuple[str, str]], topics: Sequence[str] = ()) -> None:
        self.documents = documents
        titles = tuple(title for title, _ in documents)
        super().__init__(name, CorpusSchema(len(documents), "short texts", tuple(topics), titles))

    def run(self, query: NativeQuery):
        wanted = set(query.text.lower().split())
        rows = [
            (str(i), title, text, float(len(wanted & set(f"{title} {text}".lower().split()))))
            for i, (title, text) in enumerate(self.documents)
        ]
        ranked = sorted(rows, key=lambda row: -row[3])
        return ["document_id", "title", "text", "score"], ranked[: int(query.parameters.get("k", 10))]


def _value(term):
    import pyoxigraph as ox

    if term is None:
        return None
    return Iri(term.value) if isinstance(term, ox.NamedNode) else term.value

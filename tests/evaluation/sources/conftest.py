"""Three small sources over real engines: a database, an RDF graph, a handful of documents."""

import sqlite3
from collections.abc import Sequence

import pytest

from helios.errors import QueryFailed, SourceError
from helios.evaluation.sources.questions import SourceQuestion
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.rows import capped
from helios.executors.values import Iri
from helios.sources.base import ValueHit
from helios.sources.descriptor import CorpusSchema, Descriptor


class TinySource:
    """A source that runs queries with a function and knows nothing of itself."""

    def __init__(self, name: str, kind: str, language: Language, run) -> None:
        self.name, self.kind, self.language, self._run = name, kind, language, run
        self.executed = 0

    def descriptor(self) -> Descriptor:
        return Descriptor(self.name, str(self.kind), self.language, CorpusSchema(0, "", ()))

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        return ()

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        assert query.language is self.language
        self.executed += 1
        columns, rows = self._run(query.text)
        limits = limits or Limits()
        kept, truncated = capped(rows, max_rows=limits.max_rows, max_bytes=limits.max_bytes)
        return ResultSet(tuple(columns), tuple(kept), truncated, 1.0)

    def refresh(self) -> None: ...
    def check(self) -> None: ...
    def close(self) -> None: ...


def run_sqlite(text: str):
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE bridge (name TEXT, opened INTEGER, river TEXT);"
        "INSERT INTO bridge VALUES ('Kirchenfeld', 1883, 'Aare'), ('Untertor', 1490, 'Aare');"
        "INSERT INTO bridge VALUES ('Spreuer', 1408, 'Reuss')"
    )
    try:
        cursor = connection.execute(text)
        return [column[0] for column in cursor.description], cursor.fetchall()
    except sqlite3.Error as error:
        raise QueryFailed(str(error)) from None
    finally:
        connection.close()


def run_rdf(text: str):
    pyoxigraph = pytest.importorskip("pyoxigraph", reason="needs pyoxigraph")
    store = pyoxigraph.Store()
    turtle = "@prefix : <http://e/> . :aare :length 288 ; :in :bern . :reuss :length 164 ; :in :uri ."
    store.load(turtle.encode(), format=pyoxigraph.RdfFormat.TURTLE)
    try:
        found = store.query(text)
    except SyntaxError as error:
        raise QueryFailed(str(error)) from None
    rows = [tuple(_term(row[name.value]) for name in found.variables) for row in found]
    return [name.value for name in found.variables], rows


def _term(term):
    return Iri(term.value) if hasattr(term, "value") and not hasattr(term, "datatype") else int(term.value)


DOCUMENTS = {
    "d1": "The Aare flows through Bern and Thun .",
    "d2": "The Reuss leaves Lake Lucerne .",
    "d3": "An iron bridge across the Aare in Bern .",
}


def run_search(text: str):
    words = set(text.lower().split())
    scored = [(len(words & set(body.lower().split())), name, body) for name, body in DOCUMENTS.items()]
    found = [(name, "", body, float(score)) for score, name, body in sorted(scored, reverse=True) if score]
    return ["document_id", "title", "text", "score"], found


@pytest.fixture
def sources() -> dict[str, TinySource]:
    made = [
        TinySource("bridges", "sqlite", Language.SQL, run_sqlite),
        TinySource("rivers", "rdf", Language.SPARQL, run_rdf),
        TinySource("notes", "corpus", Language.TEXT, run_search),
    ]
    return {source.name: source for source in made}


@pytest.fixture
def questions() -> tuple[SourceQuestion, ...]:
    length = "SELECT ?l WHERE { <http://e/aare> <http://e/length> ?l }"
    return (
        SourceQuestion(
            "s1", "How many bridges are there?", Language.SQL, "bridges", "SELECT count(*) FROM bridge",
            ((3,),), dataset="spans",
        ),
        SourceQuestion("s2", "Which bridge is the oldest?", Language.SQL, "bridges",
                       "SELECT name FROM bridge ORDER BY opened LIMIT 1", ordered=True, dataset="spans"),
        SourceQuestion("r1", "How long is the Aare?", Language.SPARQL, "rivers", length, ((288,),),
                       dataset="lengths", twins=("bridges",)),
        SourceQuestion("t1", "iron bridge in Bern", Language.TEXT, "notes", qrels={"d3": 2, "d1": 1}, dataset="texts"),
    )  # fmt: skip


class Unreachable(TinySource):
    """A source whose every query fails."""

    def __init__(self, name: str, error: SourceError) -> None:
        super().__init__(name, "sqlite", Language.SQL, None)
        self.error = error

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        raise self.error


@pytest.fixture
def unreachable():
    return Unreachable

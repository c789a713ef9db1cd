"""RDF graphs and endpoints as sources: what they say of themselves, and how their entities are found."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from helios.errors import ConfigError, QueryTimeout, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.routing.formulation.properties import described
from helios.sources.base import Source
from helios.sources.descriptor import RdfSchema, RdfTerm
from helios.sources.descriptor_text import text
from helios.sources.rdf import GraphSource, RdfSource
from helios.sources.rdf_schema import SchemaReader, local_words
from helios.sources.rdf_values import ask_for_values
from helios.sources.registry import Registry
from helios.sources.sparql import SparqlSource

TURTLE = """
@prefix ex: <http://example.org/vocab#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix d: <http://example.org/data/> .
ex:writtenBy rdfs:label "author"@en , "Autor"@de ; rdfs:comment "who wrote a book" .
ex:Book rdfs:label "book"@en .
d:emma a ex:Book ; rdfs:label "Emma"@en ; ex:writtenBy d:austen ; ex:pageCount 474 ; ex:genre "novel of manners" .
d:persuasion a ex:Book ; rdfs:label "Persuasion" ; ex:writtenBy d:austen ; ex:pageCount 249 .
d:dracula a ex:Book ; rdfs:label "Dracula"@en , "Drakula"@tr ; ex:writtenBy d:stoker ; ex:pageCount 418 .
d:austen a ex:Person ; rdfs:label "Jane Austen"@en ; skos:altLabel "J. Austen"@en ; ex:bornOn "1775-12-16"^^xsd:date .
d:stoker a ex:Person ; rdfs:label "Bram Stoker"@en ; ex:bornOn "1847-11-08"^^xsd:date .
d:emma-watson rdfs:label "Emma"@en .
"""
VOCABULARY = "http://example.org/vocab#"
DATA = "http://example.org/data/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("books")
    (folder / "books.ttl").write_text(TURTLE, encoding="utf-8")
    return folder


PEOPLE = """
@prefix ex: <http://example.org/v#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:salary rdfs:label "salary" .
ex:Manager rdfs:subClassOf ex:Employee .
<urn:ann> a ex:Manager ; ex:name "Ann Roe" ; ex:salary 9000 ; ex:email "ann@x.example" ; ex:likes <urn:tea> .
<urn:bob> a ex:Customer ; ex:name "Bob Poe" ; ex:salary 10 ; ex:email "bob@x.example" ; ex:likes <urn:tea>, <urn:ann> .
<urn:cay> a ex:Customer ; ex:name "Cay Loe" ; ex:email "bob@x.example" .
<urn:tea> ex:name "tea" .
"""


@pytest.fixture
def seen(tmp_path):
    """Rows of a query over the people, as far as an `access` lets them be seen."""
    (tmp_path / "people.ttl").write_text(PEOPLE, encoding="utf-8")
    opened = []

    def ask(access: str, query: str) -> list[tuple]:
        spec = f"{{kind: rdf, path: people.ttl, prefixes: {{ex: 'http://example.org/v#'}}, access: {access}}}"
        (tmp_path / "sources.yaml").write_text(f"sources:\n  people: {spec}\n", encoding="utf-8")
        registry = Registry.open(tmp_path / "sources.yaml")
        opened.append(registry)
        return sorted(registry.source("people").execute(NativeQuery(Language.SPARQL, query)).rows, key=str)

    yield ask
    for registry in opened:
        registry.close()


def test_what_is_excluded_is_in_no_triple(seen):
    everything = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"
    said = str(seen("{exclude: [salary]}", everything))
    assert "salary" not in said and "9000" not in said and "Ann Roe" in said
    said = str(seen("{exclude: ['ex:Employee']}", everything))
    assert "ann" not in said.lower().replace("bob", "") and "Manager" not in said, "subclasses, and links to them"
    assert "Bob Poe" in said and "tea" in said


def test_what_is_included_is_all_that_is_seen(seen):
    rows = seen("{include: [Customer, name]}", "SELECT ?p ?o WHERE { ?s ?p ?o }")
    assert {str(p).rpartition("#")[2] for p, _ in rows} == {"type", "name"}
    assert "Ann Roe" not in str(rows) and "tea" not in str(rows) and "Cay Loe" in str(rows)


def test_masked_values_are_tokens_that_can_be_counted(seen):
    rows = seen(
        "{mask: [email]}", "SELECT ?e (COUNT(*) AS ?n) WHERE { ?s <http://example.org/v#email> ?e } GROUP BY ?e"
    )
    assert sorted(str(n) for _, n in rows) == ["1", "2"] and "@" not in str(rows)


@pytest.mark.parametrize("access", ["{exclude: [salery]}", "{mask: [Customer]}"])
def test_a_name_that_fits_nothing_closes_the_graph(seen, access):
    with pytest.raises(SourceUnavailable, match="access: .*there is no"):
        seen(access, "SELECT ?s WHERE { ?s ?p ?o }")


def test_an_unknown_key_of_access_is_refused(seen):
    with pytest.raises(ConfigError, match="unknown key 'access.rows'"):
        seen("{rows: {a: b}}", "SELECT ?s WHERE { ?s ?p ?o }")


@pytest.fixture(scope="module", params=["rdf", "sparql"])
def source(request: pytest.FixtureRequest, folder: Path) -> Iterator[GraphSource]:
    """The same graph from a file and from a server."""
    if request.param == "rdf":
        source: GraphSource = RdfSource("books", [folder / "books.ttl"], prefixes={"v": VOCABULARY})
    else:
        serve = request.getfixturevalue("oxigraph_server")
        making = "import sys; from pyoxigraph import Store; Store(sys.argv[1]).load(path=sys.argv[2])"
        subprocess.run([sys.executable, "-c", making, str(folder / "store"), str(folder / "books.ttl")], check=True)
        source = SparqlSource("books", serve(folder / "store"), prefixes={"v": VOCABULARY})
    yield source
    source.close()


def schema_of(source: Source) -> RdfSchema:
    schema = source.descriptor().schema
    assert isinstance(schema, RdfSchema)
    return schema


def term(terms: tuple[RdfTerm, ...], name: str) -> RdfTerm:
    return next(term for term in terms if term.iri == VOCABULARY + name)


def test_the_descriptor_has_classes(source: GraphSource):
    schema = schema_of(source)
    assert schema.prefixes == (("v", VOCABULARY),)
    assert [(c.iri, c.label, c.count) for c in schema.classes] == [
        (VOCABULARY + "Book", "book", 3), (VOCABULARY + "Person", "person", 2),
    ]  # fmt: skip
    assert set(schema.classes[0].samples) == {"Emma", "Persuasion", "Dracula"}


def test_the_descriptor_has_predicates(source: GraphSource):
    schema = schema_of(source)
    written = term(schema.predicates, "writtenBy")
    assert (written.label, written.count, written.comment) == ("author", 3, "who wrote a book")
    assert written.samples == ("Jane Austen", "Bram Stoker")
    assert (written.domain, written.range) == ((VOCABULARY + "Book",), (VOCABULARY + "Person",))
    pages = term(schema.predicates, "pageCount")
    assert (pages.label, pages.range) == ("page count", ("http://www.w3.org/2001/XMLSchema#integer",))
    assert schema.triple_count == sum(predicate.count for predicate in schema.predicates) == 26


def test_the_descriptor_is_kept_until_refresh(source: GraphSource):
    descriptor = source.descriptor()
    assert source.descriptor() is descriptor
    assert (descriptor.source, descriptor.language) == ("books", Language.SPARQL)
    source.refresh()
    assert source.descriptor() == descriptor
    assert source.descriptor() is not descriptor


def test_entities_are_found_by_their_labels(source: GraphSource):
    (first, second) = source.find_values(["emma"], limit=2)
    assert (first.entity, first.value, first.score) == (DATA + "emma", "Emma", 1.0), "the connected one first"
    assert second.entity == DATA + "emma-watson"
    (author,) = source.find_values(["jane austin"], limit=1)
    assert author.entity == DATA + "austen"
    assert source.find_values(["J. Austen"], limit=1)[0].place == ("http://www.w3.org/2004/02/skos/core#altLabel",)
    (genre,) = source.find_values(["novel of manners"], limit=1)
    assert (genre.place, genre.entity) == ((VOCABULARY + "genre",), DATA + "emma")


def test_a_large_endpoint_is_asked_for_labels(source: GraphSource):
    hits = ask_for_values(source.executor.read, ["bram stoker", "EMMA", "emma", "nobody", ""], limit=1)
    assert [(hit.phrase, hit.entity) for hit in hits if hit.phrase == "bram stoker"] == [
        ("bram stoker", DATA + "stoker")
    ]
    assert len([hit for hit in hits if hit.phrase == "emma"]) == 1


def test_counts_that_time_out_are_those_of_a_part(source: GraphSource):
    """As of DBpedia: what counts all triples takes too long, what counts the first ones does not."""

    def read(statement: str, limits: Limits) -> ResultSet:
        if "COUNT" in statement and "LIMIT 100000" not in statement and "{ SELECT" not in statement:
            raise QueryTimeout(limits.timeout)
        return source._read(statement, limits)

    whole, part = schema_of(source), SchemaReader(read).schema({})
    assert part.sampled and not part.complete and whole.complete and not whole.sampled
    assert {term.iri for term in part.predicates} == {term.iri for term in whole.predicates}
    assert [term.label for term in part.classes] == [term.label for term in whole.classes]
    shown = text(replace(source.descriptor(), schema=part))
    assert f"at least {part.triple_count} triples (a sample" in shown
    endpoint = SparqlSource("large", "http://127.0.0.1:9/sparql")
    endpoint._descriptor = replace(source.descriptor(), schema=part)
    endpoint._read = source._read
    (hit,) = endpoint.find_values(["jane austen"])  # asked of the endpoint, not of a scan of its labels
    assert hit.value == "Jane Austen" and endpoint._lookup._lookup is None
    endpoint.close()


def test_predicates_beyond_a_sample_are_kept():
    seen = RdfTerm(f"{VOCABULARY}genre", "genre", 3)
    used = [seen.iri, f"{VOCABULARY}writtenBy"]
    part = described(RdfSchema((), (), (seen,), 100, sampled=True, complete=False), used)
    assert part[seen.iri] is seen and part[used[1]].label == "written by"
    assert list(described(RdfSchema((), (), (seen,), 100), used)) == [seen.iri]


def test_queries_may_use_the_prefixes_of_the_registration(source: GraphSource):
    text = "SELECT ?l { ?b v:writtenBy/rdfs:label 'Bram Stoker'@en ; rdfs:label ?l FILTER(LANG(?l) = 'en') }"
    result = source.execute(NativeQuery(Language.SPARQL, text))
    assert [str(row[0]) for row in result.rows] == ["Dracula"]
    source.check()


@pytest.mark.parametrize(
    ("iri", "words"),
    [
        ("http://e/vocab#birthDate", "birth date"), ("http://e/has_pet", "has pet"), 
        ("http://e/HTTPServer", "HTTP server"),
        ("urn:x:thing", "thing"), ("http://e/a/", "a"), ("http://e/t%C3%A9st", "tést"),
    ],
)  # fmt: skip
def test_words_of_an_iri(iri: str, words: str):
    assert local_words(iri) == words


def test_refresh_reads_the_files_again(tmp_path: Path):
    path = tmp_path / "a.nt"
    path.write_text('<http://e/s> <http://e/p> "one" .')
    source = RdfSource("a", [path])
    assert source.find_values(["one"])
    path.write_text('<http://e/s> <http://e/p> "two" .')
    source.refresh()
    assert source.find_values(["two"])
    source.close()


def test_registered_graphs(tmp_path: Path, folder: Path):
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("books", {"kind": "rdf", "files": [str(folder / "books.ttl")], "prefixes": {"v": VOCABULARY}})
        registry.add("gone", {"kind": "sparql", "url": "http://127.0.0.1:1/sparql"})
        books = registry.source("books")
        assert books.kind == "rdf"
        assert len(schema_of(books).classes) == 2
        with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1"):
            registry.source("gone").check()


def test_an_empty_graph_is_said_to_be_empty(tmp_path: Path):
    (tmp_path / "a.nt").write_text("")
    source = RdfSource("a", [tmp_path / "a.nt"])
    with pytest.raises(SourceUnavailable, match="empty"):
        source.check()
    assert schema_of(source).predicates == ()
    source.close()

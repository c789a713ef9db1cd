"""What a person would accept beside the strict match."""

import json

import pytest

from helios.evaluation.sources.acceptance import NodeKeys, accepted, ordered_columns
from helios.evaluation.sources.questions import TIES, SourceQuestion
from helios.executors.base import Language, NativeQuery
from helios.executors.values import GraphNode
from helios.sources.graph_import import import_graph
from helios.sources.registry import Registry

FILMS = [("m", "M", 1931), ("v", "Vertigo", 1958), ("k", "Kes", 1931)]


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A graph of three films, two of them of one year."""
    folder = tmp_path_factory.mktemp("films")
    nodes = [{"id": i, "labels": ["Film"], "properties": {"title": title, "year": year, "number": number}}
             for number, (i, title, year) in enumerate(FILMS, start=1)]  # fmt: skip
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    (folder / "edges.jsonl").write_text(json.dumps({"src": "m", "dst": "v", "type": "BEFORE", "properties": {}}) + "\n")
    import_graph(folder / "nodes.jsonl", folder / "edges.jsonl", folder / "films.lbug")
    file = folder / "sources.yaml"
    file.write_text("sources:\n  films: {kind: property_graph, path: films.lbug}\n")
    with Registry.open(file) as registry:
        yield registry.source("films")


@pytest.fixture
def keys(films):
    return NodeKeys(films)


def question(text, gold, *, language=Language.CYPHER, flags=(), ordered=False):
    return SourceQuestion("q", text, language, "films", gold, ordered=ordered, flags=flags)


def cypher(text):
    return NativeQuery(Language.CYPHER, text)


def test_a_node_counts_as_its_key_on_either_side(films, keys):
    asked = question("Which films are there?", "MATCH (f:Film) RETURN f")
    stored = [(GraphNode("m", ("Film",)),), (GraphNode("v", ("Film",)),)]
    written = cypher("MATCH (f:Film) RETURN f.title")
    assert accepted(asked, written, [("Vertigo",), ("M",)], stored, keys)
    nodes = films.execute(cypher("MATCH (f:Film) WHERE f.title <> 'Kes' RETURN f")).rows
    assert accepted(asked, written, nodes, [("M",), ("Vertigo",)], keys)
    assert not accepted(asked, written, [("Vertigo",), ("Kes",)], stored, keys)
    assert not accepted(asked, written, [(1931,), (1958,)], stored, keys), "two films have one year: no key"


def test_a_whole_node_holds_its_properties(films, keys):
    asked = question("Which films are of 1931?", "MATCH (f:Film) RETURN f.title, f.year")
    whole = films.execute(cypher("MATCH (f:Film) WHERE f.year = 1931 RETURN f")).rows
    assert accepted(asked, cypher("MATCH (f:Film) RETURN f"), whole, [("M", 1931), ("Kes", 1931)], keys)
    assert not accepted(asked, cypher("MATCH (f:Film) RETURN f"), whole, [("M", 1931), ("Vertigo", 1958)], keys)
    stored = [(GraphNode("m", ("Film",)),), (GraphNode("k", ("Film",)),)]
    asked = question("Which films are of 1931?", "MATCH (f:Film) RETURN f")
    assert accepted(asked, cypher("MATCH (f:Film) RETURN f.title, f.year"), [("Kes", 1931), ("M", 1931)], stored, keys)
    assert not accepted(asked, cypher("MATCH (f:Film) RETURN f.year"), [(1931,), (1931,)], stored, keys), "no key"


def test_two_keys_of_a_node_count_as_one(keys):
    asked = question("Which films are there?", "MATCH (f:Film) RETURN f.title, f.number")
    written = cypher("MATCH (f:Film) RETURN f.title")
    rows = [("M",), ("Kes",)]
    assert accepted(asked, written, rows, [("Kes", 3), ("M", 1)], keys)
    assert not accepted(asked, written, rows, [("Kes", 1), ("M", 3)], keys), "numbers of other films"
    assert not accepted(asked, written, rows, [("Kes", 1931), ("M", 1931)], keys), "a year is no key"


def test_only_what_tells_nodes_apart_is_a_key(keys):
    assert keys.properties("Film") == ("title", "number") and keys.value(GraphNode("k", ("Film",)), "title") == "Kes"
    assert keys.properties("Fi`lm") == ()


def test_the_measure_of_the_order_may_be_shown_or_not():
    gold = "MATCH (f:Film) RETURN f.title, f.year ORDER BY f.year DESC LIMIT 2"
    asked = question("The newest films?", gold, ordered=True)
    rows = [("Vertigo", 1958), ("M", 1931)]
    assert accepted(asked, cypher("MATCH (f:Film) RETURN f.title ORDER BY f.year"), [("Vertigo",), ("M",)], rows)
    assert not accepted(asked, cypher("MATCH (f:Film) RETURN f.title"), [("M",), ("Vertigo",)], rows)
    bare = question("The newest films?", "MATCH (f:Film) RETURN f.title ORDER BY f.year", ordered=True)
    more = cypher("MATCH (f:Film) RETURN f.title, f.year ORDER BY f.year DESC")
    assert accepted(bare, more, rows, [("Vertigo",), ("M",)])
    other = cypher("MATCH (f:Film) RETURN f.title, f.year ORDER BY f.title")
    assert not accepted(bare, other, rows, [("Vertigo",), ("M",)]), "a column that is not the measure"


def test_equal_rows_count_once_unless_the_question_counts():
    once, twice = [("M",), ("Kes",)], [("M",), ("Kes",), ("M",)]
    query = cypher("MATCH (f:Film) RETURN f.title")
    assert accepted(question("Which films?", "MATCH (f) RETURN f.title"), query, twice, once)
    assert not accepted(question("List the films and how many there are", "MATCH (f) RETURN f"), query, twice, once)


def test_rows_that_tie_may_change_places():
    gold = "MATCH (f:Film) RETURN f.title, f.year ORDER BY f.year"
    asked = question("Films by year", gold, ordered=True, flags=(TIES,))
    rows = [("M", 1931), ("Kes", 1931), ("Vertigo", 1958)]
    query = cypher("MATCH (f:Film) RETURN f.title ORDER BY f.year")
    assert accepted(asked, query, [("Kes",), ("M",), ("Vertigo",)], rows)
    assert not accepted(asked, query, [("Vertigo",), ("M",), ("Kes",)], rows)


@pytest.mark.parametrize(
    ("language", "text", "columns"),
    [
        (Language.SQL, "SELECT a, b FROM t ORDER BY b DESC LIMIT 1", (1,)),
        (Language.SQL, "SELECT a, count(*) AS n FROM t GROUP BY a ORDER BY COUNT(*)", (1,)),
        (Language.SQL, "SELECT a FROM t ORDER BY b", ()),
        (Language.SQL, "SELECT FROM WHERE (", ()),
        (Language.SPARQL, "SELECT ?a (COUNT(?x) AS ?n) WHERE { ?x :a ?a } GROUP BY ?a ORDER BY DESC(?n)", (1,)),
        (Language.SPARQL, "SELECT ?a (COUNT(?x) AS ?n) WHERE { ?x :a ?a } ORDER BY DESC(COUNT(?x))", (1,)),
        (Language.SPARQL, "SELECT ?a { ?x :a ?a }", ()),
        (Language.CYPHER, "MATCH (n) RETURN n.a, n.b ORDER BY n.b", (1,)),
        (Language.TEXT, "by what", ()),
    ],
)
def test_the_columns_of_an_order(language, text, columns):
    assert ordered_columns(NativeQuery(language, text)) == columns

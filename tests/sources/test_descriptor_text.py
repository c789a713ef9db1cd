"""Descriptors as text: one form a paradigm, names in quotes where they need them, budgets."""

import pytest

from helios.executors.base import Language
from helios.sources.descriptor import (
    Column,
    CorpusSchema,
    Descriptor,
    ForeignKey,
    GraphSchema,
    NodeLabel,
    RdfSchema,
    RdfTerm,
    RelationalSchema,
    RelationshipType,
    TableSchema,
)
from helios.sources.descriptor_text import estimated_tokens, identifier, shortener, text
from helios.sources.linking import linked, local_name
from helios.sources.relevance import name_words, relevance

EX = "http://example.org/"


def rdf(count: int = 2) -> Descriptor:
    classes = (RdfTerm(f"{EX}Singer", "singer", 8, ("Alice", "Bob")),)
    predicates = [RdfTerm(f"{EX}born", "date of birth", 8, ("1944-01-01",), (f"{EX}Singer",), (), "when")]
    predicates += [RdfTerm(f"{EX}p{i}", f"property {i}", i) for i in range(count - 1)]
    return Descriptor("g", "rdf", Language.SPARQL, RdfSchema((("", EX),), classes, tuple(predicates), 1234))


def graph(count: int = 1) -> Descriptor:
    labels = [NodeLabel("Person", (Column("name", "STRING", samples=("Keanu Reeves",)),), 100)]
    labels += [NodeLabel(f"Label {i}", (), i) for i in range(count)]
    types = [RelationshipType("ACTED_IN", "Person", "Label 0", (Column("roles", "LIST"),), 172)]
    types += [RelationshipType(f"TYPE_{i}", f"Label {i}", f"Label {i}", (), i) for i in range(1, count)]
    return Descriptor("m", "property_graph", Language.CYPHER, GraphSchema(tuple(labels), tuple(types)), "Films")


def test_rdf():
    shown = text(rdf()).splitlines()
    assert shown[0] == f"PREFIX : <{EX}>"
    assert shown[1] == "# 1,234 triples"
    assert ":Singer  # 8 instances; e.g. Alice, Bob" in [line.replace('  "singer"', "") for line in shown]
    assert ':born  "date of birth"  :Singer -> ?  # 8 triples; when; e.g. 1944-01-01' in shown


def test_graph():
    shown = text(graph())
    assert "(:Person) {name: STRING (e.g. 'Keanu Reeves')}  # 100 nodes" in shown
    assert "(:Person)-[:ACTED_IN]->(:`Label 0`) {roles: LIST}  # 172 relationships" in shown
    assert shown.startswith("# Films\n")


def test_corpus():
    schema = CorpusSchema(5183, "abstracts of papers", ("gene expression", "cells"), ("On cells",))
    shown = text(Descriptor("c", "corpus", Language.TEXT, schema))
    assert shown == "5,183 documents: abstracts of papers\nTopics: gene expression, cells\nTitles such as: On cells"


@pytest.mark.parametrize(("descriptor", "kept"), [(rdf(300), ":born"), (graph(300), "Person")])
def test_budgets_keep_what_the_question_is_about(descriptor: Descriptor, kept: str):
    whole = text(descriptor)
    for budget in (80, 300):
        shown = text(descriptor, budget_tokens=budget, question="When was the person born who acted in it?")
        assert estimated_tokens(shown) <= budget < estimated_tokens(whole)
        assert kept in shown
        assert "are not shown" in shown
    assert text(descriptor, budget_tokens=10**6) == whole


def test_a_tiny_budget_is_met_all_the_same():
    assert estimated_tokens(text(rdf(300), budget_tokens=5)) <= 5


def test_relationships_come_with_their_labels():
    part = linked(graph(300), "Who acted in it?", limit=3).schema
    assert isinstance(part, GraphSchema)
    names = {label.name for label in part.labels}
    assert "ACTED_IN" in {kind.name for kind in part.relationships}
    assert all({kind.start, kind.end} <= names for kind in part.relationships)


def test_names_with_capitals_are_quoted_for_postgresql():
    key = ForeignKey(("userId",), "Users", ("Id",))
    table = TableSchema("posts", (Column("createdAt", "timestamp"), Column("userId", "int")), (key,))
    shown = text(Descriptor("blog", "postgresql", Language.SQL, RelationalSchema("postgres", (table,))))
    assert '"createdAt" timestamp' in shown and 'FOREIGN KEY ("userId") REFERENCES "Users" ("Id")' in shown
    assert "CREATE TABLE posts" in shown


def test_names():
    assert identifier("plain_1") == "plain_1"
    assert identifier("order") == '"order"'
    assert identifier("createdAt", "sqlite") == "createdAt" and identifier("createdAt", "postgres") == '"createdAt"'
    assert identifier('a "b"') == '"a ""b"""'
    assert local_name("http://x/y#z") == "z" and local_name("urn:a:b") == "b" and local_name("x") == "x"
    short = shortener((("", EX), ("p", f"{EX}p/")))
    assert short(f"{EX}p/a") == "p:a"
    assert short(f"{EX}a/b") == f"<{EX}a/b>"
    assert short("http://www.w3.org/2001/XMLSchema#date") == "xsd:date"


def test_relevance():
    assert name_words("personBirthDate_2 Singers") == ["person", "birth", "date", "2", "singer"]
    scores = relevance("How many singers are there?", [("singer", ""), ("song", "singer id"), ("album", "")])
    assert scores[0] > scores[1] > scores[2] == 0.0

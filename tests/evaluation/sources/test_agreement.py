"""What counts as the same rows, beyond the rules of execution match."""

from dataclasses import replace

import pytest

from helios.evaluation.sources.agreement import Agreement, agreement
from helios.evaluation.sources.questions import TIES, UNORDERED_LISTS, UNTYPED, SourceQuestion
from helios.executors.base import Language
from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Iri, Literal

QUESTION = SourceQuestion("q", "?", Language.SQL, "s", "SELECT 1")


def agree(rows, gold, *flags, ordered=False):
    return agreement(replace(QUESTION, flags=flags, ordered=ordered), rows, gold)


@pytest.mark.parametrize(
    ("rows", "gold"),
    [
        ([(Iri("http://e/x"),)], [("http://e/x",)]),
        ([(Literal("Bern", "", "en"),)], [("Bern",)]),
        ([(GraphNode("x", ("Film",), {"title": "M"}),)], [(GraphNode("x", ("Film",)),)]),
        ([(GraphRelationship("IN", "a", "b", {"since": 1}),)], [(GraphRelationship("IN", "a", "b"),)]),
        ([({"a": 1, "b": (Iri("x"),)},)], [({"b": ["x"], "a": 1.0},)]),
        ([([1, 2],)], [((1.0, 2.0),)]),
    ],
)
def test_values_count_for_what_they_stand_for(rows, gold):
    assert agree(rows, gold) is Agreement.MATCH


def test_paths_are_their_nodes_and_steps():
    def path(name):
        return GraphPath((GraphNode("a", ()), GraphNode(name, ())), (GraphRelationship("T", "a", name),))

    assert agree([(path("b"),)], [(path("b"),)]) is Agreement.MATCH
    assert agree([(path("b"),)], [(path("c"),)]) is Agreement.MISMATCH


def test_nodes_differ_by_id_alone():
    rows, gold = [(GraphNode("x", ("A",), {"t": 1}),)], [(GraphNode("y", ("A",), {"t": 1}),)]
    assert agree(rows, gold) is Agreement.MISMATCH


def test_text_is_a_number_only_where_answers_are_stored_as_text():
    assert agree([(5,)], [("5",)]) is Agreement.MISMATCH
    assert agree([(5,), (12.50,)], [("5",), ("12.5",)], UNTYPED) is Agreement.MATCH
    assert agree([("5 km",)], [(5,)], UNTYPED) is Agreement.MISMATCH


def test_collected_lists():
    assert agree([(["b", "a", 1],)], [([1, "a", "b"],)]) is Agreement.MISMATCH
    assert agree([(["b", "a", 1],)], [([1, "a", "b"],)], UNORDERED_LISTS) is Agreement.MATCH
    assert agree([(["b", "a"],)], [(["a", "b", "b"],)], UNORDERED_LISTS) is Agreement.MISMATCH


def test_ties():
    gold = [("a", 3), ("b", 2), ("c", 2)]
    moved, cut, wrong = [("a", 3), ("c", 2), ("b", 2)], [("a", 3), ("b", 2), ("d", 2)], [("a", 2), ("c", 2), ("b", 3)]
    assert agree(moved, gold, ordered=True) is Agreement.MISMATCH
    assert agree(moved, gold, TIES, ordered=True) is Agreement.MATCH
    assert agree(cut, gold, TIES, ordered=True) is Agreement.TIES
    assert agree(wrong, gold, TIES, ordered=True) is Agreement.MISMATCH
    assert agree(gold[:2], gold, TIES, ordered=True) is Agreement.MISMATCH
    assert agree([("b",), ("a",)], [("a",), ("b",)], TIES, ordered=True) is Agreement.TIES, "the sort key is not shown"
    assert agree([], [], TIES, ordered=True) is Agreement.MATCH


def test_stored_answers_that_are_only_the_first_rows():
    question = replace(QUESTION, gold_count=3)
    gold = [("a",), ("b",)]
    assert agreement(question, [("c",), ("b",), ("a",)], gold) is Agreement.MATCH
    assert agreement(question, [("b",), ("a",)], gold) is Agreement.MISMATCH
    assert agreement(question, [("c",), ("b",), ("b",)], gold) is Agreement.MISMATCH


@pytest.mark.parametrize(
    ("cypher", "rows", "gold", "verdict"),
    [
        ("MATCH (m) RETURN m.a ORDER BY m.a", [(2,), (1,)], [(1,), (2,)], Agreement.MISMATCH),
        ("MATCH (m) RETURN m.a, m.b ORDER BY m.b", [("y", 1), ("x", 1)], [("x", 1), ("y", 1)], Agreement.MATCH),
        ("MATCH (m) RETURN m.a, m.b ORDER BY m.b", [(1, "y"), (1, "x")], [("x", 1), ("y", 1)], Agreement.MATCH),
        ("MATCH (m) RETURN m.a, m.b ORDER BY m.a", [("y", 1), ("x", 1)], [("x", 1), ("y", 1)], Agreement.MISMATCH),
        ("MATCH (m) RETURN m.a, m.b ORDER BY m.b", [("z", 1), ("x", 1)], [("x", 1), ("y", 1)], Agreement.MISMATCH),
        ("MATCH (m) RETURN m.a, m.b ORDER BY m.b LIMIT 2", [("z", 1), ("x", 1)], [("x", 1), ("y", 1)], Agreement.TIES),
        ("MATCH (m) RETURN m.a, 1 AS one ORDER BY one LIMIT 1", [("x", 1)], [("y", 1)], Agreement.TIES),
        ("MATCH (m) RETURN m.a, m.b AS b ORDER BY b LIMIT 1", [("x", 1)], [("x", 2)], Agreement.MISMATCH),
        ("MATCH (m) RETURN m.a ORDER BY m.b LIMIT 1", [("x",)], [("y",)], Agreement.TIES),
        ("MATCH (m) RETURN m.a LIMIT 1", [("x",)], [("y",)], Agreement.TIES),
        ("MATCH (m) RETURN m.a ORDER BY m.b", [("x",), ("y",)], [("y",), ("x",)], Agreement.TIES),
        ("MATCH (m) RETURN m.a LIMIT 1", [("x", 1)], [("y",)], Agreement.MISMATCH),
        ("no Cypher, ORDER BY", [(2, 1), (1, 1)], [(1, 1), (2, 1)], Agreement.TIES),
        ("no Cypher, ORDER BY", [(1, 1), (3, 1)], [(1, 1), (2, 1)], Agreement.TIES),
        ("no Cypher, ORDER BY", [(1, 2), (3, 1)], [(1, 1), (2, 1)], Agreement.MISMATCH),
    ],
)
def test_the_order_of_a_cypher_query_says_which_rows_tie(cypher, rows, gold, verdict):
    asked = replace(QUESTION, paradigm=Language.CYPHER, gold_query=cypher, flags=(TIES,), ordered="ORDER" in cypher)
    assert agreement(asked, rows, gold) is verdict

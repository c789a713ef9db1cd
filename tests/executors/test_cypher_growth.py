"""Queries that would fill the memory of a server over Bolt are refused before it sees them."""

import pytest

from helios.errors import QueryRejected
from helios.executors.cypher.growth import check_growth
from helios.executors.cypher.parser import parse

THREE = "MATCH (a)-[*]-(b) MATCH (c)-[:KNOWS*2..]->(d) MATCH (e)-[*]-(f) RETURN count(*)"
NESTED = "MATCH (a)-[*]-(b)-[*]-(c) WHERE EXISTS { MATCH (c)-[*]-(d) } RETURN a"
REPEATED = "MATCH (a)-->+(b)((c)-->(d)){2,}(e)-[:KNOWS]->*(f) RETURN a"
TEXT = "RETURN reduce(s = 'x', i IN range(1, 5000) | s + s)"
LIST = "RETURN reduce(s = [1], i IN range(1, 5000) | [0] + (s + tail(s)))"
UNKNOWN = "MATCH (a) RETURN reduce(s = a.name, i IN [1, 2] | s + toUpper(s))"


@pytest.mark.parametrize("text", [THREE, NESTED, REPEATED])
def test_many_paths_without_a_bound_are_refused(text: str) -> None:
    with pytest.raises(QueryRejected, match=r"3 paths have no upper bound, .* write such as \[\*\.\.5\]"):
        check_growth(parse(text))


@pytest.mark.parametrize("text", [TEXT, LIST, UNKNOWN])
def test_a_reduce_that_doubles_is_refused(text: str) -> None:
    with pytest.raises(QueryRejected, match="reduce may not add what it gathers to itself"):
        check_growth(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a)-[*]-(b)-[*1..]->(c) RETURN a",
        "MATCH (a)-[*..6]-(b) MATCH (c)-[*2..3]-(d) MATCH (e)-[*1..4]-(f) MATCH (g)-[*3]-(h) RETURN count(*)",
        "MATCH p = shortestPath((a)-[*]-(b)) MATCH q = shortestPath((c)-[*]-(d)) MATCH (e)-[*]-(f) RETURN p, q",
        "MATCH p = SHORTEST 1 (a)-->+(b) MATCH q = ALL SHORTEST (c)--*(d) MATCH (e)-->{1,4}(f) RETURN p",
        "RETURN reduce(s = '', i IN range(1, 50) | s + i)",
        "RETURN reduce(m = 0, x IN [3, 9] | CASE WHEN x > m THEN x ELSE m END)",
        "RETURN reduce(s = 1, i IN range(1, 10) | s + s)",
    ],
)
def test_what_grows_step_by_step_passes(text: str) -> None:
    check_growth(parse(text))

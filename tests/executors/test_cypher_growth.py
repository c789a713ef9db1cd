"""Queries that would fill the memory of a server over Bolt are refused before it sees them."""

import time

import pytest

from helios.errors import QueryRejected
from helios.executors.cypher.growth import check_growth
from helios.executors.cypher.parser import parse

THREE = "MATCH (a)-[*]-(b) MATCH (c)-[:KNOWS*2..]->(d) MATCH (e)-[*]-(f) RETURN count(*)"
NESTED = "MATCH (a)-[*]-(b)-[*]-(c) WHERE EXISTS { MATCH (c)-[*]-(d) } RETURN a"
REPEATED = "MATCH (a)-->+(b)((c)-->(d)){2,}(e)-[:KNOWS]->*(f) RETURN a"
GROUPS = (
    "MATCH SHORTEST 9 GROUPS (a)--+(b) MATCH SHORTEST 9 GROUPS (c)--+(d) MATCH SHORTEST 9 GROUPS (e)--+(f) RETURN 1"
)
HIGH = "MATCH (a)(()--()){0,2147483647}(b)-[*..1000000]-(c)--{0,101}(d) RETURN 1"
TEXT = "RETURN reduce(s = 'x', i IN range(1, 5000) | s + s)"
LIST = "RETURN reduce(s = [1], i IN range(1, 5000) | [0] + (s + tail(s)))"
UNKNOWN = "MATCH (a) RETURN reduce(s = a.name, i IN [1, 2] | s + toUpper(s))"


@pytest.mark.parametrize("text", [THREE, NESTED, REPEATED, GROUPS, HIGH])
def test_many_paths_without_a_bound_are_refused(text: str) -> None:
    with pytest.raises(QueryRejected, match=r"3 paths have no upper bound, .* write such as \[\*\.\.5\]"):
        check_growth(parse(text))


OTHERWISE = [
    "RETURN reduce(s = 'x', i IN range(1, 60) | s || s)",
    "RETURN reduce(s = 'x', i IN range(1, 60) | replace(s, 'x', 'xx'))",
    "RETURN reduce(s = [1], i IN range(1, 60) | [s, s])",
    "RETURN reduce(s = [1], i IN range(1, 60) | reduce(t = s, j IN s | t + [j]))",
    "RETURN reduce(s = [1], i IN range(1, 60) | [x IN [1, 2] | s])",
    "RETURN reduce(s = 'x', i IN range(1, 60) | CASE WHEN i > 2 THEN s + left(s, 9) ELSE s END)",
]


def test_folds_within_folds_are_looked_at_once() -> None:
    text = "RETURN " + "reduce(a = [], x IN y | " * 20 + "[" + "1, " * 2000 + "1]" + " + x" * 200 + ")" * 20
    query = parse(text)
    started = time.process_time()
    check_growth(query)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("text", [TEXT, LIST, UNKNOWN, *OTHERWISE])
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
        "RETURN reduce(s = [], i IN [1, 2] | CASE WHEN i IN s THEN s ELSE s + i END)",
        "RETURN reduce(s = [], i IN [1, 2] | s + size(s))",
    ],
)
def test_what_grows_step_by_step_passes(text: str) -> None:
    check_growth(parse(text))

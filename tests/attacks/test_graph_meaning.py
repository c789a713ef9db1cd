"""Cypher over ladybug means what it means in openCypher, or it is refused: never another answer without a word.

Answers are openCypher's; those that ArcadeDB gives too were checked against it.
"""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helios.errors import QueryFailed
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.property_graph import PropertyGraphExecutor
from helios.sources.graph_import import import_graph

GRAPH = runpy.run_path(str(Path(__file__).parents[1] / "executors" / "cypher_graph.py"))
PARAMETERS: dict[str, Any] = {"xs": [1, 2], "i": 5, "none": [], "s": "abc", "nulls": [None, 1], "year": 1970}
NOBODY = "MATCH (p:Person {name: 'None'}) "
ANN = "MATCH (p:Person {name: 'Ann'}) "
DORA = "MATCH (p:Person {name: 'Dora'}) "

SAME: list[tuple[str, list[Any]]] = [
    # elements that are not there, and elements that are null
    ("RETURN [1, 2][5], [1, 2][-5], [1, 2][0], [1, 2][-1]", [None, None, 1, 2]),
    ("RETURN [1.5][5], ['a'][5], [true][5], [[1]][5], [date('2020-01-01')][5], [{a: 1}][5]", [None] * 6),
    ("RETURN [[1, 2], [3]][0][1], [[1]][5][5], [{a: 1}][0].a", [2, None, 1]),
    ("RETURN head([]), last([]), tail([]), head([null]), last([1, null])", [None, None, [], None, None]),
    ("WITH [null, 1] AS xs RETURN xs[0], xs[1], head(xs), last(xs)", [None, 1, None, 1]),
    ("RETURN $xs[$i], $xs[0], $xs[-1]", [None, 1, 2]),
    ("RETURN null[0], [1][null], head(null), [1, 2, 3][null..2]", [None] * 4),
    ("UNWIND [0, 1, 2, -1, -2, -3, null] AS i RETURN collect(coalesce([7, 8][i], 0))", [[7, 8, 0, 8, 7, 0, 0]]),
    ("RETURN [1, 2, 3][1..-1], [1, 2, 3][-2..], [1, 2, 3][..0], [1, 2, 3][2..1], [1, 2][-5..1], [1, 2][5..]",
     [[2], [2, 3], [], [], [1], []]),
    (NOBODY + "RETURN head(collect(p.name)), last(collect(p.born)), collect(p.born)[0]", [None] * 3),
    (NOBODY + "WITH collect(p) AS ps RETURN ps, size(ps), head(ps), head(ps).name", [[], 0, None, None]),
    (NOBODY + "WITH collect(p.born) AS c RETURN head(c), c[0], tail(c), reverse(c)", [None, None, [], []]),
    (ANN + "OPTIONAL MATCH (p)-[:DIRECTED]->(m) WITH collect(m) AS ms RETURN size(ms), head(ms)", [0, None]),
    ("MATCH q = (:Person {name: 'Ann'})-[:FOLLOWS*2]->() RETURN nodes(q)[5], last(nodes(q)).name, relationships(q)[2]",
     [None, "Cid", None]),
    ("MATCH (:Person {name: 'Bob'})-[r:ACTED_IN]->() RETURN r.roles[5], head(r.roles), r.roles[-1], tail(r.roles)",
     [None, "King", "King", []]),
    ("RETURN head([x IN [1, 2] WHERE x > 5]), [x IN [1, 2] WHERE x > 1 | x * 2][0], head(range(1, 0))",
     [None, 4, None]),
    # reverse
    ("RETURN reverse([1, 2, 3]), reverse('abc'), reverse($xs), reverse($s), reverse([])",
     [[3, 2, 1], "cba", [2, 1], "cba", []]),
    ("WITH [1, 2, 3] AS xs RETURN reverse(xs)", [[3, 2, 1]]),
    ("UNWIND ['ab'] AS x RETURN reverse(x), x + 1", ["ba", "ab1"]),
    ("MATCH (p:Person) WITH p ORDER BY p.name RETURN reverse(collect(p.name))", [["Dora", "Cid", "Bob", "Ann"]]),
    # order and limit before an aggregate
    ("MATCH (p:Person) WITH p ORDER BY p.name DESC RETURN collect(p.name)", [["Dora", "Cid", "Bob", "Ann"]]),
    ("MATCH (p:Person) WITH p ORDER BY p.name DESC LIMIT 2 RETURN collect(p.name)", [["Dora", "Cid"]]),
    ("MATCH (p:Person) WITH p ORDER BY p.name DESC LIMIT 2 RETURN max(p.name), count(*)", ["Dora", 2]),
    ("MATCH (p:Person) WITH p ORDER BY p.name DESC SKIP 1 LIMIT 2 WHERE p.name <> 'Bob' RETURN collect(p.name)",
     [["Cid"]]),
    ("MATCH (p:Person) WITH DISTINCT p.name AS n ORDER BY n DESC LIMIT 2 WITH collect(n) AS c RETURN c",
     [["Dora", "Cid"]]),
    ("MATCH (p:Person) WHERE p.born > 0 WITH p ORDER BY p.born DESC LIMIT 1 RETURN avg(p.born)", [1980.0]),
    # null where text is joined, among elements, and in conditions
    ("RETURN 'a' + null, null + 'a', 'a' + 1, 'a' + true, 1 + 2 + 'a', 'a' || null",
     [None, None, "a1", "atrue", "3a", None]),
    (DORA + "RETURN p.name + p.born, 'x' + p.born, p.name + '!'", [None, None, "Dora!"]),
    ("RETURN 1 IN [null], 2 IN [1, null], 1 IN [1, null], null IN [], null IN [1], 1 IN []",
     [None, None, True, False, None, False]),
    ("MATCH (p:Person) WHERE NOT p.born IN [1970, null] RETURN count(p)", [0]),
    ("MATCH (p:Person) WHERE NOT p.born IN [] RETURN count(p)", [4]),
    ("MATCH (p:Person) WHERE p.born IN $nulls RETURN count(p)", [0]),
    ("RETURN any(x IN [null] WHERE x > 1), all(x IN [null, 1] WHERE x > 0), none(x IN [null] WHERE x > 1)", [None] * 3),
    ("RETURN any(x IN [null, 2] WHERE x > 1), all(x IN [null, 1] WHERE x > 5), none(x IN [null, 2] WHERE x > 1)",
     [True, False, False]),
    ("RETURN any(x IN [] WHERE x > 1), all(x IN [] WHERE x > 1), none(x IN [] WHERE x > 1)", [False, True, True]),
    ("RETURN 'abc' CONTAINS '', 'abc' CONTAINS 'b', null CONTAINS 'a', 'a' CONTAINS null", [True, True, None, None]),
    # aggregates of nothing, nodes that are not there
    (NOBODY + "RETURN sum(p.born), avg(p.born), count(p), collect(p), stDev(p.born)", [0, None, 0, [], 0.0]),
    ("UNWIND [null] AS x RETURN sum(x), collect(x), count(x)", [0, [], 0]),
    ("OPTIONAL MATCH (m:Movie {title: 'None'}) RETURN m, labels(m), keys(m), head(labels(m))", [None] * 4),
    (DORA + "RETURN p {.*}, properties(p), p {.*, born: p.born}, keys(p)",
     [{"name": "Dora"}, {"name": "Dora"}, {"name": "Dora", "born": None}, ["name"]]),
    # numbers
    ("RETURN round(-1.5), round(-2.5), round(2.5), round(0.4), round(7)", [-1.0, -2.0, 3.0, 0.0, 7.0]),
    ("RETURN toBoolean(1), toBoolean(0), toInteger(true), toInteger(false), 1e20", [True, False, 1, 0, 1e20]),
    ("RETURN [1] + 2, 0 + [1], [1] + [], [1] + null", [[1, 2], [0, 1], [1], None]),
    ("MATCH (p:Person) WHERE p.born = $year RETURN p.name", ["Ann"]),
    # everything in sight, without what the translation names
    ("MATCH (p:Person {name: 'Ann'})-[:ACTED_IN]->() WITH *, 1 AS one RETURN one, count(*)", [1, 2]),
    ("MATCH (p:Person {name: 'Ann'}) WITH p.name AS n ORDER BY n RETURN *", ["Ann"]),
]  # fmt: skip

REFUSED = [
    ("RETURN [1, 'a', true]", "meet"),
    ("UNWIND [1, 2] AS x RETURN [x, 'a']", "meet"),
    ("RETURN '1' = 1", "meet"),
    ("MATCH (p:Person) WHERE p.born = '1970' RETURN p.name", "meet"),
    ("MATCH (p:Person) WHERE p.born = $s RETURN p.name", "meet"),
    ("MATCH (p:Person {born: '1970'}) RETURN p.name", "meet"),
    ("MATCH ()-[r:FOLLOWS {since: '2001'}]->() RETURN r.since", "meet"),
    ("MATCH (p:Person) WHERE p.born IN ['1970'] RETURN p.name", "meet"),
    ("MATCH (p:Person) RETURN CASE WHEN p.born > 1970 THEN p.name ELSE p.born END", "meet"),
    ("MATCH (p:Person) RETURN coalesce(p.born, p.name)", "meet"),
    ("RETURN [1, null] = [1, null]", "two nulls"),
    ("RETURN CASE null WHEN null THEN 1 ELSE 2 END", "IS NULL"),
    ("RETURN 'abc'[0..1]", "no elements"),
    ("RETURN [x IN 'abc' | x]", "no elements"),
    ("RETURN substring('hello', 1, -1)", "negative"),
    ("RETURN left('abc', -1)", "negative"),
    ("RETURN toString(0.0000001)", "six digits"),
    ("RETURN [1, 2][toInteger(rand() * 2)]", "rand"),
    ("MATCH (p:Person) RETURN stDev(DISTINCT p.born)", "DISTINCT"),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PropertyGraphExecutor]:
    folder = tmp_path_factory.mktemp("graph")
    GRAPH["write_files"](folder)
    import_graph(folder / "nodes.jsonl.gz", folder / "edges.jsonl.gz", folder / "graph.ladybug")
    executor = PropertyGraphExecutor(folder / "graph.ladybug", Limits(timeout=20.0))
    yield executor
    executor.close()


def _query(text: str) -> NativeQuery:
    return NativeQuery(Language.CYPHER, text, PARAMETERS)


@pytest.mark.parametrize(("text", "expected"), SAME, ids=[text for text, _ in SAME])
def test_it_means_the_same(graph: PropertyGraphExecutor, text: str, expected: list[Any]) -> None:
    (row,) = graph.execute(_query(text)).rows
    assert [list(value) if isinstance(value, tuple) else value for value in row] == expected
    assert [type(value) for value in row] == [tuple if isinstance(each, list) else type(each) for each in expected]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_would_mean_something_else_is_refused(graph: PropertyGraphExecutor, text: str, reason: str) -> None:
    with pytest.raises(QueryFailed, match=reason):
        graph.execute(_query(text))

"""Neo4j's Cypher as it is written for ladybug, and for a Bolt server: input and expected text."""

from contextlib import suppress

import pytest

from helios.errors import QueryFailed, QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.executors.cypher.catalog import GraphCatalog, NodeTable, RelationshipTable
from helios.executors.cypher.dialect import LadybugRenderer
from helios.executors.cypher.guard import check, nesting
from helios.executors.cypher.parser import parse
from helios.executors.cypher.render import Renderer

CATALOG = GraphCatalog(
    nodes=(
        NodeTable(0, "Person", ("Person",), {"name": "STRING", "born": "INT64"}, "helios_id"),
        NodeTable(1, "Actor:Person", ("Person", "Actor"), {"name": "STRING", "fee": "DOUBLE"}, "helios_id"),
        NodeTable(2, "Movie", ("Movie",), {"title": "STRING"}, "helios_id"),
    ),
    relationships=(
        RelationshipTable(3, "KNOWS", (("Person", "Person"),), {"since": "DATE"}),
        RelationshipTable(4, "ACTED_IN", (("Person", "Movie"),), {"roles": "STRING[]"}),
    ),
)
LADYBUG = [
    ("MATCH (n:Person) RETURN n", "MATCH (`n`:`Person`|`Actor:Person`) RETURN `n`"),
    ("MATCH (n:Person:Actor) RETURN n", "MATCH (`n`:`Actor:Person`) RETURN `n`"),
    ("MATCH (n:Person&!Actor) RETURN n", "MATCH (`n`:`Person`) RETURN `n`"),
    ("MATCH (n:Movie&Actor) RETURN n", "MATCH (`n`) WHERE false RETURN `n`"),
    ("MATCH (n) WHERE n:Actor RETURN n", "MATCH (`n`) WHERE (label(`n`) IN ['Actor:Person']) RETURN `n`"),
    ("MATCH (n:Movie WHERE n.title = 'x') RETURN n", "MATCH (`n`:`Movie`) WHERE (`n`.`title` = 'x') RETURN `n`"),
    (
        "MATCH (a)-[r:KNOWS]->(b)<-[s:KNOWS]-(c) RETURN a",
        "MATCH (`a`)-[`r`:`KNOWS`]->(`b`)<-[`s`:`KNOWS`]-(`c`) WHERE id(`r`) <> id(`s`) RETURN `a`",
    ),
    (
        "MATCH (a)-[r:KNOWS]->(b)-[s:ACTED_IN]->(c) RETURN a",
        "MATCH (`a`)-[`r`:`KNOWS`]->(`b`)-[`s`:`ACTED_IN`]->(`c`) RETURN `a`",
    ),
    ("MATCH (a)-[r:KNOWS*]->(b) RETURN b", "MATCH (`a`)-[`r`:`KNOWS`* TRAIL 1..]->(`b`) RETURN `b`"),
    (
        "MATCH p = shortestPath((a)-[:KNOWS*..3]-(b)) RETURN length(p)",
        "MATCH `p` = (`a`)-[`helios_r1`:`KNOWS`* SHORTEST 1..3]-(`b`) RETURN length(`p`)",
    ),
    (
        "MATCH (n:Movie) WHERE EXISTS { (n)<-[:ACTED_IN]-() } RETURN n",
        "MATCH (`n`:`Movie`) WHERE EXISTS { MATCH (`n`)<-[`helios_r1`:`ACTED_IN`]-() } RETURN `n`",
    ),
    (
        "MATCH (n:Movie) WITH n ORDER BY n.title RETURN n",
        "MATCH (`n`:`Movie`) WITH `n` ORDER BY `n`.`title` LIMIT 9223372036854775807 UNWIND [1] AS helios_x1 "
        "RETURN `n`",
    ),
    ("MATCH (n:Movie) RETURN length(n.title)", "MATCH (`n`:`Movie`) RETURN size(`n`.`title`)"),
    ("MATCH ()-[r:KNOWS]->() RETURN r.since.year", "MATCH ()-[`r`:`KNOWS`]->() RETURN date_part('year', `r`.`since`)"),
    (
        "MATCH (n:Movie) RETURN n.title + 1",
        "MATCH (`n`:`Movie`) RETURN (CASE WHEN `n`.`title` IS NULL THEN null ELSE `n`.`title` + cast(1 AS STRING) END)",
    ),
    ("MATCH (n:Movie) RETURN elementId(n)", "MATCH (`n`:`Movie`) RETURN cast(`n`.`helios_id` AS STRING)"),
    ("MATCH (n)-[N:KNOWS]->() RETURN n, N", "MATCH (`n`)-[`n_`:`KNOWS`]->() RETURN `n`, `n_`"),
    ("RETURN [1, 2][-1], [1, 2][1..]", "RETURN list_min(list_slice([1, 2], -1, -1)), list_slice([1, 2], 2, -1)"),
    ("RETURN 1 < 2 < 3", "RETURN ((1 < 2) AND (2 < 3))"),
    ("RETURN log(2), toInteger(2.5)",
     "RETURN ln(2), cast(CASE WHEN 2.5 >= 0 THEN floor(2.5) ELSE ceil(2.5) END AS INT64)"),
]  # fmt: skip
NEO4J = [
    ("match (n:Person {name:\"x\"}) // c\nreturn n", "MATCH (n:Person {name: 'x'}) RETURN n"),
    ("MATCH (a)-[:X|:Y*2..]->(b) RETURN b", "MATCH (a)-[:X|Y*2..]->(b) RETURN b"),
    ("RETURN 'a\\u0027b'", "RETURN 'a\\'b'"),
    ("RETURN [x IN [1] WHERE x > 0 | x], count{(a)-->()}",
     "RETURN [x IN [1] WHERE (x > 0) | x], COUNT { MATCH (a)-->() }"),
    ("MATCH (n) CALL (n) { MATCH (n)--(m) RETURN m } RETURN m",
     "MATCH (n) CALL (n) { MATCH (n)--(m) RETURN m } RETURN m"),
    ("RETURN `a``b`.c", "RETURN `a``b`.c"),
    ("MATCH (n:A:B:C) RETURN n", "MATCH (n:A:B:C) RETURN n"),
    ("MATCH (n:A&B&C) RETURN n", "MATCH (n:A:B:C) RETURN n"),
    ("MATCH (n:(A&B)|C) RETURN n", "MATCH (n:(A&B)|(C)) RETURN n"),
    ("MATCH (n:!(A&B)) RETURN n", "MATCH (n:!(A&B)) RETURN n"),
    ("MATCH (n:A|B|C)-[:X|Y|Z]->() RETURN n", "MATCH (n:A|B|C)-[:X|Y|Z]->() RETURN n"),
    (
        "match p = shortest 2 paths (a:A)-[r:R]-+(b) return p",
        "MATCH p = SHORTEST 2 (a:A)-[r:R]-{1,}(b) RETURN p",
    ),
    ("MATCH ANY SHORTEST PATH (a)-->*(b) RETURN a", "MATCH SHORTEST 1 (a)-->{0,}(b) RETURN a"),
    ("MATCH ALL SHORTEST (a)-->{2}(b) RETURN a", "MATCH ALL SHORTEST (a)-->{2,2}(b) RETURN a"),
    ("MATCH ANY 3 (a)-->{,4}(b) RETURN a", "MATCH ANY 3 (a)-->{0,4}(b) RETURN a"),
    (
        "MATCH p = SHORTEST 1 GROUPS ((a)--+(b) WHERE length(p) > 2) RETURN p",
        "MATCH SHORTEST 1 GROUPS (p = (a)--{1,}(b) WHERE (length(p) > 2)) RETURN p",
    ),
    (
        "MATCH SHORTEST PATH GROUP (q = (a)--+(b) WHERE length(q) > 2) RETURN q",
        "MATCH SHORTEST 1 GROUPS (q = (a)--{1,}(b) WHERE (length(q) > 2)) RETURN q",
    ),
    (
        "MATCH p = SHORTEST 1 (a:A)-->(m WHERE m.x = 1)-->+(b:B) WHERE b.y = 2 RETURN p",
        "MATCH p = SHORTEST 1 ((a:A)-->(m)-->{1,}(b:B) WHERE (m.x = 1)) WHERE (b.y = 2) RETURN p",
    ),
    ("MATCH ALL PATHS (a)-->(b) RETURN a", "MATCH (a)-->(b) RETURN a"),
    (
        "MATCH p = ((a)-->(b) WHERE a.x = 1) RETURN p",
        "MATCH p = (a)-->(b) WHERE (a.x = 1) RETURN p",
    ),
    (
        "MATCH (a) RETURN [(a)-[r]->(b WHERE b.x = 1) | b.x]",
        "MATCH (a) RETURN [(a)-[r]->(b) WHERE (b.x = 1) | b.x]",
    ),
    ("MATCH (n) RETURN [x IN [n] WHERE x:Movie | x.title]", "MATCH (n) RETURN [x IN [n] WHERE (x:Movie) | x.title]"),
    ("MATCH (n) RETURN [(n)-->(m) WHERE m:A&B | m.title]", "MATCH (n) RETURN [(n)-->(m) WHERE (m:A:B) | m.title]"),
    ("MATCH (n) RETURN [x IN [n] WHERE (x:A|B) | x.title]", "MATCH (n) RETURN [x IN [n] WHERE (x:A|B) | x.title]"),
    (
        "MATCH SHORTEST 1 ((a)-->(b)){1,3} RETURN a",
        "MATCH SHORTEST 1 ()((a)-->(b)){1,3}() RETURN a",
    ),
    (
        "MATCH (x)((a:A WHERE a.n = 1)-[r]->(b))+(y)-->(z) RETURN z",
        "MATCH (x)((a:A)-[r]->(b) WHERE (a.n = 1)){1,}(y)-->(z) RETURN z",
    ),
    ("MATCH (a)-[r:R WHERE r.n > 2]->{2}(b) RETURN r", "MATCH (a)(()-[r:R]->() WHERE (r.n > 2)){2,2}(b) RETURN r"),
    ("MATCH (any)-->(shortest) RETURN any(x IN any.l WHERE x = 1)",
     "MATCH (`any`)-->(shortest) RETURN any(x IN `any`.l WHERE (x = 1))"),
    (
        "CALL db.index.FULLTEXT.querynodes('names', $t, {top: 5}) YIELD node AS n, score WHERE score > 1 RETURN n",
        "CALL db.index.fulltext.queryNodes('names', $t, {top: 5}) YIELD node AS n, score WHERE (score > 1) RETURN n",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), LADYBUG, ids=[text for text, _ in LADYBUG])
def test_written_for_ladybug(text: str, expected: str) -> None:
    assert LadybugRenderer(CATALOG).query(parse(text)) == expected


@pytest.mark.parametrize(("text", "expected"), NEO4J, ids=[text for text, _ in NEO4J])
def test_written_for_neo4j(text: str, expected: str) -> None:
    written = Renderer().query(parse(text))
    assert written == expected
    assert Renderer().query(parse(written)) == written


@pytest.mark.parametrize(("text", "part"), [
    ("MATCH (n) DELETE n", "DELETE"), ("RETURN 1; RETURN 2", "RETURN 2"), ("RETURN apoc.x(1)", "apoc.x"),
    ("CALL db.labels()", "CALL db.labels"), ("RETURN $x", "$x"),
    ("MATCH SHORTEST (a)-->+(b) RETURN a", "(a)-->+(b) RETURN a"),
    ("MATCH SHORTEST 900 (a)-->+(b) RETURN a", "SHORTEST 900"),
    ("MATCH (((a)-->(b))+-->(c))+ RETURN a", "+ RETURN a"), ("MATCH ((a)-[*]->(b))+ RETURN a", "+ RETURN a"),
    ("MATCH ((a)-->(b))-->(c) RETURN a", "-->(c) RETURN a"), ("MATCH (a)-->+ RETURN a", "RETURN a"),
    ("MATCH (a)-[r*1..2 WHERE r.x = 1]->(b) RETURN a", "(b) RETURN a"),
    ("MATCH ANY SHORTEST GROUPS (a)-->(b) RETURN a", "GROUPS (a)-->(b) RETURN a"),
    ("MATCH (n) WHERE n. = 1 RETURN n", "= 1 RETURN n"),
])  # fmt: skip
def test_a_refusal_names_the_part(text: str, part: str) -> None:
    with pytest.raises(QueryRejected) as refusal:
        check(NativeQuery(Language.CYPHER, text))
    assert refusal.value.part == part


def test_ladybugs_own_functions_are_for_ladybug_only() -> None:
    query = NativeQuery(Language.CYPHER, "RETURN date_part('year', CAST('2020-01-01' AS DATE))")
    check(query, native=True)
    with pytest.raises(QueryRejected):
        check(query)
    with pytest.raises(QueryRejected, match="CAST"):
        check(NativeQuery(Language.CYPHER, "RETURN CAST('x' AS BLOB)"), native=True)


def test_text_that_grows_in_translation_is_refused() -> None:
    nested = "[1][" * 20 + "$x" + "]" * 20
    with pytest.raises(QueryFailed, match="too long"):
        LadybugRenderer(CATALOG).query(parse(f"RETURN {nested}"))


DEEP = "EXISTS { SHORTEST 1 ((a)-->({a: " * 28 + "1" + "-1" * 290 + "})) }" * 28


@pytest.mark.parametrize(
    "text", ["RETURN 1" + " IS NULL" * 2000, f"MATCH (a) WHERE {DEEP} RETURN a", "RETURN 1" + "-1" * 299]
)
def test_what_nests_too_deeply_is_refused_or_written(text: str) -> None:
    query = NativeQuery(Language.CYPHER, text)
    for native, renderer in ((False, Renderer()), (True, LadybugRenderer(CATALOG))):
        with suppress(QueryRejected), nesting():
            assert renderer.query(check(query, native=native).query)

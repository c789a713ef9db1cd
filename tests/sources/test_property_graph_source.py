"""Property graphs from files, and as sources."""

import json
import runpy
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from helios.errors import ConfigError, CorpusError, QueryRejected, QueryTimeout, RecordError, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.sources.descriptor import GraphSchema
from helios.sources.descriptor_text import text
from helios.sources.graph_import import import_graph
from helios.sources.graph_schema import GraphReader
from helios.sources.property_graph import PropertyGraphSource
from helios.sources.registry import Registry

GRAPH = runpy.run_path(str(Path(__file__).parents[1] / "executors/cypher_graph.py"))
MIXED = [
    {"id": "1", "labels": ["B", "A"], "properties": {"n": 1, "x": 1, "tags": ["a"], "map": {"k": [1]}, "Name": "one"}},
    {"id": "2", "labels": ["A"], "properties": {"n": 2.5, "x": 2, "tags": [], "name": "two", "NAME": "TWO"}},
    {"id": "3", "labels": ["A"], "properties": {"n": 3, "x": "three", "tags": ["b", 1], "null": None, "_id": "taken"}},
    {"id": "4", "labels": ["A"], "properties": {"x": 4, "big": 2**70, "odd `name`": True}},
    {"id": "5", "labels": [], "properties": {"text": 'it\'s a \\ "quoted" text\n'}},
]
MIXED_EDGES = [
    {"src": "1", "dst": "2", "type": "R", "properties": {"w": 1}},
    {"src": "2", "dst": "3", "type": "R", "properties": {"w": "heavy", "v": {"a": 1}}},
    {"src": "5", "dst": "1", "type": "R", "properties": {"w": 3}},
    {"src": "3", "dst": "3", "type": "a", "properties": {}},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph")
    GRAPH["write_files"](folder)
    import_graph(folder / "nodes.jsonl.gz", folder / "edges.jsonl.gz", folder / "graph.ladybug")
    return folder


def test_a_source_describes_itself_and_finds_values(folder: Path) -> None:
    source = PropertyGraphSource("people", folder / "graph.ladybug", description="films")
    try:
        source.check()
        schema = source.descriptor().schema
        assert isinstance(schema, GraphSchema)
        assert [(label.name, label.count) for label in schema.labels] == [("Movie", 3), ("Person", 4)]
        types = {column.name: column.type for label in schema.labels for column in label.properties}
        assert types == {"title": "STRING", "released": "INTEGER", "name": "STRING", "born": "INTEGER"}
        found = {(each.start, each.name, each.end): each.count for each in schema.relationships}
        assert found == {
            ("Person", "ACTED_IN", "Movie"): 3, ("Person", "DIRECTED", "Movie"): 1, ("Person", "FOLLOWS", "Person"): 2,
        }  # fmt: skip
        (hit,) = source.find_values(["create or delete"], limit=1)
        assert (hit.value, hit.place, hit.entity) == ("Create or DELETE", ("Movie", "title"), "gamma")
        source.refresh()
        source.check()
    finally:
        source.close()


def test_a_large_graph_is_described_from_a_part(folder: Path) -> None:
    source = PropertyGraphSource("people", folder / "graph.ladybug")
    asked: list[str] = []

    def ask(query: NativeQuery, limits: Limits) -> ResultSet:
        asked.append(query.text)
        return source.execute(query, limits)

    try:
        whole = GraphReader(source.execute).schema()
        part = GraphReader(ask, whole=2).schema()
        assert part.sampled and not whole.sampled
        assert [label.name for label in part.labels] == [label.name for label in whole.labels]
        assert [label.count for label in part.labels] == [label.count for label in whole.labels]
        assert part.relationships == whole.relationships
        assert not any(text.startswith("MATCH (a)-[r]->(b)") for text in asked)
        shown = text(replace(source.descriptor(), schema=part))
        assert "a sample" in shown and "a sample" not in text(source.descriptor())
    finally:
        source.close()


def test_a_graph_that_takes_too_long_is_described_as_far_as_it_goes(folder: Path, within: Any) -> None:
    """A server whose every count and every walk over all relationships outlasts its deadline."""
    source = PropertyGraphSource("people", folder / "graph.ladybug")

    def ask(query: NativeQuery, limits: Limits) -> ResultSet:
        if "LIMIT" not in query.text:
            sleep(min(0.05, limits.timeout))
            raise QueryTimeout(limits.timeout)
        return source.execute(query, limits)

    try:
        source.check()
        with within(10.0):
            schema = GraphReader(ask).schema()
        assert schema.sampled and {label.name for label in schema.labels} == {"Movie", "Person"}
        assert {kind.name for kind in schema.relationships} == {"ACTED_IN", "DIRECTED", "FOLLOWS"}

        def nothing(query: NativeQuery, limits: Limits) -> ResultSet:
            raise QueryTimeout(limits.timeout)

        with pytest.raises(QueryTimeout):
            GraphReader(nothing).schema()
    finally:
        source.close()


def test_what_fits_no_column_comes_back_with_the_whole_node(tmp_path: Path) -> None:
    GRAPH["write_files"](tmp_path, MIXED, MIXED_EDGES)
    done = import_graph(tmp_path / "nodes.jsonl.gz", tmp_path / "edges.jsonl.gz", tmp_path / "g.ladybug")
    assert (done.nodes, done.relationships) == (5, 4)
    source = PropertyGraphSource("mixed", tmp_path / "g.ladybug")

    def ask(text: str) -> list[tuple[object, ...]]:
        return list(source.execute(NativeQuery(Language.CYPHER, text)).rows)

    try:
        nodes = {node.node_id: node for (node,) in ask("MATCH (n) RETURN n")}  # type: ignore[attr-defined]
        for record in MIXED:
            node = nodes[str(record["id"])]
            given = {key: value for key, value in record["properties"].items() if value is not None}  # type: ignore
            assert json.loads(json.dumps(dict(node.properties))) == given
            assert set(node.labels) == set(record["labels"])  # type: ignore[call-overload]
        assert ask("MATCH (n:A) RETURN count(n)") == [(4,)]
        assert ask("MATCH (n:B) RETURN n.Name") == [("one",)]
        assert ask("MATCH (n:A:B) RETURN size(labels(n))") == [(2,)]
        assert ask("MATCH (n:A) WHERE n.x > 1 RETURN sum(n.x)") == [(6,)]
        assert ask("MATCH (a)-[r:R]->(b) RETURN count(r), count(r.w)") == [(3, 2)]
        assert ask("MATCH (:A)-[r:a]->(n) RETURN type(r)") == [("a",)]
        kinds = {(each.start, each.end) for each in source.descriptor().schema.relationships}  # type: ignore[union-attr]
        assert ("", "A") in kinds
    finally:
        source.close()


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([{"id": "1", "labels": "A"}], [], r"nodes.jsonl.gz:1: a node needs"),
        ([{"id": "1", "labels": []}] * 2, [], r"nodes.jsonl.gz:2: a node with this id came before"),
        (
            [{"id": "1", "labels": []}],
            [{"src": "1", "dst": "2", "type": "R"}],
            r"edges.jsonl.gz:1: no node has the id 2",
        ),
        ([{"id": "1", "labels": []}], [{"src": "1", "dst": "1"}], r"edges.jsonl.gz:1: an edge needs a `type`"),
    ],
)
def test_lines_that_cannot_be_used(
    tmp_path: Path, nodes: list[dict[str, object]], edges: list[dict[str, object]], message: str
) -> None:
    GRAPH["write_files"](tmp_path, nodes, edges)
    with pytest.raises(RecordError, match=message):
        import_graph(tmp_path / "nodes.jsonl.gz", tmp_path / "edges.jsonl.gz", tmp_path / "g.ladybug")
    assert not (tmp_path / "g.ladybug").exists()


def test_nothing_is_overwritten_unasked(folder: Path) -> None:
    with pytest.raises(CorpusError, match="exists already"):
        import_graph(folder / "nodes.jsonl.gz", folder / "edges.jsonl.gz", folder / "graph.ladybug")


PEOPLE = [
    {"id": "1", "labels": ["Person"], "properties": {"name": "Ann Roe", "email": "ann@example.org", "salary": 9000}},
    {"id": "2", "labels": ["Person", "Customer"],
     "properties": {"name": "Bob Poe", "email": "bob@example.org", "salary": "secret"}},
    {"id": "3", "labels": ["Customer"], "properties": {"name": "Cay Loe", "email": "bob@example.org"}},
    {"id": "4", "labels": ["Product"], "properties": {"name": "Tea", "price": 2.5}},
]  # fmt: skip
BOUGHT = [
    {"src": "2", "dst": "4", "type": "BOUGHT", "properties": {"on": "2026-01-02", "card": "4000-1"}},
    {"src": "3", "dst": "4", "type": "BOUGHT", "properties": {"on": "2026-01-03", "card": "4000-2"}},
    {"src": "1", "dst": "2", "type": "MANAGES", "properties": {}},
]
EVERYTHING = ("MATCH (n) RETURN n", "MATCH (a)-[r]->(b) RETURN a, r, b", "MATCH p = (a)-[*1..2]-(b) RETURN p")


@pytest.fixture
def seen(tmp_path: Path):
    """Asks a graph of people, as far as an `access` lets it be seen."""
    for name, records in (("nodes", PEOPLE), ("edges", BOUGHT)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    import_graph(tmp_path / "nodes.jsonl", tmp_path / "edges.jsonl", tmp_path / "people.ladybug")
    opened: list[Registry] = []

    def ask(access: str, *queries: str) -> str:
        spec = f"{{kind: property_graph, path: people.ladybug, access: {access}}}"
        (tmp_path / "sources.yaml").write_text(f"sources:\n  people: {spec}\n", encoding="utf-8")
        registry = Registry.open(tmp_path / "sources.yaml")
        opened.append(registry)
        source = registry.source("people")
        rows = [source.execute(NativeQuery(Language.CYPHER, query)).rows for query in queries]
        hits = source.find_values(["ann roe", "9000", "tea", "bob@example.org"])
        return str([*rows, source.descriptor(), [hit.value for hit in hits]])

    yield ask
    for registry in opened:
        registry.close()


def test_what_is_excluded_of_a_graph_is_nowhere(seen):
    said = seen("{exclude: [Person.salary, bought.CARD]}", *EVERYTHING)
    assert not any(word in said for word in ("salary", "9000", "secret", "card", "4000"))
    assert all(word in said for word in ("Ann Roe", "2026-01-02", "MANAGES", "Tea"))
    said = seen("{exclude: [Customer]}", *EVERYTHING)
    assert not any(word in said for word in ("Customer", "Bob", "Cay", "2026-01-02", "MANAGES"))
    assert "Ann Roe" in said and "Tea" in said
    assert "MANAGES" not in seen("{exclude: [MANAGES]}", *EVERYTHING)


def test_what_is_included_of_a_graph_is_all_that_is_seen(seen):
    said = seen("{include: [Customer.name, Product]}", *EVERYTHING)
    assert all(word in said for word in ("Bob Poe", "Cay Loe", "Tea", "2.5", "2026-01-02"))
    assert not any(word in said for word in ("Ann", "@", "salary", "secret"))
    assert "4000" not in seen("{include: [Product, Customer, BOUGHT.on]}", *EVERYTHING)


def test_masked_properties_of_a_graph_are_tokens_that_can_be_counted(seen):
    said = seen("{mask: ['*.email', Person.salary]}", *EVERYTHING, "MATCH (n) RETURN n.email, count(*)")
    assert "@" not in said and "9000" not in said and "secret" not in said and "Bob Poe" in said
    said = seen("{mask: ['*.email']}", "MATCH (n:Customer) WITH n.email AS e, count(*) AS times RETURN times")
    assert said.startswith("[((2,),)")


def test_a_slip_in_the_access_of_a_graph_closes_it(seen):
    for access in ("{exclude: [Person.salery]}", "{include: [Persons]}", "{mask: [Person]}"):
        with pytest.raises(SourceUnavailable, match="access: "):
            seen(access, "MATCH (n) RETURN n")
    with pytest.raises(ConfigError, match="unknown key 'access.rows'"):
        seen("{rows: {Person: 'salary < 1'}}", "MATCH (n) RETURN n")


@pytest.mark.parametrize(("access", "shown"), [("mask: [Person.ssn]", True), ("exclude: [Person.ssn]", False)])
def test_a_key_that_may_not_be_seen_still_tells_nodes_apart(tmp_path: Path, access: str, shown: bool):
    import ladybug

    with closing(ladybug.Database(tmp_path / "graph")) as database, closing(ladybug.Connection(database)) as connection:
        connection.execute("CREATE NODE TABLE Person (ssn INT64 PRIMARY KEY, name STRING, born DATE)")
        connection.execute("CREATE REL TABLE KNOWS (FROM Person TO Person, since INT64)")
        connection.execute("CREATE (:Person {ssn: 77001, name: 'Ann', born: date('1990-01-02')})-[:KNOWS {since: 3}]->"
                           "(:Person {ssn: 77002, name: 'Bob'})")  # fmt: skip
    file = tmp_path / "sources.yaml"
    file.write_text(f"sources: {{people: {{kind: property_graph, path: graph, access: {{{access}}}}}}}\n")
    with Registry.open(file) as registry:
        source = registry.source("people")
        rows = source.execute(NativeQuery(Language.CYPHER, "MATCH (a)-[r:KNOWS]->(b) RETURN a, r, b, a.born")).rows
        assert "7700" not in str(rows) and "'Ann'" in str(rows) and "'Bob'" in str(rows) and "1990" in str(rows)
        assert ("ssn" in str(rows)) is shown
        (first, known, second, _) = rows[0]
        assert (known.start, known.end) == (first.node_id, second.node_id) and first.node_id != second.node_id
        with pytest.raises(QueryRejected):
            source.execute(NativeQuery(Language.CYPHER, "CREATE (:Person {name: 'Eve'})"))

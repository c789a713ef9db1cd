"""Odd files of nodes and edges, and odd numbers and parameters in Cypher: typed errors, or the very same values."""

import json
from pathlib import Path
from typing import Any

import pytest

from helios.errors import CorpusError, QueryRejected, RecordError
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.cypher.guard import check
from helios.executors.property_graph import PropertyGraphExecutor
from helios.sources.graph_import import import_graph


def _node(**parts: Any) -> str:
    return json.dumps({"id": "a", "labels": ["A"], "properties": {}} | parts)


def _property(value: str) -> str:
    return '{"id": "a", "labels": ["A"], "properties": {"x": ' + value + "}}"


def _edge(**parts: Any) -> str:
    return json.dumps({"src": "a", "dst": "a", "type": "T", "properties": {}} | parts)


REFUSED = {
    "a list of properties": (_node(properties=[1, 2]), ""),
    "a text of properties": (_node(properties="abc"), ""),
    "a number of properties": (_node(properties=7), ""),
    "a list of properties of an edge": (_node(), _edge(properties=[1])),
    "half a character": (_property(r'"\ud800"'), ""),
    "half a character in a name": ('{"id": "a", "labels": ["A"], "properties": {"\\ud800": 1}}', ""),
    "half a character in a value within": (_property(r'{"k": ["\udfff"]}'), ""),
    "half a character in a label": ('{"id": "a", "labels": ["\\ud800"]}', ""),
    "half a character in an id": ('{"id": "\\ud800", "labels": ["A"]}', ""),
    "a number of 5,000 digits": (_property("9" * 5000), ""),
    "a list of 100,000 levels": (_property("[" * 100_000 + "]" * 100_000), ""),
    "a map of 900 levels": (_property('{"a":' * 900 + "1" + "}" * 900), ""),
    "labels of anything": (_node(labels=[1, None, {"a": 1}]), ""),
    "a label for labels": (_node(labels="A"), ""),
    "an id that is true": (_node(id=True), ""),
    "an id that is a fraction": (_node(id=1.5), ""),
    "types that differ in case": (_node(), _edge(type="T") + "\n" + _edge(type="t")),
    "an edge from a list": (_node(), _edge(src=["a"])),
    "bytes": ("\udcff\udcfe{}", ""),
}
KEPT: list[dict[str, Any]] = [
    {"": 1, "a`b": 2, "a'b\\c\n\"d": 3, "a\0b": "x\0y"},
    {"_id": 1, "helios_id": "x", "helios_other": "{", "_label": "y", "ID": 1, "Id": 2},
    {"x": [1, "a"], "y": [None], "z": [], "b": [True, 1]},
    {"x": 10**300, "y": [1, 2.5, 10**30], "m": {"a": [{"b": None}]}},
    {"from": 1, "to": 2, "offset": 3, "_src": 4, "FROM": 5},
]


def _import(folder: Path, nodes: str, edges: str) -> Path:
    (folder / "nodes.jsonl").write_text(nodes, errors="surrogateescape")
    (folder / "edges.jsonl").write_text(edges)
    import_graph(folder / "nodes.jsonl", folder / "edges.jsonl", folder / "graph")
    return folder / "graph"


@pytest.mark.parametrize(("nodes", "edges"), REFUSED.values(), ids=REFUSED)
def test_a_record_that_is_none(tmp_path: Path, nodes: str, edges: str) -> None:
    with pytest.raises((RecordError, CorpusError)) as refusal:
        _import(tmp_path, nodes, edges)
    assert ".jsonl" in str(refusal.value) or "differ in case" in str(refusal.value)
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize("properties", KEPT, ids=[" ".join(properties) for properties in KEPT])
def test_odd_properties_come_back_as_they_were(tmp_path: Path, properties: dict[str, Any]) -> None:
    executor = PropertyGraphExecutor(_import(tmp_path, _node(properties=properties), _edge(properties=properties)))
    query = NativeQuery(Language.CYPHER, "MATCH (n)-[r]->() RETURN n, r")
    ((node, relationship),) = executor.execute(query, Limits(timeout=20.0)).rows
    executor.close()
    for found in (node, relationship):
        assert json.loads(json.dumps(found.properties)) == properties


def test_a_whole_number_that_no_fraction_holds_is_not_changed(tmp_path: Path) -> None:
    large = 2**62 + 1
    nodes = _node(properties={"x": 1.5}) + "\n" + _node(id="b", properties={"x": large})
    executor = PropertyGraphExecutor(_import(tmp_path, nodes, ""))
    rows = executor.execute(NativeQuery(Language.CYPHER, "MATCH (n) RETURN n"), Limits(timeout=20.0)).rows
    executor.close()
    assert [node.properties["x"] for (node,) in rows] == [1.5, large]


DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "text",
    [
        "RETURN 9" + "9" * 4300, "RETURN 0x" + "f" * 500, "RETURN 1e" + "9" * 4300, "RETURN 1." + "0" * 9000,
        "RETURN 1 LIMIT " + "9" * 4301, "RETURN 1 LIMIT 99999999999999999999", "RETURN 1 SKIP 0xffffffffffffffffff",
        "MATCH (a)-[*1.." + "9" * 4301 + "]->(b) RETURN 1", "MATCH (a)-[*1..9223372036854775807]->(b) RETURN 1",
        "MATCH (a)-[*" + "9" * 20 + "..]->(b) RETURN 1", "MATCH (a)-[*4294967297]->(b) RETURN 1", "RETURN ٣",
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_a_number_that_is_too_much_is_refused(text: str) -> None:
    with pytest.raises(QueryRejected):
        check(NativeQuery(Language.CYPHER, text))


@pytest.mark.parametrize("value", [{1}, object(), [frozenset()], {"a": range(3)}], ids=["set", "object", "in", "map"])
def test_a_parameter_of_a_type_that_cypher_does_not_have(value: Any) -> None:
    with pytest.raises(QueryRejected, match="of the type .*, which Cypher does not have"):
        check(NativeQuery(Language.CYPHER, "RETURN $p", {"p": value}))


@pytest.mark.parametrize("value", [DEEP, 2**70, [[-(2**70)]], "x" * 3_000_000, [0] * 2_000_000, {"a": {"b": 2**64}}],
                         ids=["deep", "large", "large within", "long", "many", "large in a map"])  # fmt: skip
def test_a_parameter_that_is_too_much_is_refused(value: Any) -> None:
    with pytest.raises(QueryRejected, match="a parameter"):
        check(NativeQuery(Language.CYPHER, "RETURN $p", {"p": value}))

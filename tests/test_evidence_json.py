"""Evidence as JSON: what is written fits the published schema, carries its version and survives a round trip."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.engine import Engine
from helios.evidence_json import VERSION, evidence_schema
from helios.types import (
    Computation,
    ContextMatch,
    ContextWeight,
    Evidence,
    EvidenceEdge,
    Link,
    Origin,
    Passage,
    Segment,
    SegmentId,
    TokenMatch,
)  # fmt: skip

QUESTION = "Into which sea does the longest river in the table of European rivers flow?"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
SEGMENT = Segment(SegmentId("t", 1), "Rivers", "Europe", ("Name", "km"), ("Aare", "288"))
PASSAGE = Passage("p", "Aare", "A river.", url="http://x", source="a.jsonl", metadata=(("by", "me"), ("draft", False)))
WHOLE = Evidence(
    "?",
    (
        EvidenceEdge(1, -0.5, 0.4, Origin.EXPANDED, SEGMENT, PASSAGE, (Link(0, 0, 4, 0.9),),
                     (TokenMatch("river", "river", 0.8, "sentence:0"),),
                     context=(ContextMatch("tags.name", "alps", "Aare", 0.7, 0.2),)),
        EvidenceEdge(2, 1.5, 0.1, Origin.AGGREGATED, SEGMENT, None, rejected=True),
        EvidenceEdge(3, 0.0, 0.0, Origin.LINKED, None, PASSAGE),
    ),
    {"begin": 1.25}, ("a note",), True,
    Computation("largest km", 0.5, (SegmentId("t", 1),), ((SegmentId("t", 1), 1, "288"),)), 0.7, 3,
    context=(ContextWeight("tags.name", 2, 1.0, 0.3),),
)  # fmt: skip


def problems(value: Any, schema: dict[str, Any], at: str = "") -> Iterator[str]:
    """What of a document its JSON schema forbids; an assertion fails for a keyword that is not checked here."""
    assert not set(schema) - {
        "$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "anyOf", "properties", "required",
        "additionalProperties", "items", "minimum", "maximum",
    }  # fmt: skip
    if "$ref" in schema:
        schema = evidence_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema and all(list(problems(value, one, at)) for one in schema["anyOf"]):
        yield f"{at}: fits none of its shapes"
    kinds = schema.get("type", [])
    if kinds and not any(is_of(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{at}: expected {kinds}"
        return
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{at}: {value!r} is not among the values"
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{at}: {value} is out of range"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from problems(item, schema.get("items", {}), f"{at}/{number}")
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
        yield from (f"{at}: lacks {name}" for name in schema.get("required", ()) if name not in value)
        for name, item in value.items():
            if name not in known and known and not rest:  # the schema would let it pass: later versions may have more
                yield f"{at}: {name} is not described"
            yield from problems(item, known.get(name, rest or {}), f"{at}/{name}")


def is_of(value: Any, kind: str) -> bool:
    """Whether a value is of a type of JSON schema: true and false are no numbers."""
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
    return isinstance(value, TYPES[kind])


def test_every_field_fits_the_schema():
    document = WHOLE.to_dict()
    assert list(problems(document, evidence_schema())) == []
    assert document == json.loads(json.dumps(document))
    assert document["version"] == VERSION == evidence_schema()["properties"]["version"]["const"]
    first, second, third = document["edges"]
    assert (first["rank"], first["probability"], first["origin"]) == (1, 0.4, "expanded")
    assert first["segment"]["id"] == "t#1"
    assert first["segment"]["cells"] == ["Aare", "288"]
    assert first["passage"]["metadata"] == {"draft": False, "by": "me"}
    assert (second["passage"], second["rejected"], third["segment"]) == (None, True, None)
    cell = {"segment": "t#1", "table_id": "t", "row": 1, "column": 1, "text": "288"}
    assert document["computed"]["cells"] == [cell]
    assert (document["present"], document["generation"], document["degraded"]) == (0.7, 3, True)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 2}, "/version"),
        ({"present": 1.5}, "/present: 1.5 is out of range"),
        ({"generation": True}, "/generation: expected integer"),
        ({"rows": []}, "rows is not described"),
        ({"computed": {}}, "/computed: fits none"),
        ({"timings_ms": {"begin": "1"}}, "/timings_ms/begin: expected number"),
        ({"edges": [WHOLE.to_dict()["edges"][0] | {"origin": "guessed"}]}, "/edges/0/origin"),
    ],
)
def test_what_does_not_fit_is_seen(change, problem):
    assert problem in "\n".join(problems(WHOLE.to_dict() | change, evidence_schema()))


def test_all_that_is_there_is_written():
    """A field that the evidence gains without the document's knowing would be lost to whoever reads it."""
    names = {"segment_id": {"id", "table_id", "row"}, "passage_id": {"id"}}
    pairs = [
        (WHOLE, WHOLE.to_dict()), (WHOLE.edges[0], WHOLE.to_dict()["edges"][0]),
        (PASSAGE, WHOLE.to_dict()["edges"][0]["passage"]), (SEGMENT, WHOLE.to_dict()["edges"][0]["segment"]),
        (WHOLE.computed, WHOLE.to_dict()["computed"]),
    ]  # fmt: skip
    for value, document in pairs:
        for name in type(value).__dataclass_fields__:
            assert names.get(name, {name}) <= set(document), f"{type(value).__name__}.{name}"


def test_what_a_search_finds_fits_the_schema(engine: Engine):
    evidence = engine.search(QUESTION, k=12, explain=True)
    document = evidence.to_dict()
    assert list(problems(document, evidence_schema())) == []
    assert json.loads(json.dumps(document)) == document
    assert [edge["matches"] for edge in document["edges"]] != [[]] * 12
    nothing = engine.search(QUESTION, where="id = 'nowhere'").to_dict()
    assert list(problems(nothing, evidence_schema())) == []
    assert nothing["edges"] == []


def test_the_command_prints_it(engine: Engine, sample_index: Path):
    """What `helios search --json` writes is the evidence of the same search, but for how long it took."""
    arguments = ["search", QUESTION, "--index", str(sample_index), "-k", "4", "--json"]
    result = CliRunner().invoke(build_app(), [*arguments, "--where", "table.title ~ '*river*'"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert list(problems(document, evidence_schema())) == []
    evidence = engine.search(QUESTION, k=4, where="table.title ~ '*river*'")
    expected = replace(evidence, timings_ms={}).to_dict()
    assert document | {"timings_ms": {}} == json.loads(json.dumps(expected))
    assert {edge["segment"]["title"] for edge in document["edges"] if edge["segment"]} == {"Rivers of Europe"}

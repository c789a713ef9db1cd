"""Values of result rows, and how they cross the border between a worker process and this one.

JSON with one tag, so that nothing that a damaged worker sends is ever executed.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Iri:
    """A resource of an RDF graph; `_:x` for a blank node."""

    value: str

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Literal:
    """An RDF literal whose type has no Python value, or that has a language."""

    value: str
    datatype: str = ""
    language: str = ""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a property graph."""

    node_id: str
    labels: tuple[str, ...]
    properties: Mapping[str, "Value"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphRelationship:
    """A relationship of a property graph, from `start` to `end` (node ids)."""

    type: str
    start: str
    end: str
    properties: Mapping[str, "Value"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphPath:
    """Nodes and the relationships between them, in order."""

    nodes: tuple[GraphNode, ...]
    relationships: tuple[GraphRelationship, ...]


Value = (
    None | bool | int | float | str | bytes | Decimal | date | time | datetime | timedelta | UUID
    | Iri | Literal | GraphNode | GraphRelationship | GraphPath | Sequence[Any] | Mapping[str, Any]
)  # fmt: skip
"""Anything that an engine gives; lists and maps hold values again."""

TAG = "$"


def dumps(data: Any) -> bytes:
    """JSON of rows and values, tagged where JSON has no such value; TypeError for anything that is not a value."""
    return json.dumps(_tagged(data), ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")


def loads(data: bytes) -> Any:
    """What `dumps` wrote, with lists as tuples; ValueError for anything else."""
    try:
        return _untagged(json.loads(data))
    except (KeyError, IndexError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        raise ValueError(f"not what `dumps` writes ({type(error).__name__}: {error})") from error


def plain(value: Value) -> Any:
    """A value as JSON has it, for people and programs that read `--json`: dates, decimals and bytes as text, and so the
    numbers that JSON does not know (`nan`, `inf`)."""
    match value:
        case float() if not isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case Iri() | Literal():
            return str(value)
        case GraphNode():
            return {"id": value.node_id, "labels": list(value.labels), "properties": plain(value.properties)}
        case GraphRelationship():
            return {
                "type": value.type, "start": value.start, "end": value.end, "properties": plain(value.properties)
            }  # fmt: skip
        case GraphPath():
            return {"nodes": [plain(n) for n in value.nodes], "relationships": [plain(r) for r in value.relationships]}
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case date() | time() | datetime():
            return value.isoformat()
    return str(value)


def _tagged(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_tagged(item) for item in value]
        case Mapping():
            return {TAG: "map", "v": [[str(key), _tagged(item)] for key, item in value.items()]}
        case bytes() | bytearray() | memoryview():
            return {TAG: "bytes", "v": b64encode(bytes(value)).decode()}
        case datetime():
            return {TAG: "datetime", "v": value.isoformat()}
        case date():
            return {TAG: "date", "v": value.isoformat()}
        case time():
            return {TAG: "time", "v": value.isoformat()}
        case timedelta():
            return {TAG: "timedelta", "v": [value.days, value.seconds, value.microseconds]}
        case Decimal() | UUID():
            return {TAG: type(value).__name__, "v": str(value)}
        case Iri():
            return {TAG: "iri", "v": value.value}
        case Literal():
            return {TAG: "literal", "v": [value.value, value.datatype, value.language]}
        case GraphNode():
            return {TAG: "node", "v": [value.node_id, list(value.labels), _tagged(value.properties)]}
        case GraphRelationship():
            return {TAG: "relationship", "v": [value.type, value.start, value.end, _tagged(value.properties)]}
        case GraphPath():
            return {TAG: "path", "v": [_tagged(value.nodes), _tagged(value.relationships)]}
    raise TypeError(f"{type(value).__name__} is not a value of a result")


_READERS: dict[str, Callable[[Any], Value]] = {
    "map": lambda v: {key: _untagged(item) for key, item in v},
    "bytes": b64decode,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda v: timedelta(*v),
    "Decimal": Decimal,
    "UUID": UUID,
    "iri": Iri,
    "literal": lambda v: Literal(*v),
    "node": lambda v: GraphNode(v[0], tuple(v[1]), _untagged(v[2])),
    "relationship": lambda v: GraphRelationship(v[0], v[1], v[2], _untagged(v[3])),
    "path": lambda v: GraphPath(_untagged(v[0]), _untagged(v[1])),
}


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return tuple([_untagged(item) if isinstance(item, list | dict) else item for item in value])
    if isinstance(value, dict):
        reader = _READERS.get(value.get(TAG, ""))
        if reader is None:
            raise ValueError(f"unknown value {str(value)[:80]}")
        return reader(value["v"])
    return value

"""Rows, triples, paths and passages in words, so that one encoder can rank them all."""

import re
from collections.abc import Mapping, Sequence

from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Iri, Value
from helios.sources.relevance import name_words

LONGEST_VALUE = 300
LONGEST_LIST = 10
NAMES = ("name", "title", "label", "displayname", "display_name", "id")
"""Properties that name a node, the better ones first."""


def row_text(columns: Sequence[str], row: Sequence[Value], *, about: str = "") -> str:
    """A row as `about: column value; column value`; empty values are left out."""
    parts = [_cell(column, value) for column, value in zip(columns, row, strict=True) if value not in (None, "")]
    text = "; ".join(part for part in parts if part)
    return f"{about}: {text}" if about else text


def value_text(value: Value) -> str:
    """A value as a person would say it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.10g}"
        case bytes():
            return f"{len(value)} bytes"
        case Iri():
            return local_name(value.value)
        case GraphNode():
            return _node(value)
        case GraphRelationship():
            return f"{_words(value.type)} {_properties(value.properties)}".strip()
        case GraphPath():
            return _path(value)
        case Mapping():
            return _properties(value)
        case list() | tuple():
            shown = ", ".join(value_text(item) for item in value[:LONGEST_LIST])
            return f"{shown}, …" if len(value) > LONGEST_LIST else shown
    return " ".join(str(value).split())[:LONGEST_VALUE]


def local_name(iri: str) -> str:
    """What stands after the last slash or hash of an IRI."""
    return re.split(r"[/#]", iri.rstrip("/#"))[-1] or iri


def _cell(column: str, value: Value) -> str:
    text = value_text(value)
    if isinstance(value, GraphNode | GraphRelationship | GraphPath):
        return text
    return f"{_words(column)} {text}".strip() if text else ""


def _words(name: str) -> str:
    return " ".join(name_words(name.rsplit(".", 1)[-1]))


def _node(node: GraphNode) -> str:
    return f"{' '.join(node.labels)} {_properties(node.properties)}".strip()


def node_name(node: GraphNode) -> str:
    """The property that names a node, or its id."""
    lowered = {key.lower(): value for key, value in node.properties.items()}
    named = next((lowered[name] for name in NAMES if lowered.get(name)), None)
    return value_text(named) if named is not None else node.node_id


def _path(path: GraphPath) -> str:
    parts = [_node(path.nodes[0])] if path.nodes else []
    for relationship, node in zip(path.relationships, path.nodes[1:], strict=False):
        parts += [_words(relationship.type), _node(node)]
    return ", ".join(parts)


def _properties(properties: Mapping[str, Value]) -> str:
    return ", ".join(f"{_words(key)} {value_text(value)}" for key, value in properties.items() if value is not None)

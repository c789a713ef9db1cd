"""The schema of a property graph, read with queries that every engine behind our guard answers.

Labels and relationship types come from the data, properties and their types from a sample of nodes and relationships;
where an engine has declared types, those are used.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime

from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.cypher.tokens import name
from helios.executors.values import GraphNode, GraphRelationship, Value
from helios.sources.descriptor import Column, GraphSchema, NodeLabel, RelationshipType
from helios.sources.lookup import MAX_PLACE_VALUES, MAX_VALUE_LENGTH, StoredValue

Ask = Callable[[NativeQuery, Limits], ResultSet]

SAMPLE = 2000
"""Nodes of a label, or relationships of a type, whose properties are looked at."""
SAMPLES = 4
SAMPLE_LENGTH = 60
READ_LIMITS = Limits(timeout=60.0, max_rows=100_000, max_bytes=2**27)


class GraphReader:
    """Reads schema and values through an executor."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def rows(self, text: str) -> Iterator[tuple[Value, ...]]:
        """Rows of one query."""
        yield from self._ask(NativeQuery(Language.CYPHER, text), READ_LIMITS).rows

    def schema(self) -> GraphSchema:
        """Labels, relationship types between labels, and what they have."""
        counts: Counter[str] = Counter()
        for labels, count in self.rows("MATCH (n) RETURN labels(n) AS labels, count(*) AS count"):
            for label in _strings(labels):
                counts[label] += int(str(count))
        nodes = [NodeLabel(label, self._node_properties(label), count) for label, count in sorted(counts.items())]
        return GraphSchema(tuple(nodes), tuple(self._relationships()))

    def values(self, schema: GraphSchema) -> Iterator[StoredValue]:
        """Short texts of all labels, with the nodes that have them."""
        for label in schema.labels:
            for column in label.properties:
                if column.type == "STRING":
                    yield from self._values(label.name, column.name)

    def _values(self, label: str, column: str) -> Iterator[StoredValue]:
        text = (
            f"MATCH (n:{name(label)}) WHERE size(n.{name(column)}) <= {MAX_VALUE_LENGTH} "
            f"RETURN n.{name(column)} AS value, min(elementId(n)) AS node, count(*) AS nodes LIMIT {MAX_PLACE_VALUES}"
        )
        for value, node, nodes in self.rows(text):
            if isinstance(value, str) and value.strip():
                yield StoredValue((label, column), value, str(node) if nodes == 1 else "")

    def _relationships(self) -> Iterator[RelationshipType]:
        found: Counter[tuple[str, str, str]] = Counter()
        text = "MATCH (a)-[r]->(b) RETURN labels(a) AS starts, type(r) AS type, labels(b) AS ends, count(*) AS count"
        for starts, type_, ends, count in self.rows(text):
            for start in _strings(starts) or [""]:
                for end in _strings(ends) or [""]:
                    found[str(type_), start, end] += int(str(count))
        properties = {type_: self._relationship_properties(type_) for type_ in dict.fromkeys(key[0] for key in found)}
        for (type_, start, end), count in sorted(found.items()):
            yield RelationshipType(type_, start, end, properties[type_], count)

    def _node_properties(self, label: str) -> tuple[Column, ...]:
        rows = self.rows(f"MATCH (n:{name(label)}) RETURN n LIMIT {SAMPLE}")
        return columns_of([node for (node,) in rows if isinstance(node, GraphNode)])

    def _relationship_properties(self, type_: str) -> tuple[Column, ...]:
        rows = self.rows(f"MATCH ()-[r:{name(type_)}]->() RETURN r LIMIT {SAMPLE}")
        return columns_of([each for (each,) in rows if isinstance(each, GraphRelationship)])


def columns_of(sample: Sequence[GraphNode | GraphRelationship]) -> tuple[Column, ...]:
    """Properties with the type that most values have, and values that are frequent."""
    types: dict[str, Counter[str]] = {}
    values: dict[str, Counter[str]] = {}
    for each in sample:
        for key, value in each.properties.items():
            types.setdefault(key, Counter())[type_name(value)] += 1
            values.setdefault(key, Counter())[_shown(value)] += 1
    return tuple(
        Column(
            key, types[key].most_common(1)[0][0], samples=tuple(text for text, _ in values[key].most_common(SAMPLES))
        )
        for key in types
    )


def type_name(value: Value) -> str:
    """The type of a property, as Cypher names it."""
    match value:
        case bool():
            return "BOOLEAN"
        case int():
            return "INTEGER"
        case float():
            return "FLOAT"
        case str():
            return "STRING"
        case datetime():
            return "DATETIME"
        case date():
            return "DATE"
        case [first, *_]:
            return f"LIST<{type_name(first)}>"
        case list() | tuple():
            return "LIST"
    return "ANY"


def _shown(value: Value) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= SAMPLE_LENGTH else text[: SAMPLE_LENGTH - 1] + "…"


def _strings(value: Value) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []

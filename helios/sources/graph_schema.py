"""The schema of a property graph, read with queries that every engine behind our guard answers.

Labels and relationship types come from the data: from all of a small graph, from a sample of a large one, within one
deadline. Properties and their types come from a sample of nodes and relationships.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from math import inf
from time import monotonic

from helios.errors import QueryFailed, QueryTimeout
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.cypher.tokens import name
from helios.executors.values import GraphNode, GraphRelationship, Value
from helios.sources.descriptor import Column, GraphSchema, NodeLabel, RelationshipType
from helios.sources.lookup import MAX_PLACE_VALUES, MAX_VALUE_LENGTH, StoredValue

log = logging.getLogger(__name__)

Ask = Callable[[NativeQuery, Limits], ResultSet]

SAMPLE = 2000
"""Nodes of a label, or relationships of a type, whose properties are looked at."""
SAMPLES = 4
SAMPLE_LENGTH = 60
WHOLE = 300_000
"""Nodes, and relationships, up to which all of a graph is looked at; of a larger one a part."""
PART = 20_000
"""Nodes that labels are told from, and relationships of the nodes of one label that are looked at."""
STATEMENT_SECONDS = 5.0
SCHEMA_SECONDS = 25.0
VALUES_SECONDS = 20.0
"""For the texts of one property."""
READ_ROWS, READ_BYTES = 100_000, 2**27


class GraphReader:
    """Reads schema and values through an executor."""

    def __init__(self, ask: Ask, *, seconds: float = SCHEMA_SECONDS, whole: int = WHOLE) -> None:
        self._ask = ask
        self._seconds = seconds
        self._whole = whole
        self._until = inf
        self._failed: QueryTimeout | QueryFailed | None = None
        self._late = False
        """Whether something took too long."""

    def rows(self, text: str, *, seconds: float = STATEMENT_SECONDS) -> Sequence[tuple[Value, ...]]:
        """Rows of one query; none where it fails, or where the time of all of them is over."""
        seconds = min(self._until - monotonic(), seconds)
        if seconds <= 0:
            self._late = True
            return ()
        limits = Limits(timeout=seconds, max_rows=READ_ROWS, max_bytes=READ_BYTES)
        try:
            return self._ask(NativeQuery(Language.CYPHER, text), limits).rows
        except (QueryTimeout, QueryFailed) as error:
            log.info("a part of the graph's schema is left out: %s: %s", text[:120], error)
            self._failed = error
            self._late = self._late or isinstance(error, QueryTimeout)
            return ()

    def schema(self) -> GraphSchema:
        """Labels, relationship types between labels, and what they have; of a large graph those of a part.

        QueryTimeout or QueryFailed where nothing can be read.
        """
        self._until = monotonic() + self._seconds
        sizes = [self._count("(n)"), self._count("()-[r]->()")]
        small = all(size is None or size <= self._whole for size in sizes)
        counts, found = self._all() if small else (Counter(), Counter())
        sampled = self._late or not small
        if sampled:
            counts = self._sampled_labels()
            found = self._sampled_types(counts)
        if not counts and self._failed is not None:
            raise self._failed
        properties = {type_: self._relationship_properties(type_) for type_ in dict.fromkeys(key[0] for key in found)}
        types = [
            RelationshipType(type_, start, end, properties[type_], count)
            for (type_, start, end), count in sorted(found.items())
        ]
        nodes = [NodeLabel(label, self._node_properties(label), count) for label, count in sorted(counts.items())]
        return GraphSchema(tuple(nodes), tuple(types), sampled)

    def _all(self) -> tuple[Counter[str], Counter[tuple[str, str, str]]]:
        """Labels and types of the whole graph; nothing once something took too long."""
        return (Counter(), Counter()) if self._late else (self._labels("MATCH (n)"), self._types("MATCH (a)-[r]->(b)"))

    def _count(self, pattern: str) -> int | None:
        """How many nodes or relationships there are, as a server knows it without looking; None where it does not."""
        rows = self.rows(f"MATCH {pattern} RETURN count(*) AS count")
        return int(str(rows[0][0])) if rows else None

    def _labels(self, match: str) -> Counter[str]:
        """Nodes by label."""
        counts: Counter[str] = Counter()
        for labels, count in self.rows(f"{match} RETURN labels(n) AS labels, count(*) AS count"):
            for label in _strings(labels):
                counts[label] += int(str(count))
        return counts

    def _types(self, match: str) -> Counter[tuple[str, str, str]]:
        """Relationships by type and the labels of their ends."""
        found: Counter[tuple[str, str, str]] = Counter()
        text = f"{match} RETURN labels(a) AS starts, type(r) AS type, labels(b) AS ends, count(*) AS count"
        for starts, type_, ends, count in self.rows(text):
            for start in _strings(starts) or [""]:
                for end in _strings(ends) or [""]:
                    found[str(type_), start, end] += int(str(count))
        return found

    def _sampled_labels(self) -> Counter[str]:
        """All nodes by label, which looks at no relationship; where that takes too long, labels of the first nodes."""
        whole = self._labels("MATCH (n)")
        if whole:
            return whole
        part = self._labels(f"MATCH (n) WITH n LIMIT {PART}")
        return Counter({label: self._counted(f"(n:{name(label)})", count) for label, count in part.items()})

    def _sampled_types(self, counts: Counter[str]) -> Counter[tuple[str, str, str]]:
        """Types at some nodes of each label, and at the labels that are met there; counts are shares of each type's."""
        rows = self.rows("MATCH ()-[r]->() RETURN type(r) AS type, count(*) AS count")
        totals = Counter({str(type_): int(str(count)) for type_, count in rows})
        part: Counter[tuple[str, str, str]] = Counter()
        waiting = list(counts)
        while waiting:
            label = waiting.pop(0)
            seen = self._types(f"MATCH (a:{name(label)})-[r]->(b) WITH a, r, b LIMIT {PART}")
            part.update({key: count for key, count in seen.items() if key[1] == label})
            for end in dict.fromkeys(end for _, _, end in seen):
                if end and end not in counts:
                    counts[end] = self._counted(f"(n:{name(end)})", 0)
                    waiting.append(end)
        for type_ in totals.keys() - {type_ for type_, _, _ in part}:
            part.update(self._types(f"MATCH (a)-[r:{name(type_)}]->(b) WITH a, r, b LIMIT {PART}"))
        shares: Counter[str] = Counter()
        for (type_, _, _), count in part.items():
            shares[type_] += count
        for type_ in shares.keys() - totals.keys():
            totals[type_] = self._counted(f"()-[r:{name(type_)}]->()", shares[type_])
        return Counter({key: max(1, round(totals[key[0]] * n / shares[key[0]])) for key, n in part.items()})

    def _counted(self, pattern: str, estimate: int) -> int:
        count = self._count(pattern)
        return estimate if count is None else count

    def values(self, schema: GraphSchema) -> Iterator[StoredValue]:
        """Short texts of all labels, with the nodes that have them, and of all types of relationships."""
        for label in schema.labels:
            for column in label.properties:
                if column.type == "STRING":
                    yield from self._values(label.name, column.name)
        types = {type_.name: type_ for type_ in schema.relationships}
        for type_ in types.values():
            for column in type_.properties:
                if column.type == "STRING":
                    yield from self._said_of_relationships(type_.name, column.name)

    def _values(self, label: str, column: str) -> Iterator[StoredValue]:
        text = (
            f"MATCH (n:{name(label)}) WHERE size(n.{name(column)}) <= {MAX_VALUE_LENGTH} "
            f"RETURN n.{name(column)} AS value, min(elementId(n)) AS node, count(*) AS nodes LIMIT {MAX_PLACE_VALUES}"
        )
        for value, node, nodes in self.rows(text, seconds=VALUES_SECONDS):
            if isinstance(value, str) and value.strip():
                yield StoredValue((label, column), value, str(node) if nodes == 1 else "")

    def _said_of_relationships(self, type_: str, column: str) -> Iterator[StoredValue]:
        text = (
            f"MATCH ()-[r:{name(type_)}]->() WHERE size(r.{name(column)}) <= {MAX_VALUE_LENGTH} "
            f"RETURN DISTINCT r.{name(column)} AS value LIMIT {MAX_PLACE_VALUES}"
        )
        for (value,) in self.rows(text, seconds=VALUES_SECONDS):
            if isinstance(value, str) and value.strip():
                yield StoredValue((type_, column), value)

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

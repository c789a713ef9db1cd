"""What a ladybug database holds: tables of nodes and relationships, and which labels they stand for.

Ladybug gives a node one table. A node of several labels lies in a table of its own for that set of labels, which the
table's comment names (JSON, `{"labels": [...]}`); without such a comment a table is a label.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from helios.executors.cypher import syntax as s

KEY = "helios_id"
"""Property of imported nodes: the id that the files gave."""
OTHER = "helios_other"
"""Property of imported nodes and relationships: JSON of the values that fit no column."""


@dataclass(frozen=True, slots=True)
class NodeTable:
    """A table of nodes; `properties` are names and ladybug's types, `key` the primary key."""

    number: int
    name: str
    labels: tuple[str, ...]
    properties: Mapping[str, str]
    key: str


@dataclass(frozen=True, slots=True)
class RelationshipTable:
    """A table of relationships between tables of nodes: `pairs` of start and end."""

    number: int
    name: str
    pairs: tuple[tuple[str, str], ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GraphCatalog:
    """All tables of a database."""

    nodes: tuple[NodeTable, ...]
    relationships: tuple[RelationshipTable, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, in the order of their tables."""
        return tuple(dict.fromkeys(label for table in self.nodes for label in table.labels))

    def node_tables(self, labels: s.Labels | None) -> tuple[NodeTable, ...]:
        """Tables whose nodes have these labels."""
        return tuple(table for table in self.nodes if labels is None or _holds(labels, table.labels))

    def relationship_tables(self, types: s.Labels | None) -> tuple[RelationshipTable, ...]:
        """Tables whose relationships have one of these types."""
        return tuple(table for table in self.relationships if types is None or _holds(types, (table.name,)))


def named(labels: s.Labels | None) -> tuple[str, ...]:
    """The names in a label expression."""
    match labels:
        case s.LabelName():
            return (labels.name,)
        case s.NotLabel():
            return named(labels.operand)
        case s.LabelPair():
            return named(labels.left) + named(labels.right)
    return ()


def table_labels(table: str, comment: str) -> tuple[str, ...]:
    """The labels of a table of nodes, from its comment or its name."""
    if comment.startswith("{"):
        try:
            labels = json.loads(comment).get("labels")
        except ValueError:
            labels = None
        if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
            return tuple(labels)
    return (table,)


def read_catalog(rows: Iterable[Sequence[object]]) -> GraphCatalog:
    """A catalog of the rows that `helios.executors.property_graph` gives for it."""
    nodes: list[NodeTable] = []
    relationships: list[RelationshipTable] = []
    for kind, number, table, comment, properties, key, pairs in rows:
        columns = dict(json.loads(str(properties)))
        if kind == "NODE":
            labels = table_labels(str(table), str(comment))
            nodes.append(NodeTable(int(str(number)), str(table), labels, columns, str(key)))
        else:
            ends = tuple((str(start), str(end)) for start, end in json.loads(str(pairs)))
            relationships.append(RelationshipTable(int(str(number)), str(table), ends, columns))
    return GraphCatalog(tuple(nodes), tuple(relationships))


def quoted(text: str) -> str:
    """A name as ladybug reads it."""
    return "`" + text.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as ladybug reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _holds(labels: s.Labels, held: tuple[str, ...]) -> bool:
    match labels:
        case s.LabelName():
            return labels.name in held
        case s.AnyLabel():
            return bool(held)
        case s.NotLabel():
            return not _holds(labels.operand, held)
        case s.LabelPair():
            left, right = _holds(labels.left, held), _holds(labels.right, held)
            return left and right if labels.operator == "&" else left or right

"""Caps on rows: reading stops where one is met, and the result says which."""

from collections.abc import Iterable, Mapping, Sequence

from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Iri, Literal, Value

Row = tuple[Value, ...]
SMALL = 8
"""What a number, a date or nothing counts, in bytes."""


def capped(rows: Iterable[Sequence[Value]], *, max_rows: int, max_bytes: int) -> tuple[list[Row], str | None]:
    """The first rows, and the cap that ended them: `rows`, `bytes` or None."""
    kept: list[Row] = []
    room = max_bytes
    for row in rows:
        if len(kept) == max_rows:
            return kept, "rows"
        room -= sum(map(size, row))
        if room < 0:
            return kept, "bytes"
        kept.append(tuple(row))
    return kept, None


def size(value: Value) -> int:
    """About how many bytes a value is as text."""
    match value:
        case str() | bytes():
            return len(value)
        case Iri() | Literal():
            return len(value.value)
        case GraphNode():
            return SMALL + size(value.properties)
        case GraphRelationship():
            return SMALL + len(value.type) + size(value.properties)
        case GraphPath():
            return size(value.nodes) + size(value.relationships)
        case Mapping():
            return sum(len(key) + size(item) for key, item in value.items())
        case list() | tuple():
            return SMALL + sum(map(size, value))
    return SMALL

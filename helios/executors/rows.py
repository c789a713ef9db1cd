"""Caps on rows: reading stops where one is met, and the result says which."""

from collections.abc import Iterable, Mapping, Sequence

from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Iri, Literal, Value

Row = tuple[Value, ...]
SMALL = 8
"""What any value counts at least, in bytes: nothing and an empty text take memory too."""


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
            return max(SMALL, len(value))
        case None | int() | float():
            return SMALL
        case Iri() | Literal():
            return max(SMALL, len(value.value))
        case GraphNode():
            return SMALL + size(value.properties)
        case GraphRelationship():
            return SMALL + len(value.type) + size(value.properties)
        case GraphPath():
            return SMALL + size(value.nodes) + size(value.relationships)
        case Mapping():
            return SMALL + sum(len(key) + size(item) for key, item in value.items())
        case list() | tuple():
            return SMALL + sum(map(size, value))
    return SMALL

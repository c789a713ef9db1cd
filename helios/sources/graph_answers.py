"""Whether a result is the stored answer of a question over a property graph.

Stored answers hold nodes as `{"_node": id, "_label": label}`. Rows are a multiset unless the query orders them; numbers
count by their value, a list that was collected is a multiset too. A query that cuts ties (ORDER BY … LIMIT) has more
than one right answer: `Agreement.TIES` says that the rows are as many, and differ only where the order says nothing.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any

from helios.errors import QueryRejected
from helios.executors.base import ResultSet
from helios.executors.cypher import syntax as s
from helios.executors.cypher.parser import parse
from helios.executors.values import GraphNode, GraphPath, GraphRelationship

DIGITS = 9
"""Significant digits of a number that must agree."""


class Agreement(StrEnum):
    """How a result compares with a stored answer."""

    SAME = "same"
    TIES = "ties"
    DIFFERENT = "different"


def compare_answers(cypher: str, result: ResultSet, answers: Sequence[Sequence[Any]]) -> Agreement:
    """Compare rows with a stored answer; `cypher` is the query that was asked."""
    rows = [tuple(canonical(value) for value in row) for row in result.rows]
    stored = [tuple(canonical(value) for value in row) for row in answers]
    if len(rows) != len(stored):
        return Agreement.DIFFERENT
    try:
        end = parse(cypher).parts[0]
    except QueryRejected:
        return Agreement.SAME if Counter(rows) == Counter(stored) else Agreement.DIFFERENT
    keys = _order_columns(end[-1])
    in_order = [[row[key] for key in keys] for row in rows] == [[row[key] for key in keys] for row in stored]
    if Counter(rows) == Counter(stored) and in_order:
        return Agreement.SAME
    limits = [clause for clause in end if isinstance(clause, s.Projection) and clause.limit is not None]
    if not limits:
        return Agreement.DIFFERENT
    return Agreement.TIES if in_order else Agreement.DIFFERENT


def canonical(value: Any) -> Hashable:
    """A value in a form that compares by meaning."""
    match value:
        case None | bool() | str():
            return value
        case int() | float() | Decimal():
            return ("number", float(f"{float(value):.{DIGITS}g}"))
        case GraphNode():
            return ("node", value.node_id)
        case {"_node": node_id, **_rest}:
            return ("node", str(node_id))
        case GraphRelationship():
            return ("relationship", value.type, value.start, value.end, canonical(value.properties))
        case GraphPath():
            return ("path", canonical(value.nodes), canonical(value.relationships))
        case Mapping():
            return ("map", frozenset((key, canonical(item)) for key, item in value.items()))
        case list() | tuple():
            return ("list", frozenset(Counter(canonical(item) for item in value).items()))
        case date() | datetime() | time():
            return value.isoformat()
    return str(value)


def _order_columns(end: s.Clause) -> list[int]:
    """The columns of a result that its query orders by, as far as they are returned."""
    if not isinstance(end, s.Projection):
        return []
    places: list[int] = []
    for key, _ in end.order:
        for place, item in enumerate(end.items):
            if item.expression == key or isinstance(key, s.Variable) and item.alias == key.name:
                places.append(place)
                break
        else:
            return places
    return places

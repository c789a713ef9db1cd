"""What a Cypher query says about the order of its rows, so that rows that tie can be told from rows out of order."""

from dataclasses import dataclass

from helios.errors import QueryRejected
from helios.executors.cypher import syntax as s
from helios.executors.cypher.parser import parse


@dataclass(frozen=True, slots=True)
class Order:
    """The returned columns that rows are ordered by, and whether a LIMIT may have cut rows."""

    columns: tuple[int, ...]
    """The leading sort keys that are returned; empty where the first is not, or where there is none."""
    limited: bool


def cypher_order(cypher: str) -> Order | None:
    """The order of a query's rows; None where the query cannot be read."""
    try:
        end = parse(cypher).parts[0]
    except QueryRejected:
        return None
    limited = any(isinstance(clause, s.Projection) and clause.limit is not None for clause in end)
    return Order(_columns(end[-1]), limited)


def _columns(end: s.Clause) -> tuple[int, ...]:
    if not isinstance(end, s.Projection):
        return ()
    places: list[int] = []
    for key, _ in end.order:
        for place, item in enumerate(end.items):
            if item.expression == key or isinstance(key, s.Variable) and item.alias == key.name:
                places.append(place)
                break
        else:
            break
    return tuple(places)

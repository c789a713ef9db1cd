"""What lets one query fill a server's memory: a server over Bolt may cap no query, and go on when we have left.

Embedded engines need none of this: their worker processes are killed at their deadline and their cap.
"""

from helios.errors import QueryRejected
from helios.executors.cypher import syntax as s

FREE_PATHS = 2
"""Relationships without an upper bound that one query may have: each multiplies all walks of the graph."""


def check_growth(query: s.Query) -> None:
    """QueryRejected for more than FREE_PATHS unbounded paths, and for a reduce that doubles a text or a list."""
    free = 0
    for part in s.walk(query):
        match part:
            case s.Path(shortest=None, search=None):
                free += sum(step.hops is not None and step.hops.high is None for step in part.relationships)
            case s.Reduce() if _doubles(part):
                raise QueryRejected("reduce may not add what it gathers to itself", f"reduce({part.accumulator} = ...)")
    if free > FREE_PATHS:
        raise QueryRejected(
            f"{free} paths have no upper bound, this source allows {FREE_PATHS} a query: write such as [*..5]", "[*]"
        )


def _doubles(reduce: s.Reduce) -> bool:
    if isinstance(reduce.start, s.Constant) and isinstance(reduce.start.value, int | float):
        return False
    gathered = s.Variable(reduce.accumulator)
    sums = [part for part in s.walk(reduce.step) if isinstance(part, s.Binary) and part.operator == "+"]
    return any(all(gathered in list(s.walk(side)) for side in (one.left, one.right)) for one in sums)

"""What lets one query fill a server's memory: a server over Bolt may cap no query, and go on when we have left.

Embedded engines need none of this: their worker processes are killed at their deadline and their cap.
"""

from helios.errors import QueryRejected
from helios.executors.cypher import syntax as s

FREE_PATHS = 2
"""Relationships without an upper bound that one query may have: each multiplies all walks of the graph."""
MANY_HOPS = 100
"""A higher bound is none."""
PLAIN = ("size", "length", "tointeger", "tofloat", "toboolean", "abs", "sign", "isempty", "char_length", "count")
"""Functions whose result does not grow with what they are given."""


def check_growth(query: s.Query) -> None:
    """QueryRejected for more than FREE_PATHS unbounded paths, and for a reduce that doubles a text or a list."""
    free = 0
    for part in s.walk(query):
        match part:
            case s.Path(shortest=None, search=search) if search is None or search.endswith("GROUPS"):
                free += sum(_is_free(step.hops) for step in part.relationships)
            case s.Reduce() if _doubles(part):
                raise QueryRejected("reduce may not add what it gathers to itself", f"reduce({part.accumulator} = ...)")
    if free > FREE_PATHS:
        raise QueryRejected(
            f"{free} paths have no upper bound, this source allows {FREE_PATHS} a query: write such as [*..5]", "[*]"
        )


def _is_free(hops: s.Hops | None) -> bool:
    return hops is not None and (hops.high is None or hops.high > MANY_HOPS)


def _doubles(reduce: s.Reduce) -> bool:
    """Whether a step may hold twice what was gathered before it."""
    if isinstance(reduce.start, s.Constant) and isinstance(reduce.start.value, int | float):
        return False
    return _Held(s.Variable(reduce.accumulator)).times(reduce.step) > 1


class _Held:
    """How many times a value may hold another, each part of the syntax looked at once."""

    def __init__(self, gathered: s.Variable) -> None:
        self._gathered = gathered
        self._known: dict[int, int] = {}

    def times(self, value: object) -> int:
        """At most 2, which stands for more too."""
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = min(2, self._found(value))
        return known

    def _found(self, value: object) -> int:
        match value:
            case s.Variable():
                return int(value == self._gathered)
            case s.Case():
                results = [result for _, result in value.branches]
                return max(map(self.times, [*results, value.otherwise]))
            case s.Binary(operator="+" | "||"):
                return self.times(value.left) + self.times(value.right)
            case s.Binary() | s.Unary() | s.IsNull() | s.HasLabels() | s.Quantifier():
                return 0
            case s.Call(name=name) if name in PLAIN:
                return 0
            case s.Call(name="replace"):
                return 2 * sum(map(self.times, value.arguments))
            case s.Call(name="coalesce"):
                return max(map(self.times, value.arguments), default=0)
            case s.Index() | s.Slice() | s.Property():
                return self.times(value.of)
            case s.ListComprehension():
                return self.times(value.items) + 2 * self.times(value.result)
            case s.Reduce():
                grows = 2 * self.times(value.step)
                return self.times(value.start) + self.times(value.items) + grows
        return sum(map(self.times, s.parts_of(value)))

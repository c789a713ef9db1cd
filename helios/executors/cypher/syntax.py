"""Reading queries of Cypher as values: what the guard's parser gives and the renderers write.

There is no node for a clause that writes, loads or changes a setting: what has no node here cannot be written for an
engine. Procedures are called by names of an allow-list.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class Constant:
    """null, true, false, a number or a string."""

    value: None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that the query binds."""

    name: str


@dataclass(frozen=True, slots=True)
class Property:
    """`of.name`."""

    of: "Expression"
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """`of[at]`."""

    of: "Expression"
    at: "Expression"


@dataclass(frozen=True, slots=True)
class Slice:
    """`of[low..high]`."""

    of: "Expression"
    low: "Expression | None"
    high: "Expression | None"


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b]`."""

    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """`{a: 1}`."""

    items: tuple[tuple[str, "Expression"], ...]


@dataclass(frozen=True, slots=True)
class MapProjection:
    """`n {.a, b: 1, .*}`: `all` for `.*`."""

    variable: str
    items: tuple[tuple[str, "Expression"], ...]
    all: bool


@dataclass(frozen=True, slots=True)
class Unary:
    """NOT, + or -."""

    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary:
    """OR XOR AND = <> < > <= >= + - * / % ^ || IN =~ CONTAINS, STARTS WITH, ENDS WITH."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class IsNull:
    """IS NULL, IS NOT NULL."""

    operand: "Expression"
    negated: bool


@dataclass(frozen=True, slots=True)
class HasLabels:
    """`n:Label` in an expression."""

    variable: str
    labels: "Labels"


@dataclass(frozen=True, slots=True)
class Call:
    """A function; `name` in lower case. `star` for count(*)."""

    name: str
    arguments: tuple["Expression", ...]
    distinct: bool = False
    star: bool = False


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST(a AS TYPE), of ladybug's dialect."""

    operand: "Expression"
    type: str


@dataclass(frozen=True, slots=True)
class Case:
    """CASE, with or without a subject."""

    subject: "Expression | None"
    branches: tuple[tuple["Expression", "Expression"], ...]
    otherwise: "Expression | None"


@dataclass(frozen=True, slots=True)
class ListComprehension:
    """`[x IN xs WHERE c | r]`."""

    variable: str
    items: "Expression"
    where: "Expression | None"
    result: "Expression | None"


@dataclass(frozen=True, slots=True)
class PatternComprehension:
    """`[(a)-->(b) WHERE c | r]`."""

    path: "Path"
    where: "Expression | None"
    result: "Expression"


@dataclass(frozen=True, slots=True)
class Quantifier:
    """any, all, none or single (x IN xs WHERE c)."""

    kind: str
    variable: str
    items: "Expression"
    where: "Expression"


@dataclass(frozen=True, slots=True)
class Reduce:
    """`reduce(a = start, x IN xs | step)`."""

    accumulator: str
    start: "Expression"
    variable: str
    items: "Expression"
    step: "Expression"


@dataclass(frozen=True, slots=True)
class Subquery:
    """EXISTS, COUNT or COLLECT of a query in braces; a pattern alone or in `exists()`, `size()` reads as one too."""

    kind: OneOf["EXISTS", "COUNT", "COLLECT"]
    query: "Query"


Expression = (
    Constant | Parameter | Variable | Property | Index | Slice | ListOf | MapOf | MapProjection | Unary | Binary
    | IsNull | HasLabels | Call | Cast | Case | ListComprehension | PatternComprehension | Quantifier | Reduce
    | Subquery
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabelName:
    """A label or a relationship type."""

    name: str


@dataclass(frozen=True, slots=True)
class AnyLabel:
    """`%`."""


@dataclass(frozen=True, slots=True)
class NotLabel:
    """`!A`."""

    operand: "Labels"


@dataclass(frozen=True, slots=True)
class LabelPair:
    """`A & B`, `A:B` or `A | B`."""

    operator: OneOf["&", "|"]
    left: "Labels"
    right: "Labels"


Labels = LabelName | AnyLabel | NotLabel | LabelPair


@dataclass(frozen=True, slots=True)
class Node:
    """`(n:Label {a: 1} WHERE c)`."""

    variable: str | None
    labels: Labels | None
    properties: MapOf | Parameter | None
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Hops:
    """`*low..high` inside a relationship, or `{low,high}`, `+`, `*` behind it where `quantified`; None where open."""

    low: int | None
    high: int | None
    quantified: bool = False


@dataclass(frozen=True, slots=True)
class Relationship:
    """`-[r:TYPE*1..2 {a: 1}]->`; `direction` as it reads from left to right."""

    variable: str | None
    types: Labels | None
    direction: OneOf["->", "<-", "--"]
    hops: Hops | None
    properties: MapOf | Parameter | None
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """`((a)-[r]->(b) WHERE c){low,high}`: a piece of a path that is repeated; servers alone know it."""

    path: "Path"
    where: Expression | None
    hops: Hops


@dataclass(frozen=True, slots=True)
class Path:
    """`p = (a)-[r]->(b)`; one node more than relationships."""

    variable: str | None
    nodes: tuple[Node, ...]
    relationships: tuple[Relationship | Group, ...]
    shortest: OneOf["shortestPath", "allShortestPaths"] | None = None
    search: str | None = None
    """Which of the paths: `SHORTEST 2`, `ALL SHORTEST`, `ANY`; servers alone know it."""
    within: Expression | None = None
    """With `search`: the condition on the paths that are searched."""

    @property
    def plain(self) -> "tuple[Relationship, ...]":
        """The relationships that stand outside of groups."""
        return tuple(step for step in self.relationships if isinstance(step, Relationship))


@dataclass(frozen=True, slots=True)
class Match:
    """MATCH or OPTIONAL MATCH."""

    paths: tuple[Path, ...]
    where: Expression | None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Unwind:
    """UNWIND xs AS x."""

    items: Expression
    variable: str


@dataclass(frozen=True, slots=True)
class CallSubquery:
    """CALL { … }, CALL (a, b) { … }: `imports` are None in the first form."""

    query: "Query"
    imports: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class CallProcedure:
    """`CALL name(a, b) YIELD node AS n WHERE c`; `name` in lower case."""

    name: str
    arguments: tuple[Expression, ...]
    yields: tuple[tuple[str, str | None], ...]
    """Columns, and the variables that they are called."""
    where: Expression | None


@dataclass(frozen=True, slots=True)
class Item:
    """One expression of RETURN or WITH; `column` is its name in the result."""

    expression: Expression
    alias: str | None
    column: str


@dataclass(frozen=True, slots=True)
class Projection:
    """WITH, or RETURN where `last`."""

    items: tuple[Item, ...]
    star: bool
    distinct: bool
    order: tuple[tuple[Expression, bool], ...]
    """Expressions, and whether each descends."""
    skip: Expression | None
    limit: Expression | None
    where: Expression | None
    last: bool


Clause = Match | Unwind | CallSubquery | CallProcedure | Projection


@dataclass(frozen=True, slots=True)
class Query:
    """Clauses of single queries, all of them joined by UNION or UNION ALL."""

    parts: tuple[tuple[Clause, ...], ...]
    all: bool = False

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the result's columns; None for RETURN *."""
        end = self.parts[0][-1]
        return None if not isinstance(end, Projection) or end.star else tuple(item.column for item in end.items)


def parts_of(value: object) -> list[object]:
    """What a part of the syntax is made of."""
    if isinstance(value, tuple):
        return list(value)
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name) for each in fields(value)]
    return []


def walk(value: object) -> Iterator[object]:
    """A part of the syntax and everything that it is made of."""
    pending = [value]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(parts_of(part))

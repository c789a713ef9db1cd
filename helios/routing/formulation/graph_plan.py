"""What a question asks of a property graph, and how that is written in Cypher.

match a pattern → where → (group by the plain items) → having → return → order → limit

Values are parameters, names are quoted. Numbers kept as text are cast where they are compared or added up.
What cannot be written in Cypher cannot be constructed: PlanError.
"""

from dataclasses import dataclass, field
from typing import Literal

from helios.executors.base import Language, NativeQuery
from helios.executors.cypher.catalog import quoted
from helios.executors.values import Value
from helios.routing.formulation.plan import PlanError

Aggregate = Literal["count", "sum", "avg", "min", "max"]
Operator = Literal[
    "=", "<>", "<", "<=", ">", ">=", "CONTAINS", "STARTS WITH", "ENDS WITH", "IN", "IS NULL", "IS NOT NULL"
]


@dataclass(frozen=True, slots=True)
class Item:
    """A node (no property), a property, or an aggregate over either."""

    alias: str
    property: str | None = None
    aggregate: Aggregate | None = None
    distinct: bool = False
    number: bool = False
    """True where the values are numbers kept as text."""
    length: bool = False
    """True for the length of a text or a list."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of an item with a value; `any_of` for the elements of a list property."""

    item: Item
    operator: Operator
    value: Value = None
    fold_case: bool = False
    any_of: bool = False
    values: tuple[Value, ...] = ()
    """What IN compares with."""
    other: Item | None = None
    """What it is compared with in place of a value."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the pattern."""

    alias: str
    label: str


@dataclass(frozen=True, slots=True)
class Hop:
    """A relationship of the pattern, from `start` to `end` (aliases of nodes)."""

    alias: str
    type: str
    start: str
    end: str
    either_way: bool = False
    """Drawn in either direction, as between neighbours."""


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """A pattern and what is done with its matches."""

    nodes: tuple[Node, ...]
    hops: tuple[Hop, ...] = ()
    conditions: tuple[Condition, ...] = ()
    absent: tuple[Hop, ...] = ()
    """Relationships that must not exist; their other end is any node."""
    select: tuple[Item, ...] = ()
    having: tuple[Condition, ...] = ()
    order: Item | None = None
    descending: bool = True
    limit: int | None = None
    distinct: bool = False

    def __post_init__(self) -> None:
        if not self.select:
            raise PlanError("a plan returns something")
        known = {node.alias for node in self.nodes}
        if unknown := {end for hop in self.hops for end in (hop.start, hop.end)} - known:
            raise PlanError(f"a relationship with nodes that the pattern lacks: {', '.join(sorted(unknown))}")
        terms = self.select if self.order is None else (*self.select, self.order)
        grouped = bool(self.having) or any(item.aggregate for item in terms)
        if grouped and self.order is not None and self.order not in self.select:
            raise PlanError(f"groups are sorted by what is returned of them, and {self.order} is not")


@dataclass(slots=True)
class _Writing:
    """A query under way: the parameters bound so far and the engine's cast."""

    cast: str
    parameters: dict[str, Value] = field(default_factory=dict)

    def bind(self, value: Value) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"


def write_cypher(plan: GraphPlan, *, cast: str = "CAST({} AS DOUBLE)") -> NativeQuery:
    """The plan in Cypher; `cast` is how the engine makes a number of a text (`toFloat({})` in openCypher)."""
    writing = _Writing(cast)
    lines = ["MATCH " + ", ".join(_patterns(plan))]
    conditions = [_condition(condition, writing) for condition in plan.conditions]
    conditions += [f"NOT EXISTS {{ MATCH {_absent(hop)} }}" for hop in plan.absent]
    if conditions:
        lines.append("WHERE " + " AND ".join(conditions))
    lines += _returned(plan, writing)
    return NativeQuery(Language.CYPHER, "\n".join(lines), writing.parameters)


def _returned(plan: GraphPlan, writing: _Writing) -> list[str]:
    lines = []
    names = {item: f"c{i}" for i, item in enumerate(plan.select)}
    distinct = "DISTINCT " if plan.distinct else ""
    columns = ", ".join(f"{_item(item, writing)} AS {name}" for item, name in names.items())
    order = ""
    if plan.order is not None:
        grouped = bool(plan.having) or any(item.aggregate for item in plan.select)
        key = names[plan.order] if plan.order in names and (grouped or plan.distinct) else _item(plan.order, writing)
        if plan.order in names and plan.order.number and not plan.order.aggregate and not plan.having:
            key = _item(plan.order, writing)
        order = f"ORDER BY {key} {'DESC' if plan.descending else 'ASC'}"
    if plan.having:
        lines.append(f"WITH {columns}" + "".join(
            f", {_item(c.item, writing)} AS h{i}" for i, c in enumerate(plan.having) if c.item not in names
        ))  # fmt: skip
        tests = [
            f"{names.get(c.item, f'h{i}')} {c.operator} {writing.bind(c.value)}" for i, c in enumerate(plan.having)
        ]
        lines.append("WHERE " + " AND ".join(tests))
        columns = ", ".join(names.values())
    lines.append(f"RETURN {distinct}{columns}")
    if order:
        lines.append(order)
    if plan.limit is not None:
        lines.append(f"LIMIT {int(plan.limit)}")
    return lines


def _patterns(plan: GraphPlan) -> list[str]:
    labels = {node.alias: node.label for node in plan.nodes}
    written: set[str] = set()

    def node(alias: str) -> str:
        if alias in written:
            return f"({alias})"
        written.add(alias)
        return f"({alias}:{quoted(labels[alias])})"

    parts = [
        f"{node(hop.start)}-[{hop.alias}:{quoted(hop.type)}]-{'' if hop.either_way else '>'}{node(hop.end)}"
        for hop in plan.hops
    ]
    return parts + [node(alias) for alias in labels if alias not in written]


def _absent(hop: Hop) -> str:
    return f"({hop.start})-[:{quoted(hop.type)}]->({hop.end})"


def _item(item: Item, writing: _Writing) -> str:
    text = item.alias if item.property is None else f"{item.alias}.{quoted(item.property)}"
    if item.length:
        text = f"size({text})"
    if item.number and item.aggregate != "count":
        text = writing.cast.format(text) if item.aggregate or item.number else text
    if item.aggregate is None:
        return text
    return f"{item.aggregate}({'DISTINCT ' if item.distinct else ''}{text})"


def _condition(condition: Condition, writing: _Writing) -> str:
    text = _item(condition.item, writing)
    if condition.operator in ("IS NULL", "IS NOT NULL"):
        return f"{text} {condition.operator}"
    if condition.operator == "IN":
        return f"{text} IN {writing.bind(list(condition.values))}"
    if condition.other is not None:
        return f"{text} {condition.operator} {_item(condition.other, writing)}"
    value = writing.bind(condition.value)
    if condition.any_of:
        return f"{value} IN {text}"
    if condition.fold_case:
        return f"lower({text}) {condition.operator} lower({value})"
    return f"{text} {condition.operator} {value}"

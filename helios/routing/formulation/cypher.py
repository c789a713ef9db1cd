"""A plan over the tables of a property graph as Cypher, as Neo4j has it.

joins → one pattern     inner plans → EXISTS, or values that are collected before     groups → WITH

Values are parameters, names are quoted. Numbers kept as text are cast where they are compared or added up. What cannot
be said in Cypher, or not by every engine, is a PlanError.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from helios.executors.base import Language, NativeQuery
from helios.executors.cypher.catalog import quoted
from helios.executors.values import Value
from helios.routing.formulation.graph_tables import END, KEY, KEYS, LIST, START, GraphTables
from helios.routing.formulation.plan import (
    Aggregate,
    Beginning,
    ColumnRef,
    Computed,
    Condition,
    Day,
    Operator,
    Plan,
    PlanError,
    SetOperation,
    Sign,
    Term,
    in_time_order,
)
from helios.routing.formulation.words import name_words

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TEXT = {
    Operator.CONTAINS: "CONTAINS", Operator.NOT_CONTAINS: "CONTAINS", Operator.STARTS: "STARTS WITH",
    Operator.ENDS: "ENDS WITH",
}  # fmt: skip
NUMBERED = (("number",), ("id",), ("code",), ("no",))
"""What the names of such properties end with."""
SAID = {Operator.NE: "<>"}
"""Operators that Cypher writes otherwise."""


def render_cypher(plan: Plan, tables: GraphTables, *, keys: bool = False) -> NativeQuery:
    """Cypher that answers a plan, with `keys` by the ids of nodes in place of these; PlanError for what it does not
    say."""
    writing = _Writing(tables, keys)
    plan = in_time_order(plan)
    if plan.combined is not None and plan.combined[0] in (SetOperation.LESS, SetOperation.APART):
        text = _difference(plan, writing)
    elif plan.combined is not None and plan.combined[0] is SetOperation.UNION:
        first, second = plan.with_(combined=None, order=(), limit=None), plan.combined[1]
        if plan.order or plan.limit is not None:
            raise PlanError("what two queries give together is not put in order")
        text = " UNION ".join(_Scope(writing).query(one) for one in (first, second))
    else:
        text = _Scope(writing).query(plan)
    return NativeQuery(Language.CYPHER, text, writing.parameters)


@dataclass
class _Writing:
    """A whole query under way: its parameters, and names for its variables."""

    tables: GraphTables
    keys: bool
    """Whether ids are given in place of nodes."""
    parameters: dict[str, Value] = field(default_factory=dict)
    numbers: "count[int]" = field(default_factory=count)

    def bind(self, value: Value) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def fresh(self, what: str) -> str:
        return f"{what}{next(self.numbers)}"


def _difference(plan: Plan, writing: _Writing) -> str:
    """What two plans of one number each differ by."""
    assert plan.combined is not None
    operation, second = plan.combined
    first, names = plan.with_(combined=None), (writing.fresh("v"), writing.fresh("v"))
    one, other = _Scope(writing), _Scope(writing)
    text = f"{one.only(first, names[0])} {other.only(second, names[1], carried=names[:1])}"
    by = f"{names[0]} - {names[1]}"
    return f"{text} RETURN {f'abs({by})' if operation is SetOperation.APART else by} AS difference"


class _Scope:
    """One MATCH and what is done with its rows."""

    def __init__(self, writing: _Writing, bound: dict[ColumnRef, str] | None = None, *, keys: bool = False) -> None:
        """`bound` are keys that are nodes of a MATCH around this one; with `keys` it gives keys in place of nodes."""
        self.writing, self.tables, self.keys = writing, writing.tables, keys or writing.keys
        self.bound = bound or {}
        self.nodes: dict[ColumnRef, str] = {}
        """Variables by the keys that stand for the node."""
        self.links: dict[str, str] = {}
        self.before: dict[str, str] = {}
        """What is computed before, by the name of its value."""

    def query(self, plan: Plan) -> str:
        """A whole plan but for what it is combined with by UNION."""
        if plan.each:
            raise PlanError("the first of each is not written in Cypher")
        matched = self.matched(plan)
        distinct = plan.distinct or plan.combined is not None
        terms = (*plan.select, *(one.term for one in plan.having), *(one.term for one in plan.order))
        if plan.group or any(term.aggregate for term in terms):
            return self.grouped(plan, matched)
        if distinct and any(order.term not in plan.select for order in plan.order):
            best = tuple(
                replace(one, term=replace(one.term, aggregate=Aggregate.MAX if one.descending else Aggregate.MIN))
                for one in plan.order
            )
            return self.grouped(plan.with_(order=best), matched)
        names = self.titles(plan.select)
        columns = [f"{self.shown(term)} AS {name}" for term, name in zip(plan.select, names, strict=True)]
        keys = [
            (names[plan.select.index(one.term)] if distinct and not self.as_text(one.term) else self.number(one.term))
            + (" DESC" if one.descending else "")
            for one in plan.order
        ]  # fmt: skip
        text = f"{self.begun(matched)} RETURN {'DISTINCT ' if distinct else ''}{', '.join(columns)}"
        return self.ended(text, keys, plan.limit)

    def grouped(self, plan: Plan, matched: str) -> str:
        """Rows by groups: Cypher takes all for a group's name that is no aggregate."""
        names = self.titles(plan.select)
        made: dict[Term, str] = {}
        terms = [*plan.select, *map(Term, plan.group), *(one.term for one in plan.having)]
        for term in dict.fromkeys(terms):
            made[term] = self.writing.fresh("g")
        texts = {term: self.shown(term) for term in made}
        orders = {one.term: self.writing.fresh("o") for one in plan.order}
        columns = [f"{text} AS {made[term]}" for term, text in texts.items()]
        columns += [f"{self.number(term)} AS {name}" for term, name in orders.items()]
        having = [self.compared(made[one.term], one, number=True) for one in plan.having]
        where = f" WHERE {' AND '.join(having)}" if having else ""
        keys = [orders[one.term] + (" DESC" if one.descending else "") for one in plan.order]
        shown = ", ".join(f"{made[term]} AS {name}" for term, name in zip(plan.select, names, strict=True))
        columns += self.before
        return self.ended(f"{self.begun(matched)} WITH {', '.join(columns)}{where} RETURN {shown}", keys, plan.limit)

    def begun(self, matched: str) -> str:
        """What is computed before, and then a MATCH."""
        return " ".join([*self.before.values(), matched])

    def only(self, plan: Plan, name: str, *, carried: Sequence[str] = ()) -> str:
        """A plan's only value by a name, for what comes after."""
        if plan.combined is not None or plan.group or plan.having or len(plan.select) != 1:
            raise PlanError("a value of groups is not compared in Cypher")
        term, matched = plan.select[0], self.matched(plan, optional=bool(carried))
        if self.before:
            raise PlanError("a value that another one is computed from is not written in Cypher")
        kept = "".join(f"{one}, " for one in carried)
        if term.aggregate is not None:
            if plan.order or plan.limit is not None:
                raise PlanError("one number has no order")
            number = self.number(term) if term.column or term.share or not carried else self.met(plan)
            return f"{matched} WITH {kept}{number} AS {name}"
        keys = [self.number(one.term) + (" DESC" if one.descending else "") for one in plan.order]
        text = f"{matched} WITH {kept}{self.number(term)} AS {name}"
        return self.ended(text, keys, 1)

    def met(self, plan: Plan) -> str:
        """How many rows an OPTIONAL MATCH finds: it gives one without anything where it finds none."""
        table = plan.tables[0]
        return f"count({self.links.get(table) or self.nodes[ColumnRef(table, KEY)]})"

    def ended(self, text: str, keys: Sequence[str], limit: int | None) -> str:
        text += f" ORDER BY {', '.join(keys)}" if keys else ""
        return text + (f" LIMIT {limit}" if limit is not None else "")

    def titles(self, select: Sequence[Term]) -> list[str]:
        """What the columns of an answer are called: like properties, and like what is computed."""
        names: list[str] = []
        for term in select:
            said = "percentage" if term.share else str(term.aggregate or "")
            if term.column is not None:
                own = term.column.column if term.column.column not in KEYS else term.column.table
                said = "_".join(filter(None, (said, own)))
            name, number = said, 2
            while name.lower() in {one.lower() for one in names}:
                name, number = f"{said}_{number}", number + 1
            names.append(name)
        return [quoted(name) for name in names]

    def matched(self, plan: Plan, *, optional: bool = False, same: Sequence[tuple[ColumnRef, str]] = ()) -> str:
        """The MATCH of a plan with its conditions; `same` are columns with what they have to equal."""
        pattern = self.pattern(plan)
        tests = [self.any_of(some) for some in plan.where if not _is_there(some)]
        if plan.limit is not None and not plan.group:
            told = {one.term for some in plan.where for one in some if one.operator is Operator.NOT_NULL}
            tests += [
                f"{self.number(one.term)} IS NOT NULL"
                for one in plan.order
                if one.descending and one.term.aggregate is None and one.term.column and one.term not in told
            ]  # what has no value would come first
        if plan.combined is not None:
            tests.append(self.combined(plan))
        tests += [f"{self.value(column)} = {text}" for column, text in same]
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f"{'OPTIONAL ' if optional else ''}MATCH {pattern}{where}"

    def pattern(self, plan: Plan) -> str:
        """The paths of a plan's tables; keys that are joined are one node."""
        same: dict[ColumnRef, ColumnRef] = {}

        def first(key: ColumnRef) -> ColumnRef:
            while key in same:
                key = same[key]
            return key

        for join in plan.joins:
            if join.left.column not in KEYS or join.right.column not in KEYS:
                raise PlanError("only nodes are joined in a graph")
            left, right = first(join.left), first(join.right)
            if left != right:
                same[right] = left
        ends = {
            table: (ColumnRef(table, START), ColumnRef(table, END))
            for table in plan.tables
            if table in self.tables.links
        }
        keys = [key for two in ends.values() for key in two]
        keys += [ColumnRef(table, KEY) for table in plan.tables if table not in ends]
        outer = {first(key): name for key, name in self.bound.items()}
        for key in keys:
            group = first(key)
            if group not in self.nodes:
                self.nodes[group] = outer.get(group) or self.writing.fresh("n")
            self.nodes[key] = self.nodes[group]
        written = set(outer.values())
        paths = []
        for table, (start, end) in ends.items():
            self.links[table] = self.writing.fresh("r")
            link = self.tables.links[table]
            one, other = self.node(start, link.start, written), self.node(end, link.end, written)
            paths.append(f"{one}-[{self.links[table]}:{quoted(link.name)}]->{other}")
        for table in plan.tables:
            key = ColumnRef(table, KEY)
            if table not in ends and self.nodes[key] not in written:
                paths.append(self.node(key, self.tables.labels[table], written))
        if not paths:
            raise PlanError("a pattern without a path")
        return ", ".join(paths)

    def node(self, key: ColumnRef, label: str, written: set[str]) -> str:
        """A node, with its label where it is met first."""
        name = self.nodes[key]
        if name in written:
            return f"({name})"
        written.add(name)
        return f"({name}:{quoted(label)})"

    def any_of(self, conditions: tuple[Condition, ...]) -> str:
        text = " OR ".join(map(self.condition, conditions))
        return f"({text})" if len(conditions) > 1 else text

    def condition(self, condition: Condition) -> str:
        column = condition.term.column
        if condition.own is not None or column is None or condition.term.aggregate is not None:
            raise PlanError("this comparison is not written in Cypher")
        if column.column in KEYS and condition.values:
            column = self.numbered(column)
        if condition.operator in (Operator.IN, Operator.NOT_IN) and condition.query is not None:
            text = self.among(column, condition.query)
            return f"NOT {text}" if condition.operator is Operator.NOT_IN else text
        return self.compared(self.value(column), condition, column=column)

    def numbered(self, key: ColumnRef) -> ColumnRef:
        """The property that people call a node by where they say a number or a code: zone 3."""
        found = [
            ColumnRef(key.table, one.name)
            for table in self.tables.schema.tables if table.name == key.table
            for one in table.columns if one.name not in KEYS and name_words(one.name)[-1:] in NUMBERED
        ]  # fmt: skip
        if key.column != KEY or len(found) != 1:
            raise PlanError("no one knows the ids of nodes")
        return found[0]

    def compared(
        self, left: str, condition: Condition, *, column: ColumnRef | None = None, number: bool = False
    ) -> str:
        """A comparison of what is written; `number` for what is one whatever is stored."""
        operator, values = condition.operator, condition.values
        sign = SAID.get(operator, operator.value)
        if operator in (Operator.IS_NULL, Operator.NOT_NULL):
            return f"{left} {operator.upper()}"
        if condition.than is not None:
            return f"{self.number(condition.term)} {sign} {self.number(Term(condition.than))}"
        if condition.query is not None:
            if self.before:
                raise PlanError("two values that are computed before are not written in Cypher")
            name = self.writing.fresh("v")
            self.before[name] = _Scope(self.writing).only(condition.query, name)
            return f"{left if number or column is None else self.number(Term(column))} {sign} {name}"
        if column is not None and self.kind(column).startswith(LIST):
            return self.in_list(left, condition)
        if operator in TEXT:
            test = f"toLower({left}) {TEXT[operator]} {self.writing.bind(str(values[0]).lower())}"
            return f"NOT {test}" if operator is Operator.NOT_CONTAINS else test
        if column is not None and all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
            left = self.number(Term(column))
        elif column is not None and self.kind(column).startswith("DATE"):
            left = f"toString({left})"
        if operator is Operator.BETWEEN:
            low, high = map(self.writing.bind, values)
            return f"({left} >= {low} AND {left} <= {high})"
        if operator in (Operator.IN, Operator.NOT_IN):
            text = f"{left} IN {self.writing.bind(list(values))}"
            return f"NOT {text}" if operator is Operator.NOT_IN else text
        return f"{left} {sign} {self.writing.bind(values[0])}"

    def in_list(self, left: str, condition: Condition) -> str:
        """Whether a list holds a value."""
        negated = condition.operator in (Operator.NE, Operator.NOT_IN, Operator.NOT_CONTAINS)
        if condition.operator not in (Operator.EQ, Operator.IN, Operator.CONTAINS) and not negated:
            raise PlanError("lists have no order")
        text = " OR ".join(f"{self.writing.bind(value)} IN {left}" for value in condition.values)
        return f"{'NOT ' if negated else ''}({text})"

    def among(self, column: ColumnRef, plan: Plan) -> str:
        """Whether a value is one of those that another plan gives."""
        if plan.combined is not None or len(plan.select) != 1 or plan.select[0].column is None:
            raise PlanError("a value among those of two plans is not written in Cypher")
        own = plan.select[0].column
        if plan.group or plan.having or plan.limit is not None:
            if self.before:
                raise PlanError("two lists that are made before are not written in Cypher")
            name, many = self.writing.fresh("l"), self.writing.fresh("m")
            inner = _Scope(self.writing, keys=True)
            text = inner.grouped(plan, inner.matched(plan))
            made = re.search(r" RETURN (\w+) AS `[^`]*`(.*)$", text)
            assert made is not None
            before = text[: made.start()]
            self.before[name] = f"{before} WITH {made[1]} AS {many}{made[2]} WITH collect({many}) AS {name}"
            return f"{self.value(column)} IN {name}"
        bound = {own: self.nodes[column]} if own.column in KEYS and column.column in KEYS else {}
        inner = _Scope(self.writing, bound)
        text = inner.matched(plan, same=() if bound else ((own, self.value(column)),))
        if inner.before:
            raise PlanError("a value that is computed inside is not written in Cypher")
        return f"EXISTS {{ {text} }}"

    def combined(self, plan: Plan) -> str:
        """Whether another plan gives the row too."""
        assert plan.combined is not None
        operation, other = plan.combined
        if other.group or other.having or other.limit is not None or plan.group or plan.having:
            raise PlanError("groups that two plans give are not written in Cypher")
        pairs = list(zip(plan.select, other.select, strict=True))
        if any(one.column is None or one.aggregate or two.column is None or two.aggregate for one, two in pairs):
            raise PlanError("numbers that two plans give are not written in Cypher")
        inner = _Scope(self.writing)
        text = inner.matched(other, same=[(_column(two), self.value(_column(one))) for one, two in pairs])
        if inner.before:
            raise PlanError("a value that is computed inside is not written in Cypher")
        return f"{'NOT ' if operation is SetOperation.EXCEPT else ''}EXISTS {{ {text} }}"

    def kind(self, column: ColumnRef) -> str:
        """The type of a property as Cypher names it."""
        return self.tables.column(ColumnRef(column.table, column.column)).type

    def as_text(self, term: Term) -> bool:
        """Whether a column holds numbers kept as text."""
        if term.column is None or term.column.column in KEYS or isinstance(term.column, Computed | Beginning | Day):
            return False
        known = self.tables.column(term.column)
        return known.type == "STRING" and bool(known.samples) and all(map(NUMBER.fullmatch, known.samples))

    def value(self, column: ColumnRef) -> str:
        """A column as it is stored."""
        if column.column in KEYS:
            return f"elementId({self.nodes[column]})"
        if isinstance(column, Computed):
            if column.sign is Sign.DAYS:
                raise PlanError("days between two dates are not counted by every engine")
            one, other = (self.number(Term(part)) for part in column.parts)
            return f"({one} {column.sign.value} {other})"
        owner = self.links.get(column.table) or self.nodes[ColumnRef(column.table, KEY)]
        text = f"{owner}.{quoted(column.column)}"
        if isinstance(column, Beginning | Day):
            text = text if self.kind(column) == "STRING" else f"toString({text})"
            if isinstance(column, Beginning) and not column.parts:
                return f"left({text}, {column.length})"
            parts = (f"substring({text}, {start - 1}, {length})" for start, length in column.parts)
            return "(" + " + '-' + ".join(parts) + ")"
        return text

    def number(self, term: Term) -> str:
        """A term to compare or to sort by: numbers kept as text become numbers."""
        if term.aggregate is None and self.as_text(term):
            assert term.column is not None
            return f"toFloat({self.value(term.column)})"
        return self.shown(term) if term.aggregate or term.share else self.value(_column(term))

    def shown(self, term: Term) -> str:
        """A term that is asked for; a node where it has no name."""
        if term.share:
            met = " AND ".join(self.any_of(some) for some in term.share)
            return f"avg(CASE WHEN {met} THEN 100.0 ELSE 0.0 END)"
        if term.column is None:
            return "count(*)"
        node = self.nodes.get(term.column)
        if term.aggregate is None:
            stored = ColumnRef(term.column.table, term.column.column) if isinstance(term.column, Day) else term.column
            return node if node and not self.keys else self.value(stored)
        numeric = term.aggregate in (Aggregate.SUM, Aggregate.AVG, Aggregate.MIN, Aggregate.MAX)
        inner = node or (self.number(Term(term.column)) if numeric else self.value(term.column))
        return f"{term.aggregate.value}({'DISTINCT ' if term.distinct else ''}{inner})"


def _is_there(some: tuple[Condition, ...]) -> bool:
    """Whether conditions only say that there is a node."""
    return any(
        one.operator is Operator.NOT_NULL and one.term.column is not None and one.term.column.column in KEYS
        for one in some
    )


def _column(term: Term) -> ColumnRef:
    if term.column is None:
        raise PlanError("a number of rows has no column")
    return term.column

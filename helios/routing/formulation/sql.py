"""A plan as SQL text for SQLite, DuckDB and PostgreSQL: every name quoted, every value a literal."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime

from helios.executors.values import Value
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

LIKE = {Operator.CONTAINS: "%{}%", Operator.NOT_CONTAINS: "%{}%", Operator.STARTS: "{}%", Operator.ENDS: "%{}"}

PERCENTAGE = Aggregate.SHARE.value
"""What the column of a percentage is called."""
STANDARD = ("sqlite", "duckdb", "postgres", "sparql")
"""Dialects that are written here as they are; `sparql` is for tables of an RDF graph."""


def render(plan: Plan, dialect: str = "sqlite") -> str:
    """SQL that answers a plan; `dialect` is sqlglot's name for it."""
    text = _Renderer(dialect).query(in_time_order(plan))
    return text if dialect in STANDARD else translated(text, dialect)


def translated(text: str, dialect: str) -> str:
    """Standard SQL as another server has it: how it quotes names, limits rows, and leaves out capitals."""
    from sqlglot import transpile

    return transpile(text, read="postgres", write=dialect)[0]


def quoted(name: str) -> str:
    """An identifier, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Value) -> str:
    """A value as SQL text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return repr(value)
        case datetime() | date():
            return "'" + value.isoformat() + "'"
    return "'" + str(value).replace("'", "''") + "'"


def stored(column: ColumnRef) -> ColumnRef:
    """A column as it is stored, where its days are written otherwise."""
    return ColumnRef(column.table, column.column) if isinstance(column, Day) else column


class _Renderer:
    def __init__(self, dialect: str, aliases: Mapping[str, str] | None = None) -> None:
        """`aliases` are the names by which tables are called inside a query that has them outside too."""
        self.dialect = dialect
        self.aliases = aliases or {}
        self.like = "LIKE" if dialect == "sqlite" else "ILIKE"

    def query(self, plan: Plan) -> str:
        if plan.combined is not None and plan.combined[0] in (SetOperation.LESS, SetOperation.APART):
            numbers = f"({self.query(plan.with_(combined=None))}) - ({self.query(plan.combined[1])})"
            return f"SELECT {numbers}" if plan.combined[0] is SetOperation.LESS else f"SELECT ABS({numbers})"
        several = bool(plan.joins or self.aliases)
        columns = ", ".join(self.shown(term, several) for term in plan.select)
        parts = [f"SELECT {'DISTINCT ' if plan.distinct else ''}{columns}", f"FROM {self.table(plan.table)}"]
        for join in plan.joins:
            on = f"{self.column(join.left, True)} = {self.column(join.right, True)}"
            parts.append(f"JOIN {quoted(join.right.table)} ON {on}")
        where = [self.any_of(some, several) for some in plan.where]
        if plan.each:
            where.append(self.first_of_each(plan, several))
        if where:
            parts.append("WHERE " + " AND ".join(where))
        if plan.group:
            group = dict.fromkeys(map(stored, (*plan.group, *self.plain(plan))))
            parts.append("GROUP BY " + ", ".join(self.column(column, several) for column in group))
        if plan.having:
            parts.append("HAVING " + " AND ".join(self.condition(c, several) for c in plan.having))
        if plan.combined is not None:
            operation = {SetOperation.UNION: "UNION", SetOperation.INTERSECT: "INTERSECT"}
            parts.append(f"{operation.get(plan.combined[0], 'EXCEPT')} {self.query(plan.combined[1])}")
        if plan.order and not plan.each:
            orders = [self.term(o.term, several) + (" DESC" if o.descending else "") for o in plan.order]
            parts.append("ORDER BY " + ", ".join(orders))
        if plan.limit is not None:
            parts.append(f"LIMIT {plan.limit}")
        return " ".join(parts)

    def plain(self, plan: Plan) -> tuple[ColumnRef, ...]:
        """Columns beside what is grouped, which all engines but SQLite want among the groups."""
        if self.dialect == "sqlite":
            return ()
        return tuple(term.column for term in plan.select if term.column is not None and term.aggregate is None)

    def first_of_each(self, plan: Plan, several: bool) -> str:
        """A row's values are those of the best row with its values of `plan.each`."""
        measure = plan.order[0].term
        best = replace(measure, aggregate=Aggregate.MAX if plan.order[0].descending else Aggregate.MIN)
        select = (*map(Term, plan.each), best)
        found = plan.with_(select=select, group=plan.each, order=(), each=(), distinct=False)
        pair = ", ".join(self.term(term, several) for term in (*select[:-1], measure))
        return f"({pair}) IN ({self.query(found)})"

    def column(self, column: ColumnRef, several: bool) -> str:
        if isinstance(column, Computed):
            one, other = (self.column(part, several) for part in column.parts)
            return self.days(one, other) if column.sign is Sign.DAYS else f"{one} {column.sign} {other}"
        if isinstance(column, Day | Beginning):
            text = f"CAST({self.column(ColumnRef(column.table, column.column), several)} AS TEXT)"
            if isinstance(column, Beginning) and not column.parts:
                return f"SUBSTR({text}, 1, {column.length})"
            parts = (f"SUBSTR({text}, {first}, {length})" for first, length in column.parts)
            return "(" + " || '-' || ".join(parts) + ")"
        table = self.aliases.get(column.table, column.table)
        return f"{quoted(table)}.{quoted(column.column)}" if several else quoted(column.column)

    def days(self, first: str, last: str) -> str:
        """The days from one date to another, however the dialect counts them."""
        match self.dialect:
            case "sqlite":
                return f"(JULIANDAY({last}) - JULIANDAY({first}))"
            case "duckdb":
                return f"DATE_DIFF('day', CAST({first} AS DATE), CAST({last} AS DATE))"
            case "postgres":
                return f"(CAST({last} AS DATE) - CAST({first} AS DATE))"
        raise PlanError(f"how {self.dialect} counts the days between two dates is not known")

    def table(self, name: str) -> str:
        alias = self.aliases.get(name)
        return quoted(name) if alias is None else f"{quoted(name)} AS {quoted(alias)}"

    def shown(self, term: Term, several: bool) -> str:
        """A term that is asked for: days as they are stored, a percentage by that name."""
        if term.share:
            return f"{self.term(term, several)} AS {quoted(PERCENTAGE)}"
        if term.column is None or term.aggregate is not None:
            return self.term(term, several)
        return self.term(replace(term, column=stored(term.column)), several)

    def term(self, term: Term, several: bool) -> str:
        if term.share:
            meets = " AND ".join(self.any_of(some, several) for some in term.share)
            return f"AVG(CASE WHEN {meets} THEN 100.0 ELSE 0.0 END)"
        inner = "*" if term.column is None else self.column(term.column, several)
        if term.aggregate is None:
            return inner
        return f"{term.aggregate.upper()}({'DISTINCT ' if term.distinct else ''}{inner})"

    def of_own(self, plan: Plan, own: ColumnRef) -> str:
        """A plan over those rows that have the outer row's own value of a column."""
        inner = _Renderer(self.dialect, {plan.table: f"own {plan.table}"})
        same = f"{inner.column(own, True)} = {self.column(own, True)}"
        return f"{inner.query(plan)} {'AND' if plan.where else 'WHERE'} {same}"

    def any_of(self, conditions: tuple[Condition, ...], several: bool) -> str:
        text = " OR ".join(self.condition(condition, several) for condition in conditions)
        return f"({text})" if len(conditions) > 1 else text

    def condition(self, condition: Condition, several: bool) -> str:
        left = self.term(condition.term, several)
        operator = condition.operator
        if condition.than is not None:
            return f"{left} {operator.value} {self.column(condition.than, several)}"
        if condition.query is not None and condition.own is not None:
            return f"{self.term(condition.term, True)} {operator.value} ({self.of_own(condition.query, condition.own)})"
        if condition.query is not None:
            return f"{left} {operator.upper()} ({self.query(condition.query)})"
        if operator in LIKE:
            pattern = LIKE[operator].format(condition.values[0])
            negation = "NOT " if operator == Operator.NOT_CONTAINS else ""
            return f"{left} {negation}{self.like} {literal(pattern)}"
        if operator == Operator.BETWEEN:
            return f"{left} BETWEEN {literal(condition.values[0])} AND {literal(condition.values[1])}"
        if operator in (Operator.IN, Operator.NOT_IN):
            return f"{left} {operator.upper()} ({', '.join(map(literal, condition.values))})"
        if operator in (Operator.IS_NULL, Operator.NOT_NULL):
            return f"{self.shown(condition.term, several)} {operator.upper()}"
        return f"{left} {operator.value} {literal(condition.values[0])}"

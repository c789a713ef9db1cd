"""A plan over the tables of an RDF graph as SPARQL: a variable for each table and each column that is read.

A row of a table is a resource of its class; a column that is read must be there, as in a join. Exclusions become
FILTER NOT EXISTS over the same value, comparisons with another plan's value a subquery. Numbers kept as text are cast.
"""

import re
from itertools import count

from helios.executors.sparql.terms import XSD, iri_text, quoted, term_text
from helios.executors.values import Value
from helios.routing.formulation.plan import (
    ROWS,
    Aggregate,
    Beginning,
    ColumnRef,
    Computed,
    Condition,
    Day,
    Join,
    Operator,
    Plan,
    PlanError,
    SetOperation,
    Sign,
    Term,
    in_time_order,
)
from helios.routing.formulation.rdf_tables import RdfTables
from helios.routing.formulation.sql import PERCENTAGE

DATES = frozenset(XSD + name for name in ("date", "dateTime", "gYear", "gYearMonth", "time"))
NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")
TEXT = {
    Operator.CONTAINS: "CONTAINS({}, {})", Operator.NOT_CONTAINS: "!CONTAINS({}, {})",
    Operator.STARTS: "STRSTARTS({}, {})", Operator.ENDS: "STRENDS({}, {})",
}  # fmt: skip


def render_sparql(plan: Plan, tables: RdfTables) -> str:
    """SPARQL that answers a plan; PlanError for the first of each, which is not written for RDF."""
    if plan.each:
        raise PlanError("the first of each is not written in SPARQL")
    if plan.combined is not None and plan.combined[0] in (SetOperation.LESS, SetOperation.APART):
        return _difference(plan, plan.combined[1], tables)
    return _Scope(tables, count()).select(in_time_order(plan))


def _difference(first: Plan, second: Plan, tables: RdfTables) -> str:
    """What two plans of one number each differ by."""
    assert first.combined is not None
    numbers = count()
    one, other = (_Scope(tables, numbers, mark) for mark in ("_1", "_2"))
    found = f"{{ {one.only(first, '?first')} }} {{ {other.only(second, '?second')} }}"
    by = "?first - ?second"
    by = f"ABS({by})" if first.combined[0] is SetOperation.APART else by
    return f"SELECT ({by} AS ?difference) WHERE {{ {found} }}"


class _Scope:
    """One SELECT or one group under NOT EXISTS: its variables, and the triples and filters written so far."""

    def __init__(self, tables: RdfTables, numbers: "count[int]", mark: str = "") -> None:
        self.tables = tables
        self.numbers = numbers
        self.mark = mark
        """What the variables of this scope end in, so that they are not those around it."""
        self.variables: dict[ColumnRef, str] = {}
        self.facts: dict[str, dict[str, None]] = {}
        """What is said of each variable: a predicate and its object."""
        self.filters: list[str] = []

    def select(self, plan: Plan) -> str:
        self.match(plan)
        terms = [self._selected(term) for term in plan.select]
        having = [self._comparison(self.expression(c.term), c) for c in plan.having]
        orders = [f"{'DESC' if o.descending else 'ASC'}({self.number(o.term)})" for o in plan.order]
        group = [self.variable(column) for column in plan.group]
        if any(t.aggregate for t in (*plan.select, *(c.term for c in plan.having), *(o.term for o in plan.order))):
            plain = [t.column for t in (*plan.select, *(o.term for o in plan.order)) if t.aggregate is None]
            group += [self.variable(column) for column in plain if column is not None]
        body = self.body()
        if plan.combined is not None:
            body = self._combined(plan, f"{{ SELECT {' '.join(terms)} WHERE {{ {body} }} }}")
            terms, group = [self.variable(t.column) for t in plan.select if t.column is not None], []
        distinct = "DISTINCT " if plan.distinct or plan.combined is not None else ""
        parts = [f"SELECT {distinct}{' '.join(terms)} WHERE {{ {body} }}"]
        parts += ["GROUP BY " + " ".join(dict.fromkeys(group))] * bool(group)
        parts += ["HAVING(" + " && ".join(having) + ")"] * bool(having)
        parts += ["ORDER BY " + " ".join(orders)] * bool(orders)
        parts += [f"LIMIT {plan.limit}"] * (plan.limit is not None)
        return " ".join(parts)

    def only(self, plan: Plan, name: str) -> str:
        """A plan's only number by the name of a variable."""
        number = self.number(plan.select[0])
        self.match(plan)
        orders = [f"{'DESC' if o.descending else 'ASC'}({self.number(o.term)})" for o in plan.order]
        parts = [f"SELECT ({number} AS {name}) WHERE {{ {self.body()} }}"]
        parts += ["ORDER BY " + " ".join(orders)] * bool(orders)
        return " ".join([*parts, *([f"LIMIT {plan.limit}"] * (plan.limit is not None))])

    def match(self, plan: Plan) -> None:
        """The triples of a plan's tables and joins, and its conditions."""
        for table in plan.tables:
            path = "a" if self.tables.types[0].endswith("#type") else iri_text(self.tables.types[0])
            self.fact(self.resource(table), f"{path} {iri_text(self.tables.classes[table])}")
        for join in plan.joins:
            self._join(join)
        for some in plan.where:
            tests = [self.condition(condition) for condition in some]
            self.filters += [f"FILTER({' || '.join(tests)})"] if all(tests) else []

    def body(self) -> str:
        triples = [f"{subject} {' ; '.join(facts)} ." for subject, facts in self.facts.items()]
        return " ".join([*triples, *self.filters])

    def fact(self, subject: str, fact: str) -> None:
        self.facts.setdefault(subject, {})[fact] = None

    def variable(self, column: ColumnRef) -> str:
        """The variable of a column's value; the triple that binds it is written with it."""
        if column not in self.variables:
            name = _name(column.table, column.column, self.mark)
            self.bind(column, name if name not in self.variables.values() else f"{name}_{next(self.numbers)}")
            if computed := self._computed(column):
                self.filters.append(f"BIND({computed} AS {self.variables[column]})")
        return self.variables[column]

    def _computed(self, column: ColumnRef) -> str:
        """What a value is made of that no triple holds; empty for others."""
        whole = ColumnRef(column.table, column.column)
        if isinstance(column, Day | Beginning) and column.parts:
            parts = (f"SUBSTR(STR({self.variable(whole)}), {first}, {length})" for first, length in column.parts)
            return "CONCAT(" + ", '-', ".join(parts) + ")"
        if isinstance(column, Beginning):
            return f"SUBSTR(STR({self.variable(whole)}), 1, {column.length})"
        if isinstance(column, Computed):
            if column.sign is Sign.DAYS:
                first, last = map(self._day_number, column.parts)
                return f"<{XSD}integer>({last} - {first})"
            one, other = map(self._cast, column.parts)
            return f"({one} {column.sign} {other})"
        return ""

    def _day_number(self, column: ColumnRef) -> str:
        """The variable of a date's number among all days: SPARQL has no days between dates, so they are counted here,
        by the Gregorian calendar in years that begin in March."""
        text, number = f"STR({self.variable(column)})", next(self.numbers)
        year, month, days = f"?year{number}", f"?month{number}", f"?days{number}"
        said = [f"<{XSD}integer>(SUBSTR({text}, {first}, {length}))" for first, length in ((1, 4), (6, 2), (9, 2))]
        self.filters += [
            f"BIND({said[0]} - IF({said[1]} < 3, 1, 0) AS {year})",
            f"BIND(IF({said[1]} < 3, {said[1]} + 9, {said[1]} - 3) AS {month})",
            f"BIND(365 * {year} + FLOOR({year} / 4) - FLOOR({year} / 100) + FLOOR({year} / 400)"
            f" + FLOOR((153 * {month} + 2) / 5) + {said[2]} AS {days})",
        ]
        return days

    def bind(self, column: ColumnRef, variable: str) -> None:
        """Have a variable stand for a column's value, in place of one of its own."""
        self.variables[column] = variable
        predicate = self.tables.columns.get(column)
        if predicate is not None:
            self.fact(self.resource(column.table), f"{iri_text(predicate.iri)} {variable}")

    def resource(self, table: str) -> str:
        return self.variable(ColumnRef(table, ""))

    def expression(self, term: Term) -> str:
        if term.share:
            return f"AVG({self._met(term.share)})"
        inner = "*" if term.column is None else self.variable(term.column)
        if term.aggregate is None:
            return inner
        if term.column is not None and term.aggregate in (Aggregate.SUM, Aggregate.AVG, Aggregate.MIN, Aggregate.MAX):
            inner = self._cast(term.column)
        return f"{term.aggregate.upper()}({'DISTINCT ' if term.distinct else ''}{inner})"

    def _met(self, share: tuple[tuple[Condition, ...], ...]) -> str:
        """The variable that is 100 for rows that meet the conditions and 0 for others, those without the value too."""
        tables = {one.term.column.table for some in share for one in some if one.term.column is not None}
        if len(tables) != 1:
            raise PlanError("percentages by conditions on several tables are not written in SPARQL")
        (table,) = tables
        inner, met = _Scope(self.tables, self.numbers, f"_{next(self.numbers)}"), f"?met{next(self.numbers)}"
        inner.bind(ColumnRef(table, ""), self.resource(table))
        inner.match(Plan(table, (ROWS,), where=share))
        self.filters.append(f"BIND(IF(EXISTS {{ {inner.body()} }}, 100.0, 0.0) AS {met})")
        return met

    def number(self, term: Term) -> str:
        """A term to sort by."""
        return self._cast(term.column) if term.aggregate is None and term.column else self.expression(term)

    def condition(self, condition: Condition) -> str:
        """A test; empty where the triples say it."""
        column = condition.term.column
        assert column is not None
        if condition.operator is Operator.IN and condition.query is not None and condition.query.having:
            self._counted(condition.query, self.variable(column))
            return ""
        if condition.operator in (Operator.IN, Operator.NOT_IN) and condition.query is not None:
            negation = "NOT " if condition.operator is Operator.NOT_IN else ""
            return f"{negation}EXISTS {{ {self._matching(condition.query, self.variable(column))} }}"
        if condition.operator is Operator.IS_NULL:
            predicate = iri_text(self.tables.columns[column].iri)
            return f"NOT EXISTS {{ {self.resource(column.table)} {predicate} ?none{next(self.numbers)} }}"
        if condition.operator is Operator.NOT_NULL:
            self.variable(column)
            return ""
        return self._comparison(self.variable(column), condition)

    def _comparison(self, left: str, condition: Condition) -> str:
        operator, column = condition.operator, condition.term.column
        if condition.own is not None:
            raise PlanError("rows of a row's own kind are not compared in SPARQL")
        if condition.than is not None:
            return f"{self._cast(column) if column else left} {operator.value} {self._cast(condition.than)}"
        if condition.query is not None:
            return f"{self._cast(column) if column else left} {operator.value} {self._value_of(condition.query)}"
        if operator in TEXT:
            return TEXT[operator].format(f"LCASE(STR({left}))", quoted(str(condition.values[0]).lower()))
        if operator is Operator.BETWEEN:
            low, high = (self._sided(left, condition, value) for value in condition.values)
            return f"({low[0]} >= {low[1]} && {high[0]} <= {high[1]})"
        if operator in (Operator.IN, Operator.NOT_IN):
            values = ", ".join(self._sided(left, condition, value)[1] for value in condition.values)
            return f"{left} {'IN' if operator is Operator.IN else 'NOT IN'} ({values})"
        sides = self._sided(left, condition, condition.values[0])
        return f"{sides[0]} {operator.value} {sides[1]}"

    def _sided(self, left: str, condition: Condition, value: Value) -> tuple[str, str]:
        """Both sides of a comparison, so that values of the column's type and of the question's can be compared."""
        column = condition.term.column
        if column is None or condition.term.aggregate is not None:
            return left, _constant(value)
        datatypes = set(self.tables.columns[column].datatypes) if column in self.tables.columns else set()
        if isinstance(value, int | float) and not isinstance(value, bool):
            if datatypes & DATES:
                return f"<{XSD}integer>(SUBSTR(STR({left}), 1, 4))", _constant(value)
            return self._cast(column), _constant(value)
        text = isinstance(value, str) and not datatypes <= {f"{XSD}string"}
        return (f"STR({left})" if text else left), _constant(value)

    def _cast(self, column: ColumnRef) -> str:
        """A column as something that sorts: numbers kept as text become numbers."""
        datatypes = self.tables.columns[column].datatypes if column in self.tables.columns else ()
        variable = self.variable(column)
        samples = self._samples(column)
        kept_as_text = set(datatypes) == {f"{XSD}string"} and samples and all(map(NUMBERS.fullmatch, samples))
        return f"<{XSD}double>({variable})" if kept_as_text else variable

    def _samples(self, column: ColumnRef) -> tuple[str, ...]:
        for table in self.tables.schema.tables:
            if table.name == column.table:
                return next((c.samples for c in table.columns if c.name == column.column), ())
        return ()

    def _selected(self, term: Term) -> str:
        if term.aggregate is None and term.column is not None:
            return self.variable(term.column)
        name = PERCENTAGE if term.share else f"{term.aggregate}{next(self.numbers)}"
        return f"({self.expression(term)} AS ?{name})"

    def _join(self, join: Join) -> None:
        forward = self.tables.links.get((join.left, join.right))
        backward = self.tables.links.get((join.right, join.left))
        left, right = self.resource(join.left.table), self.resource(join.right.table)
        if forward is not None:
            self.fact(left, f"{iri_text(forward)} {right}")
        elif backward is not None:
            self.fact(right, f"{iri_text(backward)} {left}")
        else:
            self.bind(join.right, self.variable(join.left))

    def _matching(self, plan: Plan, value: str) -> str:
        """The pattern of another plan whose selected column has the value of a variable around it."""
        inner = _Scope(self.tables, self.numbers, f"_{next(self.numbers)}")
        column = plan.select[0].column
        assert column is not None
        inner.bind(column, value)
        inner.match(plan)
        return inner.body()

    def _counted(self, plan: Plan, value: str) -> None:
        """A subquery whose groups give the values of a variable around it."""
        inner = _Scope(self.tables, self.numbers, f"_{next(self.numbers)}")
        column = plan.select[0].column
        assert column is not None
        inner.bind(column, value)
        self.filters.append(f"{{ {inner.select(plan)} }}")

    def _value_of(self, plan: Plan) -> str:
        """The variable of a subquery's only value."""
        inner = _Scope(self.tables, self.numbers, f"_{next(self.numbers)}")
        inner.match(plan)
        variable = f"?value{next(self.numbers)}"
        expression = inner.expression(plan.select[0])
        self.filters.append(f"{{ SELECT ({expression} AS {variable}) WHERE {{ {inner.body()} }} }}")
        return variable

    def _combined(self, plan: Plan, first: str) -> str:
        assert plan.combined is not None
        operation, other = plan.combined
        second = f"{{ {_Scope(self.tables, self.numbers, self.mark).select(other)} }}"
        between = {SetOperation.UNION: " UNION ", SetOperation.EXCEPT: " MINUS "}.get(operation, " ")
        return f"{first}{between}{second}"


def _name(table: str, column: str, mark: str) -> str:
    return "?" + "_".join(filter(None, map(_word, (table, column)))) + mark


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")


def _constant(value: Value) -> str:
    match value:
        case bool():
            return term_text(value)
        case int() | float():
            return repr(value)
    return term_text(value)

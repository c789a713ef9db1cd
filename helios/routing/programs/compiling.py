"""A program over tables in memory as a plan, for SQL to say what the program computes.

"which job kept people longest?"  "job" of the largest "hrs_out"  SELECT job FROM callout ORDER BY hrs_out DESC LIMIT 1

What selects rows is said by the stored values that it selects. Not every program can be said: Inexpressible.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from helios.executors.values import Value
from helios.reading.tables.keys import Reference
from helios.reading.tables.matching import COMPARING, Match
from helios.reading.tables.programs import Op, Program, selected
from helios.reading.tables.sheet import Kind
from helios.routing.formulation.plan import (
    ROWS,
    Aggregate,
    ColumnRef,
    Computed,
    Condition,
    Join,
    Operator,
    Order,
    Plan,
    PlanError,
    SetOperation,
    Sign,
    Term,
)
from helios.routing.programs.stored import StoredTables

MOST_VALUES = 12
"""Values that a condition lists."""
_THRESHOLD = re.compile(r"([<>]=?) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$")
Alternatives = tuple[Condition, ...]


class Inexpressible(ValueError):
    """What a program selects or computes has no words in a plan."""


def plan_of(program: Program, stored: StoredTables, references: Sequence[Reference]) -> Plan:
    """The plan of a program; `references` are those of its table. Inexpressible where there is none."""
    if program.sheet.source is not None or program.sheet.lies or program.compares:
        raise Inexpressible("its rows are put together from several tables")
    try:
        return _Compiler(program, stored, references).plan()
    except PlanError as error:
        raise Inexpressible(str(error)) from error


class _Compiler:
    """One program; tables are joined as its columns need them."""

    def __init__(self, program: Program, stored: StoredTables, references: Sequence[Reference]) -> None:
        self.program, self.sheet, self.stored = program, program.sheet, stored
        self.table = program.sheet.table.table_id
        self.keys = {one.column: one for one in references}
        self.joins: dict[str, Join] = {}

    def plan(self) -> Plan:
        """The whole of it."""
        program, matches = self.program, self.program.matches
        if program.op is Op.DIFFERENCE:
            return self.difference()
        where = self.where(matches)
        match program.op:
            case Op.COUNT:
                return self.made((ROWS,), where)
            case Op.DISTINCT:
                return self.made((Term(self.column(program.column), Aggregate.COUNT, distinct=True),), where)
            case Op.SUM | Op.AVERAGE:
                how = Aggregate.SUM if program.op is Op.SUM else Aggregate.AVG
                return self.made((Term(self.column(program.column), how),), where)
            case Op.LOOKUP:
                return self.listed(where)
            case Op.EXTREME:
                return self.first(where)
            case Op.MODE | Op.TOP_SUM:
                return self.grouped(where)
        raise Inexpressible(f"{program.op} has no plan")

    def made(self, select: Sequence[Term], where: Sequence[Alternatives], **more: object) -> Plan:
        """A plan with the joins that its columns needed."""
        return Plan(self.table, tuple(select), tuple(self.joins.values()), tuple(where)).with_(**more)

    def listed(self, where: list[Alternatives]) -> Plan:
        """The values of a column; each once, where several rows have it, and none where there is none."""
        values = self.values(self.program.column)[selected(self.sheet, self.program.matches)]
        terms = self.shown()
        if any(value is None for value in values.tolist()):
            where = [*where, *((Condition(term, Operator.NOT_NULL),) for term in terms)]
        return self.made(terms, where, distinct=len(set(values.tolist())) < len(values))

    def first(self, where: list[Alternatives]) -> Plan:
        """What comes first by another column: all that are level with it."""
        program = self.program
        order, place = Term(self.column(program.order)), program.place
        values = self.values(program.order)[selected(self.sheet, program.matches)]
        if place > 1:
            raise Inexpressible("the second in an order")
        if any(value is None for value in values.tolist()):
            where = [*where, (Condition(order, Operator.NOT_NULL),)]
        said = [value for value in values.tolist() if value is not None]
        best = max(said) if program.descending else min(said)
        if place == 1 and said.count(best) > 1:
            of_best = Term(order.column, Aggregate.MAX if program.descending else Aggregate.MIN)
            top = Condition(order, Operator.EQ, query=self.made((of_best,), where))
            return self.made(self.shown(), [*where, (top,)])
        return self.made(self.shown(), where, order=(Order(order, program.descending),), limit=max(1, -place))

    def grouped(self, where: list[Alternatives]) -> Plan:
        """The value that most rows have, or whose rows add up to most."""
        program, column = self.program, self.column(self.program.column)
        if program.place != 1:
            raise Inexpressible("the second in an order")
        many = ROWS if program.op is Op.MODE else Term(self.column(program.order), Aggregate.SUM)
        where = [*where, (Condition(Term(column), Operator.NOT_NULL),)] if self.has_null(program.column) else where
        order = (Order(many, program.descending),)
        return self.made((Term(column),), where, group=(column,), order=order, limit=1)

    def difference(self) -> Plan:
        """How far apart two rows are in a column, or two columns in a row, or the ends of a column."""
        program, matches = self.program, self.program.matches
        column = ROWS if program.column < 0 else Term(self.column(program.column))
        if program.order >= 0 and program.order != program.column:
            return self.between_columns()
        if program.order < 0 and len(matches) > 1:
            first, second = (self.where([*matches[:-2], one]) for one in matches[-2:])
            if column is not ROWS and min(np.count_nonzero(one.rows) for one in matches[-2:]) > 1:
                column = Term(column.column, Aggregate.SUM)
            halves = [self.made((column,), where) for where in (first, second)]
        else:
            if column is ROWS:
                raise Inexpressible("a difference of one number of rows")
            where = self.where(matches)
            halves = [self.made((Term(column.column, how),), where) for how in (Aggregate.MAX, Aggregate.MIN)]
        return halves[0].with_(combined=(SetOperation.APART, halves[1]))

    def between_columns(self) -> Plan:
        """How much more a column of a row has than another one; the larger one first, the later day last."""
        program = self.program
        ends = [self.column(program.column), self.column(program.order)]
        rows = np.flatnonzero(selected(self.sheet, program.matches))
        is_date = self.sheet.columns[program.column].kind is Kind.DATE
        values = [self.sheet.columns[at].values[rows[:1]].sum() for at in (program.column, program.order)]
        if ends[0].table != ends[1].table:
            raise Inexpressible("columns of two tables")
        if (values[0] < values[1]) != is_date:
            ends.reverse()
        made = Computed(ends[0].table, ends[0].column, Sign.DAYS if is_date else Sign.MINUS, ends[1].column)
        return self.made((Term(made),), self.where(program.matches))

    def shown(self) -> list[Term]:
        """What is asked for: of a whole name both columns."""
        return [Term(column) for column in self.columns(self.program.column)]

    def columns(self, at: int) -> list[ColumnRef]:
        """Where a column of the sheet is stored; a whole name in two."""
        if self.sheet.names and at == self.sheet.own - 1:
            return [self.column(one) for one in self.sheet.names]
        return [self.column(at)]

    def column(self, at: int) -> ColumnRef:
        """Where a column of the sheet is stored; its table is joined."""
        if at < len(self.stored.columns[self.table]):
            return _ref(self.stored, self.table, at)
        if at < self.sheet.own:
            raise Inexpressible("a whole name, which stands in two columns")
        joined = self.sheet.joined[at - self.sheet.own]
        reference = self.keys.get(joined.by)
        if joined.is_month or reference is None or reference.referred != joined.sheet.table.table_id:
            raise Inexpressible("a column that was put together")
        join = Join(_ref(self.stored, self.table, joined.by), _ref(self.stored, reference.referred, reference.key))
        if reference.referred == self.table or self.joins.setdefault(reference.referred, join) != join:
            raise Inexpressible("a table that is joined twice")
        if joined.column >= len(self.stored.columns[reference.referred]):
            raise Inexpressible("a whole name of another table")
        return _ref(self.stored, reference.referred, joined.column)

    def values(self, at: int) -> NDArray[np.object_]:
        """What is stored in a column of the sheet, by its rows (R)."""
        if self.sheet.names and at == self.sheet.own - 1:
            at = self.sheet.names[0]
        rows = self.stored.rows[self.table]
        found = np.empty(self.sheet.size, object)
        if at < self.sheet.own:
            found[:] = [row[at] for row in rows]
            return found
        joined = self.sheet.joined[at - self.sheet.own]
        others = self.stored.rows[joined.sheet.table.table_id]
        found[:] = [others[row][joined.column] if row >= 0 else None for row in joined.rows.tolist()]
        return found

    def has_null(self, at: int) -> bool:
        """Whether a column has rows without a value."""
        return any(value is None for value in self.values(at).tolist())

    def where(self, matches: Sequence[Match]) -> list[Alternatives]:
        """What rows have to meet."""
        return [alternatives for match in matches for alternatives in self.conditions(match)]

    def conditions(self, match: Match) -> list[Alternatives]:
        """The rows of a match by what is stored in its column; both columns of a whole name."""
        if match.column < 0:
            raise Inexpressible("a row that was found by other words")
        if self.sheet.names and match.column == self.sheet.own - 1:
            return [self.condition(self.column(at), self.values(at), match) for at in self.sheet.names]
        return [self.condition(self.column(match.column), self.values(match.column), match)]

    def condition(self, column: ColumnRef, values: NDArray[np.object_], match: Match) -> Alternatives:
        """One condition, or a value or none at all."""
        inside, outside = ({*values[rows].tolist()} for rows in (match.rows, ~match.rows))
        if inside & outside or not inside:
            raise Inexpressible(f"{match.text}: other columns say which rows are meant")
        term, told = Term(column), [value for value in inside if value is not None]
        empty = (Condition(term, Operator.IS_NULL),) if None in inside else ()
        if not told:
            return empty
        if match.operator in COMPARING and not empty and (found := _bounds(term, told, outside, match)) is not None:
            return (found,)
        if len(told) <= MOST_VALUES:
            return (_one_of(term, told, Operator.EQ, Operator.IN), *empty)
        others = [value for value in outside if value is not None]
        if not others and not empty:
            return (Condition(term, Operator.NOT_NULL),)
        if others and len(others) <= MOST_VALUES and not empty:
            return (_one_of(term, others, Operator.NE, Operator.NOT_IN),)
        if not empty and (found := _bounds(term, told, outside, match)) is not None:
            return (found,)
        raise Inexpressible(f"{match.text}: too many values")


def _ref(stored: StoredTables, table: str, at: int) -> ColumnRef:
    return ColumnRef(table, stored.columns[table][at])


def _one_of(term: Term, values: Sequence[Value], one: Operator, several: Operator) -> Condition:
    if len(values) == 1:
        return Condition(term, one, (values[0],))
    return Condition(term, several, tuple(sorted(values, key=repr)))


def _bounds(term: Term, told: Sequence[Value], outside: set[Value], match: Match) -> Condition | None:
    """A comparison that holds for the values and for no other: with the number that the question says, or with the
    first and the last of them. None where values cannot be compared, or do not stand side by side."""
    others = [value for value in outside if value is not None]
    if not _comparable([*told, *others]):
        return None
    said = _THRESHOLD.search(match.text)
    if said is not None and isinstance(told[0], int | float):
        operator, number = Operator(said[1]), float(said[2])
        holds = _HOLDS[operator]
        if all(holds(value, number) for value in told) and not any(holds(value, number) for value in others):
            return Condition(term, operator, (int(number) if number.is_integer() else number,))
    low, high = min(told), max(told)  # type: ignore[type-var]
    if any(low <= value <= high for value in others):  # type: ignore[operator]
        return None
    if not others or high > max(others):  # type: ignore[type-var,operator]
        return Condition(term, Operator.GE, (low,))
    if low < min(others):  # type: ignore[type-var,operator]
        return Condition(term, Operator.LE, (high,))
    return Condition(term, Operator.BETWEEN, (low, high))


_HOLDS: dict[Operator, Callable[[Value, float], bool]] = {
    Operator.LT: lambda value, number: value < number,  # type: ignore[operator]
    Operator.LE: lambda value, number: value <= number,  # type: ignore[operator]
    Operator.GT: lambda value, number: value > number,  # type: ignore[operator]
    Operator.GE: lambda value, number: value >= number,  # type: ignore[operator]
}


def _comparable(values: Sequence[Value]) -> bool:
    """Whether all are numbers, or all of another one type that has an order."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return True
    kinds = {type(value) for value in values}
    return len(kinds) == 1 and all(hasattr(kind, "__lt__") for kind in kinds)

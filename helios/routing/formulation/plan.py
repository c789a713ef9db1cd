"""What a question asks of tables or of a property graph, before it is written in SQL or Cypher.

A plan names a root table (or node label), the tables joined to it, and what is done with the joined rows:

    where → group → having → select (distinct) → order → limit,   then perhaps a set operation with another plan

Every table occurs once: a `ColumnRef` names it by its table. Conditions are a conjunction of alternatives.
What cannot be written as a query cannot be constructed: PlanError.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Union

from helios.executors.values import Value


class PlanError(ValueError):
    """A part of a plan that no query can say, such as BETWEEN with one value."""


class Aggregate(StrEnum):
    """What is computed over a group, or over all rows."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    SHARE = "percentage"
    """How many in a hundred rows meet the conditions of the term."""


class Operator(StrEnum):
    """How a value compares; `query` conditions use IN, NOT_IN or a comparison with the query's only value."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    BETWEEN = "between"
    CONTAINS = "contains"
    STARTS = "starts"
    ENDS = "ends"
    NOT_CONTAINS = "not contains"
    IS_NULL = "is null"
    NOT_NULL = "is not null"
    IN = "in"
    NOT_IN = "not in"


COMPARISONS = (Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE)
MEMBERSHIPS = (Operator.IN, Operator.NOT_IN)
NULL_TESTS = (Operator.IS_NULL, Operator.NOT_NULL)


class SetOperation(StrEnum):
    """How the rows of two plans combine."""

    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"
    LESS = "less"
    """Of two plans of one number each: the first without the second."""
    APART = "apart from"
    """How far apart the two numbers are."""


@dataclass(frozen=True, slots=True, order=True)
class ColumnRef:
    """A column of a table, or a property of a node label or of a relationship type."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


class Sign(StrEnum):
    """What two columns of a row make."""

    TIMES = "*"
    PLUS = "+"
    MINUS = "-"
    DAYS = "days to"
    """How many days there are from one date to the other."""


@dataclass(frozen=True, slots=True, order=True)
class Computed(ColumnRef):
    """A column and another one of its rows: a price times how many, the days from one date to another."""

    sign: Sign
    other: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column} {self.sign} {self.table}.{self.other}"

    @property
    def parts(self) -> tuple[ColumnRef, ColumnRef]:
        """Both as they are stored."""
        return ColumnRef(self.table, self.column), ColumnRef(self.table, self.other)


@dataclass(frozen=True, slots=True, order=True)
class Beginning(ColumnRef):
    """The first characters of a column: the year or the month of a date."""

    length: int
    places: tuple[tuple[int, int], ...] = ()
    """Those of a `Day`."""

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """Where what is kept of the date stands: the year alone, or the month too."""
        return self.places[: 1 if self.length == len("2024") else 2]

    def __str__(self) -> str:
        return f"{self.table}.{self.column}[:{self.length}]"


@dataclass(frozen=True, slots=True, order=True)
class Day(ColumnRef):
    """A column whose dates do not begin with the year, as days that do: 11/05/2024 is 2024-05-11."""

    places: tuple[tuple[int, int], ...]
    """The first character of the year, the month and the day in what is stored, from 1, and how many there are."""

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """All of them."""
        return self.places


@dataclass(frozen=True, slots=True)
class Term:
    """A column, an aggregate over one, a count of rows or a percentage of them (`column` None)."""

    column: ColumnRef | None
    aggregate: Aggregate | None = None
    distinct: bool = False
    share: tuple[tuple["Condition", ...], ...] = ()
    """What rows are to meet that a percentage is of."""

    def __post_init__(self) -> None:
        if (self.aggregate is Aggregate.SHARE) != bool(self.share) or (self.share and self.column is not None):
            raise PlanError("a percentage is of rows that meet conditions")
        if self.column is None and not self.share and (self.aggregate is not Aggregate.COUNT or self.distinct):
            raise PlanError("without a column there is only the number of rows")

    def __str__(self) -> str:
        inner = "*" if self.column is None else str(self.column)
        if self.share:
            return f"percentage of rows with {' and '.join(' or '.join(map(str, some)) for some in self.share)}"
        if self.aggregate is None:
            return inner
        return f"{self.aggregate}({'distinct ' if self.distinct else ''}{inner})"


ROWS = Term(None, Aggregate.COUNT)
"""The number of rows."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a term with another plan's rows, with another column of the row, or with values.

    BETWEEN takes two values, the null tests none, IN and NOT IN one or more, all others one; another plan's rows go
    with IN, NOT IN and the six comparisons, a column with the six. PlanError for anything else.
    """

    term: Term
    operator: Operator
    values: tuple[Value, ...] = ()
    query: Union["Plan", None] = None
    own: ColumnRef | None = None
    """Of the other plan's only table those rows that have the row's own value of this: the average of its own kind."""
    than: ColumnRef | None = None
    """The other column."""

    def __post_init__(self) -> None:
        if self.own is not None and (self.query is None or self.query.joins or self.own.table != self.query.table):
            raise PlanError("rows of its own kind are those of one table")
        if self.than is not None:
            if self.values or self.query is not None or self.operator not in COMPARISONS:
                raise PlanError(f"{self.operator} does not compare two columns")
        elif self.query is not None:
            if self.values or self.operator not in (*COMPARISONS, *MEMBERSHIPS):
                raise PlanError(f"{self.operator} does not compare with rows and {len(self.values)} values")
        elif self.operator in MEMBERSHIPS:
            if not self.values:
                raise PlanError(f"{self.operator} needs a value")
        else:
            expected = 2 if self.operator is Operator.BETWEEN else 0 if self.operator in NULL_TESTS else 1
            if len(self.values) != expected:
                raise PlanError(f"{self.operator} compares with {expected} values, got {len(self.values)}")

    def __str__(self) -> str:
        right = f"({self.query})" if self.query is not None else " and ".join(map(repr, self.values))
        right = f"{right} of its own {self.own}" if self.own is not None else str(self.than) if self.than else right
        return f"{self.term} {self.operator} {right}".rstrip()


@dataclass(frozen=True, slots=True)
class Join:
    """`left` = `right`: `left` stands in a table that is already joined, `right` in the table that comes in.

    In a property graph the key columns are empty strings and `relationship` is the type that connects the labels,
    drawn from left to right where `forward`.
    """

    left: ColumnRef
    right: ColumnRef
    relationship: str = ""
    forward: bool = True


@dataclass(frozen=True, slots=True)
class Order:
    """What the rows are sorted by."""

    term: Term
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A question's logical form; see the module."""

    table: str
    select: tuple[Term, ...]
    joins: tuple[Join, ...] = ()
    where: tuple[tuple[Condition, ...], ...] = ()
    """All of these hold; of each, one of the alternatives."""
    group: tuple[ColumnRef, ...] = ()
    having: tuple[Condition, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    distinct: bool = False
    combined: tuple[SetOperation, "Plan"] | None = None
    each: tuple[ColumnRef, ...] = ()
    """Of each different value of these only the rows that come first in the order: the best of each."""

    def __post_init__(self) -> None:
        if not self.select or not all(self.where):
            raise PlanError("a plan selects something, and its conditions have alternatives")
        if self.each and (len(self.order) != 1 or self.order[0].term.aggregate is not None or self.limit is not None):
            raise PlanError("the best of each goes by one column, without a limit")
        if self.limit is not None and self.limit < 0:
            raise PlanError(f"a limit of {self.limit} rows")

    @property
    def tables(self) -> tuple[str, ...]:
        """The root and the joined tables, in order."""
        return (self.table, *(join.right.table for join in self.joins))

    def with_(self, **changes: object) -> "Plan":
        """A plan with other parts."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        parts = [f"{', '.join(map(str, self.select))} from {' ⋈ '.join(self.tables)}"]
        if self.distinct:
            parts[0] = "distinct " + parts[0]
        if self.where:
            parts.append("where " + " and ".join(" or ".join(map(str, any_of)) for any_of in self.where))
        if self.group:
            parts.append("by " + ", ".join(map(str, self.group)))
        if self.having:
            parts.append("having " + " and ".join(map(str, self.having)))
        if self.order:
            parts.append("order " + ", ".join(f"{o.term}{' desc' if o.descending else ''}" for o in self.order))
        if self.each:
            parts.append("first of each " + ", ".join(map(str, self.each)))
        if self.limit is not None:
            parts.append(f"limit {self.limit}")
        if self.combined is not None:
            parts.append(f"{self.combined[0]} ({self.combined[1]})")
        return " ".join(parts)


def in_time_order(plan: Plan) -> Plan:
    """A plan whose groups are months or years with these one after the other, unless it has an order of its own."""
    spans = [column for column in plan.group if isinstance(column, Beginning)]
    if not spans or plan.order or plan.combined is not None or plan.each:
        return plan
    return plan.with_(order=tuple(Order(Term(column)) for column in spans))

"""A plan as it is meant of files: what people say of dates, gaps and rows, which a database's query says otherwise."""

import re
from collections.abc import Callable

from helios.routing.formulation.plan import Aggregate, ColumnRef, Condition, Operator, Order, Plan, Term

YEAR = re.compile(r"[12]\d{3}")
Is = Callable[[ColumnRef], bool]


def fitted(plan: Plan, *, is_date: Is, is_key: Is) -> Plan:
    """The plan with whole years compared with dates as people mean it, the least of what is there, and no group a row.

    `is_date` tells columns of dates, `is_key` those that have each value once.
    """
    where = [tuple(_dated(condition, is_date, is_key) for condition in some) for some in plan.where]
    if plan.limit is not None:
        where += [(Condition(term, Operator.NOT_NULL),) for order in plan.order if (term := _least(order)) is not None]
    changed = plan.with_(where=tuple(where))
    if plan.combined is not None:
        operation, other = plan.combined
        changed = changed.with_(combined=(operation, fitted(other, is_date=is_date, is_key=is_key)))
    return _whole(changed, is_key)


def adds_up(plan: Plan, is_amount: Is) -> bool:
    """Whether what a plan adds or averages are amounts: no words, keys or years."""
    terms = [*plan.select, *(order.term for order in plan.order), *(condition.term for condition in plan.having)]
    added = [term for term in terms if term.aggregate in (Aggregate.SUM, Aggregate.AVG)]
    others = () if plan.combined is None else (plan.combined[1],)
    sensible = all(term.column is None or is_amount(term.column) for term in added)
    return sensible and all(adds_up(other, is_amount) for other in others)


def _dated(condition: Condition, is_date: Is, is_key: Is) -> Condition:
    """ "After 2019" is after the last day of that year, and "in 2019" any of its days."""
    term = condition.term
    if condition.query is not None:
        inner = fitted(condition.query, is_date=is_date, is_key=is_key)
        return Condition(term, condition.operator, query=inner)
    if term.column is None or term.aggregate is not None or not is_date(term.column):
        return condition
    years = [str(value) for value in condition.values if YEAR.fullmatch(str(value))]
    if not years or len(years) != len(condition.values):
        return condition
    first, last = f"{years[0]}-01-01", f"{years[-1]}-12-31"
    match condition.operator:
        case Operator.EQ | Operator.CONTAINS | Operator.STARTS | Operator.BETWEEN:
            return Condition(term, Operator.BETWEEN, (first, last))
        case Operator.GT | Operator.LE:
            return Condition(term, condition.operator, (last,))
        case Operator.LT | Operator.GE:
            return Condition(term, condition.operator, (first,))
    return condition


def _least(order: Order) -> Term | None:
    """What rows are sorted by from the least on: a cell that is empty is not the least."""
    return None if order.descending or order.term.aggregate is not None else order.term


def _whole(plan: Plan, is_key: Is) -> Plan:
    """ "Passengers per crossing" over the table of crossings is no group of each single row."""
    if len(plan.group) != 1 or plan.joins or plan.having or plan.order or not is_key(plan.group[0]):
        return plan
    kept = tuple(term for term in plan.select if term.aggregate is not None)
    return plan.with_(select=kept, group=()) if kept else plan

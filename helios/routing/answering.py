"""A short answer from the rows of a query: one value, a short list, or how many rows there are."""

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from helios.executors.values import Value
from helios.routing.evidence import Execution, SourceAnswer
from helios.routing.formulation.sql import PERCENTAGE
from helios.routing.interrogation import has_answer
from helios.routing.verbalisation import row_text, value_text

SHORT_LIST = 10
"""Rows that an answer names; of more it gives the first and the count."""
NONE = "none: no row matches"


def answer_of(execution: Execution) -> SourceAnswer:
    """The rows in few words, with their numbers as citations; of a query that gave none, that nothing matches."""
    result = execution.result
    rows = labelled(execution) if has_answer(result) else []
    shown = [_row(result.columns, row) for row in rows[:SHORT_LIST]]
    text = (", ".join(shown) if len(result.columns) == 1 else "; ".join(shown)) or NONE
    if len(rows) > SHORT_LIST or (rows and result.truncated):
        text = f"{text}, … ({in_all(str(len(rows)), result.truncated)})"
    values = tuple(value for row in rows for value in row)
    return SourceAnswer(
        execution.source, text, values, execution.query, execution.made_by, tuple(range(len(rows))),
        execution.confidence,
    )  # fmt: skip


def in_all(count: str, truncated: str | None) -> str:
    """How many rows there are; of a result that met a limit at least so many."""
    return f"at least {count}: the source's limit of {truncated} was met" if truncated else f"{count} in all"


def labelled(execution: Execution) -> list[tuple[Value, ...]]:
    """The rows with names instead of IRIs, where the source has them."""
    return [
        tuple(execution.labels.get(str(value), value) if value is not None else None for value in row)
        for row in execution.result.rows
    ]


def same_rows(left: Sequence[Sequence[Value]], right: Sequence[Sequence[Value]]) -> bool:
    """Whether two results have the same rows, whatever the order of rows and columns."""
    if len(left) != len(right):
        return False
    keys = [sorted(tuple(sorted(map(_key, row))) for row in rows) for rows in (left, right)]
    return keys[0] == keys[1]


def same_answer(left: Sequence[Value], right: Sequence[Value]) -> bool:
    """Whether two answers have the same values, in any order: numbers by value, texts without case."""
    return sorted(map(_key, left)) == sorted(map(_key, right))


def _row(columns: Sequence[str], row: Sequence[Value]) -> str:
    if len(columns) == 1:
        share = columns[0] == PERCENTAGE and isinstance(row[0], int | float | Decimal)
        return f"{value_text(round(float(str(row[0])), 2))} %" if share else value_text(row[0])
    if len(columns) <= 3:
        return " – ".join(value_text(value) for value in row)
    return row_text(columns, row)


def _key(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    text = value_text(value).casefold()
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return f"{float(number):.9g}" if math.isfinite(number) else text

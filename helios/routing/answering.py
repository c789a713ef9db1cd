"""A short answer from the rows of a query: one value, a short list, or how many rows there are."""

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from helios.executors.values import Value
from helios.routing.evidence import Execution, MadeBy, SourceAnswer, SourceReply
from helios.routing.interrogation import has_answer
from helios.routing.verbalisation import row_text, value_text

SHORT_LIST = 10
"""Rows that an answer names; of more it gives the first and the count."""


def answers_of(reply: SourceReply) -> Iterator[SourceAnswer]:
    """The answers of a reply's queries that were made from the question's meaning, in their order."""
    for execution in reply.executions:
        if execution.made_by in (MadeBy.MODEL, MadeBy.GENERATOR) and has_answer(execution.result):
            yield answer_of(execution)


def answer_of(execution: Execution) -> SourceAnswer:
    """The rows in few words, with their numbers as citations."""
    result = execution.result
    rows = [
        tuple(execution.labels.get(str(value), value) if value is not None else None for value in row)
        for row in result.rows
    ]
    shown = [_row(result.columns, row) for row in rows[:SHORT_LIST]]
    text = ", ".join(shown) if len(result.columns) == 1 else "; ".join(shown)
    if len(rows) > SHORT_LIST:
        more = "at least " if result.truncated else ""
        text = f"{text}, … ({more}{len(rows)} in all)"
    values = tuple(value for row in rows for value in row)
    return SourceAnswer(
        execution.source, text, values, execution.query, execution.made_by, tuple(range(len(rows))),
        execution.confidence,
    )  # fmt: skip


def same_answer(left: Sequence[Value], right: Sequence[Value]) -> bool:
    """Whether two answers have the same values, in any order: numbers by value, texts without case."""
    return sorted(map(_key, left)) == sorted(map(_key, right))


def _row(columns: Sequence[str], row: Sequence[Value]) -> str:
    if len(columns) == 1:
        return value_text(row[0])
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

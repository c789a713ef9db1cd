"""The reader that asks tables as a database: a question is planned in SQL over the tables of its evidence.

The other reader of tables compares programs over one table; this one joins, groups and combines, by the plans of
`helios.routing.formulation`, and is right more often where questions use the words of tables and columns.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from helios.bounded import Bounded
from helios.errors import SourceError
from helios.executors.base import Language, NativeQuery
from helios.executors.values import Value
from helios.reading.base import Citation
from helios.reading.queries.database import TableDatabase
from helios.reading.queries.fitting import adds_up, fitted
from helios.reading.tables.programs import average_text, number_text
from helios.reading.tables.sheet import Sheet
from helios.routing.formulation.confidence import LACKING
from helios.routing.formulation.generator import read_question, tried
from helios.routing.formulation.plan import Aggregate, ColumnRef, Operator, Plan, Term
from helios.routing.formulation.sql import render
from helios.types import Evidence, SegmentId

log = logging.getLogger(__name__)

TABLES = 6
"""Tables of the evidence that are asked, best first."""
CELLS = 100_000
"""Cells of the tables of a question in all; a table that does not fit in is left to the other readers."""
KEPT = 8
"""Databases that are kept ready."""
MOST_ITEMS = 30
"""Rows of an answer that are listed; a longer list is no answer to read."""
MOST_CELLS = 50


class Sheets(Protocol):
    """Tables that are ready for questions, by their ids (`helios.reading.tables.reader.Sheets`)."""

    def sheet(self, table_id: str) -> Sheet | None:
        """None for a table that is too large."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What a query gives, and how often such queries are right."""

    text: str
    query: str
    explanation: str
    citations: tuple[Citation, ...]
    confidence: float


class QueryReader:
    """Asks the tables of the evidence in SQL; threads may share it."""

    def __init__(self, sheets: Sheets) -> None:
        self.sheets = sheets
        self._kept: Bounded[tuple[str, ...], TableDatabase] = Bounded(KEPT)

    def over(self, sheets: Sheets) -> "QueryReader":
        """The same over other tables."""
        return QueryReader(sheets)

    def read(self, question: str, evidence: Evidence) -> list[QueryAnswer]:
        """Answers, likeliest first; none where nothing in the question fits the tables, or where reading it fails."""
        try:
            return self._answers(question, evidence)
        except Exception as error:  # noqa: BLE001 - a rule that fails on this wording must not cost the other answers
            log.error("a question could not be read as a query", exc_info=error)
            return []

    def _answers(self, question: str, evidence: Evidence) -> list[QueryAnswer]:
        database = self.database(evidence)
        if database is None or not database.sheets:
            return []
        plans: dict[str, Plan] = {}

        def write(plan: Plan) -> NativeQuery:
            meant = fitted(plan, is_date=database.is_date, is_key=database.is_key)
            query = NativeQuery(Language.SQL, render(meant, "sqlite"))
            plans[query.text] = meant
            return query

        readings = [
            one for one in read_question(question, database.view, database.find_values)
            if adds_up(one.plan, database.is_amount)
        ]  # fmt: skip
        found: dict[str, QueryAnswer] = {}
        for candidate in tried(question, readings, write, database.execute):
            said = _answer(database, plans[candidate.query.text], candidate.query)
            if said is not None and said.text not in found:
                alone = _counts_a_key(plans[candidate.query.text], database.is_key)
                doubtful = said.text == "0" or alone or _leaves_numbers(candidate.explanation)
                chance = candidate.confidence * (LACKING if doubtful else 1.0)
                found[said.text] = replace(said, confidence=chance, explanation=candidate.explanation)
        return sorted(found.values(), key=lambda answer: -answer.confidence)

    def database(self, evidence: Evidence) -> TableDatabase | None:
        """The first tables of the evidence; None without any."""
        ids = dict.fromkeys(edge.segment.segment_id.table_id for edge in evidence.edges if edge.segment is not None)
        chosen = tuple(ids)[:TABLES]
        return self._kept.of(chosen, lambda: self._opened(chosen)) if chosen else None

    def _opened(self, chosen: Sequence[str]) -> TableDatabase:
        """These tables as long as they are not too large together; at least of the first that can be read."""
        sheets: dict[str, Sheet] = {}
        cells = 0
        for table_id in chosen:
            sheet = self.sheets.sheet(table_id)
            if sheet is not None:
                size = sheet.size * len(sheet.columns)
                if cells + size <= CELLS:
                    cells += size
                    sheets[table_id] = sheet
        return TableDatabase(sheets)


def _counts_a_key(plan: Plan, is_key: Callable[[ColumnRef], bool]) -> bool:
    """Whether a plan counts the only row of a name: "how many pint glasses do we have" asks for more."""
    counts = [term.aggregate is Aggregate.COUNT and term.column is None for term in plan.select] == [True]
    alone = [some[0] for some in plan.where if len(some) == 1 and some[0].operator is Operator.EQ]
    return counts and any(one.term.column is not None and is_key(one.term.column) for one in alone)


def _leaves_numbers(explanation: str) -> bool:
    """Whether a number of the question has no part in the query."""
    return any(c.isdigit() for c in explanation.partition("; not read: ")[2])


def _answer(database: TableDatabase, plan: Plan, query: NativeQuery) -> QueryAnswer | None:
    """A result as it is said, with the cells that it rests on; None for none, and for more than can be listed."""
    result = database.execute(query)
    rows = [row for row in result.rows if any(value is not None for value in row)]
    if not rows or len(rows) > MOST_ITEMS:
        return None
    places = _places(database, plan)
    cells = places if places is not None and len(places) == len(result.rows) else None
    order = sorted(range(len(plan.select)), key=lambda at: plan.select[at].aggregate is not None)
    items: list[str] = []
    citations: dict[Citation, None] = {}
    for number, row in enumerate(result.rows):
        if all(value is None for value in row):
            continue
        said = []
        for at in order:
            place = None if cells is None else cells[number][at]
            averaged = plan.select[at].aggregate is Aggregate.AVG
            said.append(_said(row[at], averaged=averaged, empty=bool(plan.group)) if place is None else place.text)
            if place is not None:
                citations[place] = None
        items.append(" ".join(part for part in said if part))
    cited = tuple(citations) if cells is not None else tuple(_compared(database, plan))
    return QueryAnswer(", ".join(dict.fromkeys(items)), query.text, "", cited[:MOST_CELLS], 0.0)


def _compared(database: TableDatabase, plan: Plan) -> dict[Citation, None]:
    """The cells of the rows that were counted, added or grouped: those that the plan names."""
    conditions = [condition for some in plan.where for condition in some]
    named = [*(term.column for term in plan.select), *plan.group, *plan.each, *(one.term.column for one in conditions)]
    columns = [column for column in dict.fromkeys(named) if column is not None and column.table in plan.tables]
    columns = columns or [ColumnRef(plan.table, database.columns[plan.table][0])]
    rows = plan.with_(
        select=tuple(map(Term, columns)), group=(), having=(), order=(), limit=None, distinct=False, combined=None,
        each=(),
    )  # fmt: skip
    found = _places(database, rows) or []
    return {place: None for row in found for place in row if place is not None}


def _places(database: TableDatabase, plan: Plan) -> list[list[Citation | None]] | None:
    """The cell of each value of each row; None where a plan's values stand in no cells."""
    if plan.combined is not None or plan.group or plan.having:
        return None
    if any(term.aggregate is not None for term in plan.select):
        return None
    tables = dict.fromkeys(term.column.table for term in plan.select if term.column is not None)
    asked = tuple(Term(ColumnRef(table, "rowid")) for table in tables)
    try:
        probe = plan.with_(select=(*plan.select, *asked), distinct=False)
        result = database.execute(NativeQuery(Language.SQL, render(probe, "sqlite")))
    except SourceError:
        return None
    rows = result.rows
    if plan.distinct:
        rows = tuple({row[: len(plan.select)]: row for row in reversed(rows)}.values())[::-1]
    found = []
    for row in rows:
        at = dict(zip(tables, row[len(plan.select) :], strict=True))
        stored = (type(term.column) is ColumnRef for term in plan.select)  # neither computed nor a part of a cell
        found.append(
            [_place(database, term, at) if own else None for term, own in zip(plan.select, stored, strict=True)]
        )
    return found


def _place(database: TableDatabase, term: Term, rows: Mapping[str, Value]) -> Citation | None:
    assert term.column is not None
    table, row = term.column.table, rows[term.column.table]
    assert isinstance(row, int)
    sheet = database.sheets[table]
    number, _ = database.cell(table, row - 1, term.column.column)
    (at,) = sheet.places(row - 1, number)
    return Citation(at.text, SegmentId(at.table.table_id, at.row), at.column, end=len(at.text)) if at.text else None


def _said(value: Value, *, averaged: bool = False, empty: bool = False) -> str:
    """A value in words; with `empty` nothing is said to be nothing, as the name of a group must be; an average
    has two places."""
    if value is None:
        return "(empty)" if empty else ""
    if isinstance(value, float):
        return average_text(value) if averaged else number_text(value)
    return str(value)

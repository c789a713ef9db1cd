"""Years and months that rows are grouped by, where a column holds whole dates: "how many joined in each year"."""

import re
from collections.abc import Sequence
from dataclasses import replace

from helios.routing.formulation.dates import written
from helios.routing.formulation.plan import Beginning, Day
from helios.routing.formulation.schema import ColumnView, SchemaView
from helios.routing.formulation.words import Token, stem

ASKED = re.compile(r"\b(?:each|every|per|by|which|what) (?:calendar )?(year|month)s?\b", re.IGNORECASE)
LENGTHS = {"year": 4, "month": 7}
"""Characters of a date that say its year, and its month of a year."""


def with_periods(schema: SchemaView, question: str, tokens: Sequence[Token]) -> SchemaView:
    """The schema with the years or months of its dates as columns, where a question asks for each of them.

    Of a table with several dates only those whose verb the question says: `joined_on` for "who joined".
    """
    asked = ASKED.search(question)
    if asked is None:
        return schema
    period = asked[1].lower()
    said = {stem(token.lemma) for token in tokens}
    tables = {}
    for name, table in schema.tables.items():
        dates = [column for column in table.columns if written(column.samples)]
        told = [column for column in dates if said & {stem(word) for word in column.words[:-1]}]
        stored = any(column.words[-1:] == (period,) for column in table.columns)
        found = () if stored else tuple(_period(column, period) for column in told or dates)
        tables[name] = replace(table, computed=(*table.computed, *found))
    return replace(schema, tables=tables)


def _period(column: ColumnView, period: str) -> ColumnView:
    places = column.ref.places if isinstance(column.ref, Day) else ()
    ref = Beginning(column.ref.table, column.ref.column, LENGTHS[period], places)
    return replace(column, ref=ref, words=(*column.words[:-1], period), text=True, samples=())

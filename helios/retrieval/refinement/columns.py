"""Typed columns of a restored table: what its cells say as comparable values, and what its passages add.

A table column is read as dates, numbers, durations or places when most of its cells can be. A linked column also
gives `facts`: dates of birth, of founding, populations that the passages linked from its cells state, so that
"the oldest player" can be computed although the table has names alone.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from helios.retrieval.refinement.dates import read_date
from helios.retrieval.refinement.values import Reading, is_ordinal, read_cell
from helios.retrieval.refinement.wording import stems
from helios.types import Table

FloatArray = NDArray[np.float64]
LEAST_SHARE = 0.6
"""Share of the cells which are not missing that must have a reading."""


class Kind(StrEnum):
    """How the values of a column compare."""

    DATE = "date"
    END = "end"
    """Ends of date ranges, where they differ from the starts."""
    NUMBER = "number"
    DURATION = "duration"
    PLACE = "place"
    ORDER = "order"
    """The place of the row in the table."""
    BORN = "born"
    FOUNDED = "founded"
    POPULATION = "population"
    CAPACITY = "capacity"


FACTS = (Kind.BORN, Kind.FOUNDED, Kind.POPULATION, Kind.CAPACITY)


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """Values (rows) of one column in one reading, NaN where there is none; column -1 is the order of rows."""

    column: int
    header: str
    kind: Kind
    values: FloatArray

    @property
    def is_date(self) -> bool:
        """Whether large values are late dates."""
        return self.kind in (Kind.DATE, Kind.END, Kind.BORN, Kind.FOUNDED)


def typed_columns(table: Table) -> tuple[TypedColumn, ...]:
    """All readings of all columns, and the order of the rows."""
    found = [TypedColumn(-1, "", Kind.ORDER, np.arange(1.0, len(table.rows) + 1.0))]
    for column, header in enumerate(table.header):
        cells = [row[column] for row in table.rows]
        found += [TypedColumn(column, header, kind, values) for kind, values in _readings(cells, header)]
    return tuple(found)


def fact_columns(
    table: Table, linked: Iterable[tuple[int, int, str]], kinds: Sequence[Kind], *, least: float = 0.5
) -> tuple[TypedColumn, ...]:
    """Columns of facts that passages state: `linked` gives (row, column, passage text), best link first."""
    values: dict[tuple[int, Kind], FloatArray] = {}
    for row, column, text in linked:
        for kind in kinds:
            into = values.setdefault((column, kind), np.full(len(table.rows), np.nan))
            if np.isnan(into[row]):
                into[row] = read_fact(text, kind)
    return tuple(
        TypedColumn(column, table.header[column], kind, found)
        for (column, kind), found in values.items()
        if np.isfinite(found).sum() >= max(2, least * len(found))
    )


def read_fact(text: str, kind: Kind) -> float:
    """What a passage states of its subject: days for dates, else the number; NaN if it does not say."""
    opening = text[:FACT_SPAN]
    if kind is Kind.BORN:
        found = _BORN.search(opening)
        when = read_date(found["date"]) if found else None
        return when.start if when else float("nan")
    if kind is Kind.FOUNDED:
        found = _FOUNDED.search(opening)
        when = read_date(found["date"]) if found else None
        return when.start if when else float("nan")
    found = (_POPULATION if kind is Kind.POPULATION else _CAPACITY).search(text)
    return float(found["number"].replace(",", "")) if found else float("nan")


FACT_SPAN = 400
"""Characters of a passage in which dates of birth and founding are looked for."""
_DATE = r"(?P<date>(?:\d{1,2} [A-Z][a-z]+ |[A-Z][a-z]+ \d{1,2} ?, |[A-Z][a-z]+ )?(?:c\. ?)?(?:1\d{3}|20\d{2}))"
_BORN = re.compile(rf"(?:\bborn\b[^()]{{0,60}}?|\([^()\d]{{0,80}}?){_DATE}")
_FOUNDED = re.compile(
    r"\b(?:founded|established|opened|built|completed|constructed|released|formed|created|commissioned|launched|"
    rf"published|incorporated|started|began|erected|is an?|was an?)\b[^.]{{0,60}}?{_DATE}"
)
_POPULATION = re.compile(
    r"\b(?:population|inhabitants|home to)\b[^.;]{0,80}?(?P<number>(?!(?:1[89]|20)\d\d\b)\d{1,3}(?:,\d{3})+|\d{4,})"
)
_CAPACITY = re.compile(r"\b(?:capacity|seats|seating|holds|hold)\b[^.;]{0,40}?(?P<number>\d{1,3}(?:,\d{3})+|\d{3,6})")


def _readings(cells: Sequence[str], header: str) -> list[tuple[Kind, FloatArray]]:
    readings = [read_cell(cell) for cell in cells]
    present = sum(not reading.missing for reading in readings)
    found: list[tuple[Kind, FloatArray]] = []

    def add(kind: Kind, values: FloatArray) -> None:
        if np.isfinite(values).sum() >= max(2, LEAST_SHARE * present):
            found.append((kind, values))

    starts = _values(readings, "date")
    ends = _values(readings, "date_end")
    add(Kind.DATE, starts)
    if found and np.nanmax(ends - starts) > 366:
        add(Kind.END, ends)
    add(Kind.DURATION, _values(readings, "duration"))
    ordinal = sum(is_ordinal(cell) for cell in cells) >= LEAST_SHARE * max(1, present)
    if ordinal or set(stems(header)) & _PLACE_HEADERS:
        add(Kind.PLACE, _values(readings, "rank"))
    kinds = [kind for kind, _ in found]
    if not ordinal and not ({Kind.DATE, Kind.DURATION} & set(kinds)):
        add(Kind.NUMBER, _values(readings, "number"))
    return found


_PLACE_HEADERS = {"rank", "po", "pos", "position", "place", "finish", "no", "pick", "standing", "result", "number", "#"}


def _values(readings: Sequence[Reading], name: str) -> FloatArray:
    return np.array([np.nan if (value := getattr(reading, name)) is None else value for reading in readings])

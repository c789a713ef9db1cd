"""Tables that lie across the page: a column a month, a quarter, a year or a day of the week.

    Department, Jan, Feb, Mar, ...          Department, month, Takings 2024
    Bicycles, 32574, 35979, 36235    ->     Bicycles, Jan, 32574
                                            Bicycles, Feb, 35979

Down the page, what is asked of such a table is asked like anything else: a sum from April to June, the best month.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise

import numpy as np

from helios.reading.tables.dates import LAST_CENTURY, MONTHS, read_day
from helios.reading.tables.sheet import Kind, Place, Sheet, column_of

LEAST = 3
"""Columns of a series."""
MOST_SERIES = 3
"""Series of a table."""
MOST_CELLS = 20_000
"""Cells of a series when it is written down the page."""
FURTHEST = 3
"""Months from one column to the next, at most; people are called April and June too."""
_MONTH = re.compile(
    r"(?:(?<!\d)(?P<before>(?:19|20)\d\d)[\s\-/.年]*)?"
    rf"(?<![^\W\d_])(?P<name>{'|'.join(sorted(map(re.escape, MONTHS), key=len, reverse=True))})(?![A-Za-zÀ-ɏ])\.?"
    r"(?:[\s\-/'’]*(?P<year>(?:19|20)\d\d)(?!\d)|[\-/'’](?P<short>\d\d)(?!\d)|\s(?P<spaced>\d\d)$)?",
    re.IGNORECASE,
)
_QUARTER = re.compile(
    r"(?<!\w)(?:(?:19|20)\d\d\s*)?(?:[QT]\s?[1-4]|[1-4]\.?\s?(?:quarter|quartal|trimestre))(?!\w)(?:\s*(?:19|20)\d\d)?",
    re.IGNORECASE,
)
_FIFTH = re.compile(r"(?<!\w)[QT]\s?(?:[5-9]|\d\d)(?!\w)", re.IGNORECASE)
"""No quarters, but questions or tanks."""
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?:[/\-–]\d\d(?:\d\d)?)?(?!\d)")
_DAYS = (
    ("Monday mon", "Tuesday tue tues", "Wednesday wed weds", "Thursday thu thur thurs", "Friday fri", "Saturday sat",
     "Sunday sun"),
    ("Montag mo", "Dienstag di", "Mittwoch mi", "Donnerstag do", "Freitag fr", "Samstag sa", "Sonntag so"),
    ("Lundi lun", "Mardi mar", "Mercredi mer", "Jeudi jeu", "Vendredi ven", "Samedi sam", "Dimanche dim"),
    ("Lunes lun", "Martes mar", "Miércoles miercoles mié mie", "Jueves jue", "Viernes vie", "Sábado sabado sáb sab",
     "Domingo dom"),
    ("周一 星期一", "周二 星期二", "周三 星期三", "周四 星期四", "周五 星期五", "周六 星期六", "周日 星期日"),
)  # fmt: skip
"""Days of the week by language: the whole name, and short forms of headers."""
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Across:
    """Where the cells of a series stand."""

    sheet: Sheet = field(repr=False)
    kept: tuple[int, ...]
    """The columns that stand before that of periods."""
    series: tuple[int, ...]
    """The columns that are rows here."""

    def places(self, row: int, column: int) -> tuple[Place, ...]:
        """Where a cell stands; a period is cited by the cell below it."""
        own, period = divmod(row, len(self.series))
        return self.sheet.places(own, self.kept[column] if column < len(self.kept) else self.series[period])


@dataclass(frozen=True, slots=True)
class _Period:
    """What a header names: the kind of series, how it is shown, its day where it is a date, and the words around it."""

    kind: str
    text: str
    day: float
    """Its first day where it is a date; of a month, until its year is known, months since year 0."""
    around: str


def down_the_page(sheet: Sheet) -> tuple[Sheet, ...]:
    """A sheet for each series of columns of a table, with a row for each of its cells; none of most tables."""
    series = [] if sheet.lies else list(_series(sheet))
    named = {at for periods in series for at in periods}
    kept = tuple(
        at
        for at, column in enumerate(sheet.columns[: sheet.own])
        if at not in named and (column.kind is not Kind.NUMBER or not column.is_amount)
    )
    fitting = [periods for periods in series if len(periods) * sheet.size * (len(kept) + 2) <= MOST_CELLS]
    return tuple(_written(sheet, periods, kept) for periods in fitting[:MOST_SERIES])


def _series(sheet: Sheet) -> Iterator[dict[int, _Period]]:
    """The columns of each series with what they name; no period twice."""
    found: dict[tuple[str, str], dict[int, _Period]] = {}
    headers = [column.header for column in sheet.columns[: sheet.own]]
    days = _weekdays(headers)
    for at, header in enumerate(headers):
        period = days.get(at) or _period(header)
        if period is not None:
            found.setdefault((period.kind, period.around), {})[at] = period
    for (kind, _), named in found.items():
        if len(named) < LEAST or (kind == "quarter" and any(map(_FIFTH.search, headers))):
            continue
        periods = _dated(named, _year_of(sheet)) if kind == "month" else named
        dates = [one.day for one in periods.values() if np.isfinite(one.day)]
        texts = {one.text.casefold() for one in periods.values()}
        if len(set(dates)) == len(dates) and (dates or len(texts) == len(periods)) and periods:
            yield periods


def _period(header: str) -> _Period | None:
    """What a header names; a month without a year is one of year 0."""
    if named := _MONTH.search(header):
        rest = _QUARTER.sub(" ", header[: named.start()] + " " + header[named.end() :])
        if not re.search(r"\d", rest):
            year = int(named["before"] or named["year"] or 0)
            short = named["short"] or named["spaced"]
            year = year or (int(short) + (1900 if int(short) >= LAST_CENTURY else 2000) if short else 0)
            month = MONTHS[named["name"].casefold()]
            return _Period("month", named[0].strip(), 12.0 * year + month - 1, _around(rest))
    if not _YEAR.fullmatch(header.strip()) and np.isfinite(day := read_day(header)):
        return _Period("day", header.strip(), day, "")
    for kind, pattern in (("quarter", _QUARTER), ("year", _YEAR)):
        if named := pattern.search(header):
            around = _around(header[: named.start()] + " " + header[named.end() :])
            return _Period(kind, named[0].strip(), np.nan, around)
    return None


def _dated(named: dict[int, _Period], year: int) -> dict[int, _Period]:
    """Months with their first days. One that says no year is of the year that the one before it leads to, or all are of
    one year; nothing where names without years do not follow one another."""
    months = [int(period.day) for period in named.values()]
    bare = [month for month in months if month < 12]
    steps = [(b - a) % 12 for a, b in pairwise(bare)]
    if any(min(step, 12 - step) > FURTHEST for step in steps):
        return {}
    climbs = sum(b <= a for a, b in pairwise(bare)) == 1 and steps.count(1) > len(steps) / 2
    found: list[int] = []
    for month in months:
        if month < 12:
            last = found[-1] if found else 12 * year
            month += 12 * (last // 12) if found else 12 * year
            month += 12 * (climbs and bool(found) and month <= last)
        found.append(month)
    pairs = zip(named.items(), found, strict=True)
    first = {at: date(max(1, month // 12), month % 12 + 1, 1) for (at, _), month in pairs}
    return {at: replace(period, day=float(first[at].toordinal())) for at, period in named.items()}


def _around(text: str) -> str:
    return " ".join(_WORD.findall(text)).casefold()


def _weekdays(headers: list[str]) -> dict[int, _Period]:
    """Columns that are days of the week, in the language that has most of them; two or less are none: "Mar" is a month
    too, and people are called Mo."""
    words = [_first_word(header) for header in headers]
    best: dict[int, _Period] = {}
    for language in _DAYS:
        names = {form.casefold(): forms.split()[0] for forms in language for form in forms.split()}
        found = {at: _Period("day", names[word], np.nan, "") for at, word in enumerate(words) if word in names}
        best = max(best, found, key=len)
    return best if len(best) >= LEAST else {}


def _first_word(header: str) -> str:
    """The only word of a header, if it has one."""
    words = _WORD.findall(header)
    return words[0].casefold() if len(words) == 1 else ""


def _year_of(sheet: Sheet) -> int:
    """The only year that the table's titles and its file name say; year 1 where there is none, as for other days."""
    table = sheet.table
    years = {found[0][:4] for text in (table.title, table.section, table.source) for found in _YEAR.finditer(text)}
    return int(next(iter(years))) if len(years) == 1 else 1


def _written(sheet: Sheet, periods: dict[int, _Period], kept: tuple[int, ...]) -> Sheet:
    """One row for each row and column of the series, beside the columns that are kept."""
    count, series = len(periods), tuple(periods)
    columns = [
        column_of(column.header, tuple(cell for cell in column.cells for _ in series))
        for column in (sheet.columns[at] for at in kept)
    ]
    kind = next(iter(periods.values())).kind
    shown = column_of(kind, tuple(one.text for one in periods.values()) * sheet.size)
    days = np.array([one.day for one in periods.values()])
    if np.isfinite(days).all():
        shown = replace(shown, kind=Kind.DATE, values=np.tile(days, sheet.size))
    around = next(iter(periods.values())).around
    header = around or sheet.table.title or sheet.table.section or "value"
    cells = tuple(sheet.columns[at].cells[row] for row in range(sheet.size) for at in series)
    columns += [shown, column_of(header, cells)]
    return Sheet.made(sheet.table, tuple(columns), np.repeat(sheet.counted, count), Across(sheet, kept, series))

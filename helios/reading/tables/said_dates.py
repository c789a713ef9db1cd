"""Dates of a question: a day, a month, a quarter, half a year or a year, and which days of a column they mean.

    spans_of("what came in from March to May 2026, and in Q3?")      March, May 2026, July to September

A date without a year is of the year that a column of dates is about.
"""

import calendar
import re
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from helios.reading.tables.dates import MONTH, MONTHS, read_day

LAST_DAY = 3_650_000
_EPOCH = date(1970, 1, 1).toordinal()
_YEAR = r"(?:19|20)\d\d"
_OF = r"(?:,?\s*(?:de |del |of )?"
_DATES = re.compile(
    r"(?P<day>\d{1,2}|first)(?:st|nd|rd|th|\.|er)?\s*(?:of |de |d')?"
    rf"(?P<month>{MONTH})\b\.?{_OF}(?P<year>{_YEAR}))?"
    rf"|(?P<month2>{MONTH})\b\.?\s*(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s*(?P<year2>{_YEAR}))?"
    rf"|(?P<month3>{MONTH})\b\.?{_OF}(?P<year3>{_YEAR}))?"
    rf"|(?P<iso>{_YEAR}-\d\d-\d\d)|(?P<dotted>\d{{1,2}}[./]\d{{1,2}}[./](?:{_YEAR}|\d\d)(?![\d./]))"
    rf"|(?P<year4>{_YEAR})(?:年(?:(?P<month4>\d{{1,2}})月(?:(?P<day4>\d{{1,2}})[日号])?)?)?",
    re.IGNORECASE,
)
_PLACES = {
    word: place
    for place, words in enumerate(
        (
            "first 1st 1 ersten erstes erste premier 1er primer 一 上",
            "second 2nd 2 zweiten zweites zweite deuxième deuxieme 2e segundo 二 下",
            "third 3rd 3 dritten drittes dritte troisième troisieme 3e tercer 三",
            "fourth 4th 4 vierten viertes vierte quatrième quatrieme 4e cuarto 四",
        ), start=1)
    for word in words.split()
}  # fmt: skip
_PLACE = "|".join(sorted((word for word in _PLACES if word.isascii() or len(word) > 1), key=len, reverse=True))
_PART_OF_YEAR = re.compile(
    rf"(?:(?:\bQ(?P<q>[1-4])|\bH(?P<h>[12])(?=\s*{_YEAR})|\b(?P<place>{_PLACE})[.º]?\s+(?:"
    r"(?:quarter|quartal|trimestre)|(?P<half>half(?:[- ]year|(?= of (?:the year|20\d\d)))|halbjahr|semestre)))"
    r"(?![a-z\d])|第(?P<unspaced>[一二三四])季度|(?P<unspaced_half>[上下])半年)"
    rf"(?:\s*(?:of |in |de |del |,)?\s*(?P<year>{_YEAR}))?",
    re.IGNORECASE,
)
_YEAR_OF_ACCOUNTS = re.compile(rf"(?<![\d./-])(?P<first>{_YEAR})\s?[-/–]\s?(?P<next>\d\d)(?![\d/.-])")
_PARTS = (
    ("day", "month", "year"),
    ("day2", "month2", "year2"),
    ("day4", "month4", "year4"),
    ("", "month3", "year3"),
)
"""Groups of a date's day, month and year."""


@dataclass(frozen=True, slots=True)
class _OfYear:
    """A month, months up to another one, or a day of a month, of whatever year the table is about."""

    month: int
    day: int = 0
    until: int = 0
    """The last of several months."""

    def within(self, values: NDArray[np.float64]) -> tuple[float, float] | None:
        """The days that are meant in a column of dates: those that lie within its dates, or nearest to them."""
        known = values[are_days(values)]
        if not len(known):
            return None
        usual = int(np.bincount(calendar_of(known)[0]).argmax())
        years = [year for year in (usual, usual - 1, usual + 1) if 1 <= year <= 9999]
        found = [days for year in years if (days := self.of(year)) is not None]
        return min(found, key=lambda days: _gap(days, float(known.min()), float(known.max())), default=None)

    def of(self, year: int) -> tuple[float, float] | None:
        """The days that are meant of one year."""
        days = _days(f"{year:04d}-{self.month:02d}" + (f"-{self.day:02d}" if self.day else ""))
        last = _days(f"{year:04d}-{self.until:02d}") if self.until else days
        return (days[0], last[1]) if days and last else None


def are_days(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which values of a column of dates are days of a calendar."""
    return (values >= 1) & (values < LAST_DAY)


def calendar_of(days: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Years, months and days of months."""
    dates = (days.astype(np.int64) - _EPOCH).astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    years = months.astype("datetime64[Y]").astype(np.int64) + 1970
    return years, months.astype(np.int64) % 12 + 1, (dates - months).astype(np.int64) + 1


def day_of_usual_month(values: NDArray[np.float64], day: int) -> tuple[float, float] | None:
    """A day of the month in which at least half of a column's dates lie: "by the 8th"."""
    years, months, _ = calendar_of(values[are_days(values)])
    if not len(months):
        return None
    found, counts = np.unique(years * 12 + months - 1, return_counts=True)
    usual = int(found[counts.argmax()])
    return _days(f"{usual // 12:04d}-{usual % 12 + 1:02d}-{day:02d}") if 2 * counts.max() >= len(months) else None


def _gap(days: tuple[float, float], first: float, last: float) -> float:
    return max(first - days[1], days[0] - last, 0.0)


Days = tuple[float, float] | _OfYear
"""The first and the last day, or what it is of any year."""
_FEAST = re.compile(
    r"\b(?:(?P<christmas>christmas(?: day)?|xmas|weihnachten|noël|navidad(?:es)?)|"
    r"(?P<year>new year(?:'s(?: day)?)?|neujahr|(?:le )?nouvel an|año nuevo))\b|(?P<new>元旦)",
    re.IGNORECASE,
)
_FEASTS = {"christmas": _OfYear(12, 25), "year": _OfYear(1, 1), "new": _OfYear(1, 1)}


def spans_of(question: str) -> list[tuple[int, int, Days]]:
    """(first, end, days) of every date and part of a year that a question says, in order."""
    found_parts = ((found, _part(found)) for found in _PART_OF_YEAR.finditer(question))
    parts = [(found.start(), found.end(), days) for found, days in found_parts if days is not None]
    dates = [(found.start(), found.end(), days) for found in _DATES.finditer(question) if (days := _meant(found))]
    parts += [(one.start(), one.end(), _FEASTS[one.lastgroup or ""]) for one in _FEAST.finditer(question)]
    taken = [(start, end) for start, end, _ in parts] + [found.span() for found in years_of_accounts(question)]
    apart = [one for one in dates if not any(one[0] < end and start < one[1] for start, end in taken)]
    return sorted([*parts, *apart], key=lambda span: span[0])


def years_of_accounts(question: str) -> list[re.Match[str]]:
    """Years of two calendar years that a question says: 2025-26, 2025/26."""
    found = _YEAR_OF_ACCOUNTS.finditer(question)
    return [one for one in found if int(one["next"]) == (int(one["first"]) + 1) % 100]


def _part(found: re.Match[str]) -> Days | None:
    """The days of a quarter or of half a year; None for letters that only resemble such words."""
    said = next(found[name] for name in ("q", "h", "place", "unspaced", "unspaced_half") if found[name])
    if said.casefold() not in _PLACES:
        return None
    place, months = _PLACES[said.casefold()], 6 if found["h"] or found["half"] or found["unspaced_half"] else 3
    place = min(place, 12 // months)
    meant = _OfYear(months * (place - 1) + 1, until=months * place)
    return (meant.of(int(found["year"])) if found["year"] else None) or meant


def _meant(found: re.Match[str]) -> Days | None:
    """The days that a date of the question covers."""
    for exact in ("iso", "dotted"):
        if found[exact]:
            said = read_day(found[exact])
            return None if np.isnan(said) else (said, said)
    for day, month, year in _PARTS:
        if found[month] is None and (month != "month4" or found["year4"] is None):
            continue
        name = None if found[month] is None else MONTHS.get(found[month].casefold()) or int(found[month])
        number = 0 if not day or not found[day] else 1 if found[day].casefold() == "first" else int(found[day])
        if found[year] is None:
            return None if name is None or number > 31 else _OfYear(name, number)
        text = found[year] if name is None else f"{found[year]}-{name:02d}"
        return _days(f"{text}-{number:02d}" if number and name else text)
    return None


def _days(text: str) -> tuple[float, float] | None:
    parts = [int(part) for part in text.split("-")]
    try:
        first = date(parts[0], parts[1] if len(parts) > 1 else 1, parts[2] if len(parts) > 2 else 1)
        month = parts[1] if len(parts) > 1 else 12
        last = first if len(parts) > 2 else date(parts[0], month, calendar.monthrange(parts[0], month)[1])
    except ValueError:
        return None
    return float(first.toordinal()), float(last.toordinal())


def dated(values: NDArray[np.float64], operator: str, meant: Days) -> NDArray[np.bool_]:
    """bool (R): the days of a column that compare with what is meant."""
    if isinstance(meant, _OfYear) and operator == "=":
        rows = are_days(values)
        _, months, days = calendar_of(values[rows])
        named = (months >= meant.month) & (months <= (meant.until or meant.month))
        rows[rows] = named & ((days == meant.day) | (meant.day == 0))
        return rows
    interval = meant.within(values) if isinstance(meant, _OfYear) else meant
    if interval is None:
        return np.zeros(len(values), bool)
    first, last = interval
    known = np.where(np.isnan(values), -1.0, values)
    match operator:
        case ">":
            return np.asarray(known > last)
        case ">=":
            return known >= first
        case "<":
            return (known < first) & (known >= 0)
        case "<=":
            return (known <= last) & (known >= 0)
    return (known >= first) & (known <= last)

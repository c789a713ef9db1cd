"""Dates of many shapes as days, with the end of what they cover.

    read_date("May 1990")                 the days of that month
    read_date("1991-92")                  from the start of 1991 to the end of 1992
    read_date("2004 - present")           from 2004, without an end

Days are counted in the proleptic Gregorian calendar from year 1; years before count as 365.2425 days each.
A day without a year ("July 4") falls into year 1, so that a column of them can be ordered.
"""

import re
from dataclasses import dataclass
from datetime import date

MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sept sep", "october oct", "november nov", "december dec"), start=1)
    for name in names.split()
}  # fmt: skip
_SEASONS = {"spring": 4, "summer": 7, "autumn": 10, "fall": 10, "winter": 1, "early": 2, "mid": 6, "late": 11}
_MONTH = r"(?P<month>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1\d{3}|20\d{2})"
_RANGE_DAY = r"(?:\s*(?:[-–—/&]|to|and)\s*\d{1,2}(?:st|nd|rd|th)?)?"
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b\.?\s*,?\s*)?"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_WEEKDAY}{_DAY}{_RANGE_DAY}\s*(?:of\s+)?[-\s]?{_MONTH}(?:\s*,?\s*[-\s]?{_YEAR})?",
        rf"{_WEEKDAY}{_MONTH}\s*{_DAY}(?!\d){_RANGE_DAY}(?:\s*,?\s*{_YEAR})?",
        rf"{_MONTH}\s*,?\s*{_YEAR}",
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})\b",
        r"(?P<day>\d{1,2})[-/.](?P<month>\d{1,2})[-/.](?P<year>\d{4})\b",
    )
)
_BARE = re.compile(
    r"(?:(?P<season>spring|summer|autumn|fall|winter|early|mid|late)[-\s,]+)?(?:(?:c|ca|circa)\.?\s*)?"
    r"(?P<year>1\d{3}|20\d{2})s?(?![\d,.]\d|\d)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"^\s*(?:[-–—/]|to\b|until\b|through\b)\s*(?P<rest>.+)$", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(r"^\s*(?:[-–—]\s*$|(?:[-–—]|to|until)\s*(?:present|current|date|now|ongoing|today|incumbent))", re.I)
_BC = re.compile(r"^(?:c\.?\s*)?(?P<year>\d{1,4})\s*(?:BC|BCE)\b", re.IGNORECASE)
_DAYS_A_YEAR = 365.2425
OPEN_END = date(2100, 1, 1).toordinal()
"""The end of what has not ended."""


@dataclass(frozen=True, slots=True)
class When:
    """The first and the last day that a text covers."""

    start: float
    end: float


def read_date(text: str) -> When | None:
    """The date or range that a text begins with, None if it begins with something else."""
    bc = _BC.match(text)
    if bc:
        day = -int(bc["year"]) * _DAYS_A_YEAR
        return When(day, day + _DAYS_A_YEAR - 1)
    first, rest = _single(text)
    if first is None:
        return None
    if _OPEN.match(rest):
        return When(first.start, float(OPEN_END))
    span = _SPAN.match(rest)
    end = _end_of_span(first, span["rest"]) if span else None
    return When(first.start, max(first.end, end) if end is not None else first.end)


def year_of(days: float) -> int:
    """The calendar year of a day number; 1 for a day without a year."""
    return date.fromordinal(int(days)).year if 1 <= days <= date.max.toordinal() else int(days // _DAYS_A_YEAR)


def _single(text: str) -> tuple[When | None, str]:
    """The date at the start of a text, and what follows it."""
    for pattern in _PATTERNS:
        found = pattern.match(text)
        if found:
            when = _calendar(found.groupdict())
            if when is not None:
                return when, text[found.end() :]
    found = _BARE.match(text)
    if not found:
        return None, text
    year = int(found["year"])
    month = _SEASONS.get((found["season"] or "").casefold())
    if month:
        return _days(year, month, None), text[found.end() :]
    return When(float(date(year, 1, 1).toordinal()), float(date(year, 12, 31).toordinal())), text[found.end() :]


def _calendar(parts: dict[str, str | None]) -> When | None:
    raw_month, raw_day, raw_year = parts.get("month") or "", parts.get("day"), parts.get("year")
    month = int(raw_month) if raw_month.isdigit() else MONTHS[raw_month.casefold()]
    day = int(raw_day) if raw_day else None
    if month > 12 and day is not None and raw_month.isdigit():
        month, day = day, month
    return _days(int(raw_year) if raw_year else 0, month, day)


def _days(year: int, month: int, day: int | None) -> When | None:
    """The day, or all days of the month; None for a day that does not exist."""
    if not 1 <= month <= 12:
        return None
    leap = 2000 if year == 0 else year
    shift = float(date(2000, 1, 1).toordinal() - 1) if year == 0 else 0.0
    try:
        first = date(leap, month, day or 1).toordinal() - shift
    except ValueError:
        return None
    following = date(leap + month // 12, month % 12 + 1, 1).toordinal() - shift
    return When(first, first if day else following - 1)


def _end_of_span(first: When, rest: str) -> float | None:
    """The last day of `1991-92`, `1990 - 12 May 1995`."""
    short = re.match(r"(\d{2})(?!\d|\s*[-/:.]\s*\d)", rest)
    if short and first.start > 0:
        year = year_of(first.start) // 100 * 100 + int(short[1])
        year += 100 if year < year_of(first.start) else 0
        return float(date(year, 12, 31).toordinal())
    second, _ = _single(rest)
    return None if second is None or second.end < first.start else second.end

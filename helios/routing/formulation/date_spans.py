"""Spans of days as people say them, with both ends in full: "between 1 April and 5 May 2024", "in Q1 2024"."""

import re

from helios.retrieval.refinement.dates import MONTHS

MONTH = rf"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
DAY = r"\d{1,2}(?:st|nd|rd|th)?"
MONTHS_OF_A_YEAR = re.compile(
    rf"\b(?:from |between )?({MONTH})\.? (?:to|through|until|till|and|–|-) ({MONTH})\.? (\d{{4}})\b", re.IGNORECASE
)
DAYS_OF_A_YEAR = re.compile(
    rf"\b({DAY} {MONTH}|{MONTH} {DAY}) (and|to|until|till) ((?:{DAY} {MONTH}|{MONTH} {DAY}),? (\d{{4}}))\b",
    re.IGNORECASE,
)
FROM_DATE_TO_DATE = re.compile(
    rf"\bfrom ((?:{DAY} )?{MONTH} \d{{4}}) (?:to|until|till|through) (?=(?:{DAY} )?{MONTH} \d{{4}}\b)", re.IGNORECASE
)
PART_OF_A_YEAR = re.compile(
    r"\b(?:in|during|of|for|from) (?:the )?"
    r"(?:(first|second|third|fourth|last|1st|2nd|3rd|4th) (quarter|half)|Q([1-4]))(?: of|,)? (\d{4})\b",
    re.IGNORECASE,
)
ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
CALENDAR = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
HALF, QUARTER, YEAR = 6, 3, 12
"""Months of these."""


def with_whole_dates(question: str) -> str:
    """A question whose spans of days have a year at both ends and stand behind "between"."""
    text = PART_OF_A_YEAR.sub(_months, question)
    text = DAYS_OF_A_YEAR.sub(r"\1 \4 \2 \3", text)
    text = MONTHS_OF_A_YEAR.sub(r"between \1 \3 and \2 \3", text)
    return FROM_DATE_TO_DATE.sub(r"between \1 and ", text)


def _months(found: re.Match[str]) -> str:
    """A quarter or half of a year by its first and its last month."""
    ordinal, part, quarter, year = found.groups()
    length = HALF if part is not None and part.lower() == "half" else QUARTER
    number = int(quarter) if quarter else ORDINALS.get(ordinal.lower(), YEAR // length)
    if number * length > YEAR:
        return found[0]
    first, last = CALENDAR[(number - 1) * length], CALENDAR[number * length - 1]
    return f"between {first} {year} and {last} {year}"

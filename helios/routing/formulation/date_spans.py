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
    rf"\b(?:from |in )?((?:{DAY} )?{MONTH} \d{{4}}) (?:to|until|till|through) (?=(?:{DAY} )?{MONTH} \d{{4}}\b)",
    re.IGNORECASE,
)
SEASON = r"(?:winter|summer|spring|autumn|fall|season|quarter|term|half)"
NAMED_SPAN = re.compile(
    rf"\b(?:last|this|in the|over the|the) {SEASON}(?: months)?(?: of \d{{4}})?,? \(?"
    rf"(?=(?:from |between )?{MONTH}\b[^.?!]*?\d{{4}})",
    re.IGNORECASE,
)
MONTHS_IN_BRACKETS = re.compile(
    rf"\b(?:in|during|over) (?:the )?{SEASON}(?: months)?(?: of)? (\d{{4}}),? "
    rf"\(?({MONTH}) (?:to|until|till|-|–) ({MONTH})\)?",
    re.IGNORECASE,
)
"""A season with its months, which say what is meant: "the summer months of 2024, June to August"."""
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
ONWARDS = re.compile(rf"\bfrom ((?:(?:{DAY} )?{MONTH} )?\d{{4}}) on(?:wards?)?\b", re.IGNORECASE)
EDGE = re.compile(
    rf"\b(since|from|before|after|until|by) the (start|beginning|end) of ((?:{MONTH} )?\d{{4}})\b", re.IGNORECASE
)
EDGES = {"since": "since", "from": "since", "before": "before", "after": "since", "until": "before", "by": "before"}
ENDS = {"since": "after", "from": "after", "before": "up to", "after": "after", "until": "up to", "by": "up to"}
"""What a date behind the start of a span, and behind its end, compares as."""
MONTH_OF = re.compile(r"\b((?:which|what|each|every|per) (?:month|quarter)) of (\d{4})\b", re.IGNORECASE)
HALF, QUARTER, YEAR = 6, 3, 12
"""Months of these."""


def with_whole_dates(question: str) -> str:
    """A question whose spans of days have a year at both ends and stand behind "between"."""
    text = MONTHS_IN_BRACKETS.sub(r"between \2 \1 and \3 \1", question)
    text = PART_OF_A_YEAR.sub(_months, NAMED_SPAN.sub("", text))
    text = MONTH_OF.sub(r"\1 in \2", ONWARDS.sub(r"since \1", EDGE.sub(_edge, text)))
    text = DAYS_OF_A_YEAR.sub(r"\1 \4 \2 \3", text)
    text = MONTHS_OF_A_YEAR.sub(r"between \1 \3 and \2 \3", text)
    return FROM_DATE_TO_DATE.sub(r"between \1 and ", text)


def _edge(found: re.Match[str]) -> str:
    """ "Since the start of 2024" is since 2024, "after the end of 2024" after 2024."""
    word, side, date = found[1].lower(), found[2].lower(), found[3]
    return f"{(ENDS if side == 'end' else EDGES)[word]} {date}"


def _months(found: re.Match[str]) -> str:
    """A quarter or half of a year by its first and its last month."""
    ordinal, part, quarter, year = found.groups()
    length = HALF if part is not None and part.lower() == "half" else QUARTER
    number = int(quarter) if quarter else ORDINALS.get(ordinal.lower(), YEAR // length)
    if number * length > YEAR:
        return found[0]
    first, last = CALENDAR[(number - 1) * length], CALENDAR[number * length - 1]
    return f"between {first} {year} and {last} {year}"

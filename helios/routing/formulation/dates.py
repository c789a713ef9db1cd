"""Days, months and years of a question, as columns of dates write them: 5 September 2023 is 2023-09-05.

A month or a year is a period: what lies in it is between its first and its last day, what lies after it is after the
last one.
"""

import re
from calendar import monthrange
from collections.abc import Sequence

from helios.retrieval.refinement.dates import MONTHS
from helios.routing.formulation.plan import Operator
from helios.routing.formulation.words import Token, as_number

DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")
"""A day or a month as tokens hold them."""
STORED = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
"""A day or an instant as data write it."""
YEARS = range(1000, 2101)
DECADE = re.compile(r"(1[5-9]\d0|20\d0)s")
LONGEST = 7
DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
END_OF_DAY = " 23:59:59"
IN_A_YEAR = ("in", "since", "during", "on")
"""Words before a number that is a year where it can be one."""
OTHERWISE = (
    (re.compile(r"(?P<day>\d\d)([./-])(?P<month>\d\d)\2(?P<year>\d{4})"), ((7, 4), (4, 2), (1, 2))),
    (re.compile(r"(?P<month>\d\d)([/-])(?P<day>\d\d)\2(?P<year>\d{4})"), ((7, 4), (1, 2), (4, 2))),
    (re.compile(r"(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)"), ((1, 4), (5, 2), (7, 2))),
)
"""Days as old systems and office programs write them, and where their year, month and day stand."""
Places = tuple[tuple[int, int], ...]


def otherwise_written(samples: Sequence[str]) -> tuple[Places, tuple[str, ...]] | None:
    """Where the parts of a column's days stand that do not begin with the year, and the samples with the year first.

    None where they are no days, or may be days in two ways: 03/04/2024 alone.
    """
    found = []
    for form, places in OTHERWISE:
        days = [form.fullmatch(sample.strip()) for sample in samples]
        if len(samples) > 1 and all(day is not None and _is_day(day) for day in days):
            found.append(
                (places, tuple("-".join(day.group("year", "month", "day")) for day in days if day is not None))
            )
    return found[0] if len(found) == 1 else None


def holds_years(samples: Sequence[str]) -> bool:
    """Whether numbers are years as far as samples tell."""
    return bool(samples) and all(sample.strip().isdigit() and int(sample) in YEARS for sample in samples)


def _is_day(found: re.Match[str]) -> bool:
    year, month, day = (int(found[name]) for name in ("year", "month", "day"))
    return year in YEARS and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def written(samples: Sequence[str]) -> bool:
    """Whether a column's values are dates, the year first."""
    return bool(samples) and all(STORED.fullmatch(sample.strip()) for sample in samples)


def with_dates(tokens: Sequence[Token], *, whole: bool = True) -> list[Token]:
    """Each date in words as one token: `5 September 2023`, `September 5th, 2023`, `July 2023`; only decades without
    `whole`."""
    found: list[Token] = []
    start = 0
    while start < len(tokens):
        if decade := DECADE.fullmatch(tokens[start].text):
            found += _decade(tokens[start], int(decade[1]))
            start += 1
            continue
        end, text = _date_at(tokens, start) if whole else (start + 1, "")
        if text:
            found.append(Token(text, text, tokens[start].start, tokens[end - 1].end, quoted=True))
        else:
            found.append(tokens[start])
        start = end
    return found


def _decade(token: Token, year: int) -> list[Token]:
    """ "The 1990s" as "between 1990 and 1999"."""
    words = ("between", str(year), "and", str(year + 9))
    return [Token(word, word, token.start, token.end, number=as_number(word)) for word in words]


def within(text: str, operator: Operator, samples: Sequence[str]) -> tuple[Operator, tuple[str, ...]] | None:
    """How a column of dates compares with a day, a month or a year; None where its values are written otherwise."""
    if not written(samples):
        return None
    clock = END_OF_DAY if any(len(sample.strip()) > 10 for sample in samples) else ""
    first, last = _days(text)
    match operator:
        case Operator.EQ if first == last and not clock:
            return operator, (first,)
        case Operator.EQ | Operator.BETWEEN:
            return Operator.BETWEEN, (first, last + clock)
        case Operator.GT | Operator.LE:
            return operator, (last + clock,)
        case Operator.GE | Operator.LT:
            return operator, (first,)
    return None


def _days(text: str) -> tuple[str, str]:
    """The first and the last day of a day, a month or a year."""
    year, *rest = text.split("-")
    if not rest:
        return f"{year}-01-01", f"{year}-12-31"
    if len(rest) == 2:
        return text, text
    return f"{text}-01", f"{text}-{monthrange(int(year), int(rest[0]))[1]:02}"


def _date_at(tokens: Sequence[Token], start: int) -> tuple[int, str]:
    """Where the date that starts at a token ends, and how it is written; the next token and nothing for none."""
    for end in range(min(len(tokens), start + LONGEST), start + 1, -1):
        span = tokens[start:end]
        words = [token.text.lower() for token in span if token.text.lower() not in (",", "of", "the")]
        whole = bool(words) and [span[0].text.lower(), span[-1].text.lower()] == [words[0], words[-1]]
        text = _date(words) if whole and not any(token.quoted for token in span) else ""
        if text:
            return end, text
    return start + 1, ""


def _date(words: Sequence[str]) -> str:
    """Two or three words as a month or a day."""
    if not 2 <= len(words) <= 3 or not re.fullmatch(r"\d{4}", words[-1]) or int(words[-1]) not in YEARS:
        return ""
    months = [MONTHS.get(word, 0) for word in words[:-1]]
    days = [int(found[1]) for word in words[:-1] if (found := DAY.fullmatch(word)) is not None]
    month = next((month for month in months if month), 0)
    if not month or len(days) != len(words) - 2:
        return ""
    if not days:
        return f"{words[-1]}-{month:02}"
    day = days[0]
    return f"{words[-1]}-{month:02}-{day:02}" if 1 <= day <= monthrange(int(words[-1]), month)[1] else ""

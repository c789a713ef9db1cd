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

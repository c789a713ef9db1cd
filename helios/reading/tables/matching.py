"""Words of a question that stand in a table's cells, and what they select.

"Which orders did Linden place in March?"      [Customer = Linden], [Date in March]
"""

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from helios.index.lexical import terms_of
from helios.reading.question import STOP
from helios.reading.tables.sheet import WORD, Kind, Sheet
from helios.reading.tables.wording import Comparison, Wording, compared_by
from helios.retrieval.refinement.dates import read_date

MOST_WORDS = 128
"""Words of a question that are read; what each program explains of them is held at once."""
LONGEST_PHRASE = 8
"""Words of a question that are looked up together."""
MOST_MATCHES = 14
"""Best matches of a question in a table that are kept."""
YES = frozenset(
    ("yes", "y", "true", "x", "✓", "✔", "√", "1", "ja", "j", "wahr", "oui", "vrai", "sí", "si", "s", "是", "有")
)
NO = frozenset(("", "no", "n", "false", "0", "-", "–", "nein", "falsch", "non", "faux", "falso", "否", "无"))
_MONTHS = (
    "jan januar january janvier enero 一月 1月",
    "feb februar february février fevrier febrero 二月 2月",
    "mar march märz maerz mars marzo 三月 3月",
    "apr april avril abril 四月 4月",
    "may mai mayo 五月 5月",
    "jun june juni juin junio 六月 6月",
    "jul july juli juillet julio 七月 7月",
    "aug august août aout agosto 八月 8月",
    "sep sept september septembre septiembre 九月 9月",
    "oct okt october oktober octobre octubre 十月 10月",
    "nov november novembre noviembre 十一月 11月",
    "dec dez december dezember décembre decembre diciembre 十二月 12月",
)
MONTHS = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}
_MONTH = "|".join(sorted((re.escape(name) for name in MONTHS), key=len, reverse=True))
_YEAR = r"(?:19|20)\d\d"
_OF = r"(?:,?\s*(?:de |del |of )?"
_DATES = re.compile(
    rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|er)?\s*(?:of |de |d')?(?P<month>{_MONTH})\b\.?{_OF}(?P<year>{_YEAR}))?"
    rf"|(?P<month2>{_MONTH})\b\.?\s*(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s*(?P<year2>{_YEAR}))?"
    rf"|(?P<month3>{_MONTH})\b\.?{_OF}(?P<year3>{_YEAR}))?"
    rf"|(?P<iso>{_YEAR}-\d\d-\d\d)|(?P<dotted>\d{{1,2}}[./]\d{{1,2}}[./]{_YEAR})"
    rf"|(?P<year4>{_YEAR})(?:年(?:(?P<month4>\d{{1,2}})月(?:(?P<day4>\d{{1,2}})[日号])?)?)?",
    re.IGNORECASE,
)
_PARTS = (
    ("day", "month", "year"),
    ("day2", "month2", "year2"),
    ("day4", "month4", "year4"),
    ("", "month3", "year3"),
)
"""Groups of a date's day, month and year."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: folded, and its characters."""

    text: str
    start: int
    end: int
    stop: bool


@dataclass(frozen=True, slots=True)
class Match:
    """A part of a question that selects rows of a table by one column; column -1 is evidence that selects a row."""

    column: int
    rows: NDArray[np.bool_]
    """bool (R)"""
    words: frozenset[int]
    """Numbers of the question's words that it explains."""
    share: float
    """Of the words of the value, how many the question has; 1 for comparisons."""
    values: int
    """Different values that it holds for."""
    operator: str = "="
    text: str = ""
    """In words, for reports."""


def question_words(question: str) -> list[Word]:
    """The first words of a question."""
    found = []
    for match in islice(WORD.finditer(question), MOST_WORDS):
        text = "".join(terms_of(match.group()))
        found.append(Word(text, match.start(), match.end(), text in STOP or not text))
    return found


def matches_of(
    question: str, words: Sequence[Word], wording: Wording, sheet: Sheet, evidence: Sequence[int]
) -> list[Match]:
    """What the question may select in a table, the matches of more words first; `evidence` are rows by their rank."""
    compared = frozenset[int]()
    for comparison in wording.comparisons:
        if comparison.operator != "=":
            compared |= _within(words, comparison.start, comparison.end)
    found = [match for match in _value_matches(words, sheet) if not match.words <= compared]
    found += _date_matches(question, words, sheet)
    found += _flag_matches(words, sheet)
    for comparison in wording.comparisons:
        found += _number_matches(comparison, words, sheet)
    found.sort(key=lambda match: -_weight(match, words))
    kept = found[:MOST_MATCHES]
    for row in evidence:
        rows = np.zeros(sheet.size, bool)
        rows[row] = True
        kept.append(Match(-1, rows, frozenset(), 0.0, 1, "row", f"row {row + 1}"))
    return kept


def _weight(match: Match, words: Sequence[Word]) -> float:
    said = sum(0.1 if words[number].stop else 1.0 for number in match.words)
    return said + match.share - 0.01 * min(50, match.values)


def _value_matches(words: Sequence[Word], sheet: Sheet) -> Iterator[Match]:
    """Phrases that are a value, or a part of one; a phrase within a longer one of the same value is none."""
    longest: dict[int, tuple[int, int]] = {}
    for start in range(len(words)):
        for end in range(min(len(words), start + LONGEST_PHRASE), start, -1):
            if all(word.stop for word in words[start:end]):
                continue
            phrase = tuple(word.text for word in words[start:end])
            for number in _holding(phrase, sheet):
                known = longest.get(number)
                if known is None or end - start > known[1] - known[0]:
                    longest[number] = (start, end)
    grouped: dict[tuple[int, int, int, bool], list[int]] = {}
    for number, (start, end) in longest.items():
        value = sheet.values[number]
        whole = len(value.words) == end - start
        grouped.setdefault((value.column, start, end, whole), []).append(number)
    for (column, start, end, whole), numbers in grouped.items():
        rows = np.zeros(sheet.size, bool)
        for number in numbers:
            rows[sheet.values[number].rows] = True
        share = 1.0 if whole else (end - start) / min(len(sheet.values[number].words) for number in numbers)
        said = " ".join(word.text for word in words[start:end])
        yield Match(column, rows, frozenset(range(start, end)), share, len(numbers), "=" if whole else "~", text=said)


def _holding(phrase: tuple[str, ...], sheet: Sheet) -> list[int]:
    """Numbers of the values that hold a phrase, words side by side."""
    lists = [sheet.postings.get(word) for word in phrase]
    if any(found is None for found in lists):
        return []
    shortest = min((found for found in lists if found is not None), key=len)
    size = len(phrase)
    return [
        number
        for number in shortest
        if any(
            sheet.values[number].words[at : at + size] == phrase
            for at in range(len(sheet.values[number].words) - size + 1)
        )
    ]


def _flag_matches(words: Sequence[Word], sheet: Sheet) -> Iterator[Match]:
    """Columns of yes and no that the question names: "which bars broke in the grips?"."""
    for number, column in enumerate(sheet.columns):
        cells = {cell.strip().casefold() for cell in column.cells}
        if len(cells) > 4 or not cells & YES or not cells <= YES | NO:
            continue
        said = frozenset(at for at, word in enumerate(words) if not word.stop and _names(word.text, column.words))
        telling = [word for word in column.words if word not in STOP]
        if telling and len(said) >= len(telling) / 2:
            rows = np.array([cell.strip().casefold() in YES for cell in column.cells], bool)
            yield Match(number, rows, said, 1.0, 1, "yes", text=f"{column.header} is yes")


def _names(word: str, header: Sequence[str]) -> bool:
    return any(word == other or (min(len(word), len(other)) > 4 and word[:5] == other[:5]) for other in header)


def _number_matches(comparison: Comparison, words: Sequence[Word], sheet: Sheet) -> Iterator[Match]:
    said = _within(words, comparison.start, comparison.end)
    for number, column in enumerate(sheet.columns):
        if column.kind is not Kind.NUMBER:
            continue
        rows = _compare(column.values, comparison.operator, comparison.low, comparison.high)
        if rows.any() and (comparison.operator != "=" or not rows.all()):
            text = f"{column.header} {comparison.operator} {comparison.low:g}"
            yield Match(number, rows, said, 1.0, len(set(column.keys[rows])), comparison.operator, text=text)


def _date_matches(question: str, words: Sequence[Word], sheet: Sheet) -> Iterator[Match]:
    """Days, months and years of the question, in columns of dates and of years."""
    for found in _DATES.finditer(question):
        interval = _interval(found)
        if interval is None:
            continue
        operator, start = compared_by(question, found.start(), found.end())
        said = _within(words, start, found.end())
        for number, column in enumerate(sheet.columns):
            if column.kind is Kind.DATE:
                rows = _dated(column.values, operator, interval)
                if rows.any():
                    text = f"{column.header} {operator} {found.group()}"
                    yield Match(number, rows, said, 1.0, len(set(column.keys[rows])), operator, text=text)


def _interval(found: re.Match[str]) -> tuple[float, float] | int | None:
    """The days that a date of the question covers; a month without a year is its number."""
    for exact in ("iso", "dotted"):
        if found[exact]:
            when = read_date(found[exact])
            return None if when is None else (when.start, when.end)
    for day, month, year in _PARTS:
        if found[month] is None and (month != "month4" or found["year4"] is None):
            continue
        name = None if found[month] is None else MONTHS.get(found[month].casefold()) or int(found[month])
        if found[year] is None:
            return None if day and found[day] else name
        text = found[year] if name is None else f"{found[year]}-{name:02d}"
        text += f"-{int(found[day]):02d}" if day and found[day] and name else ""
        return _days(text)
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


def _dated(values: NDArray[np.float64], operator: str, interval: tuple[float, float] | int) -> NDArray[np.bool_]:
    if isinstance(interval, int):
        days = [np.nan if np.isnan(v) or not 1 <= v < 3_650_000 else date.fromordinal(int(v)).month for v in values]
        return np.array([month == interval for month in days], bool)
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


def _compare(values: NDArray[np.float64], operator: str, low: float, high: float) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        match operator:
            case ">":
                return values > low
            case ">=":
                return values >= low
            case "<":
                return values < low
            case "<=":
                return values <= low
            case "between":
                return (values >= low) & (values <= high)
        return np.asarray(values == low)


def _within(words: Sequence[Word], start: int, end: int) -> frozenset[int]:
    return frozenset(number for number, word in enumerate(words) if word.start >= start and word.end <= end)

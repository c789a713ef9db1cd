"""Words of a question that stand in a table's cells, and what they select.

"Which orders did Linden place in March?"      [Customer = Linden], [Date in March]
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from helios.index.languages import COMMON, UNSPACED_COMMON, recognise
from helios.index.lexical import terms_of
from helios.models.encoder import TokenVectors
from helios.reading.question import STOP
from helios.reading.tables.dates import MONTH, WEEKDAYS, said_times
from helios.reading.tables.headers import spelled_out
from helios.reading.tables.said_dates import (
    are_days,
    calendar_of,
    dated,
    day_of_usual_month,
    spans_of,
    years_of_accounts,
)
from helios.reading.tables.sheet import COMMA, LONGEST_LIST, WORD, Kind, Sheet, SheetColumn, Value, words_of
from helios.reading.tables.units import scale_of
from helios.reading.tables.wording import Comparison, Wording, compared_by

MOST_WORDS = 128
"""Words of a question that are read; what each program explains of them is held at once."""
LONGEST_PHRASE = 8
"""Words of a question that are looked up together."""
MOST_MATCHES = 18
"""Best matches of a question in a table that are kept."""
FEW = 12
"""Values of a column that are compared with a question by their meaning, if no more."""
MOST_FEW = 120
"""Values of a table that are, at most."""
NEAR, MOST_NEAR = 0.2, 3
"""How near such a value must be, and how many of a table are kept, one a column."""
SAID_NEAR = 0.35
"""How near a word must be to be explained by it."""
UNNAMED = 4
"""Columns of yes and no that a question may mean without naming them, at most."""
LEAST_TYPED = 5
"""Letters of a word that may be mistyped."""
YES = frozenset(
    ("yes", "y", "true", "x", "✓", "✔", "√", "1", "ja", "j", "wahr", "oui", "vrai", "sí", "si", "s", "是", "有")
)
NO = frozenset(("", "no", "n", "false", "0", "-", "–", "nein", "falsch", "non", "faux", "falso", "否", "无"))
SETTLED = frozenset(("paid", "settled", "cleared", "payment"))
OWING = ("owe", "owes", "owed", "owing", "outstanding", "arrear")
ENDS = (
    SETTLED,
    frozenset(("back", "returned", "return")),
    frozenset(("done", "finished", "completed", "closed", "resolved", "fixed", "repaired", "ended", "finish")),
    frozenset(("received", "arrived", "delivered", "arrival", "delivery")),
)
"""Words of columns that are empty until something has ended, and of questions about it."""
DAYS = ("date", "dt", "day", "on", "at")
"""Words of headers that only say that a column holds days."""
_DENIES = re.compile(
    r"(?:n['’]t|\bnot|\bnever|\bnicht|\bnie|\bpas|\bjamais|\bnunca|[没未])"
    r"(?:\s*(?!(?:and|or|but|who|which|that|with|und|oder|et|ou|y|o)\b)[^\s,;]+){0,5}\s*$",
    re.IGNORECASE,
)
"""What denies the comparison that follows it."""
_DENIED = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
COMPARING = (">", ">=", "<", "<=", "between")
"""Operators of matches that select rows by what is more or less."""
_LONG_NUMBER = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?|\d+[.,]\d{1,2})(?![\d.,]*\d)")
_FIRST_YEAR = 366
"""Days up to this one have no year, and no day of the week."""
_TO = re.compile(
    r"\s*(?:and|to|until|till|through|und|bis|et|à|au|jusqu\W\w+|y|a|al|hasta|-|–|到|至|和)\s*(?:the |the end of )?",
    re.I,
)
_MARK = re.compile(r"[;|\n、；，]")
"""Between the items of a cell that lists some."""
_OR = re.compile(
    r"\s*(?:,|and|or|&|und|oder|et|ou|y|e|o|u|和|或|、)\s*(?:the |der |die |das |la |le |les |el |los |las )?", re.I
)
_DAY_ALONE = re.compile(
    r"\b(?:the|on) (?P<day>\d{1,2})(?:st|nd|rd|th)\b"
    r"(?=\W*$|\s*[,.;:!?)]|\s+(?:and|or|to|at|in|for|by|from|with|did|was|were|is|on(?:wards?)?|"
    r"have|has|are|who|which|that)\b)"
    rf"|\b(?:am|le|el) (?P<day2>\d{{1,2}})\b\.?(?!\s*(?:de\s+)?(?:{MONTH})\b|[.:/,h]?\d|\s*(?:h|uhr)\b)"
    r"|(?<![\d月])(?P<day3>\d{1,2})[日号]",
    re.IGNORECASE,
)
_SPACED_DAYS = "|".join(name for name in WEEKDAYS if name[0] not in "星周")
_WEEKDAY = re.compile(rf"\b(?P<name>{_SPACED_DAYS})s?\b|(?P<unspaced>(?:星期|周)[一二三四五六日天])", re.IGNORECASE)
_UNSPACED_COMMON = re.compile("|".join(UNSPACED_COMMON))
_NOT = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bexcept(?: for)?|\bother than|\bapart from|\bexcluding|\ball but|\bnicht|\bkeine?|"
    r"\baußer|\bpas|\bsauf|\bhors|\bno|\bexcepto|\bsalvo|[没未不]|除了)(?:\W+(?:yet|been|be|being|those|the|an?|in|at|"
    r"from|for|of|to|with|as|die|der|das|dem|den|la|le|les|el|los|de|du|en))*\W*$",
    re.IGNORECASE,
)
"""What leaves out the value that it stands before."""
_ENDING = re.compile(r"(?:ing|ed|es|e|s|d)$")


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
    language = recognise(question)
    common = STOP if language in ("", "en") else STOP | _common(language)
    unspaced = [match.span() for match in _UNSPACED_COMMON.finditer(question)]
    found = []
    for match in islice(WORD.finditer(question), MOST_WORDS):
        text = "".join(terms_of(match.group()))
        within = any(start <= match.start() and match.end() <= end for start, end in unspaced)
        found.append(Word(text, match.start(), match.end(), text in common or not text or within))
    return found


@cache
def _common(language: str) -> frozenset[str]:
    """Words of a language that say nothing, folded as a question's are."""
    return frozenset("".join(terms_of(word)) for word in COMMON.get(language, ()))


def matches_of(
    question: str, words: Sequence[Word], wording: Wording, sheet: Sheet, evidence: Sequence[int],
    near: Sequence[Match] = (), beside: Sequence[Match] = (),
) -> list[Match]:  # fmt: skip
    """What the question may select in a table, the matches of more words first.

    `evidence` are rows by their rank, `near` are matches by meaning, `beside` are of columns that are compared with one
    another.
    """
    compared = frozenset[int]()
    for comparison in wording.comparisons:
        if comparison.operator != "=":
            compared |= within(words, comparison.start, comparison.end)
    found = [match for match in _value_matches(_typed(words, sheet), sheet) if not match.words <= compared]
    for number in _long_numbers(question, words):
        found = [match for match in found if not match.words & number or number <= match.words]
    found += list(_either(question, words, found))
    found += list(_left_out(question, words, found, sheet))
    found += _date_matches(question, words, sheet)
    found += _day_matches(question, words, sheet)
    found += _time_matches(question, words, sheet)
    found += _held_matches(words, sheet, negated=wording.has("negated"))
    found += _flag_matches(words, sheet, negated=wording.has("negated"))
    held = {match.column for match in found if match.operator in ("=", "yes", "no") and match.share == 1.0}
    found += [match for match in near if match.column not in held]
    for comparison in wording.comparisons:
        found += _number_matches(comparison, words, sheet)
    found += beside
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
        whole = len(value.words) == end - start or _lists(value, tuple(word.text for word in words[start:end]), sheet)
        grouped.setdefault((value.column, start, end, whole), []).append(number)
    for (column, start, end, whole), numbers in grouped.items():
        rows = np.zeros(sheet.size, bool)
        for number in numbers:
            rows[sheet.values[number].rows] = True
        share = 1.0 if whole else (end - start) / min(len(sheet.values[number].words) for number in numbers)
        said = " ".join(word.text for word in words[start:end])
        yield Match(column, rows, frozenset(range(start, end)), share, len(numbers), "=" if whole else "~", text=said)


def _long_numbers(question: str, words: Sequence[Word]) -> list[frozenset[int]]:
    """The words of numbers that are written with marks: 5,150 is neither 5 nor 150, and 2025-26 is no 2025."""
    found = [*_LONG_NUMBER.finditer(question), *years_of_accounts(question)]
    return [within(words, one.start(), one.end()) for one in found]


def _lists(value: Value, phrase: tuple[str, ...], sheet: Sheet) -> bool:
    """Whether a value is a list of which one item is the phrase: "Tue; Thu" lists Tue as "Tue" alone does."""
    column = sheet.columns[value.column]
    if column.kind is not Kind.TEXT:
        return False
    cell = column.cells[int(value.rows[0])][:LONGEST_LIST]
    items = _MARK.split(cell)
    if len(items) == 1 and column.lists_by_commas:
        items = COMMA.split(cell)
    return len(items) > 1 and any(
        phrase in (tuple(words_of(item)), tuple(words_of(spelled_out(item)))) for item in items
    )


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


def _typed(words: Sequence[Word], sheet: Sheet) -> Sequence[Word]:
    """The words, mistyped ones as the table has them: no value and no header has the word, and one is an edit away."""
    known = {word for column in sheet.columns for word in column.words}
    found = []
    for word in words:
        text = word.text
        if (
            not word.stop
            and len(text) >= LEAST_TYPED
            and text.isalpha()
            and not (text in known or text in sheet.postings)
        ):
            sizes = range(max(LEAST_TYPED, len(text) - 1), len(text) + 2)
            like = (other for size in sizes for other in sheet.spellings.get((text[0], size), ()))
            close = [other for other in like if _one_edit(text, other)]
            if len(close) == 1:
                word = replace(word, text=close[0])
        found.append(word)
    return found


def _one_edit(one: str, other: str) -> bool:
    """Whether a letter was left out, put in, mistaken, or changed places; for words a letter longer at most."""
    size = min(len(one), len(other))
    at = next((n for n in range(size) if one[n] != other[n]), size)
    if len(one) != len(other):
        short, long = sorted((one, other), key=len)
        return short[at:] == long[at + 1 :]
    swapped = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    return swapped or one[at + 1 :] == other[at + 1 :]


def _either(question: str, words: Sequence[Word], matches: Sequence[Match]) -> Iterator[Match]:
    """Values of one column side by side: "the croissants and the rolls"."""
    columns: dict[int, list[Match]] = {}
    for match in sorted(matches, key=lambda match: (min(match.words), -len(match.words))):
        if not any(match.words & other.words for other in columns.get(match.column, ())):
            columns.setdefault(match.column, []).append(match)
    for column, found in columns.items():
        chains: list[list[Match]] = [[]]
        for match in found:
            end = words[max(chains[-1][-1].words)].end if chains[-1] else 0
            if chains[-1] and not _OR.fullmatch(question[end : words[min(match.words)].start]):
                chains.append([])
            chains[-1].append(match)
        for chain in chains:
            if len(chain) > 1:
                rows = np.logical_or.reduce([one.rows for one in chain])
                said = frozenset[int]().union(*(one.words for one in chain))
                share, values = min(one.share for one in chain), sum(one.values for one in chain)
                operator = "=" if all(one.operator == "=" for one in chain) else "~"
                yield Match(column, rows, said, share, values, operator, " or ".join(one.text for one in chain))


def _left_out(question: str, words: Sequence[Word], matches: Sequence[Match], sheet: Sheet) -> Iterator[Match]:
    """All but a value of a column that has few: "claims that are not closed", "all but the Northgate ones"."""
    for match in matches:
        first = min(match.words, default=0)
        column = sheet.columns[match.column]
        found = _NOT.search(question[: words[first].start])
        if found is None or match.operator != "=" or column.kind is not Kind.TEXT or not 1 < column.distinct <= FEW:
            continue
        rows = ~match.rows & (column.keys >= 0)
        if rows.any():
            said = match.words | within(words, found.start(), words[first].start)
            text = f"{column.header} is not {match.text}"
            yield Match(match.column, rows, said, match.share, len(set(column.keys[rows])), "≠", text=text)


def few_values(sheet: Sheet) -> list[tuple[int, int, int]]:
    """(column, key, row) of the values of columns of text that repeat a few."""
    found = []
    for number, column in enumerate(sheet.columns):
        if column.kind is Kind.TEXT and 1 < column.distinct <= min(FEW, sheet.size - 1):
            keys, rows = np.unique(column.keys, return_index=True)
            found += [(number, int(key), int(row)) for key, row in zip(keys, rows, strict=True) if key >= 0]
    return found[:MOST_FEW]


def near_matches(
    words: Sequence[Word], question: TokenVectors, sheet: Sheet, values: Sequence[tuple[int, int, TokenVectors]]
) -> Iterator[Match]:
    """The values nearest to the question in meaning: for "lawyers" the column's `solicitors`."""
    best: dict[int, tuple[float, int, NDArray[np.float32]]] = {}
    for column, key, vectors in values:
        if len(vectors.vectors) and len(question.vectors):
            similar = vectors.vectors @ question.vectors.T
            near = float(similar.max(axis=1).mean())
            if near >= NEAR and near > best.get(column, (0.0,))[0]:
                best[column] = (near, key, similar.max(axis=0))
    for column, (near, key, similar) in sorted(best.items(), key=lambda item: -item[1][0])[:MOST_NEAR]:
        yield like(sheet, column, key, near, said_near(words, question, similar))


def said_near(words: Sequence[Word], question: TokenVectors, similar: NDArray[np.float32]) -> frozenset[int]:
    """The words that are near a value; `similar` says how near each token of the question is."""
    spans = question.spans[similar >= SAID_NEAR]
    said = (at for at, word in enumerate(words) if ((spans[:, 0] < word.end) & (spans[:, 1] > word.start)).any())
    return frozenset(at for at in said if not words[at].stop)


def like(sheet: Sheet, column: int, key: int, near: float, said: frozenset[int]) -> Match:
    """The rows with a value that is near to what the question says."""
    rows = sheet.columns[column].keys == key
    text = f"{sheet.columns[column].header} is like {sheet.columns[column].cells[int(np.argmax(rows))]}"
    return Match(column, rows, said, near, 1, "≈", text)


def is_flag(column: SheetColumn) -> bool:
    """Whether a column says yes or no of each row."""
    cells = {cell.strip().casefold() for cell in column.cells} if column.distinct <= 4 else set()
    return 1 < len(cells) <= 4 and bool(cells & YES) and cells <= YES | NO


def said_yes(column: SheetColumn) -> NDArray[np.bool_]:
    """bool (R): rows of which a column of yes and no says yes."""
    return np.array([cell.strip().casefold() in YES for cell in column.cells], bool)


def empty_cells(column: SheetColumn) -> NDArray[np.bool_]:
    """bool (R): cells that hold nothing; a zero is as nothing."""
    nothing: NDArray[np.bool_] = (column.keys < 0) | ((column.values == 0) & (column.kind is Kind.NUMBER))
    return nothing


def _flag_matches(words: Sequence[Word], sheet: Sheet, *, negated: bool) -> Iterator[Match]:
    """Columns of yes and no: "which bars broke in the grips?"; those that are not named explain no word."""
    unnamed = 0
    for number, column in enumerate(sheet.columns):
        if not is_flag(column):
            continue
        said = frozenset(at for at, word in enumerate(words) if not word.stop and names(word.text, column.words))
        telling = [word for word in column.words if word not in STOP]
        named = bool(telling) and len(said) >= len(telling) / 2
        unnamed += not named
        if named or unnamed <= UNNAMED:
            rows, says = (~said_yes(column), "no") if negated else (said_yes(column), "yes")
            explained, share = (said, 1.0) if named else (frozenset[int](), 0.0)
            yield Match(number, rows, explained, share, 1, says, text=f"{column.header} is {says}")


def _held_matches(words: Sequence[Word], sheet: Sheet, *, negated: bool) -> Iterator[Match]:
    """Cells of a named column that are filled, or are not: "who has no phone?"; a zero is as nothing."""
    for number, column in enumerate(sheet.columns[: sheet.own]):
        nothing = empty_cells(column)
        if not nothing.any() or nothing.all():
            continue
        said = frozenset(at for at, word in enumerate(words) if not word.stop and names(word.text, column.words))
        said |= frozenset(at for at, word in enumerate(words) if _ends_alike(word.text, column.words))
        undone = frozenset(at for at, word in enumerate(words) if _undone(word.text, column.words))
        telling = [word for word in column.words if word not in STOP]
        telling = [word for word in telling if word not in DAYS] or telling
        if telling and len(said | undone) >= len(telling) / 2:
            empty = negated or bool(undone)
            text = f"{column.header} is {'empty' if empty else 'given'}"
            yield Match(
                number, nothing if empty else ~nothing, said | undone, 1.0, 1, "no" if empty else "yes", text=text
            )


def names(word: str, header: Sequence[str]) -> bool:
    """Whether a word is one of a header's, in whatever form."""
    return any(
        word == other
        or (min(len(word), len(other)) > 4 and word[:5] == other[:5])
        or (len(stem := _stem(word)) > 3 and stem == _stem(other))
        for other in header
    )


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    """A word without its English ending: "closing" and "closed" are one."""
    return _ENDING.sub("", word)


def _undone(word: str, header: Sequence[str]) -> bool:
    """Whether a word denies what a header names: "unpaid" and "paid on", "owes" and "settled"."""
    owing = word in OWING and not SETTLED.isdisjoint(header)
    return owing or (word.startswith("un") and len(word) > 5 and names(word[2:], header))


def _ends_alike(word: str, header: Sequence[str]) -> bool:
    """Whether a word and a header name the same end of a thing: "not returned yet" and the day it was back."""
    return any(word in group and not group.isdisjoint(header) for group in ENDS)


def _number_matches(comparison: Comparison, words: Sequence[Word], sheet: Sheet) -> Iterator[Match]:
    said = within(words, comparison.start, comparison.end)
    for number, column in enumerate(sheet.columns):
        if column.kind is not Kind.NUMBER:
            continue
        times = scale_of(comparison.unit, column.words)
        rows = compare(column.values, comparison.operator, times * comparison.low, times * comparison.high)
        if rows.any() and (comparison.operator != "=" or not rows.all()):
            text = f"{column.header} {comparison.operator} {times * comparison.low:g}"
            yield Match(number, rows, said, 1.0, len(set(column.keys[rows])), comparison.operator, text=text)


def _time_matches(question: str, words: Sequence[Word], sheet: Sheet) -> Iterator[Match]:
    """Times of day of the question, in columns of times."""
    columns = [(number, column) for number, column in enumerate(sheet.columns) if column.kind is Kind.TIME]
    said = list(said_times(question)) if columns else []
    for at, time in enumerate(said):
        operator, start = compared_by(question, time.start, time.end)
        following = said[at + 1] if at + 1 < len(said) else None
        until = following and _TO.fullmatch(question[time.end : following.start])
        for number, column in columns:
            for minutes in time.minutes:
                rows = compare(column.values, operator, minutes, minutes)
                explained, text = within(words, start, time.end), f"{column.header} {operator} {minutes} minutes"
                if until and following:
                    latest = min((one for one in following.minutes if one > minutes), default=following.minutes[0])
                    if latest > minutes:
                        rows = compare(column.values, "between", minutes, latest)
                    else:  # past midnight
                        rows = compare(column.values, ">=", minutes, 0) | compare(column.values, "<=", latest, 0)
                    explained, text = within(words, start, following.end), f"{column.header} in {minutes} to {latest}"
                if rows.any():
                    count = len(set(column.keys[rows]))
                    yield Match(number, rows, explained, 1.0, count, "between" if until else operator, text=text)


def _day_matches(question: str, words: Sequence[Word], sheet: Sheet) -> Iterator[Match]:
    """Days of a month and days of the week, in columns of dates: "on the 9th", "on Tuesdays"."""
    dates = [(number, column) for number, column in enumerate(sheet.columns) if column.kind is Kind.DATE]
    for found in _DAY_ALONE.finditer(question) if dates else ():
        wanted = int(found["day"] or found["day2"] or found["day3"])
        operator, start = compared_by(question, found.start(), found.end())
        for number, column in dates:
            rows = are_days(column.values)
            rows[rows] = calendar_of(column.values[rows])[2] == wanted
            yield from _of_days(found, rows, number, words, sheet)
            limit = day_of_usual_month(column.values, wanted) if operator != "=" else None
            if limit is not None and (rows := dated(column.values, operator, limit)).any():
                said, text = within(words, start, found.end()), f"{column.header} {operator} {found[0]}"
                yield Match(number, rows, said, 1.0, len(set(column.keys[rows])), operator, text=text)
    for found in _WEEKDAY.finditer(question) if dates else ():
        wanted = WEEKDAYS[(found["name"] or found["unspaced"]).casefold()]
        for number, column in dates:
            rows = are_days(column.values) & (column.values > _FIRST_YEAR)
            rows[rows] = (column.values[rows].astype(np.int64) - 1) % 7 == wanted
            yield from _of_days(found, rows, number, words, sheet)


def _of_days(
    found: re.Match[str], rows: NDArray[np.bool_], number: int, words: Sequence[Word], sheet: Sheet
) -> Iterator[Match]:
    if rows.any():
        column, said = sheet.columns[number], within(words, found.start(), found.end())
        yield Match(number, rows, said, 1.0, len(set(column.keys[rows])), text=f"{column.header} is {found[0]}")


def _date_matches(question: str, words: Sequence[Word], sheet: Sheet) -> Iterator[Match]:
    """Days, months and years of the question, in columns of dates and of years; "not seen since May" is before it."""
    spans = spans_of(question)
    for at, (first, end, days) in enumerate(spans):
        operator, start = compared_by(question, first, end)
        if _DENIES.search(question, 0, start):
            operator = _DENIED.get(operator, operator)
        following = spans[at + 1] if at + 1 < len(spans) else None
        for number, column in enumerate(sheet.columns):
            if column.kind is not Kind.DATE:
                continue
            rows = dated(column.values, operator, days)
            said = within(words, start, end)
            if rows.any() and said:  # FY2025 and Q400 are no dates
                text = f"{column.header} {operator} {question[first:end]}"
                yield Match(number, rows, said, 1.0, len(set(column.keys[rows])), operator, text=text)
            between = question[end : following[0]] if following is not None else ""
            if following is not None and (_TO.fullmatch(between) or _OR.fullmatch(between)):
                rows = dated(column.values, ">=", days) & dated(column.values, "<=", following[2])
                if not _TO.fullmatch(between):  # "in July or August"
                    rows = dated(column.values, "=", days) | dated(column.values, "=", following[2])
                if rows.any():
                    said, text = (
                        within(words, first, following[1]),
                        f"{column.header} in {question[first : following[1]]}",
                    )
                    yield Match(number, rows, said, 1.0, len(set(column.keys[rows])), "between", text=text)


def compare(
    values: NDArray[np.float64], operator: str, low: float | NDArray[np.float64], high: float | NDArray[np.float64]
) -> NDArray[np.bool_]:
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


def within(words: Sequence[Word], start: int, end: int) -> frozenset[int]:
    """Numbers of the words in characters [start, end)."""
    return frozenset(number for number, word in enumerate(words) if word.start >= start and word.end <= end)

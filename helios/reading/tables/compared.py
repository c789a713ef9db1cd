"""Columns of a table whose values are compared with each other in every row.

"what is below its reorder level?"               [In stock < Reorder at]
"which orders came later than promised?"         [Arrived > Promised]
"which students have not paid all they owe?"     [Paid < Fee]
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from helios.reading.question import STOP
from helios.reading.tables.matching import OWING, SAID_NEAR, SETTLED, Match, Word, compare, names, within
from helios.reading.tables.sheet import Kind, Sheet
from helios.reading.tables.wording import Wording

MOST_COLUMNS = 8
"""Columns of numbers, or of dates, of a table that are compared, at most."""
LONGEST_NAME = 4
"""Words after a comparison among which the name of a column is looked for."""
LONGEST_CLAUSE = 8
"""And among which one that is near in meaning is: "than the supplier had promised us"."""
_DUE = re.compile(
    r"due|promis|planned|\bplan|deadline|expect|agreed|target|scheduled|fällig|zugesagt|geplant|frist|soll|termin|prévu|"
    r"échéance|limite|promet|previst|vencim|plazo|acordad|约定|应|到期|计划|承诺|截止",
    re.IGNORECASE,
)
"""Names of columns of the days by which something has to be."""
_LIMIT = re.compile(
    r"budget|\bplan|\bmin|\bmax|limit|target|reorder|re-order|reord|quota|allow|capacity|places|agreed|quote|estimate|"
    r"soll|mindest|höchst|meldebestand|prévu|plafond|seuil|tope|límite|mínim|máxim|presupuest|previst|上限|下限|最低|最高|预算|"
    r"计划|定额|安全库存",
    re.IGNORECASE,
)
"""Names of columns of what there may be at most, or should be at least."""
_LATE = re.compile(
    r"\b(?:too )?late\b|\boverdue|\bbehind schedule|\bzu spät|\bverspätet|\büberfällig|\ben retard|\bcon retraso|"
    r"\bdemasiado tarde|迟|晚到|逾期|超期|延误",
    re.IGNORECASE,
)
_EARLY = re.compile(
    r"\b(?:too |ahead )?early\b|\bahead of (?:time|schedule)|\bzu früh|\bvorzeitig|\ben avance|\bantes de tiempo|提前",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\boverspen[dt]|\b(?:over|above|beyond|past) (?:the |its |their |our )?(?:budget|limit|plan|target|quota|maximum)|"
    r"\bexceed|\btoo much|\boverbook|\bdépass|\bcrevé|\büberzogen|\büberschritten|\büber (?:dem |das )?budget|"
    r"\bse pas(?:ó|aron|a)\b|\bexcedid|\bsuper(?:a|ó|aron)\b|超支|超出|超过预算|超标",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"\brunning (?:low|short|out)|\blow (?:on|in) stock|\bre-?order|\bneeds? (?:re)?stocking|\bneeds? ordering|"
    r"\brestock|\btoo (?:few|little)|"
    r"\b(?:under|below) (?:the |its |their |our )?(?:minimum|limit|level|plan|target|budget)|"
    r"\bnachbestell|\bknapp|\bzu wenig|\bunter (?:dem )?(?:mindest|melde)|\brecommander|\bréapprovisionn|\ben dessous|"
    r"\breponer|\bpor debajo|补货|低于|不足|缺货",
    re.IGNORECASE,
)
_THAN = re.compile(r"\b(?:than|als|que?)\b|比", re.IGNORECASE)
"""Only behind these may a column be meant that is not named: "by the office" and "up to the gate" compare nothing."""
_IN_FULL = re.compile(
    r"\b(?:in full|fully|full|all|every|whole|entire|completely|everything)\b|\bganz|\balle[ns]?\b|\bvollständig|"
    r"\bkomplett|\bentièrement|\btotalement|\btoute?s?\b|"
    r"\bpor completo|\bdel todo|\bcompletamente|\btod[oa]\b|全部|全额|付清|还清|结清|交齐",
    re.IGNORECASE,
)


def compared_matches(
    question: str, words: Sequence[Word], wording: Wording, sheet: Sheet, similar: NDArray[np.float32] | None = None
) -> list[Match]:
    """Rows in which a column is more, or less, than another one that the question names or means.

    `similar` says how near the name of each column is to each word: float32 (C, W).
    """
    found: dict[str, Match] = {}
    for match in _compared(question, words, wording, sheet, similar):
        found.setdefault(match.text, match)
    return list(found.values())


def _compared(
    question: str, words: Sequence[Word], wording: Wording, sheet: Sheet, similar: NDArray[np.float32] | None
) -> Iterator[Match]:
    for kind in (Kind.NUMBER, Kind.DATE):
        columns = [at for at, column in enumerate(sheet.columns[: sheet.own]) if column.kind is kind]
        if not 1 < len(columns) <= MOST_COLUMNS:
            continue
        limits = [
            (operator, limit, said | within(words, start, end))
            for operator, start, end in wording.comparing
            for meant in (similar if _THAN.search(question, start, end) else None,)
            for limit, said in _named(words, end, columns, sheet, meant)
        ]
        limits += _implied(question, words, columns, sheet, kind)
        for operator, limit, explained in limits:
            for at in columns:
                if at != limit and (match := beside(sheet, at, operator, limit, explained)) is not None:
                    yield match
        if kind is Kind.NUMBER:
            in_part = wording.has("negated") or any(word.text in OWING for word in words)
            yield from _in_full(question, words, columns, sheet, "<" if in_part else "=")


def _named(
    words: Sequence[Word], end: int, columns: Sequence[int], sheet: Sheet, similar: NDArray[np.float32] | None
) -> Iterator[tuple[int, frozenset[int]]]:
    """Columns that words behind a comparison name, with the words; or the nearest one in meaning."""
    behind = [at for at, word in enumerate(words) if word.start >= end]
    found = False
    for at in columns:
        telling = [word for word in sheet.columns[at].words if word not in STOP]
        near = (n for n in behind[:LONGEST_NAME] if not words[n].stop and names(words[n].text, telling))
        said = frozenset(near)
        if telling and len(said) >= len(telling) / 2:
            found = True
            yield at, said
    clause = [n for n in behind[:LONGEST_CLAUSE] if not words[n].stop]
    if not found and similar is not None and clause:
        nearness = similar[np.ix_(columns, clause)]
        nearest = int(np.argmax(nearness.max(axis=1)))
        near = (n for n, one in zip(clause, nearness[nearest], strict=True) if one >= SAID_NEAR)
        yield columns[nearest], frozenset(near)


def _implied(
    question: str, words: Sequence[Word], columns: Sequence[int], sheet: Sheet, kind: Kind
) -> Iterator[tuple[str, int, frozenset[int]]]:
    """Limits that a question means without comparing: "what came late?", "what do we have to reorder?"."""
    over, under, limit = (_LATE, _EARLY, _DUE) if kind is Kind.DATE else (_OVER, _SHORT, _LIMIT)
    for operator, pattern in ((">", over), ("<", under)):
        if found := pattern.search(question):
            for at in columns:
                if limit.search(sheet.columns[at].header):
                    yield operator, at, within(words, found.start(), found.end())


def _in_full(
    question: str, words: Sequence[Word], columns: Sequence[int], sheet: Sheet, operator: str
) -> Iterator[Match]:
    """Rows in which what was paid, taken or given is all of what it may be, or less: of two columns one is nowhere
    above the other."""
    found = _IN_FULL.search(question)
    if found is None:
        return
    for at in columns:
        header = sheet.columns[at].words
        settled = not SETTLED.isdisjoint(header)
        said = frozenset(n for n, word in enumerate(words) if not word.stop and names(word.text, header))
        for limit in columns if said or settled else ():
            above = sheet.columns[at].values > sheet.columns[limit].values
            match = beside(sheet, at, operator, limit, said | within(words, found.start(), found.end()))
            if at != limit and match is not None and not above.any():
                yield match


def beside(sheet: Sheet, at: int, operator: str, limit: int, explained: frozenset[int]) -> Match | None:
    """Rows in which a column is more, or less, than another one; None where that is said of none or of all."""
    column, other = sheet.columns[at], sheet.columns[limit]
    known = np.isfinite(column.values) & np.isfinite(other.values)
    rows = known & compare(column.values, operator, other.values, other.values)
    if not rows.any() or rows.all():
        return None
    text = f"{column.header} {operator} {other.header}"
    return Match(at, rows, explained, 1.0, len(set(column.keys[rows])), operator, text=text)

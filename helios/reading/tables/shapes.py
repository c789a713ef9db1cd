"""What the cells of a column look like, and whether a question asks for that: money, a name, a number to ring."""

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from helios.models.glossary import gloss
from helios.reading.tables.headers import spelled_out
from helios.reading.tables.sheet import Kind, SheetColumn

SEEN = 40
"""Cells of a column that are looked at."""
COLUMN = ("digits", "names", "codes", "money", "phones", "sentences")
"""Shares of the cells; of money 1 too where the header says so."""
JOINT = ("asks_money", "asks_phone", "asks_code", "money_fits", "phone_fits", "time_direction")
_MONEY = re.compile(
    r"[$€£¥元]|\b(?:eur|gbp|usd|chf|euros?|pounds?|dollars?|quid|prices?|costs?|fees?|rents?|amounts?|pay|paid|salary|"
    r"salaries|wages?|charges?|takings|revenue|turnover|invoiced?|preise?|kosten|betrag|gebühr|gehalt|lohn|miete|umsatz|"
    r"prix|coûts?|montant|tarifs?|loyer|salaire|precios?|costes?|importe|tarifas?|alquiler|sueldo|salario)\b|"
    r"价|金额|费|工资|月薪|租金",
    re.IGNORECASE,
)
_ASKS_MONEY = re.compile(
    r"[$€£¥]|\b(?:costs?|prices?|priced|charged?s?|pay|pays|paid|fees?|rents?|rates?|earns?|earned|wages?|salary|spend|"
    r"spent|expensive|cheap(?:er|est)?|dear(?:er|est)?|quid|pounds?|euros?|dollars?|owed?s?|worth|takings|turnover|"
    r"revenue|invoiced?|bill(?:ed|s)?|budget|preise?|kosten|kostet(?:en)?|bezahl\w*|gebühr\w*|gehalt|lohn|miete|umsatz|"
    r"teuer\w*|billig\w*|prix|coût\w*|coute\w*|payer|payé\w*|tarif\w*|loyer|salaire|cher|chère|vend|vaut|precio\w*|"
    r"cuesta\w*|cost(?:ó|aba|aron)|pag(?:a|amos|an|ó|ar)|tarifa\w*|alquiler|sueldo|car[oa]|barat[oa])\b|"
    r"价|多少钱|费|贵|便宜|工资|卖|租金",
    re.IGNORECASE,
)
_ASKS_PHONE = re.compile(
    r"\b(?:phones?|telephone|mobile|cell|ring|call|dial|extension|landline|telefon\w*|handy|anrufen|durchwahl|"
    r"téléphone|portable|appeler|teléfono|móvil|llamar)\b|电话|手机|分机",
    re.IGNORECASE,
)
_ASKS_CODE = re.compile(
    r"\b(?:codes?|numbers?|no\.|ids?|refs?|references?|sku|nr|nummer\w*|kürzel|kennung|código|número|numéro|clave)\b|"
    r"代码|代号|编号|号码|工号",
    re.IGNORECASE,
)
_CURRENCY = re.compile(r"^\W{0,2}[$€£¥]\s?-?\d|\d\s?(?:[$€£¥元]|EUR|GBP|USD|CHF)\W*$")
_PHONE = re.compile(r"\+?[\d(][\d\s()/.-]{6,}\d")
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[\w./-]{2,14}")
_NAME = re.compile(r"(?:[^\W\d_a-zß-ÿ][\w'’.-]*\s){1,3}[^\W\d_a-zß-ÿ][\w'’.-]+|[㐀-鿿]{2,4}")
_LATE = re.compile(
    r"\bnewest\b|\blatest\b|\blast\b|\bmost recent|\byoungest\b|\bshortest[- ](?:serving|standing)|\bfinal\b|"
    r"\bneuest|\bletzte|\bjüngst|zuletzt|derni[eè]r|plus récent|plus jeune|[úu]ltim|más (?:recient|nuev|jov)|"
    r"最新|最近|最晚|最后|最年轻|(?:年龄|年纪|岁数)[^，。？]{0,4}小",
    re.IGNORECASE,
)
_EARLY = re.compile(
    r"\boldest\b|\bearliest\b|\bfirst\b|\blongest\b|\bältest|\bfrüheste?|\berste[rsn]?\b|zuerst|am längsten|"
    r"dienstältest|premi[eè]r|plus (?:ancien|vieux|vieille|vieil)|depuis le plus|primer|más (?:antigu|viej)|más tiempo|"
    r"最早|最老|最久|最先|最长|最年长|(?:年龄|年纪|岁数)[^，。？]{0,4}大",
    re.IGNORECASE,
)
_YEARS = frozenset(("year", "since", "jahr", "seit", "année", "depuis", "año", "desde", "年", "年份"))


def column_shapes(columns: Sequence[SheetColumn]) -> NDArray[np.float32]:
    """float32 (C, len(COLUMN))."""
    return np.array([_shape(one.header, one.cells[: 2 * SEEN]) for one in columns], np.float32).reshape(-1, len(COLUMN))


@lru_cache(maxsize=4096)
def _shape(header: str, first: tuple[str, ...]) -> tuple[float, ...]:
    cells = [cell.strip() for cell in first if cell.strip()][:SEEN]
    size = max(1, len(cells))

    def share(pattern: re.Pattern[str]) -> float:
        return sum(pattern.fullmatch(cell) is not None for cell in cells) / size

    money = sum(_CURRENCY.search(cell) is not None for cell in cells) / size
    digits = sum(any(map(str.isdigit, cell)) for cell in cells) / size
    if digits > 0.5 and _MONEY.search(spelled_out(header).replace("_", " ")):
        money = 1.0
    long = sum(len(cell) > 60 for cell in cells) / size
    return digits, share(_NAME), share(_CODE), money, share(_PHONE), long


def asked_shapes(question: str) -> tuple[float, ...]:
    """Whether a question asks for money, for a number to ring, for a code."""
    english = gloss(question)
    text = question if english is None else f"{question} {english.text}"
    return tuple(float(one.search(text) is not None) for one in (_ASKS_MONEY, _ASKS_PHONE, _ASKS_CODE))


def time_hint(question: str) -> int:
    """-1 where what came first in time is asked for, 1 for what came last, 0 for neither or both."""
    return int(_LATE.search(question) is not None) - int(_EARLY.search(question) is not None)


def is_of_time(column: SheetColumn) -> bool:
    """Whether a column's order is one of time: dates, and years."""
    if column.kind is Kind.DATE:
        return True
    finite = column.values[np.isfinite(column.values)]
    whole = len(finite) > 0 and bool(np.all((finite >= 1500) & (finite <= 2100)))
    return (
        column.kind is Kind.NUMBER
        and whole
        and (bool(_YEARS & set(column.words)) or not _MONEY.search(spelled_out(column.header).replace("_", " ")))
    )

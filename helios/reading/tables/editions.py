"""Which of several editions of a table a question means: the price list of this year, or the one that it replaced.

People keep both. "What do we charge for a keg now" is answered by the new one, "what was it in 2023" by the old one;
the words of the rows are the same in each.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.reading.tables.sheet import Sheet, words_of

FEATURES = ("edition", "edition_said")
ALIKE = 0.34
"""Share of the headers, or of the words of the titles, that two editions of a table have in common at least."""
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_REPLACED = re.compile(
    r"\bold\b|supersed|replaced|obsolete|retired|outdated|out of date|do not use|don['’]t use|\bprevious|\bformer|"
    r"archiv|no longer|\balte[rsn]?\b|\bveraltet|ungültig|\babgelaufen|nicht mehr|bisherig|\bancien|périm|remplac|"
    r"ne plus utiliser|obsol|\bviej[oa]s?\b|\bantigu[oa]s?\b|anulad|caducad|no usar|sustituid|旧|作废|停用|过期",
    re.IGNORECASE,
)
_FRESH = re.compile(
    r"\bnew\b|\bcurrent|use this|\bvalid from|\bin force|\bneue?[rsn]?\b|gültig ab|aktuell|\bnouve|en vigueur|\bactuel|"
    r"\bnuev[oa]s?\b|vigente|\bactual(?:es)?\b|新|现行|现用",
    re.IGNORECASE,
)
_THEN = re.compile(
    r"\blast (?:year|season|summer|winter|spring|autumn)|\bold\b|\bused to\b|\bback (?:in|then)\b|\bpreviously\b|"
    r"\bformer(?:ly)?\b|\bbefore (?:it|they|the (?:price|rate|fee)s?|we) (?:went|go|rose|changed|put)|\bearlier list\b|"
    r"letzte[sn]? (?:jahr|saison|sommer)|vorjahr|voriges jahr|\balte[rsn]?\b|\bfrüher|damals|vorher|"
    r"l['’]an dernier|l['’]année dernière|l['’]année passée|\bancien|\bavant\b|\bautrefois|"
    r"el año pasado|la temporada pasada|\bantes\b|\bantigu|\bviej|去年|原来|以前|之前|旧|老价",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\bnow\b|\bnowadays\b|\bthese days\b|\bcurrent(?:ly)?\b|\bthis (?:year|season)|\btoday\b|\bat the moment\b|"
    r"\bnew\b|\bup[- ]to[- ]date\b|\bjetzt\b|\bderzeit|\baktuell|\bheuer\b|diese[sn]? jahr|zurzeit|\bneue?[nrs]?\b|"
    r"\bmaintenant|\bactuel|cette année|cette saison|en ce moment|\bnouve|\bahora\b|\bactual|este año|esta temporada|"
    r"\bnuev|现在|目前|今年|如今|新",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Edition:
    year: int
    """The last year that its names say, 0 for none."""
    years: frozenset[int]
    replaced: bool
    fresh: bool
    headers: frozenset[str]
    words: frozenset[str]

    @classmethod
    def of(cls, sheet: Sheet) -> "_Edition":
        name = sheet.name
        years = frozenset(map(int, _YEAR.findall(name)))
        headers = frozenset(word for column in sheet.columns[: sheet.own] for word in column.words)
        words = frozenset(word for word in words_of(_FRESH.sub(" ", _REPLACED.sub(" ", name))) if not word.isdigit())
        replaced = _REPLACED.search(name) is not None
        fresh = not replaced and _FRESH.search(name) is not None
        return cls(max(years, default=0), years, replaced, fresh, headers, words)

    def is_like(self, other: "_Edition") -> bool:
        """Whether both may be editions of one table."""
        return _shared(self.headers, other.headers) >= ALIKE or _shared(self.words, other.words) >= ALIKE

    def precedes(self, other: "_Edition") -> bool:
        """Whether the other one came later."""
        later = bool(self.year) and other.year > self.year
        return later or (self.replaced and not other.replaced) or (other.fresh and not self.fresh)


def edition_features(question: str, sheets: Sequence[Sheet]) -> list[NDArray[np.float32]]:
    """float32 (len(FEATURES)) of each table: 1 for the edition that a question means, -1 for another one, 0 where
    nothing tells; and what the question says: 2 a year, 1 now, -1 then, 0 nothing."""
    known = [_Edition.of(sheet) for sheet in sheets]
    years = frozenset(map(int, _YEAR.findall(question)))
    then, now = _THEN.search(question) is not None, _NOW.search(question) is not None
    said = 2.0 if years else -1.0 if then and not now else 1.0 if now and not then else 0.0
    return [np.array([_fits(one, known, years, said), said], np.float32) for one in known]


def _fits(one: _Edition, all_of: Sequence[_Edition], years: frozenset[int], said: float) -> float:
    if years:
        return 0.0 if not one.years else 1.0 if one.years & years else -1.0
    others = [other for other in all_of if other is not one and one.is_like(other)]
    old = one.replaced or any(one.precedes(other) for other in others)
    latest = not old and any(other.precedes(one) for other in others)
    fits = float(latest) - float(old)
    return -fits if said < 0 else fits


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))

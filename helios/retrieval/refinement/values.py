"""What a cell says as a value that can be compared: numbers with units, dates, durations, ranks.

    read_cell("$ 1.5 million [2]").number      1_500_000.0
    read_cell("12 May 1990").date              days since the first of January of the year 1
    read_cell("T-3rd").rank                    3.0

A cell may have several readings ("1998" is a number and a year); the column decides which one counts
(`columns.py`). Reading never fails: a cell that says nothing comparable has no reading.
"""

import re
import unicodedata
from dataclasses import dataclass

from helios.retrieval.refinement.dates import read_date


@dataclass(frozen=True, slots=True)
class Reading:
    """The readings of one cell; None where there is no such reading.

    `number` in its unit's base (metres, kilograms, square metres; as it stands without a unit), `date` in days,
    a range by its start with its end in `date_end`, `duration` in seconds, `rank` counted from 1.
    """

    number: float | None = None
    date: float | None = None
    date_end: float | None = None
    duration: float | None = None
    rank: float | None = None
    missing: bool = False
    """Empty, a dash, "N/A": the cell holds nothing, which is different from a text."""


_NOTE = re.compile(r"\[[^\]\d]{0,12}\s?\d{0,3}\]|\[\s*[a-z0-9]{1,3}\s*\]|[*†‡§¶#♦↑↓▲▼^]+", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_MISSING = re.compile(
    r"^(?:[-–—−?.·/\s]*|n ?/ ?a|none|nil|unknown|tb[acd]|tbd|na|dn[sfq]|dsq|nc|\( ?[-–—] ?\)|not available|vacant)$",
    re.IGNORECASE,
)
_LEAD = (
    r"^(?:(?:[a-z]{1,3}(?=\s*[$€£¥₹])\s*)?[$€£¥₹]"
    r"|(?:c|ca|circa|approx|about|around|over|us|rs|usd|eur|gbp)\b\.?|[~≈<>≤≥+])?\s*"
)
_NUMBER = re.compile(
    _LEAD + r"(?P<sign>[-−–]\s?)?(?P<currency>[$€£¥₹]\s?)?"
    r"(?P<digits>\d{1,3}(?:[,\u2009\u202f]\d{2,3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_BRACKETED = re.compile(r"^\(\s*(?P<body>[$€£¥₹]\s?[\d,.]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?)\s*\)$")
_SCALE = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "lakh": 1e5, "million": 1e6, "mio": 1e6, "mn": 1e6, "crore": 1e7,
    "billion": 1e9, "bn": 1e9, "trillion": 1e12,
}  # fmt: skip
_UNITS = {
    "km": 1e3, "kilometre": 1e3, "kilometer": 1e3, "m": 1.0, "metre": 1.0, "meter": 1.0, "cm": 1e-2, "mm": 1e-3,
    "mi": 1609.344, "mile": 1609.344, "ft": 0.3048, "feet": 0.3048, "foot": 0.3048, "inch": 0.0254, "inches": 0.0254,
    "yd": 0.9144, "yard": 0.9144, "nmi": 1852.0, "kg": 1.0, "lb": 0.45359237, "tonne": 1e3, "g": 1e-3,
    "km2": 1e6, "km²": 1e6, "sq km": 1e6, "m2": 1.0, "m²": 1.0, "sq mi": 2589988.11, "sqmi": 2589988.11,
    "acre": 4046.86, "ha": 1e4, "hectare": 1e4, "sq ft": 0.09290304, "sqft": 0.09290304,
}  # fmt: skip
_UNIT = re.compile(r"^\s*-?\s*(sq\.?\s?(?:mi|km|ft)|km ?[²2]|m ?[²2]\b|[a-z]+)", re.IGNORECASE)
_FEET = re.compile(r"^\s*(\d+)\s*(?:ft|feet|foot|'|′)\.?\s*(\d+(?:\.\d+)?)?\s*(?:in|inch|\"|″|'')?", re.IGNORECASE)
_CLOCK = re.compile(r"^(?:(\d{1,3}):)?(\d{1,3}):(\d{2}(?:\.\d+)?)(?!\s*(?:[ap]\.?m\b|[-–]\s*\d))")
_SPELLED = re.compile(
    r"^(?:(\d+)\s*(?:h|hr|hrs|hours?)\b\.?)?\s*(?:(\d+)\s*(?:min|mins|minutes?|m|′)(?![a-z])\.?)?"
    r"\s*(?:(\d{1,3}(?:\.\d+)?)\s*(?:s|sec|secs|seconds?|″)\b\.?)?",
    re.IGNORECASE,
)
_RANK = re.compile(
    r"^(?:joint |tied |t|=)?\s*[-=.]?\s*(\d{1,4})\s*(?:(?:st|nd|rd|th)\b|[t=.]?\s*(?:$|[(/]))", re.IGNORECASE
)
_ORDINAL = re.compile(
    r"^(?:joint |tied |t|=)?\s*[-=.]?\s*(\d{1,4})\s*(?:st|nd|rd|th)\b|^(?:t|=)\s*-?\s*(\d{1,4})$", re.I
)
_PLACES = {
    "winner": 1, "winners": 1, "champion": 1, "champions": 1, "gold": 1, "first": 1, "runner-up": 2, "runners-up": 2,
    "runner up": 2, "runners up": 2, "silver": 2, "second": 2, "bronze": 3, "third": 3, "third place": 3, "fourth": 4,
    "fourth place": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
LONGEST_CELL = 240
"""Characters of a cell that are read; what a longer one says first counts."""


def read_cell(text: str) -> Reading:
    """All readings of a cell."""
    clean = tidy(text)
    if _MISSING.match(clean):
        return Reading(missing=True)
    when = read_date(clean)
    number = _number(clean)
    return Reading(
        number=number,
        date=when.start if when else None,
        date_end=when.end if when else None,
        duration=_duration(clean),
        rank=_place(clean),
    )


def tidy(text: str) -> str:
    """A cell without footnote marks and doubled spaces."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST_CELL]).replace("\u2212", "-")
    return _SPACES.sub(" ", _NOTE.sub(" ", plain)).strip()


def is_ordinal(text: str) -> bool:
    """Whether a cell is written as a place: 1st, T-3, runner-up."""
    clean = tidy(text).casefold()
    return bool(_ORDINAL.match(clean)) or clean in _PLACES


def _number(text: str) -> float | None:
    bracketed = _BRACKETED.match(text)
    if bracketed:
        inner = _number(bracketed["body"])
        return None if inner is None else -inner
    feet = _FEET.match(text)
    if feet:
        return (int(feet[1]) * 12 + float(feet[2] or 0)) * _UNITS["inch"]
    found = _NUMBER.match(text)
    if not found:
        return None
    value = float(re.sub(r"[,\u2009\u202f]", "", found["digits"]))
    if found["sign"]:
        value = -value
    return value * _factor(found["rest"])


def _factor(rest: str) -> float:
    """What the words after a number multiply it by: its scale, or its unit in base units."""
    found = _UNIT.match(rest)
    if not found:
        return 1.0
    word = found[1].casefold().replace(".", "")
    word = re.sub(r"^sq ?", "sq ", word) if word.startswith("sq") and word != "sqmi" else word
    word = re.sub(r"^(km|m) ?[²2]$", r"\g<1>2", word)
    if word in _SCALE:
        return _SCALE[word]
    singular = word[:-1] if len(word) > 2 and word.endswith("s") else word
    return _UNITS.get(word, _UNITS.get(singular, 1.0))


def _duration(text: str) -> float | None:
    clock = _CLOCK.match(text.lstrip("+"))
    if clock:
        return int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + float(clock[3])
    spelled = _SPELLED.match(text)
    if spelled and any(spelled.groups()):
        hours, minutes, seconds = (float(part or 0) for part in spelled.groups())
        return hours * 3600 + minutes * 60 + seconds
    return None


def _place(text: str) -> float | None:
    lower = text.casefold()
    if lower in _PLACES:
        return float(_PLACES[lower])
    found = _RANK.match(lower)
    return float(found[1]) if found else None

"""Values in words: what kind of values a column has, and how one of them reads as a text for an encoder.

text        "The lid does not close."                    as it is
category    "status: open"; of a name or a tag the value alone
number      "reputation: 1520"
date        "opened: 3 March 2024"
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any

from helios.augment.context import Kind
from helios.sources.descriptor import Column

_NUMBERS = ("INT", "DECIMAL", "NUMERIC", "DOUBLE", "FLOAT", "REAL", "NUMBER", "SERIAL", "MONEY")
_DATES = ("DATE", "TIME")
_NO_WORDS = ("BLOB", "BYTEA", "BINARY", "BIT", "INTERVAL", "GEOMETRY", "POINT")
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\s?(?:Z|UTC|[+-]\d\d(?::?\d\d)?)?)?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves a terminal's cursor, turns text around, or is half of a character."""
_BLANKS = re.compile(r"\s+")
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")
_NAMES = frozenset({"name", "title", "label", "tag", "subject", "text", "term", "keyword", "value", "description"})
"""Last words of columns whose values say by themselves what they are."""
_SHORT, _FEW = 32, 4
"""Characters and words up to which a text is a category."""
_SECONDS, _MILLISECONDS = (1e8, 1e11), (1e11, 1e14)
"""Numbers that are taken for seconds and for milliseconds since 1970: 1973 to 5138."""


@dataclass(frozen=True, slots=True)
class Instant:
    """When something was, in seconds since 1970; a value without a time of day stands for its whole day."""

    first: float
    last: float

    def is_by(self, at: float) -> bool:
        """Whether it was over by then, for sure."""
        return self.last <= at


def kind_of(column: Column) -> Kind | None:
    """What a column's values are, by its type and its samples; None for what has no words."""
    declared = column.type.upper()
    if any(part in declared for part in _NO_WORDS) or declared.endswith("[]"):
        return None
    if "BOOL" in declared or "ENUM" in declared:
        return Kind.CATEGORY
    if any(part in declared for part in _DATES):
        return Kind.DATE
    if any(part in declared for part in _NUMBERS) and "POINT" not in declared:
        return Kind.NUMBER
    if column.samples and all(_ISO.fullmatch(sample) for sample in column.samples):
        return Kind.DATE
    if column.samples and all(len(sample) <= _SHORT and len(sample.split()) <= _FEW for sample in column.samples):
        return Kind.CATEGORY
    return Kind.TEXT


def in_words(column: str, kind: Kind, value: Any, *, characters: int) -> str:
    """A value as an encoder reads it; empty for one that says nothing. `column` is its name without the table."""
    if value is None or isinstance(value, bytes | bytearray):
        return ""
    name = _spoken(column)
    match value:
        case bool():
            return f"{name}: {'yes' if value else 'no'}"
        case int() | float() | Decimal() if kind is not Kind.DATE:
            return f"{name}: {_number(value)}" if _is_finite(value) else ""
        case date() | datetime():
            return f"{name}: {_day(value)}"
        case timedelta() | time():
            return f"{name}: {value}"
    if kind is Kind.DATE:
        instant = instant_of(value)
        return "" if instant is None else f"{name}: {_day(datetime.fromtimestamp(instant.first, UTC))}"
    text = cleaned(str(value))
    if len(text) > characters:
        text = text[: characters - 1].rstrip() + "…"
    if not text or kind is Kind.TEXT or (name.split() or [""])[-1] in _NAMES:
        return text
    return f"{name}: {text}"


@lru_cache(maxsize=4096)
def _spoken(column: str) -> str:
    """The name of a column as words: `ownerUserId` is "owner user id"."""
    return " ".join(_WORD_STARTS.sub(" ", column).split()).lower()


def cleaned(text: str) -> str:
    """A text without control characters and doubled blanks: it can be shown and encoded, whatever it was."""
    if text.isprintable() and "  " not in text:
        return text.strip()
    return _BLANKS.sub(" ", _CONTROLS.sub(" ", text)).strip()


def instant_of(value: Any) -> Instant | None:
    """When a value is; None for one that is no time. Without a zone it is UTC."""
    try:
        match value:
            case bool() | None:
                return None
            case datetime():
                return _at(value)
            case date():
                return _whole_day(value)
            case int() | float() | Decimal():
                return _since_1970(float(value))
            case str():
                return _read(value.strip())
    except (ValueError, OverflowError, ArithmeticError, OSError):
        return None
    return None


def iso_form(samples: Sequence[str]) -> str | None:
    """How the samples write a time: `date`, or the character between date and time; None where they differ."""
    if not samples or not all(_ISO.fullmatch(sample) for sample in samples):
        return None
    forms = {"date" if len(sample) == 10 else sample[10] for sample in samples}
    zones = {sample[-6:-5] in ("+", "-") for sample in samples if len(sample) > 16}
    return forms.pop() if len(forms) == 1 and not any(zones) else None


def _read(text: str) -> Instant | None:
    if not _ISO.fullmatch(text):
        return None
    if len(text) == 10:
        return _whole_day(date.fromisoformat(text))
    return _at(datetime.fromisoformat(text.replace("UTC", "Z").replace(",", ".").replace(" Z", "Z")))


def _at(value: datetime) -> Instant:
    seconds = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()
    return Instant(seconds, seconds)


def _whole_day(day: date) -> Instant:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    return Instant(start, start + 86_400)


def _since_1970(number: float) -> Instant | None:
    if _SECONDS[0] <= number < _SECONDS[1]:
        return Instant(number, number)
    if _MILLISECONDS[0] <= number < _MILLISECONDS[1]:
        return Instant(number / 1e3, number / 1e3)
    return None


def _day(value: date | datetime) -> str:
    return f"{value.day} {_MONTHS[value.month - 1]} {value.year}"


def _number(value: float | Decimal) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"


def _is_finite(value: float | Decimal) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) or isfinite(value)


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

"""RDF terms as values, and values as terms: the one place that knows XML Schema's datatypes."""

import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation

from helios.errors import QueryRejected
from helios.executors.values import Iri, Literal, Value

XSD = "http://www.w3.org/2001/XMLSchema#"
LANGUAGE_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
ASK_COLUMN = "answer"
"""The one column of an ASK query's one row."""
INTEGERS = (
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "nonPositiveInteger", "positiveInteger",
    "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
)  # fmt: skip
IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20]*')
LANGUAGE = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")


MAX_DIGITS = 4000
"""Digits of a number: Python reads and writes no longer whole numbers as text, and arithmetic takes them squared."""
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
FRACTION = re.compile(NUMBER.pattern + r"(?:[eE][+-]?[0-9]{1,5})?|[+-]?INF|NaN")


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS or not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > MAX_DIGITS or not NUMBER.fullmatch(text):  # no exponents: one of nine digits is a number of 1 GB
        raise ValueError
    return Decimal(text)


def _fraction(text: str) -> float:
    if len(text) > MAX_DIGITS or not FRACTION.fullmatch(text):
        raise ValueError
    return float(text)


def _boolean(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text]


_READERS: dict[str, Callable[[str], Value]] = {
    **{XSD + name: _integer for name in INTEGERS},
    XSD + "string": str,
    XSD + "decimal": _decimal,
    XSD + "double": _fraction,
    XSD + "float": _fraction,
    XSD + "boolean": _boolean,
    XSD + "date": date.fromisoformat,
    XSD + "dateTime": datetime.fromisoformat,
    XSD + "time": time.fromisoformat,
}


def literal_value(text: str, datatype: str = "", language: str = "") -> Value:
    """An RDF literal as a Python value; a Literal where Python has none for it, or where it is ill-typed."""
    if language:
        return Literal(text, "", language)
    if not datatype:
        return text
    reader = _READERS.get(datatype)
    if reader is None:
        return Literal(text, datatype)
    try:
        return reader(text)
    except (ValueError, KeyError, InvalidOperation, OverflowError):
        return Literal(text, datatype)


def term_text(value: Value) -> str:
    """A value as SPARQL writes it; QueryRejected for values that no RDF term holds."""
    match value:
        case Iri():
            return iri_text(value.value)
        case Literal():
            return _literal_text(value)
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
    for kind, datatype in (
        (int, "integer"), (float, "double"), (Decimal, "decimal"), (datetime, "dateTime"), (date, "date"),
        (time, "time"),
    ):  # fmt: skip
        if isinstance(value, kind):
            return f"{quoted(_lexical(value))}^^<{XSD}{datatype}>"
    raise QueryRejected("a parameter that is no RDF term", type(value).__name__)


def iri_text(iri: str) -> str:
    """`<iri>`; QueryRejected where it is not absolute or has characters that end it."""
    if IRI.fullmatch(iri) is None:
        raise QueryRejected("not an absolute IRI", iri[:80])
    return f"<{iri}>"


def quoted(text: str) -> str:
    """A string literal with its escapes."""
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(character, escape)
    return f'"{text}"'


def _literal_text(literal: Literal) -> str:
    if literal.language:
        if LANGUAGE.fullmatch(literal.language) is None:
            raise QueryRejected("not a language tag", literal.language[:40])
        return f"{quoted(literal.value)}@{literal.language}"
    if literal.datatype:
        return f"{quoted(literal.value)}^^{iri_text(literal.datatype)}"
    return quoted(literal.value)


def _lexical(value: Value) -> str:
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, float):
        return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(repr(value), repr(value))
    if isinstance(value, Decimal):
        if not value.is_finite() or len(value.as_tuple().digits) + abs(value.adjusted()) > MAX_DIGITS:
            raise QueryRejected(f"a decimal parameter needs at most {MAX_DIGITS} digits", "Decimal")
        return format(value, "f")
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        raise QueryRejected(f"a whole number as a parameter needs at most {MAX_DIGITS} digits", "int")
    return str(value)

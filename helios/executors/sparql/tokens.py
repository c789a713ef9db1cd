"""SPARQL 1.1 text as tokens, strictly: what the grammar has no token for is refused.

Parsers differ in comments, in white space and in where they decode \\u escapes. So the guard writes a query anew from
these tokens, without comments and escapes, and that text is what is checked and what the engine gets.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from helios.errors import QueryRejected


class Kind(StrEnum):
    """What a token is."""

    IRI = "iri"
    STRING = "string"
    NAME = "name"
    """A prefixed name; `text` ends with a colon where it is a prefix alone."""
    BLANK = "blank"
    VARIABLE = "variable"
    LANGUAGE = "language"
    NUMBER = "number"
    WORD = "word"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `spaced` where white space or a comment stands before it."""

    kind: Kind
    text: str
    spaced: bool = False

    @property
    def word(self) -> str:
        """A keyword in capitals; empty for all other tokens."""
        return self.text.upper() if self.kind is Kind.WORD else ""


_LETTER = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_CHARACTER = rf"{_LETTER}_0-9\-\u00b7\u0300-\u036f\u203f-\u2040"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_UNICODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IN_STRING = rf"\\[tbnrf\\\"']|{_UNICODE}"
_PREFIX = rf"(?:[{_LETTER}](?:[{_CHARACTER}.]*[{_CHARACTER}])?)?:"

_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<space>(?:[ \t\r\n]|\#[^\r\n]*)+)",
            rf'(?P<string>"""(?:"{{0,2}}(?:[^"\\]|{_IN_STRING}))*"""'
            rf"|'''(?:'{{0,2}}(?:[^'\\]|{_IN_STRING}))*'''"
            rf'|"(?:[^"\\\r\n]|{_IN_STRING})*"'
            rf"|'(?:[^'\\\r\n]|{_IN_STRING})*')",
            rf'(?P<iri><(?:[^<>"{{}}|^`\\\x00-\x20]|{_UNICODE})*>)',
            rf"(?P<blank>_:[{_LETTER}_0-9](?:[{_CHARACTER}.]*[{_CHARACTER}])?)",
            rf"(?P<name>{_PREFIX}(?:(?:[{_LETTER}_0-9:]|{_ESCAPED})"
            rf"(?:(?:[{_CHARACTER}.:]|{_ESCAPED})*(?:[{_CHARACTER}:]|{_ESCAPED}))?)?)",
            rf"(?P<variable>[?$][{_LETTER}_0-9][{_LETTER}_0-9\u00b7\u0300-\u036f\u203f-\u2040]*)",
            r"(?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)",
            r"(?P<number>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+)",
            r"(?P<word>[A-Za-z][A-Za-z0-9_]*)",
            r"(?P<mark>&&|\|\||!=|<=|>=|\^\^|[{}()\[\].;,|/^*+?!=<>-])",
        )
    )
)
_UNICODE_ESCAPE = re.compile(r"\\(?:(?P<plain>[^uU])|u(?P<short>.{4})|U(?P<long>.{8}))", re.DOTALL)
_HIDDEN_ESCAPE = re.compile(r"\\[uU]")
_SURELY_IRI = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]*:(?://.*|[^?$&()=!,;*#']*)|[A-Za-z0-9_./~%-]*)>")
"""Cannot be read as two comparisons around an expression."""
_OPERANDS = frozenset({Kind.VARIABLE, Kind.IRI, Kind.NAME, Kind.STRING, Kind.NUMBER, Kind.BLANK, Kind.LANGUAGE})


def tokenise(text: str) -> list[Token]:
    """All tokens of a query; QueryRejected where there is none, and for escapes that could hide something."""
    tokens: list[Token] = []
    position, spaced = 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is not None and match.lastgroup == "iri" and _is_comparison(match[0], tokens):
            tokens.append(Token(Kind.MARK, "<=" if match[0][1] == "=" else "<", spaced))
            position, spaced = position + len(tokens[-1].text), False
            continue
        if match is None:
            raise QueryRejected("no SPARQL", text[position : position + 40])
        position = match.end()
        if match.lastgroup == "space":
            spaced = True
            continue
        kind = Kind(match.lastgroup or "")
        tokens.append(Token(kind, _decoded(match[0]) if kind in (Kind.STRING, Kind.IRI) else match[0], spaced))
        spaced = False
    return tokens


def written(tokens: Iterable[Token]) -> str:
    """The text of tokens, one space where there was white space or a comment."""
    return "".join(_pieces(tokens)).strip()


def _pieces(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.spaced:
            yield " "
        yield token.text


def _is_comparison(iri: str, before: list[Token]) -> bool:
    """Whether `<...>` after an operand is two comparisons, as in `?a <5 && ?b> 3` written without spaces."""
    if not before or not (before[-1].kind in _OPERANDS or before[-1].text in (")", "]")):
        return False
    return _SURELY_IRI.fullmatch(iri) is None


def _decoded(text: str) -> str:
    """A string or an IRI without \\u escapes; only what cannot end or change a token may be written so."""

    def decode(match: re.Match[str]) -> str:
        if match["plain"] is not None:
            return match[0]
        code = int(match["short"] or match["long"], 16)
        character = chr(code) if code < 0x110000 else "\0"
        if not character.isalnum():
            raise QueryRejected("an escape for something else than a letter or a digit", match[0])
        return character

    if "\\" not in text:
        return text
    decoded = _UNICODE_ESCAPE.sub(decode, text)
    if _HIDDEN_ESCAPE.search(decoded):
        raise QueryRejected("a backslash before what some parsers take for an escape", text[:40])
    return decoded

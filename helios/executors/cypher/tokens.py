"""Tokens of Cypher, read strictly: what a reader may take in two ways is refused.

Comments and the writer's spacing are dropped, escapes in strings are decoded; text for an engine is always written
anew from tokens (`quoted`, `name`), so no trick of spelling reaches it.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from helios.errors import QueryRejected

MAX_LENGTH = 20_000
"""Characters of a query."""
SYMBOLS = ("..", "<=", ">=", "<>", "=~", "||", *"()[]{}<>=+-*/%^|&!.,:;$")
NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|(?:[0-9]+(?:\.(?!\.)[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
MAX_NUMBER = 100
"""Characters of a number."""
WORD = re.compile(r"[^\W\d]\w*")
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", "'": "'", '"': '"', "`": "`", "/": "/"}
WRITTEN = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Kind(StrEnum):
    """What a token is."""

    WORD = "word"
    NAME = "name"
    """A name in backticks: never a keyword."""
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` is a string's or a name's content, `start` its place in the query, `end` the place after it."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The token as a keyword: upper case; empty where it cannot be one."""
        return self.text.upper() if self.kind == Kind.WORD else ""


def tokenize(text: str) -> tuple[Token, ...]:
    """All tokens and an END; QueryRejected for characters, escapes and comments that have no single reading."""
    if len(text) > MAX_LENGTH:
        raise QueryRejected(f"the query has {len(text)} characters, more than the {MAX_LENGTH} that it may have")
    tokens: list[Token] = []
    at = 0
    while (at := _skip(text, at)) < len(text):
        token = _token(text, at)
        tokens.append(token)
        at = token.end
    tokens.append(Token(Kind.END, "", at, at))
    return tuple(tokens)


def quoted(value: str) -> str:
    """A string literal that every engine reads in the same way."""
    return "'" + "".join(WRITTEN.get(character, character) for character in value) + "'"


def name(value: str) -> str:
    """A variable, label, type or property for an engine, in backticks."""
    return "`" + value.replace("`", "``") + "`"


def _skip(text: str, at: int) -> int:
    """The place after white space and comments."""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("//", at):
            at = min((end for mark in "\n\r" if (end := text.find(mark, at)) >= 0), default=len(text))
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise QueryRejected("a comment does not end", text[at : at + 20])
            at = end + 2
        else:
            return at
    return at


def _token(text: str, at: int) -> Token:
    character = text[at]
    if character in "'\"":
        return _string(text, at)
    if character == "`":
        return _backticks(text, at)
    if (match := NUMBER.match(text, at)) and not (character == "." and text.startswith("..", at)):
        if len(match[0]) > MAX_NUMBER:
            raise QueryRejected(f"a number has more than {MAX_NUMBER} characters", match[0][:20])
        if WORD.match(text, match.end()):
            raise QueryRejected("a number runs into a word", text[at : match.end() + 10])
        return Token(Kind.NUMBER, match[0], at, match.end())
    if match := WORD.match(text, at):
        if unicodedata.normalize("NFKC", match[0]) != match[0]:
            raise QueryRejected("a name has characters that look like others; write it plainly", match[0])
        return Token(Kind.WORD, match[0], at, match.end())
    for symbol in SYMBOLS:
        if text.startswith(symbol, at):
            return Token(Kind.SYMBOL, symbol, at, at + len(symbol))
    raise QueryRejected("a character has no meaning in Cypher", f"{character} (U+{ord(character):04X})")


def _string(text: str, at: int) -> Token:
    mark, place, value = text[at], at + 1, []
    while place < len(text) and text[place] != mark:
        if text[place] == "\\":
            character, place = _escape(text, place)
        else:
            character, place = text[place], place + 1
        if character == "\0":
            raise QueryRejected("a string has a zero character", text[at : at + 20])
        value.append(character)
    if place >= len(text):
        raise QueryRejected("a string does not end", text[at : at + 20])
    return Token(Kind.STRING, "".join(value), at, place + 1)


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character that an escape stands for, and the place after it."""
    letter = text[at + 1 : at + 2]
    if letter in ESCAPES:
        return ESCAPES[letter], at + 2
    length = {"u": 4, "U": 8}.get(letter, 0)
    digits = text[at + 2 : at + 2 + length]
    if not length or not re.fullmatch(rf"[0-9a-fA-F]{{{length}}}", digits):
        raise QueryRejected("a string has an escape that Cypher lacks", text[at : at + 10])
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise QueryRejected("an escape stands for no character", text[at : at + 10])
    return chr(code), at + 2 + length


def _backticks(text: str, at: int) -> Token:
    place, value = at + 1, []
    while (end := text.find("`", place)) >= 0:
        value.append(text[place:end])
        if not text.startswith("``", end):
            content = "".join(value)
            if not content or "\\" in content or any(unicodedata.category(letter)[0] == "C" for letter in content):
                raise QueryRejected("a name in backticks is empty, or has a backslash or control character", content)
            return Token(Kind.NAME, content, at, end + 1)
        value.append("`")
        place = end + 2
    raise QueryRejected("a name in backticks does not end", text[at : at + 20])

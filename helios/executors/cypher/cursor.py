"""A place in a query's tokens, with the errors that say where reading stopped."""

from typing import NoReturn

from helios.errors import QueryRejected
from helios.executors.cypher.tokens import Kind, Token, tokenize

MAX_DEPTH = 30
"""Levels of brackets, of subqueries and of operators before an operand."""
MAX_OPERATORS = 300
"""Operators and property accesses of a query; longer lists of values are lists."""
MAX_COUNT = 2**31 - 1
"""Hops of a path; servers keep them in 32 bits."""
NEAR = 30
"""Characters of the query that an error shows."""


class Cursor:
    """Reads tokens one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self._depth = 0
        self._operators = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        """The token `count` after this one; END past the end."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """This token; the cursor moves on."""
        token = self.token
        if token.kind != Kind.END:
            self.at += 1
        return token

    def is_symbol(self, *symbols: str) -> bool:
        return self.token.kind == Kind.SYMBOL and self.token.text in symbols

    def is_word(self, *words: str) -> bool:
        return self.token.word in words

    def skip_symbol(self, symbol: str) -> bool:
        """Move past a symbol where it stands here."""
        if self.is_symbol(symbol):
            self.at += 1
            return True
        return False

    def skip_words(self, *words: str) -> bool:
        """Move past words where they stand here, all of them, in this order."""
        if all(self.ahead(place).word == word for place, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def expect_symbol(self, symbol: str) -> None:
        if not self.skip_symbol(symbol):
            self.fail(f"`{symbol}`")

    def expect_words(self, *words: str) -> None:
        if not self.skip_words(*words):
            self.fail(" ".join(words))

    def name(self, expected: str) -> str:
        """A name: a word or one in backticks."""
        if self.token.kind not in (Kind.WORD, Kind.NAME):
            self.fail(expected)
        return self.take().text

    def number(self, expected: str) -> int:
        """A whole number of decimal digits and at most 32 bits."""
        if self.token.kind != Kind.NUMBER or not self.token.text.isdecimal() or int(self.token.text) > MAX_COUNT:
            self.fail(f"{expected}, at most {MAX_COUNT}")
        return int(self.take().text)

    def deeper(self) -> None:
        """One level of nesting more; QueryRejected past the cap."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise QueryRejected(f"the query nests more than {MAX_DEPTH} levels deep", self._near())

    def shallower(self) -> None:
        self._depth -= 1

    def count_operator(self) -> None:
        """One operator more; QueryRejected past the cap."""
        self._operators += 1
        if self._operators > MAX_OPERATORS:
            raise QueryRejected(f"the query has more than {MAX_OPERATORS} operators", self._near())

    def fail(self, expected: str) -> NoReturn:
        """Refuse the query: it is not, or not yet, what the grammar of reading queries has here."""
        raise QueryRejected(f"not a reading query of Cypher: expected {expected}", self._near())

    def _near(self) -> str:
        return self.text[self.token.start : self.token.start + NEAR] or "the end of the query"

"""How the guard reads SQL: sqlglot's dialects without what they rewrite, and with a budget.

A function stays what was written, under its own name; subscripts stay as they are. The parser counts
its steps and looks at the clock, since it can try the same words again and again.
"""

from functools import cache
from time import thread_time
from typing import TYPE_CHECKING, Any

from helios.errors import QueryRejected
from helios.executors.base import NEVER, Deadline

if TYPE_CHECKING:
    from sqlglot import Token, exp

DIALECTS = ("sqlite", "duckdb", "postgres")
SERVERS = ("mysql", "tsql", "snowflake", "bigquery", "clickhouse")
"""Dialects of servers that are reached through SQLAlchemy."""
MOST_SECONDS = 1.0
"""Of the processor, for one reading of a query."""
MOST_SECONDS_A_STEP = 0.25
"""So much of them counts between two looks at the clock; more is a collection of garbage in a large process."""
MOST_MOVES = 40
"""Steps of the parser for each word, beside FREE_MOVES: nested constructors can make it try twice as much a level."""
FREE_MOVES = 5_000
WORDED = {
    "EXTRACT": ("FROM",), "OVERLAY": ("PLACING", "FROM", "FOR"), "POSITION": ("IN",),
    "SUBSTRING": ("FROM", "FOR", "SIMILAR", "ESCAPE"), "TRIM": ("FROM",),
}  # fmt: skip
"""Functions whose arguments may be parted by words."""


_OWN_FORMS = {"mysql": ("CONVERT", "GROUP_CONCAT", "MATCH")}
"""Functions of a dialect with words among their arguments, which sqlglot reads without rewriting them."""


def tokens_of(dialect: str, text: str) -> "list[Token]":
    """The words and marks of a text; QueryRejected where it cannot be cut into such."""
    from sqlglot.errors import SqlglotError

    try:
        tokens: list[Token] = _dialect(dialect).tokenize(text)
    except SqlglotError as error:
        raise _unreadable(dialect, error) from None
    return tokens


def tree_of(dialect: str, text: str, tokens: "list[Token]", *, deadline: Deadline = NEVER) -> "exp.Expr":
    """The only statement of a text; QueryRejected. A placeholder knows the token that it begins with (`meta`).

    QueryTimeout past the deadline.
    """
    from sqlglot.errors import ErrorLevel, SqlglotError

    parser = _dialect(dialect).parser(error_level=ErrorLevel.IMMEDIATE)
    parser.deadline = deadline
    try:
        trees: list[exp.Expr] = [tree for tree in parser.parse(tokens, text) if tree is not None]
    except SqlglotError as error:
        raise _unreadable(dialect, error) from None
    except (ValueError, ArithmeticError, AttributeError, TypeError, LookupError) as error:  # sqlglot's own slips
        raise _unreadable(dialect, error) from None
    except RecursionError:
        raise QueryRejected("the query is nested too deeply") from None
    if len(trees) != 1:
        raise QueryRejected("exactly one statement is allowed", f"{len(trees)} statements")
    return trees[0]


def _unreadable(dialect: str, error: Exception) -> QueryRejected:
    import re

    line = re.sub(r"\x1b\[\d*m", "", str(error)).splitlines()[:1]
    return QueryRejected(f"this is not {dialect} SQL that the guard can read", "".join(line)[:200])


@cache
def _dialect(dialect: str) -> Any:
    from sqlglot import TokenType, exp
    from sqlglot.dialects.dialect import Dialect

    base: Any = type(Dialect.get_or_raise(dialect))

    class Parser(base.parser_class):  # type: ignore[misc]
        FUNCTIONS: dict[str, Any] = {}
        FUNCTION_PARSERS = {
            **{name: base.parser_class.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")},
            **{name: lambda self, name=name: self._parse_worded(name) for name in WORDED},
            **{name: base.parser_class.FUNCTION_PARSERS[name] for name in _OWN_FORMS.get(dialect, ())},
        }
        NO_PAREN_FUNCTION_PARSERS = base.parser_class.NO_PAREN_FUNCTION_PARSERS | (
            {"@": lambda self: exp.Abs(this=self._parse_bitwise())} if dialect == "postgres" else {}
        )
        moves = 0
        looked = 0.0
        spent = 0.0
        deadline = NEVER

        def parse(self, raw_tokens: Any, sql: str) -> Any:
            self.moves, self.spent, self.looked = 0, 0.0, thread_time()
            return super().parse(raw_tokens, sql)

        def _advance(self, times: int = 1) -> None:
            self.moves += 1
            if self.moves > FREE_MOVES + MOST_MOVES * len(self._tokens):
                raise QueryRejected("the query is nested too deeply")
            if not self.moves % 64:
                self.deadline.left()
                now = thread_time()
                self.spent += min(now - self.looked, MOST_SECONDS_A_STEP)
                self.looked = now
                if self.spent > MOST_SECONDS:
                    raise QueryRejected(f"the guard cannot read this query within {MOST_SECONDS:g} s; write it shorter")
            super()._advance(times)

        def _parse_placeholder(self) -> Any:
            place = self._index
            found = super()._parse_placeholder()
            if isinstance(found, exp.Placeholder):
                found.meta["token"] = place
            return found

        def _parse_types(self, *args: Any, **options: Any) -> Any:
            """A type in quotes may be somebody's own, whatever its name."""
            quoted = self._curr and self._curr.token_type == TokenType.IDENTIFIER
            return None if quoted else super()._parse_types(*args, **options)

        def _parse_simplified_pivot(self, *args: Any, **options: Any) -> Any:
            pivot = super()._parse_simplified_pivot(*args, **options)
            pivot.set("order", self._parse_order())
            pivot.set("limit", self._parse_limit())
            return pivot

        def _parse_worded(self, name: str) -> Any:
            """`f(a WORD b)` as a call with the arguments a and b."""
            if name == "TRIM":
                self._match_texts(("BOTH", "LEADING", "TRAILING"))
            arguments = [self._parse_var_or_string() if name == "EXTRACT" else self._parse_bitwise()]
            while self._match_texts((",", *WORDED[name])):
                arguments.append(self._parse_bitwise())
            return self.expression(exp.Anonymous(this=name, expressions=[one for one in arguments if one]))

    class Reading(base):  # type: ignore[misc]
        INDEX_OFFSET = 0

    Reading.parser_class = Parser
    return Reading()

"""The guard of SQL: one read-only statement of known parts and known functions, or QueryRejected.

    text  →  tokens  →  tree  →  every node on the allow-list  →  text made from the tree  →  read and checked again

What is executed is the text made from the checked tree, not the text that came in: comments, odd white space, escapes
and whatever else sqlglot and the engine may read in two ways are gone by then. Each word before a parenthesis
of that text must be a function of the dialect's list (`functions`), a keyword, a type or a name that the query itself
introduces.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from helios.errors import QueryRejected
from helios.executors.sql import functions
from helios.executors.sql.nodes import ALLOWED, FUNCTIONS, STATEMENTS, TYPES_REFUSED

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokens import Token

DIALECTS = ("sqlite", "duckdb", "postgres")
MOST_CHARACTERS = 100_000
MOST_TOKENS = 20_000
MOST_NESTING = 100
"""Parentheses and brackets within each other."""
MOST_TIMES = 100_000
"""How often `repeat` may repeat, how far `lpad` may pad, how wide `format` may print."""
MOST_NUMBERS = 10_000_000
"""How many rows a series between two numbers may have."""
KEPT = 512
"""Verdicts kept, of queries up to KEPT_CHARACTERS long."""
KEPT_CHARACTERS = 10_000

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_NAME = re.compile(r"[^\W\d][\w$]*")
_KEYWORDS = re.compile(r"[\w .+-]*")
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")
_ESCAPES = re.compile(r"(?:[^\\']|\\[nrt\\])*")
_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\d{6}|\*)")
_FILE_NAME = re.compile(r"[/\\:*?\[\].~]")
_SIZED = {"repeat": 1, "pad": 1, "lpad": 1, "rpad": 1, "space": 0, "zeroblob": 0, "randomblob": 0, "array_fill": 1,
          "bar": 3}  # fmt: skip
"""Functions whose result may be of any size, and which argument says so."""


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that passed: the text to execute and the names of its parameters, in the order of `$1`, `$2`, …"""

    text: str
    parameters: tuple[str, ...] = ()


class SqlGuard:
    """Checks queries of one dialect; threads may share it."""

    def __init__(self, dialect: str) -> None:
        if dialect not in DIALECTS:
            raise ValueError(f"no guard for the SQL dialect {dialect!r}; there are {', '.join(DIALECTS)}")
        self.dialect = dialect
        self._names = functions.BY_DIALECT[dialect]
        self._kept = lru_cache(maxsize=KEPT)(self._check)

    def check(self, text: str) -> CheckedQuery:
        """The query to execute; QueryRejected where a part of it is not on the allow-list."""
        return (self._kept if len(text) <= KEPT_CHARACTERS else self._check)(text)

    def _check(self, text: str) -> CheckedQuery:
        try:
            tree = self._parse(text)
            self._check_tree(tree)
            names = self._number_parameters(tree)
            made = self._generate(tree)
            again = self._parse(made, ours=True)
            self._check_tree(again, ours=True)
            self._check_calls(made, again)
        except RecursionError:
            raise QueryRejected("the query is nested too deeply") from None
        return CheckedQuery(made, names)

    def _parse(self, text: str, *, ours: bool = False) -> "exp.Expression":
        from sqlglot.errors import ErrorLevel, SqlglotError

        tokens = self._tokens(text)
        if not ours:
            self._check_tokens(tokens)
        parser = _dialect(self.dialect).parser(error_level=ErrorLevel.IMMEDIATE)
        try:
            trees = [tree for tree in parser.parse(tokens, text) if tree is not None]
        except SqlglotError as error:
            raise QueryRejected(f"this is not {self.dialect} SQL that the guard can read", _first(error)) from None
        if len(trees) != 1:
            raise QueryRejected("exactly one statement is allowed", f"{len(trees)} statements")
        return trees[0]

    def _tokens(self, text: str) -> "list[Token]":
        from sqlglot.errors import SqlglotError

        if len(text) > MOST_CHARACTERS:
            raise QueryRejected(f"a query has at most {MOST_CHARACTERS:,} characters", f"{len(text):,} characters")
        if found := _CONTROL.search(text):
            raise QueryRejected("control characters are not allowed", repr(found.group()))
        try:
            tokens = _dialect(self.dialect).tokenize(text)
        except SqlglotError as error:
            raise QueryRejected(f"this is not {self.dialect} SQL that the guard can read", _first(error)) from None
        if len(tokens) > MOST_TOKENS:
            raise QueryRejected(f"a query has at most {MOST_TOKENS:,} words", f"{len(tokens):,} words")
        return tokens

    def _check_tokens(self, tokens: "list[Token]") -> None:
        """What can be said before parsing: how it begins, where it ends, how deep it goes."""
        from sqlglot.tokens import TokenType

        depth = 0
        for number, token in enumerate(tokens):
            if token.token_type == TokenType.SEMICOLON and any(
                later.token_type != TokenType.SEMICOLON for later in tokens[number:]
            ):
                raise QueryRejected("exactly one statement is allowed", tokens[number + 1].text)
            depth += (token.text in "([{" and len(token.text) == 1) - (token.text in ")]}" and len(token.text) == 1)
            if depth > MOST_NESTING:
                raise QueryRejected("the query is nested too deeply")
        opening = next((token for token in tokens if token.token_type != TokenType.L_PAREN), None)
        begins = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES}
        if self.dialect == "duckdb":
            begins.add(TokenType.FROM)
        if opening is None or opening.token_type not in begins:
            raise QueryRejected("only queries are allowed: SELECT, WITH, VALUES", opening.text if opening else "")

    def _check_tree(self, tree: "exp.Expression", *, ours: bool = False) -> None:
        if type(tree).__name__ not in STATEMENTS:
            raise QueryRejected("only queries are allowed: SELECT, WITH, VALUES", type(tree).__name__)
        for node in tree.walk():
            self._check_node(node, ours=ours)

    def _check_node(self, node: "exp.Expression", *, ours: bool) -> None:
        from sqlglot import exp

        kind = type(node).__name__
        if ours and isinstance(node, exp.Parameter):
            return
        if kind not in ALLOWED:
            raise QueryRejected(f"{_spelt(kind)} is not allowed", self._part(node))
        match node:
            case exp.Identifier():
                if not node.quoted and not _NAME.fullmatch(node.name):
                    raise QueryRejected("a name must be quoted", node.name)
            case exp.Literal():
                if not node.is_string and not _NUMBER.fullmatch(node.name):
                    raise QueryRejected("this is not a number", node.name)
            case exp.ByteString() | exp.RawString():
                if not _ESCAPES.fullmatch(node.name):
                    raise QueryRejected(r"only \n, \r, \t and \\ are allowed as escapes", node.name)
            case exp.Placeholder():
                if not _NAME.fullmatch(node.name) and not (ours and node.name.isdigit()):
                    raise QueryRejected("parameters are written :name", self._part(node))
            case exp.DataType():
                self._check_type(node)
            case exp.Table():
                self._check_table(node)
            case exp.Func():
                self._check_function(node)
        self._check_words(node)

    def _check_words(self, node: "exp.Expression") -> None:
        """Arguments that are plain text and not names or literals: they may only be keywords."""
        from sqlglot import exp

        if isinstance(node, exp.Identifier | exp.Literal | exp.ByteString | exp.RawString | exp.HexString | exp.JSONPathKey):
            return
        for value in node.args.values():
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, str) and not _KEYWORDS.fullmatch(item):
                    raise QueryRejected("this is not a word that the guard knows", item)

    def _check_type(self, node: "exp.DataType") -> None:
        kind = getattr(node.this, "name", str(node.this))
        if kind in TYPES_REFUSED:
            raise QueryRejected("the type is not allowed", self._part(node))

    def _check_table(self, table: "exp.Table") -> None:
        """A table by its name: no file, no catalog of the system beyond what is harmless."""
        from sqlglot import exp

        if not isinstance(table.this, exp.Identifier):
            if not isinstance(table.this, exp.Func) or table.args.get("db"):
                raise QueryRejected("this cannot be read from", self._part(table))
            return
        name, schema, catalog = table.name.casefold(), table.db.casefold(), table.catalog.casefold()
        if self.dialect == "duckdb" and _FILE_NAME.search(name):
            raise QueryRejected("files are not read by a query", table.name)
        if schema == "information_schema" and self.dialect != "sqlite":
            if name not in functions.INFORMATION_SCHEMA:
                raise QueryRejected("this table of the system is not open", self._part(table))
            return
        system = ("pg_", "sqlite_", "duckdb_", "pragma_", "dbstat", "_pg_")
        if name.startswith(system) and name not in functions.SYSTEM_TABLES[self.dialect]:
            raise QueryRejected("tables of the system are not open", self._part(table))
        if any(part.startswith("pg_") or part in ("system", "temp") for part in (schema, catalog)):
            raise QueryRejected("tables of the system are not open", self._part(table))

    def _check_function(self, node: "exp.Func") -> None:
        from sqlglot import exp

        if isinstance(node.parent, exp.Dot):
            raise QueryRejected("a function of a schema, or called on a value, is not allowed", self._part(node.parent))
        name = node.name.casefold()
        if type(node).__name__ not in FUNCTIONS and isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
            if name not in self._names:
                raise QueryRejected("the function is not on the list", node.name)
        else:
            name = node.key
        self._check_size(node, name)

    def _check_size(self, node: "exp.Func", name: str) -> None:
        """Sizes that a query states as a number; what it computes is left to the engine's limits."""
        arguments = list(node.iter_expressions())
        numbers = [_number(argument) for argument in arguments]
        place = _SIZED.get(name)
        if place is not None and place < len(numbers):
            times = numbers[place]
            if times is not None and times > MOST_TIMES:
                raise QueryRejected(f"at most {MOST_TIMES:,} are allowed here", self._part(node))
        if name in ("format", "printf") and any(_WIDTH.search(argument.name) for argument in arguments[:1]):
            raise QueryRejected(f"widths of at most {MOST_TIMES:,} are allowed here", self._part(node))
        if name in ("generateseries", "range", "generate_series"):
            start, end = (numbers[0], numbers[1]) if len(numbers) > 1 else (0.0, numbers[0] if numbers else None)
            step = abs(numbers[2] or 1.0) if len(numbers) > 2 and numbers[2] is not None else 1.0
            if start is not None and end is not None and abs(end - start) / step > MOST_NUMBERS:
                raise QueryRejected(f"a series has at most {MOST_NUMBERS:,} rows", self._part(node))

    def _number_parameters(self, tree: "exp.Expression") -> tuple[str, ...]:
        """Write parameters as the engine has them: `:name` in SQLite, `$1` elsewhere."""
        from sqlglot import exp

        names: list[str] = []
        for node in list(tree.find_all(exp.Placeholder)):
            if node.name not in names:
                names.append(node.name)
            if self.dialect != "sqlite":
                node.replace(exp.Parameter(this=exp.Literal.number(names.index(node.name) + 1)))
        return tuple(names)

    def _generate(self, tree: "exp.Expression") -> str:
        from sqlglot.errors import ErrorLevel, UnsupportedError

        try:
            return tree.sql(self.dialect, comments=False, unsupported_level=ErrorLevel.RAISE)
        except UnsupportedError as error:
            raise QueryRejected("the guard cannot write this part again", _first(error)) from None

    def _check_calls(self, text: str, tree: "exp.Expression") -> None:
        """Whatever stands before a parenthesis, in the text that the engine will see."""
        from sqlglot.tokens import TokenType

        own = set(_own_names(tree))
        tokens = self._tokens(text)
        for token, following in zip(tokens, tokens[1:], strict=False):
            if following.token_type != TokenType.L_PAREN or token.token_type in (TokenType.STRING, TokenType.NUMBER):
                continue
            word = token.text.casefold()
            if _NAME.match(word) and word not in self._names | functions.BEFORE_PARENTHESIS | own:
                raise QueryRejected("the function is not on the list", token.text)
        if any(token.comments for token in tokens):
            raise QueryRejected("the guard cannot write this part again", "a comment")

    def _part(self, node: "exp.Expression") -> str:
        """What a message shows of a query."""
        return node.sql(self.dialect, comments=False)[:200]


@lru_cache(maxsize=len(DIALECTS))
def _dialect(name: str) -> Any:
    from sqlglot.dialects.dialect import Dialect

    return Dialect.get_or_raise(name)


def _own_names(tree: "exp.Expression") -> Iterator[str]:
    """Names that a query introduces with a list of columns: `WITH t(a, b) AS`, `(…) AS t(a, b)`."""
    from sqlglot import exp

    for alias in tree.find_all(exp.TableAlias):
        if alias.this is not None and alias.args.get("columns"):
            yield alias.name.casefold()


def _number(node: "exp.Expression") -> float | None:
    """The number that a literal states; None for anything else."""
    from sqlglot import exp

    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.name)
    return None


def _spelt(kind: str) -> str:
    """A class name as words: `TruncateTable` as `TRUNCATE TABLE`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()


def _first(error: Exception) -> str:
    return re.sub(r"\x1b\[\d*m", "", str(error)).splitlines()[0][:200] if str(error) else ""

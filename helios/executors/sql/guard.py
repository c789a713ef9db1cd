"""The guard of SQL: one read-only statement of known parts and known functions, or QueryRejected.

    text  →  tokens  →  tree  →  every node on the allow-list  →  the tokens written anew  →  cut into the same tokens

What is executed are the tokens that were checked, in their order and as they were spelled, so that a query means what
its writer said. Comments, odd white space and dollar quotes are gone by then, and a token must have a form that sqlglot
and the engine can only read in one way. Each word before a parenthesis must be a function of the dialect's list
(`functions`), a keyword, a type or a name that the query itself introduces.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from helios.bounded import Bounded
from helios.errors import QueryRejected
from helios.executors.base import NEVER, Deadline
from helios.executors.sql import functions
from helios.executors.sql.access import KEY_NAME, KEY_PLACE, SqlAccess, count_of_tables
from helios.executors.sql.dialects import DIALECTS, SERVERS, tokens_of, tree_of
from helios.executors.sql.nodes import ALLOWED, STATEMENTS, TYPES_REFUSED

if TYPE_CHECKING:
    from sqlglot import Token, exp

MOST_CHARACTERS = 100_000
MOST_TOKENS = 5_000
MOST_NESTING = 100
"""Parentheses and brackets within each other."""
MOST_TIMES = 100_000
"""How often `repeat` may repeat, how far `lpad` may pad, how wide `format` may print."""
MOST_NUMBERS = 10_000_000
"""How many rows a series between two numbers may have."""
MOST_SHOWN = 50
"""Parts of a query that a message writes out."""
KEPT = 512
"""Verdicts kept, of queries up to KEPT_CHARACTERS long."""
KEPT_CHARACTERS = 10_000

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_NAME = re.compile(r"[^\W\d][\w$]*")
_KEYWORDS = re.compile(r"[\w .+-]*")
_NUMBER = re.compile(r"\d{1,1000}(\.\d*)?([eE][+-]?\d{1,4})?|\.\d{1,1000}([eE][+-]?\d{1,4})?")
_FORMS = {
    "STRING": re.compile(r"'(?:[^']|'')*'"),
    "IDENTIFIER": re.compile(r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|\[[^\[\]]+\]'),
    "BYTE_STRING": re.compile(r"[eE]'(?:[^\\']|''|\\[nrt\\])*'"),
    "BIT_STRING": re.compile(r"[bB]'[01]*'"),
    "HEX_STRING": re.compile(r"[xX]'[0-9a-fA-F]*'|0[xX][0-9a-fA-F]{1,16}"),
    "NUMBER": re.compile(rf"(?:{_NUMBER.pattern})|\d{{1,1000}}(?:_\d+){{1,1000}}"),
}
"""How a token of a kind may be spelled; all others are words or marks."""
_WORDS = re.compile(r"[^\W\d][\w$]*(?: [^\W\d][\w$]*)*")
_MARKS = re.compile(r"[!#%&()*+,\-./:;<=>?@\[\]^{|}~]+|\$")
_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\d{6}|\*)")
_FILE_NAME = re.compile(r"[/\\:*?\[\].~]")
_SIZED = {"repeat": 1, "lpad": 1, "rpad": 1, "space": 0, "zeroblob": 0, "randomblob": 0, "bar": 3}
"""Functions whose result may be of any size, and which argument says so."""
_STRUCTURED = frozenset({"from_json", "from_json_strict", "json_transform", "json_transform_strict"})
"""Functions of DuckDB that read a type from text, which is nested as deep as the text is."""
MOST_BRACKETS = 50
"""Brackets of such a text."""
PLACE = "\x01"
"""Around the number of a parameter for a driver of a server; a query cannot have it."""
_QUOTED = ("STRING", "IDENTIFIER", "BYTE_STRING", "BIT_STRING", "HEX_STRING", "HEREDOC_STRING")


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that passed: the text to execute and the names of its parameters, in the order of `$1`, `$2`, …"""

    text: str
    parameters: tuple[str, ...] = ()
    rewritten: bool = False
    """Whether it reads what may be seen instead of the tables that it names (`access`)."""


class SqlGuard:
    """Checks queries of one dialect; threads may share it."""

    def __init__(self, dialect: str, *, system_tables: bool = False, access: SqlAccess | None = None) -> None:
        """`system_tables`: whether the tables that say what a descriptor says may be read.

        `access`: what may be seen, where that is not everything.
        """
        if dialect not in DIALECTS + SERVERS:
            raise ValueError(f"no guard for the SQL dialect {dialect!r}; there are {', '.join(DIALECTS + SERVERS)}")
        self.dialect = dialect
        self.access = access
        self._open = functions.SYSTEM_TABLES[dialect] if system_tables else frozenset()
        self._mark = "$" if dialect == "duckdb" else ":"  # DuckDB writes `name: value` for an alias
        self._names = functions.BY_DIALECT[dialect]
        self._server = dialect in SERVERS
        self._schemas = functions.SYSTEM_SCHEMAS.get(dialect, frozenset())
        self._kept: Bounded[str, CheckedQuery] = Bounded(KEPT)

    def check(self, text: str, *, deadline: Deadline = NEVER) -> CheckedQuery:
        """The query to execute; QueryRejected where a part of it is not on the allow-list, QueryTimeout."""
        if len(text) > KEPT_CHARACTERS:
            return self._check(text, deadline=deadline)
        return self._kept.of(text, lambda: self._check(text, deadline=deadline))

    def _check(self, text: str, *, deadline: Deadline = NEVER) -> CheckedQuery:
        tokens = self._tokens(text)
        self._check_tokens(tokens)
        deadline.left()
        tree = tree_of(self.dialect, text, tokens, deadline=deadline)
        try:
            self._check_tree(tree, deadline)
        except RecursionError:
            raise QueryRejected("the query is nested too deeply") from None
        self._check_calls(tokens, tree)
        pieces = [_spelled(token, text) for token in tokens]
        self._check_same(tokens, self._joined(tokens, pieces))
        names = self._number_parameters(tree, pieces)
        if self.access is None:
            return CheckedQuery(self._joined(tokens, pieces), names)
        return self._seen(self.access, tokens, pieces, tree, names)

    def _seen(
        self, access: SqlAccess, tokens: "Sequence[Token]", pieces: list[str], tree: "exp.Expr", names: tuple[str, ...]
    ) -> CheckedQuery:
        """The query over what may be seen."""
        places = {token.start: place for place, token in enumerate(tokens)}
        ends = {token.end: place for place, token in enumerate(tokens)}
        replacements = access.replacements(tree)
        for one in replacements:
            first, last = places[one.first], ends[one.last]
            pieces[first : last + 1] = [one.text, *[""] * (last - first)]
        if any(KEY_PLACE in piece for piece in pieces):
            names = (*names, KEY_NAME)
            key = self._parameter(KEY_NAME, len(names))
            pieces = [piece.replace(KEY_PLACE, key) for piece in pieces]
        text = self._joined(tokens, pieces)
        read = text.replace(PLACE, "")
        again = tree_of(self.dialect, read, tokens_of(self.dialect, read))
        if count_of_tables(again, self.dialect) != len(replacements):
            raise QueryRejected("it cannot be told which tables this query reads; write it in a simpler way")
        return CheckedQuery(text, names, rewritten=True)

    def _parameter(self, name: str, number: int) -> str:
        """A parameter as the driver has it."""
        if self._server:
            return f"{PLACE}{number}{PLACE}"
        return f":{name}" if self.dialect == "sqlite" else f"${number}"

    def _tokens(self, text: str) -> "list[Token]":
        from sqlglot import TokenType

        if len(text) > MOST_CHARACTERS:
            raise QueryRejected(f"a query has at most {MOST_CHARACTERS:,} characters", f"{len(text):,} characters")
        if found := _CONTROL.search(text):
            raise QueryRejected("control characters are not allowed", repr(found.group()))
        tokens = tokens_of(self.dialect, text)
        if len(tokens) > MOST_TOKENS:
            raise QueryRejected(f"a query has at most {MOST_TOKENS:,} words", f"{len(tokens):,} words")
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        return tokens

    def _check_tokens(self, tokens: "Sequence[Token]") -> None:
        """What can be said before parsing: how it begins, that it is one statement, how deep it goes."""
        from sqlglot import TokenType

        depth = 0
        for number, token in enumerate(tokens):
            if token.token_type == TokenType.SEMICOLON:
                raise QueryRejected("exactly one statement is allowed", tokens[number + 1].text)
            depth += (token.text in "([{" and len(token.text) == 1) - (token.text in ")]}" and len(token.text) == 1)
            if depth > MOST_NESTING:
                raise QueryRejected("the query is nested too deeply")
        opening = next((token for token in tokens if token.token_type != TokenType.L_PAREN), None)
        begins = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES}
        if self.dialect in ("duckdb", "postgres"):
            begins.add(TokenType.TABLE)
        if self.dialect == "duckdb":
            begins |= {TokenType.FROM, TokenType.PIVOT, TokenType.UNPIVOT}
        if opening is None or opening.token_type not in begins:
            raise QueryRejected("only queries are allowed: SELECT, WITH, VALUES", opening.text if opening else "")
        for before, token in pairwise(tokens):
            if before.token_type == TokenType.L_PAREN and token.text.casefold() in functions.STATEMENTS:
                raise QueryRejected("only queries are allowed: SELECT, WITH, VALUES", token.text)
            if before.text == "&" and token.token_type.name in _QUOTED and token.start == before.end + 1:
                raise QueryRejected("a space belongs between & and a quote", token.text)
        if self._server:
            self._check_words_of_servers(tokens)

    def _check_words_of_servers(self, tokens: "Sequence[Token]") -> None:
        """What servers do by a word alone, and what they read in comments."""
        from sqlglot import TokenType

        for token in tokens:
            if any(comment.lstrip().startswith(("!", "M!")) for comment in token.comments):
                raise QueryRejected("the server would execute this comment", token.comments[0])
            word = "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.casefold()
            if word in functions.SERVER_WORDS:
                raise QueryRejected("this tells about the server; as a name it must be quoted", token.text)
            if self.dialect != "mysql" and word in functions.SERVER_STATEMENTS:
                raise QueryRejected("a statement could begin here; as a name it must be quoted", token.text)

    def _check_tree(self, tree: "exp.Expr", deadline: Deadline) -> None:
        if type(tree).__name__ not in STATEMENTS:
            raise QueryRejected("only queries are allowed: SELECT, WITH, VALUES", type(tree).__name__)
        for node in tree.walk():
            deadline.left()
            self._check_node(node)

    def _check_node(self, node: "exp.Expr") -> None:
        from sqlglot import exp

        kind = type(node).__name__
        if isinstance(node, exp.Parameter | exp.SessionParameter):
            raise QueryRejected(f"parameters are written {self._mark}name", self._part(node))
        if kind not in ALLOWED:
            raise QueryRejected(f"{_spelt(kind)} is not allowed", self._part(node))
        match node:
            case exp.Identifier():
                if not node.quoted and not _NAME.fullmatch(node.name) and not isinstance(node.parent, exp.Pivot):
                    raise QueryRejected("a name must be quoted", node.name)
            case exp.Literal():
                if not node.is_string and not _NUMBER.fullmatch(node.name):
                    raise QueryRejected("this is not a number", node.name)
            case exp.Placeholder():
                if not _NAME.fullmatch(node.name):
                    raise QueryRejected(f"parameters are written {self._mark}name", self._part(node))
            case exp.DataType():
                self._check_type(node)
            case exp.Select() if not node.expressions:
                raise QueryRejected("the query selects nothing", self._part(node))
            case exp.Table():
                self._check_table(node)
            case exp.Func():
                self._check_function(node)
        self._check_words(node)

    def _check_words(self, node: "exp.Expr") -> None:
        """Arguments that are plain text and not names or literals: they may only be keywords."""
        from sqlglot import exp

        literal = (exp.Identifier, exp.Literal, exp.ByteString, exp.RawString, exp.HexString, exp.BitString,
                   exp.JSONPathKey)  # fmt: skip
        if isinstance(node, literal):
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

        if not isinstance(table.this, exp.Identifier) and not (self.dialect == "sqlite" and _is_call(table)):
            if not isinstance(table.this, exp.Func) or table.args.get("db"):
                raise QueryRejected("this cannot be read from", self._part(table))
            return
        name, schema, catalog = table.this.name.casefold(), table.db.casefold(), table.catalog.casefold()
        if _is_call(table) and name in functions.FILE_MODULES:
            raise QueryRejected("files are not read by a query", name)
        if self.dialect == "duckdb" and _FILE_NAME.search(name):
            raise QueryRejected("files are not read by a query", table.name)
        if schema == "information_schema" and self.dialect != "sqlite":
            if name not in self._open:
                raise QueryRejected("this table of the system is not open", self._part(table))
            return
        if name.startswith(functions.SYSTEM_PREFIXES) and name not in self._open:
            raise QueryRejected("tables of the system are not open", self._part(table))
        parts = {part for whole in (schema, catalog, name) for part in whole.split(".")} if self._server else set()
        if parts & (self._schemas | {"information_schema"}):
            raise QueryRejected("tables of the system are not open", self._part(table))
        if self.dialect == "tsql" and name.startswith("sys"):
            raise QueryRejected("tables of the system are not open", self._part(table))
        if any(part.startswith("pg_") or part in ("system", "temp") for part in (schema, catalog)):
            raise QueryRejected("tables of the system are not open", self._part(table))

    def _check_function(self, node: "exp.Func") -> None:
        from sqlglot import exp

        if isinstance(node.parent, exp.Dot) and node.arg_key == "expression":
            raise QueryRejected("a function of a schema, or called on a value, is not allowed", self._part(node.parent))
        if not isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
            return
        name = node.name.casefold()
        known = name in self._names or name in functions.QUANTIFIERS
        if not known and not (self.dialect == "sqlite" and isinstance(node.parent, exp.Table)):
            raise QueryRejected("the function is not on the list", node.name)
        self._check_size(node, name)
        if name in _STRUCTURED:
            self._check_structure(node)

    def _check_structure(self, node: "exp.Func") -> None:
        """A type as text: written out, and not so deep that reading it ends the engine's process."""
        structure = node.expressions[1] if len(node.expressions) > 1 else None
        if structure is None or not structure.is_string:
            raise QueryRejected("the structure must be written out as a string", self._part(node))
        if sum(structure.name.count(bracket) for bracket in "[{(") > MOST_BRACKETS:
            raise QueryRejected(f"a structure has at most {MOST_BRACKETS} brackets", node.name)

    def _check_size(self, node: "exp.Func", name: str) -> None:
        """Sizes that a query states as a number; what it computes is left to the engine's limits."""
        arguments = node.expressions
        numbers = [_number(argument) for argument in arguments]
        place = _SIZED.get(name)
        if place is not None and place < len(numbers):
            times = numbers[place]
            if times is not None and times > MOST_TIMES:
                raise QueryRejected(f"at most {MOST_TIMES:,} are allowed here", self._part(node))
        if name in ("format", "printf") and any(_WIDTH.search(argument.name) for argument in arguments[:1]):
            raise QueryRejected(f"widths of at most {MOST_TIMES:,} are allowed here", self._part(node))
        if name in ("range", "generate_series"):
            start, end = (numbers[0], numbers[1]) if len(numbers) > 1 else (0.0, numbers[0] if numbers else None)
            step = abs(numbers[2] or 1.0) if len(numbers) > 2 and numbers[2] is not None else 1.0
            if start is not None and end is not None and abs(end - start) / step > MOST_NUMBERS:
                raise QueryRejected(f"a series has at most {MOST_NUMBERS:,} rows", self._part(node))

    def _check_calls(self, tokens: "Sequence[Token]", tree: "exp.Expr") -> None:
        """Whatever stands before a parenthesis."""
        from sqlglot import TokenType

        own = set(_own_names(tree, self.dialect))
        no_words = (TokenType.STRING, TokenType.NUMBER, TokenType.HEREDOC_STRING)
        for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
            if following.token_type != TokenType.L_PAREN or token.token_type in no_words:
                continue
            if token.token_type == TokenType.IDENTIFIER:
                if token.text not in self._names and token.text.casefold() not in own:
                    raise QueryRejected("the function is not on the list", token.text)
                continue
            word = token.text.casefold().split()[-1]  # `ORDER BY` is one token
            if _NAME.match(word) and word not in self._names | functions.BEFORE_PARENTHESIS | own:
                raise QueryRejected("the function is not on the list", token.text)
            if before is not None and before.token_type == TokenType.DOT and _NAME.match(word) and word not in own:
                raise QueryRejected("a function of a schema, or called on a value, is not allowed", token.text)

    def _number_parameters(self, tree: "exp.Expr", pieces: list[str]) -> tuple[str, ...]:
        """Write parameters (`$name` in DuckDB, `:name` elsewhere) as the driver has them: `$1`, `:name` in SQLite.

        Drivers of servers differ: there it is the number between two PLACEs, which stand nowhere else.
        """
        from sqlglot import exp

        numbers: dict[str, int] = {}
        for place, name in sorted((node.meta["token"], node.name) for node in tree.find_all(exp.Placeholder)):
            if pieces[place : place + 2] != [self._mark, name]:
                raise QueryRejected(f"parameters are written {self._mark}name", name)
            number = numbers.setdefault(name, len(numbers) + 1)
            if self._server:
                pieces[place : place + 2] = [PLACE, f"{number}{PLACE}"]
            elif self.dialect != "sqlite":
                pieces[place : place + 2] = ["$", str(number)]
        return tuple(numbers)

    def _joined(self, tokens: "Sequence[Token]", pieces: Sequence[str]) -> str:
        """Tokens with a space where there was any white space or comment, and before what is quoted."""
        parts = [pieces[0]]
        for (before, token), piece in zip(pairwise(tokens), pieces[1:], strict=True):
            spaced = token.start > before.end + 1
            glued = token.token_type.name in _QUOTED and _NAME.match(before.text)
            parts.append(f" {piece}" if spaced or glued else piece)
        return "".join(parts)

    def _check_same(self, tokens: "Sequence[Token]", text: str) -> None:
        """QueryRejected where the text written anew is not cut into the tokens that were checked."""
        again = tokens_of(self.dialect, text)
        if [_meant(token) for token in tokens] != [_meant(token) for token in again]:
            raise QueryRejected("this can be read in two ways; write it with spaces and without escapes", text[:200])
        if any(token.comments for token in again):
            raise QueryRejected("this can be read in two ways; write it without comments", text[:200])

    def _part(self, node: "exp.Expr") -> str:
        """What a message shows of a query: its kind where there is too much of it to write."""
        if len(list(islice(node.walk(), MOST_SHOWN))) == MOST_SHOWN:
            return _spelt(type(node).__name__)
        return node.sql(self.dialect, comments=False)[:200]


def _spelled(token: "Token", text: str) -> str:
    """A token as it is executed: as it was written, if it has only one reading."""
    kind, written = token.token_type.name, text[token.start : token.end + 1]
    if kind == "HEREDOC_STRING":
        return "'" + token.text.replace("'", "''") + "'"
    if (form := _FORMS.get(kind)) is not None:
        if not form.fullmatch(written):
            raise QueryRejected("this can be read in two ways, or has escapes that are not allowed", written[:200])
        if kind in ("NUMBER", "HEX_STRING") and _NAME.match(text, token.end + 1):
            raise QueryRejected("a number runs into a word", text[token.start : token.end + 20])
        return written
    written = " ".join(written.split())
    if not (_WORDS if _NAME.match(written) else _MARKS).fullmatch(written):
        raise QueryRejected("this is no word or mark that the guard knows", written[:200])
    return written


def _meant(token: "Token") -> tuple[str, str]:
    """What a token is, apart from how it is spelled."""
    kind = token.token_type.name.removeprefix("HEREDOC_")
    return kind, token.text if kind == "STRING" else " ".join(token.text.split())


def _own_names(tree: "exp.Expr", dialect: str) -> Iterator[str]:
    """Names that a query introduces with a list of columns: `WITH t(a, b) AS`, `(…) AS t(a, b)`.

    In SQLite also tables that are read like functions, `FROM documents('words')`: they were checked as tables.
    """
    from sqlglot import exp

    for alias in tree.find_all(exp.TableAlias):
        if alias.this is not None and alias.args.get("columns"):
            yield alias.name.casefold()
    if dialect == "sqlite":
        yield from (table.this.name.casefold() for table in tree.find_all(exp.Table) if _is_call(table))


def _is_call(table: "exp.Table") -> bool:
    from sqlglot import exp

    return isinstance(table.this, exp.Anonymous)


def _number(node: "exp.Expr") -> float | None:
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

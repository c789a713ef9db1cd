"""What a query may see of a database: each reference to a table becomes a query of the columns and rows to be seen.

    FROM customer AS c     →     FROM (SELECT id, name, <token of email> AS email FROM customer WHERE <condition>) AS c

The rest of the query stays as it was written, so that whatever it does (`*`, aliases, functions, orders, errors) it
does to what may be seen. A masked column holds tokens: equal values have equal ones within a query, another query has
others, and NULL stays NULL. So they can be counted, grouped and joined, and tell neither a value nor an order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

from helios.errors import QueryRejected

if TYPE_CHECKING:
    from sqlglot import exp

KEY_NAME = "helios_mask_key"
"""The parameter that holds the key of a query's tokens; a query cannot have one of this name."""
KEY_PLACE = "\x02"
"""Where that parameter stands in a replacement, before it is written as the driver has it."""
MASKS = {
    "sqlite": "helios_mask({key}, {column})",
    "duckdb": "'m' || substr(sha256({key} || CAST({column} AS VARCHAR)), 1, 16)",
    "postgres": "'m' || left(md5({key}::text || {column}::text), 16)",
    "mysql": "concat('m', left(sha2(concat({key}, {column}), 256), 16))",
}
"""A column's token, NULL for NULL; dialects without one cannot mask."""
FENCES = {"sqlite": "LIMIT -1", "duckdb": "LIMIT 9223372036854775807", "postgres": "OFFSET 0",
          "mysql": "LIMIT 18446744073709551615"}  # fmt: skip
"""Keeps an engine from trying a query's own conditions on rows that are not to be seen, whose errors would tell."""
FOLDING = ("sqlite", "duckdb", "postgres", "snowflake")
"""Dialects in which two names without quotes are the same whatever their capitals."""
_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
PLAIN = {"this", "db", "alias", "joins", "pivots", "sample", "laterals"}
"""Parts that a reference to a table may have."""


@dataclass(frozen=True, slots=True)
class SeenTable:
    """A table of which something may be seen."""

    name: str
    columns: tuple[str, ...]
    masked: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    """Columns that may not be seen, in lower case: only for messages."""
    condition: str = ""
    """What a row must fulfil, in the dialect and checked; empty for all rows."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Characters of a query, first and last, and what stands there instead."""

    first: int
    last: int
    text: str


class SqlAccess:
    """The tables of one database that may be seen; immutable, so threads may share it."""

    def __init__(self, dialect: str, tables: Iterable[SeenTable], *, schemas: Iterable[str]) -> None:
        """`schemas`: names before a table that mean the one that was described."""
        self.dialect = dialect
        self._tables = {table.name.casefold(): table for table in tables}
        self._schemas = frozenset(schema.casefold() for schema in schemas)

    def replacements(self, tree: "exp.Expr") -> list[Replacement]:
        """What to write instead of each reference to a table; QueryRejected for what may not be seen."""
        from sqlglot import exp

        self._check(tree)
        found, seen = [], {}
        for node in tree.find_all(exp.Table):
            if not isinstance(node.this, exp.Identifier):
                own = self.dialect == "sqlite" and isinstance(node.this, exp.Anonymous)
                if own and node.name.casefold() not in ("json_each", "json_tree"):
                    raise QueryRejected("tables that are read like functions are not open here", node.name)
                continue
            if _is_own(node, self.dialect):
                continue
            table = self._table(node)
            seen[node.alias_or_name.casefold()] = table
            found.append(self._replacement(node, table))
        self._check_columns(tree, seen)
        return found

    def _check(self, tree: "exp.Expr") -> None:
        from sqlglot import exp

        for node in tree.find_all(exp.CTE, exp.In, exp.Placeholder):
            if isinstance(node, exp.CTE) and node.alias.casefold() in self._tables:
                raise QueryRejected("a name of the query must not be that of a table", node.alias)
            if isinstance(node, exp.In) and self.dialect == "sqlite" and node.args.get("field") is not None:
                raise QueryRejected("a table after IN must be a query: IN (SELECT …)", node.sql(self.dialect)[:200])
            if isinstance(node, exp.Placeholder) and node.name == KEY_NAME:
                raise QueryRejected("no parameter may have this name", KEY_NAME)

    def _table(self, node: "exp.Table") -> SeenTable:
        table = self._tables.get(node.name.casefold())
        schema = node.db.casefold()
        if table is None or node.catalog or (schema and schema not in self._schemas):
            raise QueryRejected("there is no such table, or it is not to be seen", node.sql(self.dialect)[:200])
        if extra := {name for name, value in node.args.items() if value} - PLAIN:
            raise QueryRejected("a table cannot be read in this way here", f"{table.name}: {', '.join(sorted(extra))}")
        return table

    def _replacement(self, node: "exp.Table", table: SeenTable) -> Replacement:
        parts = node.parts
        query = self._query(table)
        alias = node.args.get("alias")
        named = query if alias is not None and alias.this is not None else f"{query} AS {self._quoted(node.name)}"
        return Replacement(parts[0].meta["start"], parts[-1].meta["end"], named)

    def _query(self, table: SeenTable) -> str:
        columns = []
        for name in table.columns:
            column = self._quoted(name)
            if name in table.masked:
                column = f"{MASKS[self.dialect].format(key=KEY_PLACE, column=column)} AS {column}"
            columns.append(column)
        condition = f" WHERE ({table.condition}) {FENCES.get(self.dialect, '')}" if table.condition else ""
        return f"(SELECT {', '.join(columns)} FROM {self._quoted(table.name)}{condition.rstrip()})"

    def _check_columns(self, tree: "exp.Expr", seen: Mapping[str, SeenTable]) -> None:
        """A reason for a column that is not to be seen: the engine would say that there is none."""
        from sqlglot import exp

        offered = {name.casefold() for table in seen.values() for name in table.columns}
        offered |= {node.alias.casefold() for node in tree.find_all(exp.Alias)}
        for column in tree.find_all(exp.Column):
            name, owner = column.name.casefold(), column.table.casefold()
            tables = [seen[owner]] if owner in seen else [] if owner else list(seen.values())
            if any(name in table.hidden for table in tables) and (owner or name not in offered):
                raise QueryRejected("this column is not to be seen", column.sql(self.dialect)[:200])

    def _quoted(self, name: str) -> str:
        mark = "`" if self.dialect in ("mysql", "bigquery") else '"'
        return mark + name.replace(mark, mark * 2) + mark


def token(key: str, value: object) -> str | None:
    """The token of a value, for engines that have no hash of their own (SQLite)."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    data = value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
    return "m" + sha256(key.encode() + data).hexdigest()[:16]


def count_of_tables(tree: "exp.Expr", dialect: str) -> int:
    """How many references to tables a query has, names of its own aside."""
    from sqlglot import exp

    return sum(
        isinstance(node.this, exp.Identifier) and not _is_own(node, dialect) for node in tree.find_all(exp.Table)
    )


def _is_own(node: "exp.Table", dialect: str) -> bool:
    """Whether a table is a name that the query has introduced, as the engine compares names.

    Where engines differ it is not: `WITH "T" AS …` names no `t` in PostgreSQL, `WITH T AS …` none in MariaDB.
    """
    return not node.args.get("db") and _identity(node.this, dialect) in _names_in_scope(node, dialect)


def _identity(name: "exp.Expr", dialect: str) -> tuple[str, bool]:
    """Names with the same one are the same to the engine."""
    text, quoted = name.name, bool(name.args.get("quoted"))
    return (text.translate(_ASCII_LOWER) if not quoted and dialect in FOLDING else text), quoted


def _names_in_scope(node: "exp.Expr", dialect: str) -> set[tuple[str, bool]]:
    """What `WITH` has named where a node stands: all for the query itself, within a definition those before it."""
    from sqlglot import exp

    def identity(cte: "exp.Expr") -> tuple[str, bool]:
        return _identity(cte.args["alias"].this, dialect)

    names: set[tuple[str, bool]] = set()
    below, here = node, node.parent
    while here is not None:
        if isinstance(here, exp.With):
            names |= {identity(other) for other in _before(here.expressions, below)}
            if here.args.get("recursive"):
                names.add(identity(below))
        elif (having := here.args.get("with_") or here.args.get("with")) is not None and having is not below:
            names |= {identity(other) for other in having.expressions}
        below, here = here, here.parent
    return names


def _before(nodes: Sequence["exp.Expr"], node: "exp.Expr") -> Sequence["exp.Expr"]:
    return nodes[: next((i for i, other in enumerate(nodes) if other is node), 0)]

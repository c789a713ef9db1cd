"""What a checked query may call in PostgreSQL beyond the functions that its text names.

`(value).f` and `relation.f` call the function f where f is no column. So a name that is also a function of one
argument, or a type, may only stand after a dot where the relation before it is one of the query's and has a column of
this name. What cannot be told is refused.

A listed function, an operator or a cast may be the database's own: `abs(text)` beside the server's `abs(int)`. It may
run with the rights of whoever made it, so what the role may execute of these is refused, extensions aside.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helios.errors import QueryRejected
from helios.executors.base import NEVER, Deadline
from helios.executors.sql.dialects import tokens_of, tree_of

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

_AFTER_DOT = re.compile(r"\.\s*(?:\"((?:[^\"]|\"\")+)\"|([^\W\d][\w$]*))")
SYSTEM_COLUMNS = frozenset({"tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"})
MOST_LEVELS = 50
CALLABLE = """
    SELECT proname::text FROM pg_catalog.pg_proc WHERE proname = ANY(%s) AND (
        (pronargs >= 1 AND pronargs - pronargdefaults <= 1) OR (provariadic <> 0 AND pronargs - pronargdefaults <= 2))
    UNION SELECT typname::text FROM pg_catalog.pg_type WHERE typname = ANY(%s)
"""
"""Of some names the functions that one argument is enough for, and the types, to which the same notation casts."""
COLUMNS = """
    SELECT a.attname::text FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = %s AND n.nspname = coalesce(%s, current_schema()) AND a.attnum > 0 AND NOT a.attisdropped
"""
"""Columns of a relation by its name and schema."""
_OWN = """{0}.oid >= 16384 AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.{1}'::regclass AND d.objid = {0}.oid AND d.deptype = 'e')"""
OWN = f"""
    SELECT 'function ' || p.oid::regprocedure FROM pg_catalog.pg_proc p
    WHERE p.proname = ANY(%(names)s) AND {_OWN.format("p", "pg_proc")} AND has_function_privilege(p.oid, 'EXECUTE')
    UNION ALL SELECT 'operator ' || o.oid::regoperator FROM pg_catalog.pg_operator o
    WHERE (o.oprname = ANY(%(implied)s) OR strpos(%(marks)s, o.oprname) > 0) AND {_OWN.format("o", "pg_operator")}
        AND has_function_privilege(o.oprcode, 'EXECUTE')
    UNION ALL SELECT 'cast from ' || c.castsource::regtype || ' to ' || c.casttarget::regtype FROM pg_catalog.pg_cast c
    WHERE c.castfunc <> 0 AND {_OWN.format("c", "pg_cast")} AND has_function_privilege(c.castfunc, 'EXECUTE')
    LIMIT 1
"""
"""Of a database's own functions, operators and casts one that a query may call; system objects have smaller numbers."""
IMPLIED = ["=", "<>", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*", "~", "!~"]
"""Operators that words stand for: IN, BETWEEN, LIKE, SIMILAR TO, DISTINCT FROM, CASE, USING."""
_CALLED = re.compile(r"(?:\"((?:[^\"]|\"\")+)\"|([^\W\d][\w$]*))\s*\(")
_MARKS = re.compile(r"[-+*/<>=~!@#%^&|`?]+")


def check_names(connection: Any, text: str, *, deadline: Deadline) -> None:
    """QueryRejected where a checked query may call what is not listed; asks the server what its names are."""
    _check_own(connection, text)
    said = sorted(dotted_names(text))
    found = names_of(connection.execute(CALLABLE, [said, said]).fetchall()) if said else frozenset()
    if found:

        def columns(name: str, schema: str | None) -> frozenset[str]:
            deadline.left()
            return names_of(connection.execute(COLUMNS, [name, schema]).fetchall())

        NameCheck(found, columns).check(text, deadline=deadline)


def _check_own(connection: Any, text: str) -> None:
    """QueryRejected where a function, operator or cast of the database's own may be called."""
    names = {quoted.replace('""', '"') or plain.lower() for quoted, plain in _CALLED.findall(text)}
    asked = {"names": sorted(names), "implied": IMPLIED, "marks": " ".join(set(_MARKS.findall(text)))}
    for (own,) in connection.execute(OWN, asked).fetchall():
        raise QueryRejected(
            "the query may call what is this database's own and not the server's; revoke EXECUTE on its function from "
            "PUBLIC and from the role, or ask without it",
            str(own),
        )


def dotted_names(text: str) -> frozenset[str]:
    """What stands after a dot, as PostgreSQL compares names."""
    return frozenset(quoted.replace('""', '"') or plain.lower() for quoted, plain in _AFTER_DOT.findall(text))


@dataclass(frozen=True, slots=True)
class NameCheck:
    """What a database calls by a dot, and how its relations' columns are looked up."""

    callable: frozenset[str]
    columns: Callable[[str, str | None], frozenset[str]]
    """Of a relation, by its name and its schema; None is the schema where names are looked for. Empty if unknown."""

    def check(self, text: str, *, deadline: Deadline = NEVER) -> None:
        """QueryRejected where a checked query may call a function by a dot."""
        from sqlglot import exp
        from sqlglot.errors import SqlglotError
        from sqlglot.optimizer.scope import traverse_scope

        try:
            tree: Any = tree_of("postgres", text, tokens_of("postgres", text), deadline=deadline)
            for dot in tree.find_all(exp.Dot):
                self._check_field(dot)
            known: set[int] = set()
            for scope in traverse_scope(tree):
                deadline.left()
                for column in self._columns_of(scope):
                    known.add(id(column))
                    self._check_column(column, scope)
            for column in tree.find_all(exp.Column):
                if column.table and id(column) not in known:
                    self._refuse_callable(column, _name(column.this))
        except (SqlglotError, RecursionError) as error:
            raise QueryRejected("the names of this query cannot be followed", str(error)[:200]) from None

    def _columns_of(self, scope: "Scope") -> Iterator["exp.Column"]:
        return (column for column in scope.columns if column.table)

    def _check_field(self, dot: "exp.Dot") -> None:
        from sqlglot import exp

        if isinstance(dot.expression, exp.Identifier):
            self._refuse_callable(dot, _name(dot.expression))

    def _check_column(self, column: "exp.Column", scope: "Scope") -> None:
        name = _name(column.this)
        if name in self.callable and name not in SYSTEM_COLUMNS | self._of_source(_name(column.args["table"]), scope):
            self._refuse_callable(column, name)

    def _refuse_callable(self, node: "exp.Expr", name: str) -> None:
        if name in self.callable:
            raise QueryRejected(
                "a name after a dot that is also a function or a type must be a column of the relation before it",
                node.sql("postgres")[:200],
            )

    def _of_source(self, alias: str, scope: "Scope | None", level: int = 0) -> frozenset[str]:
        """Columns of what a query calls by this name, here or around; empty where that cannot be told."""
        while scope is not None:
            for node, source in scope.selected_sources.values():
                if _called(place := _in_from(node)) == alias:
                    return self._of(place, source, level)
            scope = scope.parent
        return frozenset()

    def _of(self, node: Any, source: Any, level: int) -> frozenset[str]:
        """Columns of what stands in FROM as `node`."""
        from sqlglot import exp

        alias = node.args.get("alias")
        if alias is not None and (columns := alias.args.get("columns")):
            return frozenset(_name(column.this if isinstance(column, exp.ColumnDef) else column) for column in columns)
        if isinstance(source, exp.Table):
            if not isinstance(source.this, exp.Identifier):
                return frozenset()
            schema = source.args.get("db")
            return self.columns(_name(source.this), _name(schema) if schema is not None else None)
        return self._of_query(source, level) if level < MOST_LEVELS else frozenset()

    def _of_query(self, scope: "Scope", level: int) -> frozenset[str]:
        """Names of what a query within the query selects; a star stands for all of its sources."""
        from sqlglot import exp

        above = scope.expression.parent
        while isinstance(above, exp.SetOperation | exp.Subquery):
            above = above.parent
        alias = above.args.get("alias") if isinstance(above, exp.CTE) else None
        if alias is not None and (columns := alias.args.get("columns")):
            return frozenset(map(_name, columns))
        select: Any = scope.expression
        while isinstance(select, exp.SetOperation | exp.Subquery | exp.Lateral):
            select = select.this
        if not isinstance(select, exp.Select):
            return frozenset()
        names: set[str] = set()
        for item in select.expressions:
            if isinstance(item, exp.Alias):
                names.add(_name(item.args["alias"]))
            elif isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
                names.add(_name(item.this))
            else:
                names |= self._of_star(item, _scope_of(select, scope), level)
        return frozenset(names)

    def _of_star(self, item: Any, scope: "Scope | None", level: int) -> frozenset[str]:
        """What `*` or `relation.*` stands for; nothing for any other expression."""
        from sqlglot import exp

        if scope is None:
            return frozenset()
        if isinstance(item, exp.Column):
            return self._of_source(_name(item.args["table"]), scope, level + 1) if item.table else frozenset()
        if not isinstance(item, exp.Star):
            return frozenset()
        found = [self._of(_in_from(node), source, level + 1) for node, source in scope.selected_sources.values()]
        return frozenset().union(*found)


def _name(identifier: Any) -> str:
    """An identifier as PostgreSQL compares it: lower case unless quoted."""
    name: str = identifier.name
    return name if getattr(identifier, "quoted", False) else name.lower()


def _in_from(node: Any) -> Any:
    """What stands in FROM: around a query its parentheses, which bear its name."""
    from sqlglot import exp

    return node.parent if isinstance(node, exp.Query) and isinstance(node.parent, exp.Subquery) else node


def _scope_of(select: Any, scope: "Scope") -> "Scope | None":
    """The scope of a part of a union, from that of the whole."""
    if scope.expression is select:
        return scope
    inner = (*(scope.set_operation_scopes or ()), *scope.subquery_scopes, *scope.derived_table_scopes)
    return next((found for one in inner if (found := _scope_of(select, one)) is not None), None)


def _called(node: Any) -> str | None:
    """What a query calls something in FROM."""
    from sqlglot import exp

    alias = node.args.get("alias")
    if alias is not None and alias.this is not None:
        return _name(alias.this)
    return _name(node.this) if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) else None


def names_of(rows: Iterable[Iterable[Any]]) -> frozenset[str]:
    """The first value of each row, as text."""
    return frozenset(str(next(iter(row))) for row in rows)

"""Who may see what of a database: the key `access` of a registration, and the catalogue as it leaves it.

    access:
      include: [customer, purchase]        # tables, or columns as `table.column`; all others are not to be seen
      exclude: [customer.phone, "*.salary"]
      mask: [customer.email]
      rows: {purchase: "region = 'north'"}

Names are compared without capitals; `*` and `?` stand for any characters and for one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from helios.config import Section
from helios.errors import QueryRejected, SourceUnavailable
from helios.executors.sql.access import MASKS, SeenTable, SqlAccess
from helios.sources.descriptor import TableSchema

ANY = ("*", "?")


class Access(Section):
    """What may be seen of a database."""

    include: tuple[str, ...] = ()
    """Tables (`customer`) and columns (`customer.name`); none: all of them, views aside."""
    exclude: tuple[str, ...] = ()
    """What is not to be seen of these."""
    mask: tuple[str, ...] = ()
    """Columns that can be counted and joined, and whose values never leave."""
    rows: dict[str, str] = {}
    """A condition in the database's SQL for each table of which only some rows are to be seen."""

    def limits(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.include or self.exclude or self.mask or self.rows)

    def in_words(self) -> str:
        """What it leaves out, as `helios sources check` prints it."""
        parts = [("include", self.include), ("exclude", self.exclude), ("mask", self.mask), ("rows of", self.rows)]
        return "; ".join(f"{key} {', '.join(names)}" for key, names in parts if names)


class GraphAccess(Section):
    """What may be seen of a graph on this machine.

    RDF: classes and predicates, as IRIs, with a prefix of the source (`ex:salary`), or by what stands behind the last
    `#` or `/` (`salary`). Property graphs: labels and relationship types (`Person`), and properties behind one
    (`Person.salary`).
    """

    include: tuple[str, ...] = ()
    """Classes (labels) whose resources (nodes) are seen, and predicates (types, properties); none: all of them."""
    exclude: tuple[str, ...] = ()
    """What is not to be seen of these: predicates (types, properties), and all resources (nodes) of a class (label)."""
    mask: tuple[str, ...] = ()
    """Predicates (properties) whose values never leave: they are tokens, the same for the same value."""

    def limits(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.include or self.exclude or self.mask)

    def in_words(self) -> str:
        """What it leaves out, as `helios sources check` prints it."""
        parts = [("include", self.include), ("exclude", self.exclude), ("mask", self.mask)]
        return "; ".join(f"{key} {', '.join(names)}" for key, names in parts if names)

    def seen(self, prefixes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """The patterns with prefixes written out; none where everything may be seen."""
        if not self.limits():
            return {}
        return {
            key: tuple(_written_out(name, prefixes) for name in getattr(self, key))
            for key in ("include", "exclude", "mask")
        }


def _written_out(name: str, prefixes: Mapping[str, str]) -> str:
    prefix, colon, local = name.partition(":")
    return prefixes[prefix] + local if colon and prefix in prefixes else name.removeprefix("<").removesuffix(">")


def seen_tables(access: Access, tables: Sequence[TableSchema]) -> tuple[TableSchema, ...]:
    """The tables, columns and keys that may be seen, in their order; SourceUnavailable for a name that fits nothing.

    Views are seen where `include` names them: what they show of other tables is not looked into.
    """
    _check_names(access, tables)
    found = []
    for table in tables:
        if (table.view and not _fits(table.name, access.include, exact=True)) or _fits(table.name, access.exclude):
            continue
        columns = tuple(
            replace(column, masked=_fits(f"{table.name}.{column.name}", access.mask))
            for column in table.columns
            if _included(access, table.name, column.name) and not _fits(f"{table.name}.{column.name}", access.exclude)
        )
        if columns:
            found.append(replace(table, columns=columns))
    shown = {(table.name.casefold(), column.name.casefold()) for table in found for column in table.columns}
    return tuple(
        replace(
            table,
            foreign_keys=tuple(
                key for key in table.foreign_keys
                if all((table.name.casefold(), own.casefold()) in shown for own in key.columns)
                and all((key.table.casefold(), other.casefold()) in shown for other in key.referred)
            ),
        )
        for table in found
    )  # fmt: skip


def sql_access(
    access: Access, dialect: str, tables: Sequence[TableSchema], seen: Sequence[TableSchema], *, schemas: Iterable[str]
) -> SqlAccess:
    """The same for the guard; SourceUnavailable where the server cannot mask, or a condition is none."""
    every = {table.name: {column.name.casefold() for column in table.columns} for table in tables}
    found = []
    for table in seen:
        columns = tuple(column.name for column in table.columns)
        masked = frozenset(column.name for column in table.columns if column.masked)
        if masked and dialect not in MASKS:
            raise SourceUnavailable(f"access: mask: columns cannot be masked in {dialect}; exclude them")
        hidden = frozenset(every[table.name] - {name.casefold() for name in columns})
        found.append(SeenTable(table.name, columns, masked, hidden, checked_condition(access, dialect, table.name)))
    return SqlAccess(dialect, found, schemas=schemas)


def checked_condition(access: Access, dialect: str, table: str) -> str:
    """The condition for a table's rows as it is executed, empty where there is none; SourceUnavailable."""
    condition = next((text for name, text in access.rows.items() if name.casefold() == table.casefold()), "")
    if not condition:
        return ""
    from sqlglot import exp

    from helios.executors.sql.dialects import tokens_of, tree_of
    from helios.executors.sql.guard import SqlGuard

    try:
        text = SqlGuard(dialect).check(f"SELECT 1 WHERE ({condition})").text
        tree = tree_of(dialect, text, tokens_of(dialect, text))
    except QueryRejected as error:
        raise SourceUnavailable(f"access: rows: {table}: this condition cannot be used ({error})") from None
    where = tree.args.get("where")
    plain = where is not None and isinstance(where.this, exp.Paren)
    plain = plain and {name for name, value in tree.args.items() if value} <= {"expressions", "where"}
    if not plain or len(list(tree.find_all(exp.Table, exp.Query, exp.Placeholder))) > 1:
        raise SourceUnavailable(f"access: rows: {table}: expected one condition on the table's own columns")
    return text.partition("WHERE (")[2].removesuffix(")")


def _check_names(access: Access, tables: Sequence[TableSchema]) -> None:
    """A name that fits nothing is a slip that would leave open what should be closed."""
    names = [table.name for table in tables]
    columns = [f"{table.name}.{column.name}" for table in tables for column in table.columns]
    for key, patterns in (("include", access.include), ("exclude", access.exclude), ("mask", access.mask)):
        for pattern in patterns:
            known = any(_fits(name, (pattern,)) for name in [*names, *columns])
            if not known and not any(sign in pattern for sign in ANY):
                raise SourceUnavailable(f"access: {key}: there is no table or column {pattern!r} in the database")
    for name in access.rows:
        if not any(name.casefold() == table.casefold() for table in names):
            raise SourceUnavailable(f"access: rows: there is no table {name!r} in the database")
    for pattern in access.mask:
        if not any(_fits(column, (pattern,)) for column in columns):
            raise SourceUnavailable(f"access: mask: {pattern!r} is no column; write table.column")


def _included(access: Access, table: str, column: str) -> bool:
    return not access.include or _fits(table, access.include) or _fits(f"{table}.{column}", access.include)


def _fits(name: str, patterns: Iterable[str], *, exact: bool = False) -> bool:
    """Whether a table (`a`) or a column (`a.b`) is meant; a pattern without a dot means tables alone."""
    same: Callable[[str, str], bool] = str.__eq__ if exact else fnmatchcase
    return any(("." in pattern) == ("." in name) and same(name.casefold(), pattern.casefold()) for pattern in patterns)

"""What may be seen of a property graph: a copy in memory without the rest, so that no query can reach it.

Runs inside a worker, when it opens the graph. Names are patterns: of a label or a relationship type (`Person`), or of a
property behind one (`Person.email`); without capitals told apart.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from helios.errors import SourceUnavailable
from helios.executors.cypher.catalog import KEY, OTHER, GraphCatalog, NodeTable, RelationshipTable, literal, quoted
from helios.executors.sql.access import token

ANY = ("*", "?")
BUFFER_BYTES = 2**28
DATABASE_BYTES = 2**36
Table = NodeTable | RelationshipTable


@dataclass(frozen=True, slots=True)
class SeenProperties:
    """Patterns of names; `key` is what the tokens of masked values are made with."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    mask: tuple[str, ...]
    key: str

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "SeenProperties":
        """From the options of a worker."""
        include, exclude, mask = (tuple(options.get(name, ())) for name in ("include", "exclude", "mask"))
        return cls(include, exclude, mask, options["key"])

    def copied(self, connection: Any, catalog: GraphCatalog) -> Any:
        """A database in memory with the part that may be seen; SourceUnavailable for a name that fits nothing."""
        import ladybug

        self._check(catalog)
        nodes = {table.name: table for table in catalog.nodes if self._seen(table, catalog)}
        database = ladybug.Database(
            ":memory:", buffer_pool_size=BUFFER_BYTES, max_db_size=DATABASE_BYTES, max_num_threads=1
        )
        with closing(ladybug.Connection(database, num_threads=1)) as copy:
            for table in nodes.values():
                self._copy_nodes(connection, copy, table)
            for relationship in catalog.relationships:
                if self._seen(relationship, catalog):
                    self._copy_relationships(connection, copy, relationship, nodes)
        return database

    def _copy_nodes(self, connection: Any, copy: Any, table: NodeTable) -> None:
        columns, written = self._columns(connection, table), quoted(table.name)
        known = table.key in columns  # else tokens of the key tell nodes apart
        types = "".join(
            f"{quoted(name)} {type_}, " for name, type_ in [*([] if known else [(KEY, "STRING")]), *columns.items()]
        )
        copy.execute(f"CREATE NODE TABLE {written} ({types}PRIMARY KEY ({quoted(table.key if known else KEY)}))")
        copy.execute(
            f"COMMENT ON TABLE {written} IS {literal(json.dumps({'labels': table.labels}, ensure_ascii=False))}"
        )
        names = [*([] if known else [table.key]), *columns]
        returned = ", ".join(f"n.{quoted(name)} AS c{at}" for at, name in enumerate(names))
        rows = connection.execute(f"MATCH (n:{written}) RETURN {returned}").get_as_arrow()
        self._load(copy, f"COPY {written}", rows, table, names, () if known else (0,))

    def _copy_relationships(
        self, connection: Any, copy: Any, table: RelationshipTable, nodes: Mapping[str, NodeTable]
    ) -> None:
        pairs = [pair for pair in table.pairs if set(pair) <= nodes.keys()]
        if not pairs:
            return
        columns, written = self._columns(connection, table), quoted(table.name)
        joined = ", ".join(f"FROM {quoted(start)} TO {quoted(end)}" for start, end in pairs)
        types = "".join(f", {quoted(name)} {type_}" for name, type_ in columns.items())
        copy.execute(f"CREATE REL TABLE {written} ({joined}{types})")
        for pair in pairs:
            ends = [nodes[side] for side in pair]
            returned = ", ".join([
                *(f"{end}.{quoted(node.key)} AS c{at}" for at, (end, node) in enumerate(zip("ab", ends, strict=True))),
                *(f"r.{quoted(name)} AS c{at}" for at, name in enumerate(columns, start=2)),
            ])  # fmt: skip
            start, end = map(quoted, pair)
            rows = connection.execute(f"MATCH (a:{start})-[r:{written}]->(b:{end}) RETURN {returned}").get_as_arrow()
            hidden = [
                at for at, node in enumerate(ends)
                if not self._key_seen(node) or self._masked(node, node.key)
            ]  # fmt: skip
            into = f" (from={literal(pair[0])}, to={literal(pair[1])})"
            names = [ends[0].key, ends[1].key, *columns]
            self._load(copy, f"COPY {written}", rows, table, names, hidden, ends=into)

    def _load(
        self, copy: Any, statement: str, rows: Any, table: Table, names: Sequence[str],
        hidden: Sequence[int], *, ends: str = "",
    ) -> None:  # fmt: skip
        """Copy rows (an Arrow table) in; columns of `hidden` places and masked ones as tokens."""
        import pyarrow

        if not rows.num_rows:
            return
        first = 2 if ends else 0
        columns = []
        for at, name in enumerate(names):
            column = rows.column(at)
            if at in hidden or (at >= first and self._masked(table, name)):
                column = pyarrow.array([token(self.key, value) for value in column.to_pylist()], pyarrow.string())
            elif at >= first and name == OTHER:
                column = pyarrow.array([self._left(table, text) for text in column.to_pylist()], pyarrow.string())
            columns.append(column)
        copy.execute(
            f"{statement} FROM $rows{ends}", {"rows": pyarrow.table(columns, names=list(map(str, range(len(columns)))))}
        )

    def _columns(self, connection: Any, table: Table) -> dict[str, str]:
        """The columns that may be seen, with their types in the copy."""
        with closing(connection.execute(f"CALL table_info({literal(table.name)}) RETURN name, type")) as result:
            stored = {str(name): str(type_) for name, type_ in result.get_all()}
        return {
            name: "STRING" if self._masked(table, name) else "INT64" if type_ == "SERIAL" else type_
            for name, type_ in stored.items()
            if name in (KEY, OTHER) or self._property_seen(table, name)
        }

    def _key_seen(self, table: NodeTable) -> bool:
        return table.key == KEY or self._property_seen(table, table.key)

    def _left(self, table: Table, text: str | None) -> str | None:
        """Of the values that fit no column (JSON), what may be seen."""
        if not text:
            return None
        kept = {
            name: token(self.key, value) if self._masked(table, name) else value
            for name, value in json.loads(text).items()
            if self._property_seen(table, name)
        }
        return json.dumps(kept, ensure_ascii=False) if kept else None

    def _seen(self, table: Table, catalog: GraphCatalog) -> bool:
        """Whether nodes or relationships of a table may be seen."""
        own = _names(table)
        if any(fits(name, self.exclude) for name in own):
            return False
        kind: Sequence[Table] = catalog.nodes if isinstance(table, NodeTable) else catalog.relationships
        chosen = any(self._chosen(other) for other in kind)
        return not chosen or self._chosen(table)

    def _chosen(self, table: Table) -> bool:
        """Whether `include` names a table, or a property of it."""
        names = _names(table)
        return any(fits(name, self.include) for name in names) or any(
            fits(f"{name}.{column}", self.include) for name in names for column in table.properties
        )

    def _property_seen(self, table: Table, column: str) -> bool:
        names = _names(table)
        if any(fits(f"{name}.{column}", self.exclude) for name in names):
            return False
        if any(fits(name, self.include) for name in names) or not self._chosen(table):
            return True
        return any(fits(f"{name}.{column}", self.include) for name in names)

    def _masked(self, table: Table, column: str) -> bool:
        return any(fits(f"{name}.{column}", self.mask) for name in _names(table))

    def _check(self, catalog: GraphCatalog) -> None:
        """A name that fits nothing is a slip that would leave open what should be closed."""
        tables: list[Table] = [*catalog.nodes, *catalog.relationships]
        owners = {name for table in tables for name in _names(table)}
        columns = {f"{name}.{column}" for table in tables for name in _names(table) for column in table.properties}
        for key in ("include", "exclude", "mask"):
            for pattern in getattr(self, key):
                if key == "mask" and "." not in pattern:
                    raise SourceUnavailable(f"access: mask: {pattern!r} is no property; write Label.property")
                free = key != "include" and any(sign in pattern for sign in ANY)  # an empty list of what is seen is all
                if not free and not any(fits(name, (pattern,)) for name in owners | columns):
                    raise SourceUnavailable(
                        f"access: {key}: there is no label, relationship type or property {pattern!r} in the graph"
                    )


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether a label or type (`A`) or a property (`A.b`) is meant; a pattern without a dot means the former alone."""
    return any(
        ("." in pattern) == ("." in name) and fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns
    )


def _names(table: Table) -> tuple[str, ...]:
    """The labels of a table of nodes, or the type of relationships."""
    return table.labels if isinstance(table, NodeTable) else (table.name,)

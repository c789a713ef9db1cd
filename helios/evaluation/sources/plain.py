"""A SQLite file as a source with nothing around it: for measuring query generation on trusted files alone.

No guard, no worker, no deadline: registered sources have those (`helios.sources`).
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from helios.errors import QueryFailed
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.sources.base import SourceKind, ValueHit
from helios.sources.descriptor import Column, Descriptor, ForeignKey, RelationalSchema, TableSchema

VALUES = 50_000
"""Distinct values of a column that are looked up."""


class PlainSqlite:
    """Schema, exact values and rows of a SQLite file."""

    kind = SourceKind.SQLITE
    language = Language.SQL

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem
        self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        self._connection.text_factory = lambda data: data.decode(errors="replace")

    def descriptor(self) -> Descriptor:
        return self._descriptor

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        found = []
        for phrase in dict.fromkeys(phrases):
            hits = self._values.get(_normal(phrase), ())
            found += [ValueHit(phrase, value, place, 1.0) for value, place in hits[:limit]]
        return tuple(found)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        try:
            cursor = self._connection.execute(query.text)
            return ResultSet(tuple(d[0] for d in cursor.description), tuple(cursor.fetchall()))
        except sqlite3.Error as error:
            raise QueryFailed(str(error)) from error

    def refresh(self) -> None:
        for name in ("_descriptor", "_values"):
            self.__dict__.pop(name, None)

    def check(self) -> None:
        self.execute(NativeQuery(Language.SQL, "SELECT 1"))

    def close(self) -> None:
        self._connection.close()

    @cached_property
    def _descriptor(self) -> Descriptor:
        names = self._connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        tables = tuple(self._table(name) for (name,) in names if not name.startswith("sqlite_"))
        return Descriptor(self.name, "sqlite", Language.SQL, RelationalSchema("sqlite", tables))

    def _table(self, name: str) -> TableSchema:
        columns = []
        for _, column, type_, _, _, primary in self._connection.execute(f'PRAGMA table_info("{name}")').fetchall():
            samples = self._connection.execute(
                f'SELECT "{column}" FROM "{name}" WHERE "{column}" IS NOT NULL '
                "GROUP BY 1 ORDER BY count(*) DESC LIMIT 5"
            ).fetchall()
            columns.append(Column(column, type_, samples=tuple(str(s) for (s,) in samples), primary_key=bool(primary)))
        keys: dict[int, list[tuple[str, str, str]]] = defaultdict(list)
        for number, _, table, left, right, *_ in self._connection.execute(f'PRAGMA foreign_key_list("{name}")'):
            keys[number].append((table, left, right))
        foreign = tuple(
            ForeignKey(tuple(k[1] for k in key), key[0][0], tuple(k[2] for k in key if k[2])) for key in keys.values()
        )
        return TableSchema(name, tuple(columns), foreign)

    @cached_property
    def _values(self) -> dict[str, list[tuple[str, tuple[str, str]]]]:
        schema = self._descriptor.schema
        assert isinstance(schema, RelationalSchema)
        index: dict[str, list[tuple[str, tuple[str, str]]]] = defaultdict(list)
        for table in schema.tables:
            for column in table.columns:
                rows = self._connection.execute(
                    f'SELECT DISTINCT "{column.name}" FROM "{table.name}" '
                    f"WHERE typeof(\"{column.name}\") = 'text' LIMIT {VALUES}"
                )
                for (value,) in rows:
                    index[_normal(value)].append((value, (table.name, column.name)))
        return index


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))

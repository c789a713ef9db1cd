"""The tables of a public data set, whatever its files are: Parquet, CSV, a Stack Exchange dump's XML, or SQLite.

All are read through one DuckDB connection in memory. Names of tables and columns are brought to lower case without
underscores, so that `CreationDate` of a dump and `creation_date` of a database are one column. Whole numbers that were
written as decimals because some were missing become whole numbers again where the column is an id.
"""

import gzip
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from helios.errors import EvaluationError

SQLITE = (".sqlite", ".sqlite3", ".db", ".sqlite.gz")
_CSV = "read_csv({}, sample_size=-1)"
READERS = {".parquet": "read_parquet({})", ".csv": _CSV, ".csv.gz": _CSV}
BATCH = 50_000
"""Rows of a dump that are held at a time."""
DUMP_COLUMNS = {
    "posts": (
        "Id", "PostTypeId", "ParentId", "AcceptedAnswerId", "CreationDate", "Score", "Title", "Body", "OwnerUserId",
        "Tags",
    ),
    "comments": ("Id", "PostId", "UserId", "CreationDate", "Text"),
    "users": ("Id", "CreationDate", "AboutMe", "Location"),
    "votes": ("Id", "PostId", "VoteTypeId", "CreationDate", "UserId"),
}  # fmt: skip
"""What is read of a dump's files; everything else in them is passed over."""


class Tables:
    """A data set's tables; close it, or use it as a context manager."""

    def __init__(self, path: Path) -> None:
        import duckdb

        self.path = path
        self._kept = ExitStack()
        self._connection: Any = self._kept.enter_context(closing(duckdb.connect(":memory:")))
        self._connection.execute("SET TimeZone = 'UTC'")
        self._columns: dict[str, tuple[str, ...]] = {}

    def __enter__(self) -> "Tables":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and memory."""
        self._kept.close()

    def has(self, table: str, *columns: str) -> bool:
        """Whether a table is there with these columns."""
        return table in self._columns and set(columns) <= set(self._columns[table])

    def need(self, layout: str, wanted: Mapping[str, Sequence[str]]) -> None:
        """EvaluationError that names every table and column that a layout has and this data set lacks."""
        lacking = [
            name if name not in self._columns else f"{name}.{column}"
            for name, columns in wanted.items()
            for column in (columns if name in self._columns else columns[:1])
            if not self.has(name, column)
        ]
        if lacking:
            raise EvaluationError(
                f"{self.path}: not the tables of {layout}: no {', '.join(lacking)}; "
                f"found {', '.join(sorted(self._columns)) or 'no table'}"
            )

    def rows(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, in batches."""
        cursor = self._connection.cursor()
        cursor.execute(query, list(values))
        while batch := cursor.fetchmany(4096):
            yield from batch

    def sample(self, query: str, *, cap: int, seed: int) -> Iterator[tuple[Any, str]]:
        """(id, text) of a query's rows of (id, key, text), at most `cap` an id, drawn by the seed."""
        drawn = f"""SELECT id, text, row_number() OVER (
            PARTITION BY id ORDER BY hash(concat_ws(' ', {int(seed)}, key, text)), text) place
            FROM ({query}) found(id, key, text) WHERE text IS NOT NULL AND trim(text) <> ''"""
        for number, text, _ in self.rows(f"SELECT * FROM ({drawn}) WHERE place <= {int(cap)} ORDER BY id, place"):
            yield number, str(text)

    def has_list(self, table: str, column: str) -> bool:
        """Whether a column holds lists."""
        found = self._connection.execute(f"DESCRIBE SELECT {column} FROM {table}").fetchone()
        return found is not None and str(found[1]).endswith("[]")

    def define(self, name: str, query: str) -> None:
        """Give the result of a query a name, computed once."""
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {query}")

    def add(self, name: str, relation: str) -> None:
        """Make a relation of DuckDB a table, under plain names."""
        found = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        table, columns = plain_name(name), [(str(row[0]), str(row[1])) for row in found]
        shown = ", ".join(f"{_as_id(column, kind)} AS {plain_name(column)}" for column, kind in columns)
        self._connection.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT {shown} FROM {relation}")
        self._columns[table] = tuple(plain_name(column) for column, _ in columns)

    def register(self, name: str, table: Any) -> None:
        """Add a table of Arrow."""
        stored = f"stored_{plain_name(name)}"
        self._connection.register("incoming", table)
        self._connection.execute(f"CREATE TABLE {stored} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")
        self.add(name, stored)

    def scratch(self) -> Path:
        """A folder that lasts as long as this value."""
        return Path(self._kept.enter_context(tempfile.TemporaryDirectory()))


def open_tables(path: Path) -> Tables:
    """The tables of a folder (Parquet, CSV, XML of a dump) or of a SQLite file, which may be compressed by gzip.

    EvaluationError where there are none or where a file cannot be read.
    """
    import duckdb

    if not path.exists():
        raise EvaluationError(f"{path}: no such file or folder; expected a folder of tables or a SQLite file")
    with ExitStack() as unless_read:
        tables = Tables(path)
        unless_read.callback(tables.close)
        try:
            (_add_files if path.is_dir() else _add_sqlite)(tables, path)
        except (duckdb.Error, sqlite3.Error, OSError, EOFError) as error:
            raise EvaluationError(f"{path}: cannot be read as tables ({error})") from None
        unless_read.pop_all()
    return tables


def plain_name(name: str) -> str:
    """Lower case, letters and digits alone."""
    found = re.sub(r"[^a-z0-9]", "", name.lower())
    return found if found and not found[0].isdigit() else f"c{found}"


def _as_id(column: str, kind: str) -> str:
    quoted = '"' + column.replace('"', '""') + '"'
    is_id = plain_name(column).endswith("id") and kind in ("DOUBLE", "FLOAT")
    return f"CAST({quoted} AS BIGINT)" if is_id else quoted


def _add_files(tables: Tables, folder: Path) -> None:
    found = False
    for file in sorted(folder.iterdir()):
        name = file.name.lower()
        ending = next((one for one in READERS if name.endswith(one)), None)
        if ending is not None:
            literal = "'" + str(file).replace("'", "''") + "'"
            tables.add(file.name[: -len(ending)], READERS[ending].format(literal))
        elif name.endswith(".xml") and (table := plain_name(file.name[:-4])) in DUMP_COLUMNS:
            _add_dump(tables, table, file)
        else:
            continue
        found = True
    if not found:
        raise EvaluationError(f"{folder}: no table here; expected .parquet, .csv or .xml files")


def _add_dump(tables: Tables, table: str, file: Path) -> None:
    """One XML file of a dump: a `row` element a row, with an attribute a column."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, pa.string()) for name in DUMP_COLUMNS[table]])
    target = tables.scratch() / f"{table}.parquet"
    with parquet.ParquetWriter(target, schema) as writer:
        rows: list[dict[str, str | None]] = []
        for row in _dump_rows(file):
            rows.append({name: row.get(name) for name in DUMP_COLUMNS[table]})
            if len(rows) == BATCH:
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    tables.add(table, f"read_parquet('{target}')")


def _dump_rows(file: Path) -> Iterator[Mapping[str, str]]:
    from lxml import etree

    try:
        for _, element in etree.iterparse(str(file), tag="row", resolve_entities=False, no_network=True):
            yield dict(element.attrib)
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    except etree.XMLSyntaxError as error:
        raise EvaluationError(f"{file}: not the XML of a Stack Exchange dump ({error})") from None


def _add_sqlite(tables: Tables, file: Path) -> None:
    if not file.name.lower().endswith(SQLITE):
        raise EvaluationError(f"{file}: expected a folder of tables, or a file ending in {', '.join(SQLITE)}")
    if file.name.lower().endswith(".gz"):
        database = tables.scratch() / "database.sqlite"
        with gzip.open(file, "rb") as packed, database.open("wb") as unpacked:
            while block := packed.read(1 << 20):
                unpacked.write(block)
    else:
        database = file.resolve()
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            if not name.startswith("sqlite_"):
                tables.register(name, _arrow(connection, name))


def _arrow(connection: sqlite3.Connection, name: str) -> Any:
    """A table of SQLite; a column whose values are of several kinds becomes text."""
    import pyarrow as pa

    quoted = '"' + name.replace('"', '""') + '"'
    cursor = connection.execute(f"SELECT * FROM {quoted}")
    header = [str(column[0]) for column in cursor.description]
    columns = list(zip(*cursor.fetchall(), strict=True)) or [() for _ in header]
    arrays = []
    for column in columns:
        try:
            known = any(one is not None for one in column)
            arrays.append(pa.array(column) if known else pa.nulls(len(column), pa.string()))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            arrays.append(pa.array([None if one is None else str(one) for one in column], pa.string()))
    return pa.table(dict(zip(header, arrays, strict=True)))

"""Relational sources over real SQLite and DuckDB files: schema, samples, lookup, guarded queries."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from helios.errors import ConfigError, QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.executors.sql.data_files import file_reader
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Column, Descriptor, ForeignKey, RelationalSchema, TableSchema
from helios.sources.descriptor_text import estimated_tokens, text
from helios.sources.kinds import kind_named
from helios.sources.linking import linked
from helios.sources.registry import Registry
from helios.sources.relational import RelationalSource
from helios.sources.spec import read_spec
from helios.sources.sqlite import comments_of

SPIDER = Path(__file__).parents[2].parent / "shared" / "data" / "spider" / "database"

ODD = '''
CREATE TABLE "order" (            -- what customers ordered
  "order no" INTEGER,             -- counts from 1 in each shop
  shop TEXT,
  "say ""hi""" TEXT,              /* a greeting */
  naïve TEXT,
  data BLOB,
  PRIMARY KEY ("order no", shop)
);
CREATE TABLE line (
  "order no" INTEGER, shop TEXT, [unit price] REAL, total AS ([unit price] * 2),
  FOREIGN KEY ("order no", shop) REFERENCES "order" ("order no", shop)
);
CREATE TABLE child (parent INTEGER REFERENCES "parent table");
CREATE TABLE "parent table" (id INTEGER PRIMARY KEY);
CREATE VIEW "cheap lines" AS SELECT * FROM line WHERE [unit price] < 5;
CREATE VIEW broken AS SELECT * FROM nowhere;
CREATE VIRTUAL TABLE notes USING fts5(body);
INSERT INTO "order" VALUES (1, 'Ole Group', 'Grüezi', 'ja', x'00ff'), (2, 'Ole Group', NULL, 'nein', NULL);
INSERT INTO line VALUES (1, 'Ole Group', 2.5), (1, 'Ole Group', 7.5), (2, 'Ole Group', 2.5);
'''


def open_relational(folder: Path, **values) -> RelationalSource:
    spec = read_spec("shop", values, where="test")
    return kind_named(spec.kind).open()("shop", spec, folder, SourceCache(folder / "cache", "shop", "now"))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("odd")
    connection = sqlite3.connect(folder / "odd names & é.sqlite")
    connection.executescript(ODD)
    connection.close()
    source = open_relational(folder, kind="sqlite", path="odd names & é.sqlite", description="Orders")
    yield source
    source.close()


def tables_of(source: RelationalSource) -> dict[str, TableSchema]:
    schema = source.descriptor().schema
    assert isinstance(schema, RelationalSchema)
    return {table.name: table for table in schema.tables}


def test_sqlite_schema(odd: RelationalSource):
    tables = tables_of(odd)
    assert set(tables) == {"order", "line", "child", "parent table", "cheap lines", "notes"}
    order = tables["order"]
    assert order.row_count == 2
    assert [column.name for column in order.columns] == ["order no", "shop", 'say "hi"', "naïve", "data"]
    assert [column.primary_key for column in order.columns] == [True, True, False, False, False]
    assert order.columns[0].comment == "counts from 1 in each shop"
    assert order.columns[2].comment == "a greeting"
    assert order.columns[1].samples == ("Ole Group",)
    assert order.columns[4].samples == ()
    assert tables["line"].foreign_keys == (ForeignKey(("order no", "shop"), "order", ("order no", "shop")),)
    assert tables["line"].columns[2].samples == ("2.5", "7.5")
    assert [column.name for column in tables["line"].columns][3] == "total"
    assert tables["child"].foreign_keys == (ForeignKey(("parent",), "parent table", ("id",)),)
    assert tables["cheap lines"].row_count == 2


def test_sqlite_values(odd: RelationalSource):
    hits = odd.find_values(["ole group", "gruezi"], limit=3)
    assert ("order", "shop") in [hit.place for hit in hits if hit.phrase == "ole group"]
    assert [hit.value for hit in hits if hit.phrase == "gruezi"] == ["Grüezi"]


def test_sqlite_queries_are_guarded(odd: RelationalSource):
    result = odd.execute(NativeQuery(Language.SQL, 'SELECT "order no", shop FROM "order" ORDER BY 1'))
    assert result.rows == ((1, "Ole Group"), (2, "Ole Group"))
    for statement in ("DELETE FROM line", "PRAGMA table_info(line)", "SELECT * FROM sqlite_master; SELECT 1"):
        with pytest.raises(QueryRejected):
            odd.execute(NativeQuery(Language.SQL, statement))


def test_the_text_of_odd_names_is_sql(odd: RelationalSource, tmp_path: Path):
    shown = text(odd.descriptor())
    assert shown.startswith("-- Orders\n")
    assert 'FOREIGN KEY ("order no", shop) REFERENCES "order" ("order no", shop)' in shown
    assert "-- counts from 1 in each shop" in shown and "e.g. 'Ole Group'" in shown
    connection = sqlite3.connect(":memory:")
    connection.executescript(shown.replace("CREATE TABLE order ", "CREATE TABLE "))
    assert len(connection.execute("SELECT * FROM sqlite_master WHERE type = 'table'").fetchall()) == 6
    connection.close()


def test_a_wal_file_in_a_folder_that_is_read_only(tmp_path: Path):
    path = tmp_path / "wal.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("CREATE TABLE t (a TEXT)")
    connection.commit()
    connection.close()
    tmp_path.chmod(0o500)
    try:
        assert "t" in tables_of(open_relational(tmp_path, kind="sqlite", path="wal.sqlite"))
    finally:
        tmp_path.chmod(0o700)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """A table in WAL mode, as long as somebody has it open to write."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE t (a TEXT)")
        connection.execute("INSERT INTO t VALUES ('x')")
        connection.commit()
        yield


def reads(folder: Path) -> None:
    """The table is described, and asked."""
    with closing(open_relational(folder, kind="sqlite", path="wal.sqlite")) as source:
        assert "t" in tables_of(source)
        assert source.execute(NativeQuery(Language.SQL, "SELECT a FROM t")).rows == (("x",),)


@pytest.mark.parametrize("left", [{}, {"-wal": b"", "-shm": b""}, {"-wal": b""}, {"-shm": b"x" * 32768}], ids=str)
def test_a_wal_file_that_nobody_writes_is_read_and_nothing_is_left_beside_it(tmp_path: Path, left: dict[str, bytes]):
    """A reader may write nothing: what SQLite makes to lock such a file would lie there empty, and keep others out."""
    with written(tmp_path / "wal.sqlite"):
        pass
    for ending, content in left.items():
        (tmp_path / f"wal.sqlite{ending}").write_bytes(content)
    before = sorted(tmp_path.iterdir())
    reads(tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_a_wal_file_that_is_being_written_is_read_with_its_log(tmp_path: Path):
    with written(tmp_path / "wal.sqlite"):
        reads(tmp_path)


def test_comments_of_definitions():
    assert comments_of('CREATE TABLE t (\n  a INT, -- the first\n "b c" TEXT /* second */,\n  d INT\n)') == {
        "a": "the first", "b c": "second",
    }  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("duck")
    connection = duckdb.connect(str(folder / "shop.duckdb"))
    connection.execute('CREATE TABLE customer (id INTEGER PRIMARY KEY, "full name" VARCHAR, born DATE, tags VARCHAR[])')
    connection.execute("COMMENT ON TABLE customer IS 'who buys'")
    connection.execute("COMMENT ON COLUMN customer.born IS 'birthday'")
    connection.execute('CREATE TABLE "order" (no INTEGER, customer INTEGER REFERENCES customer (id))')
    connection.execute("CREATE VIEW young AS SELECT * FROM customer WHERE born > DATE '2000-01-01'")
    connection.execute("INSERT INTO customer VALUES (1, 'Ole Group', DATE '1999-05-01', ['a', 'b'])")
    connection.close()
    source = open_relational(folder, kind="duckdb", path="shop.duckdb")
    yield source
    source.close()


def test_duckdb_schema(shop: RelationalSource):
    tables = tables_of(shop)
    assert set(tables) == {"customer", "order", "young"}
    assert tables["customer"].comment == "who buys"
    assert tables["customer"].columns[2] == Column("born", "DATE", "birthday", ("1999-05-01",))
    assert tables["customer"].columns[0].primary_key
    assert tables["order"].foreign_keys == (ForeignKey(("customer",), "customer", ("id",)),)
    assert (tables["customer"].row_count, tables["young"].row_count) == (1, 0)


def test_duckdb_values_and_queries(shop: RelationalSource):
    assert shop.find_values(["OLE GROUP"])[0].place == ("customer", "full name")
    result = shop.execute(NativeQuery(Language.SQL, 'SELECT "full name" FROM customer'))
    assert result.rows == (("Ole Group",),)
    with pytest.raises(QueryRejected):
        shop.execute(NativeQuery(Language.SQL, "SELECT * FROM read_csv('/etc/passwd')"))


def test_duckdb_over_files(tmp_path: Path):
    (tmp_path / "cities.csv").write_text("city,country,people\nBern,Switzerland,134000\nBasel,Switzerland,177000\n")
    parquet = tmp_path / "rivers.parquet"
    duckdb.execute(f"COPY (SELECT 'Aare' AS name, 288 AS km) TO '{parquet}' (FORMAT parquet)")
    source = open_relational(tmp_path, kind="duckdb", files={"cities": "cities.csv", "some rivers": "rivers.parquet"})
    try:
        tables = tables_of(source)
        assert set(tables) == {"cities", "some rivers"}
        assert tables["cities"].row_count == 2
        assert source.find_values(["aare"])[0].place == ("some rivers", "name")
        result = source.execute(NativeQuery(Language.SQL, "SELECT city FROM cities ORDER BY people DESC LIMIT 1"))
        assert result.rows == (("Basel",),)
    finally:
        source.close()


@pytest.mark.parametrize("name", ["Sales.CSV", "sales.ndjson"])
def test_what_is_described_can_be_asked(tmp_path: Path, name: str):
    (tmp_path / name).write_text("a,b\n1,x\n" if name.endswith("CSV") else '{"a": 1, "b": "x"}\n')
    source = open_relational(tmp_path, kind="duckdb", files={"sales": name})
    try:
        assert tables_of(source)["sales"].row_count == 1 and source.find_values(["x"])
        assert source.execute(NativeQuery(Language.SQL, "SELECT a, b FROM sales")).rows == ((1, "x"),)
    finally:
        source.close()


def test_files_of_unknown_kinds_are_refused(tmp_path: Path):
    assert file_reader(Path("a.csv.gz")) == "read_csv"
    with pytest.raises(ConfigError, match="expected a file that ends in"):
        file_reader(tmp_path / "a.docx")


def large_schema() -> Descriptor:
    """1,200 tables in chains of three along keys, each with a column or two."""
    tables = []
    for i in range(1200):
        columns = (Column("id", "INTEGER", primary_key=True), Column(f"attribute_{i}", "TEXT"))
        keys = (ForeignKey(("next_id",), f"table_{i + 1}", ("id",)),) if i % 3 < 2 else ()
        tables.append(TableSchema(f"table_{i}", columns, keys, row_count=i))
    tables[30] = replace(tables[30], name="singers", comment="people who sing")
    tables[29] = replace(tables[29], foreign_keys=())
    columns = (Column("id", "INTEGER"), Column("country_name", "TEXT"))
    tables[32] = replace(tables[32], name="countries", columns=columns)
    tables[31] = replace(tables[31], foreign_keys=(ForeignKey(("country_id",), "countries", ("id",)),))
    return Descriptor("large", "sqlite", Language.SQL, RelationalSchema("sqlite", tuple(tables)))


def test_large_schemas_are_linked_with_their_join_paths():
    question = "Which country are most singers from?"
    part = linked(large_schema(), question, limit=8).schema
    assert isinstance(part, RelationalSchema)
    names = [table.name for table in part.tables]
    assert len(names) <= 8
    assert {"singers", "table_31", "countries"} <= set(names)  # table_31 joins the two


def test_the_budget_of_large_schemas_is_met():
    question = "Which country are most singers from?"
    for budget in (60, 200, 1000):
        shown = text(large_schema(), budget_tokens=budget, question=question)
        assert estimated_tokens(shown) <= budget
        assert "singers" in shown
    assert "more tables are not shown" in shown


def test_a_found_value_brings_its_table():
    from helios.sources.base import ValueHit

    hit = ValueHit("Ole Group", "Ole Group", ("table_700", "attribute_700"), 1.0)
    part = linked(large_schema(), "How many did Ole Group buy?", limit=3, hits=[hit]).schema
    assert isinstance(part, RelationalSchema)
    assert "table_700" in [table.name for table in part.tables]


@pytest.mark.skipif(not SPIDER.is_dir(), reason="../shared/data/spider is not here")
def test_the_databases_of_spider(tmp_path: Path):
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        for path in sorted(SPIDER.glob("*/*.sqlite")):
            registry.add(path.stem, {"kind": "sqlite", "path": str(path)})
        assert len(registry.names()) == 9
        for source in registry.sources():
            schema = source.descriptor().schema
            assert isinstance(schema, RelationalSchema)
            assert all(table.row_count is not None and table.columns for table in schema.tables)
            named = {table.name.lower(): {c.name.lower() for c in table.columns} for table in schema.tables}
            for table in schema.tables:
                result = source.execute(NativeQuery(Language.SQL, f'SELECT * FROM "{table.name}"'))
                assert len(result) == table.row_count or result.truncated
                for key in table.foreign_keys:
                    assert {name.lower() for name in key.referred} <= named[key.table.lower()]

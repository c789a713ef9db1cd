"""DuckDB through the guard and a worker process: hostile, benign and runaway queries, and data files."""

import hashlib
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.duckdb import DuckdbExecutor
from helios.executors.sql.guard import SqlGuard
from helios.executors.values import dumps, loads

SHORT = Limits(timeout=1.0, max_memory=2**29)
PATIENT = Limits(timeout=30)
"""Of a query that only has to work, on a machine that is busy with the one before."""


def sql(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.SQL, text, parameters)


@pytest.fixture(scope="module")
def executor(duckdb_file):
    executor = DuckdbExecutor(duckdb_file, limits=PATIENT, workers=2)
    executor.warm_up()
    yield executor
    executor.close()


def test_hostile_queries_are_refused_or_stopped(executor, hostile_duckdb, duckdb_file, reach, within):
    before = hashlib.sha256(duckdb_file.read_bytes()).digest()
    with within(SHORT.timeout + 1.0), pytest.raises((QueryRejected, QueryFailed, QueryTimeout)) as caught:
        executor.execute(sql(reach.fill(hostile_duckdb)), SHORT)
    if isinstance(caught.value, QueryTimeout):
        executor.warm_up()
    reach.assert_untouched()
    assert hashlib.sha256(duckdb_file.read_bytes()).digest() == before
    assert [path.name for path in duckdb_file.parent.iterdir()] == [duckdb_file.name]


def test_the_engine_alone_lets_nothing_happen(executor, hostile_duckdb, duckdb_file, reach):
    """The second layer without the first: the same queries straight to a worker."""
    before = hashlib.sha256(duckdb_file.read_bytes()).digest()
    try:
        result = executor._pool.run(sql(reach.fill(hostile_duckdb)), SHORT)
    except (QueryRejected, QueryFailed, QueryTimeout):
        executor.warm_up()
    else:
        assert "canary-" not in repr(result.rows)
    reach.assert_untouched()
    assert hashlib.sha256(duckdb_file.read_bytes()).digest() == before
    assert [path.name for path in duckdb_file.parent.iterdir()] == [duckdb_file.name]


def test_benign_queries_give_what_the_engine_gives(executor, benign_duckdb, duckdb_file, parameters):
    """The same rows as the text that came in, executed by DuckDB without a guard."""
    import duckdb

    named = {name: value for name, value in parameters.items() if f"${name}" in benign_duckdb}
    with duckdb.connect(duckdb_file, read_only=True) as connection:
        expected = loads(dumps(plain_rows(connection.execute(benign_duckdb, named).fetchall())))
    rows = executor.execute(sql(benign_duckdb, **parameters)).rows
    assert repr(rows) == repr(expected)


def plain_rows(rows: list) -> list:
    """Rows with what the values of results lack as text."""
    from helios.executors.sql.duckdb_session import _value

    return [tuple(map(_value, row)) for row in rows]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(10000000) b",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
        "SELECT a.range FROM range(1000000) a, range(1000) b ORDER BY hash(a.range + b.range) DESC",
        "SELECT list(a.range) FROM range(9000000) a, range(9) b",
        "WITH RECURSIVE t(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t",
        "SELECT count(*) FROM range(9000000) a WHERE regexp_matches(repeat('a', 5000) || a.range, '(a?){50}(a|b)*c')",
    ],
    ids=["cross-join", "recursion", "a-billion-rows", "list", "doubling", "regex"],
)
def test_a_runaway_query_is_stopped_and_the_next_one_works(executor, text, within):
    executor.warm_up()
    with within(SHORT.timeout + 1.0), pytest.raises((QueryTimeout, QueryFailed)):
        executor.execute(sql(text), SHORT)
    assert executor.execute(sql("SELECT 1"), PATIENT).rows == ((1,),)


def test_caps_are_said_out_loud(executor):
    result = executor.execute(sql("SELECT * FROM range(9000000) a, range(9000000) b"), Limits(max_rows=3, timeout=5))
    assert (len(result), result.truncated) == (3, "rows")
    wide = sql("SELECT repeat('x', 1200) FROM range(2)")
    result = executor.execute(wide, Limits(max_bytes=2000))
    assert (len(result), result.truncated) == (1, "bytes")


def test_values_keep_their_types(executor):
    text = "DATE '2024-01-02', TIMESTAMP '2024-01-02 03:04:05', INTERVAL 1 DAY, 1.50::DECIMAL(4, 2), [1, 2], {'a': 1}"
    (row,) = executor.execute(sql(f"SELECT {text}")).rows
    assert row == (date(2024, 1, 2), datetime(2024, 1, 2, 3, 4, 5), timedelta(1), Decimal("1.50"), (1, 2), {"a": 1})


def test_the_engine_says_what_is_wrong(executor):
    with pytest.raises(QueryFailed, match="prize"):
        executor.execute(sql("SELECT prize FROM item"))


@pytest.fixture(scope="module")
def data_files(tmp_path_factory):
    import duckdb

    folder = tmp_path_factory.mktemp("data files")
    (folder / "it's.csv").write_text("id,name\n1,a\n2,b\n")
    (folder / "log.jsonl").write_text('{"id": 1, "at": "2024-01-02"}\n')
    duckdb.sql(f"COPY (SELECT range AS n FROM range(10)) TO '{folder / 'numbers.parquet'}'")
    return {"people": folder / "it's.csv", "my log": folder / "log.jsonl", "numbers": folder / "numbers.parquet"}


def test_data_files_are_tables(data_files):
    executor = DuckdbExecutor(files=data_files, workers=1)
    try:
        text = 'SELECT name, "at", n FROM people, "my log" AS l, numbers WHERE l.id = n AND n = people.id'
        result = executor.execute(sql(text))
        assert result.rows == (("a", date(2024, 1, 2), 1),)
        for path in data_files.values():
            with pytest.raises(QueryRejected, match="files are not read"):
                executor.execute(sql(f'SELECT * FROM "{path}"'))
            if path.suffix != ".parquet":  # which the source's own view reads
                with pytest.raises((QueryRejected, QueryFailed)):
                    executor._pool.run(sql(f"""SELECT * FROM "{path}" """), Limits())
        beside = data_files["numbers"].with_name("beside.parquet")
        beside.write_bytes(data_files["numbers"].read_bytes())
        with pytest.raises((QueryRejected, QueryFailed)):
            executor._pool.run(sql(f"""SELECT * FROM "{beside}" """), Limits())
        with pytest.raises(QueryRejected):
            executor.execute(sql("INSERT INTO numbers VALUES (1)"))
    finally:
        executor.close()


def test_large_data_files_are_read_when_they_are_asked(tmp_path):
    """Not loaded into each worker: what is written to them later is there."""
    import duckdb

    files = {"numbers": tmp_path / "numbers.parquet", "lines": tmp_path / "lines.csv"}
    duckdb.sql(f"COPY (SELECT range AS n FROM range(10)) TO '{files['numbers']}'")
    files["lines"].write_bytes(b"id,name\n" + b"1,a name of some length\n" * 1_500_000)
    executor = DuckdbExecutor(files=files, workers=1)
    try:
        assert executor.execute(sql("SELECT count(*), max(n) FROM numbers")).rows == ((10, 9),)
        assert executor.execute(sql("SELECT count(*) FROM lines")).rows == ((1_500_000,),)
        duckdb.sql(f"COPY (SELECT range AS n FROM range(20)) TO '{files['numbers']}'")
        with files["lines"].open("ab") as file:
            file.write(b"2,b\n")
        assert executor.execute(sql("SELECT count(*), max(n) FROM numbers")).rows == ((20, 19),)
        assert executor.execute(sql("SELECT max(id) FROM lines")).rows == ((2,),)
    finally:
        executor.close()


@pytest.mark.parametrize("name", ["SALES.CSV", "sales.ndjson", "Sales.Json", "sales.csv.GZ"])
def test_endings_count_whatever_their_case(tmp_path, name):
    import gzip

    data = b"a,b\n1,2\n" if "csv" in name.lower() else b'{"a": 1, "b": 2}\n'
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("GZ") else data)
    executor = DuckdbExecutor(files={"sales": tmp_path / name}, workers=1)
    try:
        assert executor.execute(sql("SELECT a, b FROM sales")).rows == ((1, 2),)
    finally:
        executor.close()


@pytest.mark.parametrize("name", ["missing.duckdb", "text.duckdb"])
def test_what_is_no_database_is_unavailable(tmp_path, name):
    (tmp_path / "text.duckdb").write_text("no database " * 1000)
    executor = DuckdbExecutor(tmp_path / name)
    with pytest.raises(SourceUnavailable, match=name):
        executor.execute(sql("SELECT 1"))
    executor.close()


def test_unknown_data_files_are_unavailable(tmp_path):
    (tmp_path / "a.xyz").write_text("")
    executor = DuckdbExecutor(files={"a": tmp_path / "a.xyz"})
    with pytest.raises(SourceUnavailable, match="expected a file that ends in"):
        executor.warm_up()
    executor.close()
    with pytest.raises(ValueError, match="either"):
        DuckdbExecutor()


def test_a_trivial_query_costs_little(executor, quick):
    quick(0.005, lambda: executor.execute(sql("SELECT 1")))


VIEWS = """
    CREATE TABLE item (id INTEGER, name TEXT);
    INSERT INTO item VALUES (1, 'a'), (2, 'pg_x(''duckdb_settings()'')');
    CREATE VIEW harmless (a, b) AS SELECT id + 1, list(name)[1] FROM item WHERE name LIKE 'a%' GROUP BY ALL;
    CREATE VIEW settings AS SELECT name, value FROM duckdb_settings();
    CREATE VIEW "on top of it" AS SELECT name AS setting FROM settings;
    CREATE VIEW tables AS SELECT table_name FROM information_schema.tables;
    CREATE VIEW texts AS SELECT 'duckdb_settings() in a text' AS t;
    CREATE MACRO lower(a) AS (SELECT current_setting(a));
    CREATE MACRO upper(a) AS a || '!';
    CREATE MACRO trim(a) AS lower(a);
"""


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    import duckdb

    path = tmp_path_factory.mktemp("views") / "views.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(VIEWS)
    executor = DuckdbExecutor(path, workers=1)
    yield executor
    executor.close()


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("SELECT * FROM settings", "duckdb_settings"),
        ("FROM main.Settings", "duckdb_settings"),
        ("WITH w AS (FROM \"settings\") SELECT count(*) FROM w", "duckdb_settings"),
        ("SELECT * FROM \"on top of it\"", "settings"),
        ("SELECT * FROM tables", "information_schema"),
        ("SELECT lower('threads')", "current_setting"),
        ("SELECT list_transform(['threads'], lambda x: LOWER(x))", "current_setting"),
        ("SELECT trim('threads')", "lower"),
    ],
)  # fmt: skip
def test_a_view_or_macro_that_does_what_a_query_may_not_is_refused(views, text, uses):
    with pytest.raises(QueryRejected, match=f"of the file uses {uses}"):
        views.execute(sql(text))


def test_harmless_views_and_macros_are_followed(views):
    assert views.execute(sql("SELECT a, b FROM harmless")).rows == ((2, "a"),)
    assert views.execute(sql("SELECT t, upper('x') FROM texts")).rows == (("duckdb_settings() in a text", "x!"),)


def test_tables_of_the_system_are_open_where_the_source_says_so(duckdb_file):
    text = sql("SELECT table_name FROM information_schema.tables WHERE table_name = 'item'")
    executor = DuckdbExecutor(duckdb_file, workers=1, system_tables=True)
    try:
        assert executor.execute(text).rows == (("item",),)
        with pytest.raises(QueryRejected, match="system"):
            executor.execute(sql("SELECT * FROM information_schema.character_sets"))
    finally:
        executor.close()
    with pytest.raises(QueryRejected, match="system"):
        SqlGuard("duckdb").check(text.text)


def test_what_the_engine_says_shows_no_stack_trace(executor):
    with pytest.raises(QueryFailed) as caught:
        executor.execute(sql("SELECT NULL::INTEGER[100000][100000][100000][100000]"))
    assert "Stack Trace" not in str(caught.value)

"""PostgreSQL through the guard, against a server that the test starts: hostile, benign and runaway queries."""

import logging
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors import postgresql as postgresql_executor
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.postgresql import PostgresqlExecutor
from helios.executors.sql.guard import CheckedQuery
from helios.executors.sql.postgresql_watch import QueryWatch

SHORT = Limits(timeout=1.0)
PATIENT = Limits(timeout=30)
"""Of a query that only has to work, on a machine that is busy with the one before."""


def sql(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.SQL, text, parameters)


@pytest.fixture(scope="module")
def executor(postgresql_address):
    executor = PostgresqlExecutor(postgresql_address, limits=PATIENT)
    yield executor
    executor.close()


STATE = """
    SELECT 'item', string_agg(i::text, '|' ORDER BY id) FROM item i
    UNION ALL SELECT 'sale', string_agg(s::text, '|' ORDER BY id) FROM sale s
    UNION ALL SELECT 'class', string_agg(relname, '|' ORDER BY relname) FROM pg_class WHERE relpersistence <> 't'
    UNION ALL SELECT 'role', string_agg(r::text, '|' ORDER BY rolname) FROM pg_roles r
    UNION ALL SELECT 'acl', string_agg(relacl::text, '|' ORDER BY relname) FROM pg_class
    UNION ALL SELECT 'proc', count(*)::text FROM pg_proc UNION ALL SELECT 'lo', count(*)::text FROM pg_largeobject
"""


@pytest.fixture(scope="module")
def untouched(postgresql, reach, inserting_function):
    """Asked after each hostile query: rows, tables, roles and rights of the server are as they were."""
    with postgresql.connect() as connection:
        before = connection.execute(STATE).fetchall()

        def check() -> None:
            reach.assert_untouched()
            assert connection.execute(STATE).fetchall() == before

        yield check


def test_hostile_queries_are_refused_or_stopped(executor, hostile_postgres, reach, untouched, within):
    with within(SHORT.timeout + 1.0), pytest.raises((QueryRejected, QueryFailed, QueryTimeout)):
        executor.execute(sql(reach.fill(hostile_postgres)), SHORT)
    untouched()


def test_the_role_and_the_transaction_alone_let_nothing_happen(executor, hostile_postgres, reach, untouched, within):
    """The second layer without the first: the same queries straight to the server's cursor."""
    text = reach.fill(hostile_postgres)
    refused = (QueryRejected, QueryFailed, QueryTimeout, SourceUnavailable)
    with within(SHORT.timeout + 1.0), suppress(*refused), executor._connection(monotonic() + 5) as connection:
        result = executor._run(connection, CheckedQuery(text), [], SHORT, monotonic())
        assert "canary-" not in repr(result.rows)
    untouched()


def test_benign_queries_give_what_the_server_gives(executor, benign_postgres, postgresql, parameters):
    """The same rows as the text that came in, executed without a guard."""
    rows = executor.execute(sql(benign_postgres, **parameters), Limits(timeout=20)).rows
    if parameters and ":a" in benign_postgres:
        assert rows == ((42, parameters["b"]),)
        return
    expected = postgresql.run(benign_postgres)
    assert len(rows) == len(expected)
    for row, other in zip(rows, expected, strict=True):
        for value, its in zip(row, other, strict=True):
            assert value == its or str(value) == str(its)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
        "SELECT a + b AS c FROM generate_series(1, 1000000) a, generate_series(1, 1000) b ORDER BY md5((a + b)::text)",
        "SELECT string_agg(repeat('x', 100000), '') FROM generate_series(1, 100000)",
        "WITH RECURSIVE t(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t",
        "SELECT count(*) FROM generate_series(1, 1000000) a WHERE repeat('a', 3000) || a ~ '(a*)*(a|b)*c(a*)*$'",
    ],
    ids=["cross-join", "recursion", "a-billion-rows", "concatenation", "doubling", "regex"],
)
def test_a_runaway_query_is_stopped_and_the_next_one_works(executor, text, within):
    before = psutil.Process().memory_info().rss
    with within(SHORT.timeout + 1.0), pytest.raises((QueryTimeout, QueryFailed)):
        executor.execute(sql(text), SHORT)
    assert psutil.Process().memory_info().rss - before < SHORT.max_bytes * 8 + 2**27
    assert executor.execute(sql("SELECT 1"), PATIENT).rows == ((1,),)


def test_a_cancel_request_that_comes_late_hits_no_other_query(executor, monkeypatch):
    """The server's own limit ends the first query while the request is under way: only its arrival is delayed here."""
    cancel = QueryWatch._cancel
    monkeypatch.setattr(QueryWatch, "_cancel", lambda watch: (sleep(0.3), cancel(watch)))
    endless = sql("SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b")
    with pytest.raises(QueryTimeout):
        executor.execute(endless, Limits(timeout=0.5))
    began = monotonic()
    while monotonic() - began < 1.0:
        count = executor.execute(sql("SELECT count(*) FROM generate_series(1, 300000) a"), Limits(timeout=10))
        assert count.rows == ((300000,),)


def test_a_gigantic_row_ends_the_connection_not_this_process(executor):
    huge = sql("SELECT repeat(repeat('x', 3000), 20000) AS a")
    before = psutil.Process().memory_info().rss
    with pytest.raises(QueryFailed, match="sends more"):
        executor.execute(huge, Limits(timeout=20, max_bytes=2**20))
    assert psutil.Process().memory_info().rss - before < 2**27
    assert executor.execute(sql("SELECT 1"), PATIENT).rows == ((1,),)


def test_caps_are_said_out_loud(executor):
    result = executor.execute(sql("SELECT a FROM generate_series(1, 100000) a"), Limits(max_rows=3))
    assert (result.rows, result.truncated) == (((1,), (2,), (3,)), "rows")
    result = executor.execute(sql("SELECT repeat('x', 1200) FROM generate_series(1, 5)"), Limits(max_bytes=2000))
    assert (len(result), result.truncated) == (1, "bytes")


def test_values_keep_their_types_or_come_as_text(executor):
    text = """SELECT date '2024-01-02', interval '1 day', 1.50::numeric, ARRAY[1, 2], '{"a": [1]}'::jsonb,
        '\\x61'::bytea, 'infinity'::timestamp, date '0044-03-15 BC', int4range(1, 3)"""
    (row,) = executor.execute(sql(text)).rows
    assert row[:6] == (date(2024, 1, 2), timedelta(1), Decimal("1.50"), [1, 2], {"a": [1]}, b"a")
    assert row[6:] == ("infinity", "0044-03-15 BC", "[1, 3)")


def test_text_of_an_unknown_encoding_is_shown(postgresql, postgresql_address):
    postgresql.run("CREATE DATABASE dirty ENCODING 'SQL_ASCII' TEMPLATE template0")
    postgresql.run(f"GRANT CONNECT ON DATABASE dirty TO {postgresql_address.user}")
    executor = PostgresqlExecutor(replace(postgresql_address, database="dirty"))
    try:
        result = executor.execute(sql("SELECT convert_from('\\x61ff62'::bytea, 'SQL_ASCII') AS a, 'b'"))
        assert (result.columns[0], result.rows) == ("a", (("a\ufffdb", "b"),))
    finally:
        executor.close()


def test_the_engine_says_what_is_wrong(executor):
    with pytest.raises(QueryFailed, match='column "prize" does not exist'):
        executor.execute(sql("SELECT prize FROM item"))


@pytest.fixture(scope="module")
def callable_by_a_dot(postgresql):
    """A function of a row and one of text, both with side effects if they could; a column named like a function."""
    postgresql.run("""
        CREATE FUNCTION row_secret(item) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'canary-row' $$;
        CREATE TABLE IF NOT EXISTS measure (id int, length float8, name text, count int);
        INSERT INTO measure VALUES (1, 2.5, 'one', 3);
        GRANT SELECT ON measure TO PUBLIC
    """)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (0.5::float8).pg_sleep",
        "SELECT (1::bigint).pg_advisory_lock",
        "SELECT (q).ts_stat FROM (SELECT 'SELECT to_tsvector(''a'')'::text AS q) x",
        "SELECT x.ts_stat FROM (SELECT 'SELECT to_tsvector(''a'')'::text AS q) x",
        "SELECT i.row_secret FROM item i",
        "SELECT item.row_secret FROM item",
        "SELECT i.id FROM item i WHERE i.row_secret = 'a'",
        "SELECT i.id FROM item i ORDER BY i.row_secret",
        "SELECT i.row_secret FROM item i WHERE EXISTS (SELECT 1 FROM (VALUES ('a')) AS i(row_secret))",
        'SELECT i."row_secret" FROM item i',
        "SELECT public.item.row_secret FROM public.item",
        "SELECT ('/etc/passwd'::text).pg_read_file",
        "SELECT ('/etc'::text).pg_ls_dir",
        "SELECT (1).pg_terminate_backend",
        "SELECT ((SELECT 1::bigint)).pg_advisory_lock",
        "SELECT (ARRAY[1::bigint])[1].pg_advisory_lock",
        "WITH t AS (SELECT 'SELECT 1'::text AS q) SELECT (t.q).ts_stat FROM t",
        "SELECT l.pg_sleep FROM item i, LATERAL (SELECT 0.5::float8 AS a) l",
        "SELECT m.text FROM measure m",
    ],
)
def test_a_function_is_not_called_by_a_dot(executor, callable_by_a_dot, text):
    with pytest.raises(QueryRejected):
        executor.execute(sql(text))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT m.length, m.name, m.count FROM measure m", ((2.5, "one", 3),)),
        ("SELECT measure.length FROM measure WHERE measure.name = 'one' ORDER BY measure.count", ((2.5,),)),
        ("SELECT x.length FROM (SELECT * FROM measure) AS x", ((2.5,),)),
        ("SELECT x.count FROM (SELECT * FROM measure UNION SELECT * FROM measure) AS x", ((3,),)),
        ("WITH t AS (SELECT m.name, max(m.count) AS max FROM measure m GROUP BY m.name) SELECT t.max FROM t", ((3,),)),
        ("WITH RECURSIVE t(length) AS (SELECT 1 UNION ALL SELECT t.length + 1 FROM t WHERE t.length < 2) "
         "SELECT max(t.length) FROM t", ((2,),)),
        ("SELECT g.length FROM generate_series(1, 1) AS g(length)", ((1,),)),
        ("SELECT public.measure.name FROM public.measure", (("one",),)),
        ("SELECT m.id FROM measure m WHERE EXISTS (SELECT 1 FROM item i WHERE m.name = 'one')", ((1,),)),
        ('SELECT "M".name FROM measure AS "M"', (("one",),)),
        ("SELECT l.text FROM measure m, LATERAL (SELECT m.name AS text) l", (("one",),)),
    ],
)  # fmt: skip
def test_a_column_named_like_a_function_is_read(executor, callable_by_a_dot, text, rows):
    assert executor.execute(sql(text), Limits(timeout=20)).rows == rows


def test_what_a_query_sets_in_its_session_is_gone_for_the_next_one(executor):
    with executor._connection(monotonic() + 5) as connection:
        process = connection.info.backend_pid
        executor._run(
            connection,
            CheckedQuery("SELECT pg_advisory_lock(77), set_config('jit', 'on', false)"),
            [],
            SHORT,
            monotonic(),
        )
    with executor._connection(monotonic() + 5) as connection:
        assert connection.info.backend_pid == process
        held = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
        assert held == (0,)
        assert connection.execute("SHOW jit").fetchone() == ("off",)
        assert connection.execute("SHOW search_path").fetchone() == ('"public"',)


def test_a_role_that_only_reads_has_no_problems(executor):
    assert executor.problems() == ()


def test_a_role_that_may_write_is_told_of(inserting_function, postgresql, postgresql_address, monkeypatch, caplog):
    monkeypatch.setenv("WRITER_PASSWORD", "w")
    postgresql.run("CREATE ROLE writer LOGIN PASSWORD 'w'; GRANT SELECT, INSERT ON item TO writer")
    postgresql.run("GRANT pg_read_server_files TO writer")
    address = replace(postgresql_address, user="writer", password_env="WRITER_PASSWORD")
    refusing = PostgresqlExecutor(address)
    for _ in range(2):
        with pytest.raises(SourceUnavailable, match="writer is refused: it is a member of pg_read_server_files"):
            refusing.execute(sql("SELECT 1"))
    refusing.close()
    executor = PostgresqlExecutor(replace(address, trusted_role="writer"))
    try:
        with caplog.at_level(logging.WARNING):
            problems = executor.problems()
        assert "it may write to the table item" in problems
        assert "it is a member of pg_read_server_files" in problems
        assert "it may write to the table item" in caplog.text
        monkeypatch.setattr(
            postgresql_executor, "check_names", lambda connection, text, deadline: None
        )  # the layer below
        with pytest.raises(QueryRejected, match="read-only"), executor._connection(monotonic() + 5) as connection:
            executor._run(connection, CheckedQuery("SELECT helios_insert()"), [], SHORT, monotonic())
    finally:
        executor.close()


@pytest.fixture(scope="module")
def inserting_function(postgresql):
    postgresql.run("""
        CREATE FUNCTION helios_insert() RETURNS int LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO item VALUES (99, 'x', 1.0, NULL); RETURN 1; END $$
    """)


def test_a_connection_that_the_server_ended_is_replaced(executor, postgresql, postgresql_address):
    executor.execute(sql("SELECT 1"))
    whose = f"usename = '{postgresql_address.user}'"
    postgresql.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {whose}")
    sleep(0.2)
    assert executor.execute(sql("SELECT 1"), PATIENT).rows == ((1,),)


def test_a_server_that_falls_silent_is_given_up(executor, postgresql, within):
    """The server's processes are halted: neither the timeout there nor the cancel request can work."""
    pid = int((postgresql.folder / "data" / "postmaster.pid").read_text().split()[0])
    executor.execute(sql("SELECT 1"))
    parent = psutil.Process(pid)
    halted = [parent, *parent.children(recursive=True)]
    for process in halted:
        process.suspend()
    try:
        with within(SHORT.timeout + 1.0), pytest.raises((QueryTimeout, SourceUnavailable)):
            executor.execute(sql("SELECT 2"), SHORT)
    finally:
        for process in halted:
            process.resume()
    assert executor.execute(sql("SELECT 3"), Limits(timeout=5)).rows == ((3,),)


def test_close_ends_a_query_under_way(postgresql_address, within):
    executor = PostgresqlExecutor(postgresql_address, limits=Limits(timeout=20))
    executor.execute(sql("SELECT 1"))
    timer = threading.Timer(0.5, executor.close)
    timer.start()
    with within(5), pytest.raises(SourceUnavailable, match="closed"):
        executor.execute(sql("SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b"))
    timer.join()
    with pytest.raises(SourceUnavailable, match="closed"):
        executor.execute(sql("SELECT 1"))


def test_threads_share_an_executor(executor):
    answers: list[int] = []

    def ask(number: int) -> None:
        answers.append(executor.execute(sql("SELECT :n::int * 2", n=number), Limits(timeout=20)).rows[0][0])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [2 * number for number in range(20)]


def test_what_cannot_be_reached_is_unavailable(postgresql_address, monkeypatch):
    addresses = {
        "port 1 ": replace(postgresql_address, port=1),
        "HELIOS_NO_SUCH": replace(postgresql_address, password_env="HELIOS_NO_SUCH"),
        "does not exist": replace(postgresql_address, database="nowhere"),
    }
    monkeypatch.setenv("WRONG_PASSWORD", "wrong")
    addresses["authentication failed"] = replace(postgresql_address, password_env="WRONG_PASSWORD")
    for message, address in addresses.items():
        executor = PostgresqlExecutor(address)
        with pytest.raises(SourceUnavailable, match=message):
            executor.execute(sql("SELECT 1"))
        executor.close()


def test_the_password_comes_from_nowhere_else(postgresql_address, tmp_path, monkeypatch):
    (tmp_path / "pass").write_text("*:*:*:*:" + Path("/dev/null").read_text())
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
    executor = PostgresqlExecutor(replace(postgresql_address, password_env=None))
    with pytest.raises(SourceUnavailable, match="password"):
        executor.execute(sql("SELECT 1"))
    executor.close()


def test_a_trivial_query_costs_little(executor, quick):
    quick(0.005, lambda: executor.execute(sql("SELECT 1")))

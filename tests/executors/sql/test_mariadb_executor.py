"""MariaDB through the guard, SQLAlchemy and a worker process: hostile, benign and runaway queries, and roles."""

import json
import re
import threading
import time
from pathlib import Path

import pytest

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.alchemy import AlchemyExecutor
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.sql.alchemy_session import role_of, written
from helios.executors.sql.guard import SqlGuard

SHORT = Limits(timeout=1.0)
PATIENT = Limits(timeout=30)
CONTENT = "SELECT group_concat(concat(id, name, price) ORDER BY id) FROM item"
TABLES = "SELECT group_concat(table_name ORDER BY 1) FROM information_schema.tables WHERE table_schema = 'shop'"
SERVER = ("tsql", "snowflake", "bigquery", "clickhouse")


def sql(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.SQL, text, parameters)


@pytest.fixture(scope="module")
def executor(mariadb, mariadb_password):
    executor = AlchemyExecutor(mariadb.url(), "mysql", password=mariadb_password, limits=PATIENT)
    executor.execute(sql("SELECT 1"), PATIENT)
    yield executor
    executor.close()


def state(mariadb) -> list:
    return [mariadb.run(CONTENT), mariadb.run(TABLES), mariadb.run("SELECT count(*) FROM mysql.user")]


def test_hostile_queries_are_refused_or_stopped(executor, hostile_mariadb, mariadb, reach, within):
    with within(SHORT.timeout + 1.0), pytest.raises((QueryRejected, QueryFailed, QueryTimeout)) as caught:
        executor.execute(sql(reach.fill(hostile_mariadb)), SHORT)
    if isinstance(caught.value, QueryTimeout):
        executor.warm_up()
    reach.assert_untouched()


def test_nothing_was_changed_by_them(executor, mariadb, reach):
    """What the role could do at most, straight to a worker: the second layer without the first."""
    before = state(mariadb)
    lines = (Path(__file__).parent / "hostile_mariadb.jsonl").read_text(encoding="utf-8").splitlines()
    for line in map(json.loads, lines):
        if line["kind"] in ("waits", "locks") or "KILL" in line["sql"] or "\0" in line["sql"]:
            continue
        text = reach.fill(line["sql"])
        try:
            asked = {"values": {}, "seconds": 1.0}
            result = executor._pool.run(NativeQuery(Language.SQL, text, asked), Limits(timeout=5.0))
        except (QueryRejected, QueryFailed, QueryTimeout, SourceUnavailable):
            continue
        assert "canary" not in repr(result.rows), text
    assert state(mariadb) == before
    reach.assert_untouched()


def test_benign_queries_give_what_the_engine_gives(executor, benign_mariadb, mariadb):
    """The same rows as the text that came in, executed by MariaDB without a guard."""
    expected = mariadb.run(benign_mariadb)
    assert list(executor.execute(sql(benign_mariadb)).rows) == expected


def test_a_space_before_a_parenthesis_makes_no_other_function(executor):
    """MariaDB would look for a function `count` of the database's own."""
    assert executor.execute(sql("SELECT count (*) FROM item")).rows == ((3,),)


def test_parameters_are_bound_not_pasted(executor):
    hostile = "x'; DROP TABLE item; -- \\' 100% {} :b %s"
    found = executor.execute(sql("SELECT :a, count(*), '50%', :b, :a FROM item WHERE name LIKE '%p%'", a=hostile, b=7))
    assert found.rows == ((hostile, 3, "50%", 7, hostile),)
    with pytest.raises(QueryRejected, match="a parameter has no value"):
        executor.execute(sql("SELECT :c"))


def test_a_runaway_query_is_stopped_here_and_at_the_server(executor, mariadb, within):
    crowd = ", ".join(f"item t{number}" for number in range(30))
    with within(SHORT.timeout + 1.0), pytest.raises(QueryTimeout):
        executor.execute(sql(f"SELECT count(*) FROM {crowd}"), SHORT)
    assert executor.execute(sql("SELECT 1"), PATIENT).rows == ((1,),)
    ends = time.monotonic() + 10
    busy = "SELECT * FROM information_schema.processlist WHERE user = 'helios_reader' AND command = 'Query'"
    while running := mariadb.run(busy):
        assert time.monotonic() < ends, running
        time.sleep(0.1)


def test_caps_are_said_out_loud(executor):
    many = sql("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 900) SELECT n FROM t")
    result = executor.execute(many, Limits(max_rows=3))
    assert (result.rows, result.truncated) == (((1,), (2,), (3,)), "rows")
    wide = sql("SELECT repeat('x', 1500) UNION ALL SELECT repeat('y', 1500)")
    result = executor.execute(wide, Limits(max_bytes=2000))
    assert (len(result), result.truncated) == (1, "bytes")
    assert executor.execute(sql("SELECT 1"), PATIENT).rows == ((1,),)


def test_threads_share_it(executor):
    found = []

    def ask(number: int) -> None:
        found.append(executor.execute(sql("SELECT :n", n=number), PATIENT).rows[0][0])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(6))


def test_no_query_leaves_the_read_only_transaction(mariadb, mariadb_password):
    """A role that may write is said to, and cannot."""
    mariadb.run("CREATE USER IF NOT EXISTS helios_writer@'127.0.0.1' IDENTIFIED BY 'w'")
    mariadb.run("GRANT SELECT, INSERT, EXECUTE ON shop.* TO helios_writer@'127.0.0.1'")
    executor = AlchemyExecutor(mariadb.url("helios_writer"), "mysql", password="w", limits=PATIENT)
    try:
        assert executor.problems() == ("INSERT on shop.*", "EXECUTE on shop.*")
        asked = {"values": {}, "seconds": 5.0}
        with pytest.raises(QueryRejected, match="READ ONLY"):
            executor._pool.run(NativeQuery(Language.SQL, "INSERT INTO item VALUES (9, 'x', 1, NULL)", asked), SHORT)
    finally:
        executor.close()


def test_a_role_that_reaches_files_is_refused(mariadb):
    mariadb.run("CREATE USER IF NOT EXISTS helios_mighty@'127.0.0.1' IDENTIFIED BY 'm'")
    mariadb.run("GRANT SELECT, FILE ON *.* TO helios_mighty@'127.0.0.1'")
    for trusted in (None, "helios_mighty"):
        executor = AlchemyExecutor(
            mariadb.url("helios_mighty"), "mysql", password="m", limits=PATIENT, trusted_role=trusted
        )
        try:
            if trusted is None:
                with pytest.raises(SourceUnavailable, match=re.escape("it has FILE on *.*")):
                    executor.execute(sql("SELECT 1"))
            else:
                assert executor.execute(sql("SELECT 1")).rows == ((1,),)
        finally:
            executor.close()


def test_what_cannot_be_reached_says_where(mariadb):
    for url, password in ((mariadb.url(), "wrong"), (mariadb.url().replace(str(mariadb.port), "9"), "x")):
        executor = AlchemyExecutor(url, "mysql", password=password, where="mysql+pymysql://host/shop")
        try:
            with pytest.raises(SourceUnavailable, match="mysql\\+pymysql://host/shop: cannot connect") as caught:
                executor.execute(sql("SELECT 1"), PATIENT)
            assert "wrong" not in str(caught.value)
        finally:
            executor.close()


def test_grants_are_read():
    lines = [
        "GRANT USAGE ON *.* TO `r`@`%` IDENTIFIED BY PASSWORD '*1'",
        "GRANT SELECT (`id`, `name`), SHOW VIEW ON `shop`.`item` TO `r`@`%`",
        "GRANT INSERT, FILE, CREATE TEMPORARY TABLES ON `shop`.* TO `r`@`%`",
        "GRANT ALL PRIVILEGES ON `x`.* TO `r`@`%` WITH GRANT OPTION",
    ]
    role = role_of(iter(lines))
    assert role.powers == ("FILE on shop.*", "ALL PRIVILEGES on x.*", "GRANT OPTION on x.*")
    assert role.problems == ("INSERT on shop.*", "CREATE TEMPORARY TABLES on shop.*")


@pytest.mark.parametrize(
    ("style", "made", "values"),
    [
        ("qmark", "SELECT ?, '5%', ?, ?", (1, 2, 1)),
        ("format", "SELECT %s, '5%%', %s, %s", (1, 2, 1)),
        ("pyformat", "SELECT %(p1)s, '5%%', %(p2)s, %(p1)s", {"p1": 1, "p2": 2}),
        ("named", "SELECT :p1, '5%', :p2, :p1", {"p1": 1, "p2": 2}),
        ("numeric", "SELECT :1, '5%', :2, :1", (1, 2)),
    ],
)
def test_parameters_are_written_as_drivers_want_them(style, made, values):
    checked = SqlGuard("mysql").check("SELECT :a, '5%', :b, :a")
    assert written(checked.text, {"a": 1, "b": 2}, style) == (made, values)


HOSTILE_ELSEWHERE = {
    "tsql": [
        "SELECT 1 DELETE FROM t", "SELECT 1 DROP TABLE t", "SELECT 1 EXEC xp_cmdshell 'dir'", "EXEC sp_who",
        "SELECT * INTO loot FROM t", "SELECT * FROM OPENROWSET('SQLNCLI', 'x', 'SELECT 1')",
        "SELECT * FROM sys.objects",
        "SELECT * FROM OPENQUERY(x, 'SELECT 1')", "SELECT * FROM sysobjects", "SELECT * FROM master.dbo.sysdatabases",
        "SELECT 1 WAITFOR DELAY '0:0:9'", "SELECT 1 SHUTDOWN", "SELECT @@version", "SELECT SYSTEM_USER",
        "SELECT * FROM OPENJSON('[]')", "SELECT 1 USE master", "SELECT 1 DECLARE @a INT",
    ],
    "snowflake": [
        "SELECT * FROM @stage/file", "COPY INTO t FROM @s", "SELECT system$whitelist()", "CALL p()", "PUT file://x @s",
        "SELECT * FROM INFORMATION_SCHEMA.TABLES", "SELECT * FROM snowflake.account_usage.users", "SELECT f(1)",
        "SELECT current_user()", "SELECT $1", "SELECT * FROM TABLE(result_scan('x'))", "EXECUTE IMMEDIATE 'x'",
    ],
    "bigquery": [
        "EXPORT DATA OPTIONS(uri='gs://x') AS SELECT 1", "SELECT * FROM EXTERNAL_QUERY('c', 'SELECT 1')",
        "SELECT * FROM d.INFORMATION_SCHEMA.TABLES", "SELECT session_user()", "CALL p()", "SELECT ml.f(1)",
        "DECLARE x INT64", "BEGIN SELECT 1; END", "SELECT * FROM d.__TABLES__", "CREATE TEMP FUNCTION f() AS (1)",
    ],
    "clickhouse": [
        "SELECT * FROM url('http://x', CSV)", "SELECT * FROM file('x')",
        "SELECT * FROM system.tables", "SYSTEM SHUTDOWN",
        "SELECT * FROM remote('x', d.t)", "SELECT * FROM mysql('h', 'd', 't', 'u', 'p')", "SELECT sleep(3)",
        "SELECT * FROM executable('x', TSV, 'a')", "SELECT 1 INTO OUTFILE 'x'", "SELECT * FROM s3('x')",
        "SELECT 1 SETTINGS readonly = 0", "SELECT hostName()", "SELECT * FROM numbers(10000000000)",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("dialect", "text"), [(d, text) for d, texts in HOSTILE_ELSEWHERE.items() for text in texts])
def test_guards_of_servers_that_are_not_tested_refuse(dialect, text):
    with pytest.raises(QueryRejected):
        SqlGuard(dialect).check(text)


@pytest.mark.parametrize("dialect", SERVER)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, count(*) FROM s.t WHERE b LIKE 'x%' GROUP BY a HAVING count(*) > 1 ORDER BY 2 DESC",
        "WITH x AS (SELECT a FROM t) SELECT x.a, u.b FROM x JOIN u ON u.a = x.a",
        "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END, CAST(a AS INTEGER), coalesce(a, 0) FROM t",
        "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c) FROM t UNION ALL SELECT 1, 2",
    ],
)
def test_guards_of_servers_that_are_not_tested_let_plain_queries_through(dialect, text):
    assert SqlGuard(dialect).check(text).text == text

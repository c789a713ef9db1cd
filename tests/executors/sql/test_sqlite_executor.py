"""SQLite through the guard and a worker process: hostile, benign, gold and runaway queries."""

import gzip
import hashlib
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery, execute_many
from helios.executors.sqlite import SqliteExecutor

SPIDER = Path(__file__).parents[4] / "shared" / "data" / "spider"
SHORT = Limits(timeout=1.0, max_memory=2**28)
PATIENT = Limits(timeout=30)
"""Of a query that only has to work, on a machine that is busy with the one before."""


def sql(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.SQL, text, parameters)


@pytest.fixture(scope="module")
def executor(sqlite_file):
    executor = SqliteExecutor(sqlite_file, limits=PATIENT, workers=2)
    executor.warm_up()
    yield executor
    executor.close()


def test_hostile_queries_are_refused_or_stopped(executor, hostile_sqlite, sqlite_file, reach, within):
    before = hashlib.sha256(sqlite_file.read_bytes()).digest()
    with within(SHORT.timeout + 1.0), pytest.raises((QueryRejected, QueryFailed, QueryTimeout)) as caught:
        executor.execute(sql(reach.fill(hostile_sqlite)), SHORT)
    if isinstance(caught.value, QueryTimeout):
        executor.warm_up()
    reach.assert_untouched()
    assert hashlib.sha256(sqlite_file.read_bytes()).digest() == before
    assert [path.name for path in sqlite_file.parent.iterdir()] == [sqlite_file.name]


def test_the_engine_alone_lets_nothing_happen(executor, hostile_sqlite, sqlite_file, reach):
    """The second layer without the first: the same queries straight to a worker."""
    before = hashlib.sha256(sqlite_file.read_bytes()).digest()
    if "\x00" not in hostile_sqlite:
        try:
            result = executor._pool.run(sql(reach.fill(hostile_sqlite)), SHORT)
        except (QueryRejected, QueryFailed, QueryTimeout):
            executor.warm_up()
        else:
            assert "canary" not in repr(result.rows)
    reach.assert_untouched()
    assert hashlib.sha256(sqlite_file.read_bytes()).digest() == before
    assert [path.name for path in sqlite_file.parent.iterdir()] == [sqlite_file.name]


class OneAtATime:
    """An executor that takes one query at a time, as those of servers do."""

    def __init__(self, executor: SqliteExecutor) -> None:
        self.execute = executor.execute


@pytest.mark.parametrize("together", [True, False])
def test_many_queries_each_come_to_what_they_come_to_alone(executor, together):
    """One is refused by the guard, one by the engine, one is stopped; those after it run all the same."""
    runaway = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    texts = ["SELECT name FROM item WHERE id = :a", "DELETE FROM item", "SELECT nothing FROM item", runaway]
    queries = [*(sql(text, a=2) for text in texts), sql("SELECT count(*) FROM sale")]
    asked = executor if together else OneAtATime(executor)
    first, refused, failed, stopped, last = execute_many(asked, queries, SHORT, 30.0)
    assert (first.rows, last.rows) == ((("pear",),), ((3,),))
    assert [type(outcome) for outcome in (refused, failed, stopped)] == [QueryRejected, QueryFailed, QueryTimeout]
    executor.warm_up()


@pytest.mark.parametrize("together", [True, False])
def test_many_queries_without_time_are_all_stopped(executor, together):
    asked = executor if together else OneAtATime(executor)
    outcomes = execute_many(asked, [sql("SELECT 1"), sql("SELECT 2")], SHORT, -1.0)
    assert [type(outcome) for outcome in outcomes] == [QueryTimeout, QueryTimeout]


def test_benign_queries_give_what_the_engine_gives(executor, benign_sqlite, sqlite_file, parameters):
    """The same rows as the text that came in, executed by SQLite without a guard."""
    connection = sqlite3.connect(sqlite_file)
    connection.text_factory = lambda data: data.decode(errors="replace")
    expected = connection.execute(benign_sqlite, parameters).fetchall()
    connection.close()
    assert list(executor.execute(sql(benign_sqlite, **parameters)).rows) == expected


@pytest.mark.skipif(not SPIDER.exists(), reason="shared data is absent: spider")
@pytest.mark.parametrize("database", sorted(path.name for path in SPIDER.glob("database/*")))
def test_gold_queries_match_their_stored_answers(database):
    with gzip.open(SPIDER / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        questions = [row for row in map(json.loads, lines) if row["db_id"] == database]
    executor = SqliteExecutor(SPIDER / "database" / database / f"{database}.sqlite", workers=1)
    try:
        for question in questions:
            result = executor.execute(sql(question["query"]))
            assert result.truncated is None
            rows, gold = [list(row) for row in result.rows], question["answers"]
            if "order by" not in question["query"].casefold():
                rows, gold = sorted(rows, key=repr), sorted(gold, key=repr)
            assert rows == gold, question["id"]
    finally:
        executor.close()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM item a, item b, item c, item d, item e, item f, item g, item h, item i, item j, item k,"
        " item l, item m, item n, item o, item p, item q, item r, item s, item t, item u, item v, item w, item x",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t LIMIT 1000000000)"
        " SELECT n FROM t ORDER BY n DESC",
        "WITH RECURSIVE t(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t",
        "WITH RECURSIVE t(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, hex(randomblob(50000)) FROM t)"
        " SELECT group_concat(s) FROM t",
    ],
    ids=["cross-join", "recursion", "a-billion-rows", "doubling", "concatenation"],
)  # fmt: skip
def test_a_runaway_query_is_stopped_and_the_next_one_works(executor, text, within):
    executor.warm_up()
    with within(SHORT.timeout + 1.0), pytest.raises((QueryTimeout, QueryFailed)):
        executor.execute(sql(text), SHORT)
    assert executor.execute(sql("SELECT 1"), PATIENT).rows == ((1,),)


def test_caps_are_said_out_loud(executor):
    many = sql("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t")
    result = executor.execute(many, Limits(max_rows=3))
    assert (result.rows, result.truncated) == (((1,), (2,), (3,)), "rows")
    wide = sql("SELECT hex(zeroblob(600)) UNION ALL SELECT hex(zeroblob(600))")
    result = executor.execute(wide, Limits(max_bytes=2000))
    assert (len(result), result.truncated) == (1, "bytes")


def test_parameters_are_bound_not_pasted(executor):
    hostile = "x'; DROP TABLE item; --"
    assert executor.execute(sql("SELECT :a, count(*) FROM item", a=hostile)).rows == ((hostile, 3),)
    with pytest.raises(QueryFailed):
        executor.execute(sql("SELECT :a", a=2**80))


def test_text_that_is_not_utf8_is_shown(executor):
    assert executor.execute(sql("SELECT text FROM dirty ORDER BY 1")).rows == (("a\ufffdb",), ("clean",))


def test_the_engine_says_what_is_wrong(executor):
    with pytest.raises(QueryFailed, match="no such column: prize"):
        executor.execute(sql("SELECT prize FROM item"))
    with pytest.raises(QueryFailed, match="no such table: items"):
        executor.execute(sql("SELECT 1 FROM items"))


def test_a_table_that_comes_later_can_be_read(tmp_path):
    path = tmp_path / "later.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE a (x)")
    connection.commit()
    executor = SqliteExecutor(path, workers=1)
    try:
        assert executor.execute(sql("SELECT count(*) FROM a")).rows == ((0,),)
        connection.execute("CREATE TABLE b (x)")
        connection.execute("INSERT INTO b VALUES (7)")
        connection.commit()
        assert executor.execute(sql("SELECT x FROM b")).rows == ((7,),)
    finally:
        executor.close()
        connection.close()


def test_what_another_process_writes_is_seen(tmp_path):
    """A file in WAL mode without a log is read without locks: it is opened anew once somebody has written it."""
    path = tmp_path / "wal.sqlite"

    def write(*, keep_open=False):
        writer = sqlite3.connect(path)
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("CREATE TABLE IF NOT EXISTS a (x)")
        writer.executemany("INSERT INTO a VALUES (?)", [(number,) for number in range(1000)])
        writer.commit()
        if not keep_open:
            writer.close()
        return writer

    def rows():
        return executor.execute(sql("SELECT count(*) FROM a")).rows[0][0]

    write()
    executor = SqliteExecutor(path, workers=1)
    try:
        assert rows() == 1000
        write()
        assert rows() == 2000
        writer = write(keep_open=True)
        assert rows() == 3000
        writer.close()
        assert rows() == 3000
    finally:
        executor.close()


def test_a_file_in_the_place_of_another_is_read(tmp_path):
    for number, name in enumerate(("a.sqlite", "b.sqlite")):
        with closing(sqlite3.connect(tmp_path / name)) as connection, connection:
            connection.execute(f"CREATE TABLE a AS SELECT {number} AS x")
        connection.close()
    executor = SqliteExecutor(tmp_path / "a.sqlite", workers=1)
    try:
        assert executor.execute(sql("SELECT x FROM a")).rows == ((0,),)
        (tmp_path / "b.sqlite").replace(tmp_path / "a.sqlite")
        assert executor.execute(sql("SELECT x FROM a")).rows == ((1,),)
    finally:
        executor.close()


@pytest.mark.parametrize("open_writer", [True, False])
def test_a_database_with_a_write_ahead_log_is_read(tmp_path, open_writer):
    path = tmp_path / "wal.sqlite"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute("CREATE TABLE a (x)")
    writer.execute("INSERT INTO a VALUES (1)")
    writer.commit()
    if not open_writer:
        writer.close()
    executor = SqliteExecutor(path, workers=1)
    try:
        assert executor.execute(sql("SELECT x FROM a")).rows == ((1,),)
        if open_writer:
            writer.execute("INSERT INTO a VALUES (2)")
            writer.commit()
            assert executor.execute(sql("SELECT count(*) FROM a")).rows == ((2,),)
    finally:
        executor.close()
        writer.close()


def test_a_hostile_view_is_refused_by_the_engine(tmp_path):
    """The guard sees only the view's name; the authorizer sees what it does."""
    path = tmp_path / "view.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE VIEW v AS SELECT load_extension('/nowhere.so')")
        connection.execute("CREATE VIEW w AS SELECT file FROM pragma_database_list")
    connection.close()
    executor = SqliteExecutor(path, workers=1)
    try:
        for view in "vw":
            with pytest.raises(QueryRejected, match="does not allow"):
                executor.execute(sql(f"SELECT * FROM {view}"))
    finally:
        executor.close()


@pytest.mark.parametrize("content", [None, b"not a database, but long enough to look at" * 10])
def test_what_is_no_database_is_unavailable(tmp_path, content):
    path = tmp_path / "x.sqlite"
    if content is not None:
        path.write_bytes(content)
    executor = SqliteExecutor(path)
    with pytest.raises(SourceUnavailable, match=r"x\.sqlite"):
        executor.execute(sql("SELECT 1"))
    executor.close()


def test_threads_share_an_executor(executor):
    answers: list[int] = []

    def ask(number: int) -> None:
        answers.append(executor.execute(sql("SELECT :n * 2", n=number), Limits(timeout=20)).rows[0][0])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [2 * number for number in range(20)]


def test_a_trivial_query_costs_little(executor, quick):
    quick(0.005, lambda: executor.execute(sql("SELECT 1")))


def test_tables_of_the_system_are_open_where_the_source_says_so(sqlite_file):
    executor = SqliteExecutor(sqlite_file, workers=1, system_tables=True)
    try:
        assert ("item",) in executor.execute(sql("SELECT name FROM sqlite_schema")).rows
        with pytest.raises(QueryRejected):
            executor.execute(sql("SELECT * FROM sqlite_stat1"))
        with pytest.raises(QueryRejected, match="does not allow"):
            executor.execute(sql("SELECT * FROM doc_content"))
    finally:
        executor.close()


@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM doc_content", "SELECT block FROM main.DOC_DATA", "SELECT 1 FROM item WHERE 1 IN (SELECT id FROM "
     '"doc_docsize")', "WITH w AS (SELECT * FROM doc_idx) SELECT count(*) FROM w"],
)  # fmt: skip
def test_where_a_full_text_table_keeps_its_data_is_refused(executor, text):
    with pytest.raises(QueryRejected, match="does not allow"):
        executor.execute(sql(text), Limits(timeout=5.0))


def test_a_view_over_the_data_of_a_full_text_table_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "v.sqlite")) as connection, connection:
        connection.executescript("CREATE VIRTUAL TABLE d USING fts5(t); CREATE VIEW v AS SELECT * FROM d_content;")
    executor = SqliteExecutor(tmp_path / "v.sqlite", workers=1)
    try:
        assert executor.execute(sql("SELECT t FROM d WHERE d MATCH 'x'")).rows == ()
        with pytest.raises(QueryRejected, match="does not allow"):
            executor.execute(sql("SELECT * FROM v"))
    finally:
        executor.close()

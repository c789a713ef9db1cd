"""What a PostgreSQL server sends is counted before it is read: no small query takes the caller's time or memory."""

import json
from contextlib import suppress
from time import process_time, sleep

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.errors import QueryFailed, QueryTimeout
from helios.executors import postgresql
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.postgresql import PostgresqlAddress, PostgresqlExecutor
from helios.executors.sql.postgresql_values import MOST_LEVELS, MOST_PARTS, json_value

LIMITS = Limits(timeout=3.0)


def sql(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.SQL, text, parameters)


@pytest.fixture
def executor(server, monkeypatch):
    monkeypatch.setenv("ATTACKED_PASSWORD", "reader")
    address = PostgresqlAddress("127.0.0.1", "postgres", "reader", server.port, "ATTACKED_PASSWORD")
    executor = PostgresqlExecutor(address, limits=LIMITS)
    yield executor
    executor.close()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ('[' || repeat('{},', 80 * 100000) || '1]')::json",
        "SELECT ('[' || repeat('{},', 13 * 100000) || '1]')::json",
        "SELECT ('[' || repeat('[[]],', 8 * 100000) || '1]')::jsonb",
        "SELECT array_agg(ARRAY[a, a]) FROM generate_series(1, 1000000) AS a",
        "SELECT array_agg(''::text) FROM generate_series(1, 1300000) AS a",
        "SELECT repeat('x', 10 * 100000) FROM generate_series(1, 100)",
        "SELECT array_agg(a) FROM generate_series(1, 3) AS a, generate_series(1, 300000) AS b",
    ],
    ids=["24-MB", "many-parts", "nested", "arrays", "empty-texts", "wide-rows", "numbers"],
)
def test_a_large_result_takes_little_time_and_memory(executor, text, within):
    """The first took 104 s and 1.2 GB against a deadline of 3 s."""
    executor.execute(sql("SELECT 1"))
    process = psutil.Process()
    before = process.memory_info().rss
    with within(LIMITS.timeout + 1.0), within(1.5, process_time), suppress(QueryTimeout, QueryFailed):
        result = executor.execute(sql(text))
        assert result.truncated == "bytes" or len(result) == 1
    assert process.memory_info().rss - before < 300 * 2**20


def test_rows_that_fit_are_given_and_the_rest_is_said_to_be_missing(executor):
    """One row has a fourth of the bytes allowed: rows are asked for a few at a time."""
    result = executor.execute(sql("SELECT a, repeat('x', 10 * 100000) FROM generate_series(1, 100) AS a"))
    assert ([row[0] for row in result.rows], result.truncated) == ([1, 2, 3, 4], "bytes")
    for number in (1, 2, 3, 511, 1000):
        result = executor.execute(sql(f"SELECT a FROM generate_series(1, {number}) AS a"))
        assert (len(result), result.truncated) == (number, None)
    result = executor.execute(sql("SELECT a FROM generate_series(1, 1001) AS a"))
    assert (len(result), result.truncated) == (1000, "rows")


@pytest.mark.parametrize("depth", [MOST_LEVELS + 1, 900, 4000])
def test_deep_json_stays_text(executor, depth):
    text = f"SELECT (repeat('[', {depth}) || repeat(']', {depth}))::json"
    assert executor.execute(sql(text)).rows == (("[" * depth + "]" * depth,),)


def test_a_number_that_python_refuses_stays_text(executor):
    assert executor.execute(sql("SELECT repeat('9', 5000)::json")).rows == (("9" * 5000,),)
    (row,) = executor.execute(sql("SELECT repeat('9', 5000)::numeric, 1e300 * 10, '{\"a\": 1e999}'::json")).rows
    assert len(str(row[0])) == 5000


KEYS = st.text('[{"\\', max_size=2)
PARTS = st.none() | st.booleans() | st.integers(-9, 9) | st.text('[{"]}a\\', max_size=5)


@given(st.recursive(PARTS, lambda part: st.lists(part, max_size=4) | st.dictionaries(KEYS, part, max_size=4)))
def test_json_is_read_as_it_is(value):
    assert json_value(json.dumps(value)) == value


def test_brackets_in_strings_are_no_depth():
    value = ["[" * 5000, {'"{' * 500: "\\"}]
    assert json_value(json.dumps(value)) == value
    assert isinstance(json_value("[" + "[]," * MOST_PARTS + "1]"), str)


def test_a_server_that_does_not_stop_is_told_to_end_and_this_is_said(executor, server, caplog, monkeypatch, within):
    """`translate` looks at no cancel request while it works; its process keeps one of our places until it is gone."""
    monkeypatch.setattr(postgresql, "END_PATIENCE", 0)
    slow = "SELECT length(translate(repeat('a', 8 * 1000), repeat('b', 100000), ''))"
    with within(1.5), pytest.raises(QueryTimeout, match="did not stop when asked"):
        executor.execute(sql(slow), Limits(timeout=0.5))
    assert executor.execute(sql("SELECT 1")).rows == ((1,),)
    asked = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active'"
    for _ in range(600):
        if server.run(asked) == [(0,)]:  # the executor's own connection may be at work in the moment after
            break
        sleep(0.1)
    else:
        pytest.fail("the process at the server runs on")
    assert "runs on past its end" in caplog.text

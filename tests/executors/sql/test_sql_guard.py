"""The guard of SQL: verdicts, reasons, and the text that it hands on."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.executors.sql.embedded import checked_parameters, guarded
from helios.executors.sql.guard import DIALECTS, SqlGuard

GUARDS = {dialect: SqlGuard(dialect) for dialect in DIALECTS}
DATA = Path(__file__).parents[4] / "shared" / "data"
BOMBS = ("RECURSIVE", "CROSS", "range(", "generate_series(", "item c", "LIKE", "9223372036854775808", "missing")
"""Marks of hostile queries that only use what a reader may use; the engines' limits stop them."""


def refused(dialect: str, sql: str, reach) -> None:
    sql = reach.fill(sql)
    try:
        GUARDS[dialect].check(sql)
    except QueryRejected as error:
        assert error.reason
    else:
        assert any(mark in sql for mark in BOMBS), "the guard lets this pass"


def test_hostile_sqlite_is_refused(hostile_sqlite, reach):
    refused("sqlite", hostile_sqlite, reach)


def test_hostile_duckdb_is_refused(hostile_duckdb, reach):
    refused("duckdb", hostile_duckdb, reach)


def test_hostile_postgres_is_refused(hostile_postgres, reach):
    refused("postgres", hostile_postgres, reach)


@pytest.mark.parametrize(
    ("dialect", "sql", "reason", "part"),
    [
        ("sqlite", "DROP TABLE t", "only queries", "DROP"),
        ("sqlite", "SELECT 1; SELECT 2", "exactly one statement", "SELECT"),
        ("sqlite", "SELECT load_extension('x')", "not on the list", "load_extension"),
        ("sqlite", "SELECT * FROM pragma_table_info('t')", "tables of the system", "pragma_table_info"),
        ("sqlite", "SELECT (", "guard can read", ""),
        ("duckdb", "SELECT * FROM 'a.csv'", "files are not read", "a.csv"),
        ("duckdb", "SELECT * FROM read_csv('a')", "not on the list", "read_csv"),
        ("postgres", "SELECT * FROM t FOR UPDATE", "LOCK is not allowed", "FOR UPDATE"),
        ("postgres", "SELECT * INTO u FROM t", "INTO is not allowed", "INTO u"),
        ("postgres", "SELECT pg_catalog.lower('A')", "function of a schema", "pg_catalog"),
        ("postgres", "SELECT 'a'::regclass", "not allowed", "regclass"),
        ("postgres", "SELECT repeat('x', 100001)", "at most 100,000", "REPEAT"),
        ("postgres", "SELECT * FROM generate_series(1, 10000002)", "10,000,000 rows", "GENERATE_SERIES"),
        ("postgres", "SELECT $1", "parameters are written :name", "$1"),
        ("postgres", "SELECT '\ud800'", "control characters", "ud800"),
    ],
)
def test_the_reason_and_the_part_are_named(dialect, sql, reason, part):
    with pytest.raises(QueryRejected, match=reason) as caught:
        GUARDS[dialect].check(sql)
    assert part.casefold() in caught.value.part.casefold()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_comments_are_gone_from_what_is_executed(dialect):
    checked = GUARDS[dialect].check("SELECT /* one */ 1 -- two\n, '/* kept */'")
    assert checked.text == "SELECT 1 , '/* kept */'"


@pytest.mark.parametrize(
    ("dialect", "sql", "text"),
    [
        ("sqlite", "SELECT :b, :a, :b", "SELECT :b, :a, :b"),
        ("duckdb", "SELECT $b, $a, $b", "SELECT $1, $2, $1"),
        ("postgres", "SELECT :b, :a, :b", "SELECT $1, $2, $1"),
    ],
)
def test_parameters_are_numbered_as_they_come(dialect, sql, text):
    checked = GUARDS[dialect].check(sql)
    assert (checked.text, checked.parameters) == (text, ("b", "a"))


def test_parameters_need_values_of_sql():
    guard = GUARDS["sqlite"]
    query = NativeQuery(Language.SQL, "SELECT :a", {"a": 1, "unused": 2})
    assert checked_parameters(query, guarded(guard, query)) == {"a": 1}
    for parameters in ({}, {"a": [1, 2]}):
        query = NativeQuery(Language.SQL, "SELECT :a", parameters)
        with pytest.raises(QueryRejected, match="parameter"):
            checked_parameters(query, guarded(guard, query))


def test_another_language_is_refused():
    with pytest.raises(QueryRejected, match="asked in sql: cypher"):
        guarded(GUARDS["sqlite"], NativeQuery(Language.CYPHER, "SELECT 1"))


def test_a_dialect_without_a_guard_is_an_error():
    with pytest.raises(ValueError, match="no guard for the SQL dialect 'oracle'"):
        SqlGuard("oracle")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_guard_writes_passes_unchanged(dialect):
    """Making text from a tree settles after one round, parameters aside."""
    name = Path(__file__).with_name(f"benign_{dialect}.jsonl")
    for line in name.read_text(encoding="utf-8").splitlines():
        sql = json.loads(line)["sql"]
        if ":a" not in sql and "$a" not in sql:
            made = GUARDS[dialect].check(sql).text
            assert GUARDS[dialect].check(made).text == made


@pytest.mark.parametrize("dialect", DIALECTS)
@given(value=st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=20))
@settings(max_examples=40, deadline=None)
def test_a_string_stays_one_string(dialect, value):
    """Nothing in a literal breaks out of it when it is written again."""
    quoted = "'" + value.replace("'", "''") + "'"
    assert GUARDS[dialect].check(f"SELECT {quoted}").text == f"SELECT {quoted}"


@given(st.text(alphabet="SELECTFROM (){}[];'\"`$/*-\\\n\u00a0axé1.,:?@#", max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_query_or_refused(text):
    for guard in GUARDS.values():
        try:
            guard.check(text)
        except QueryRejected:
            continue


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("opening", "closing"),
    [("DATE (", ")"), ("{'a': ", "}"), ("[", "]"), ("(SELECT ", ")"), ("1 IN (", ")"), ("a(b[", "")],
)
def test_nesting_that_makes_the_parser_go_back_and_forth_is_given_up(dialect, opening, closing, within):
    with within(2.0, process_time), suppress(QueryRejected):
        GUARDS[dialect].check("SELECT " + opening * 90 + "1" + closing * 90)


@pytest.mark.parametrize(("folder", "file", "key"), [("bird_minidev", "questions", "SQL"), ("spider", "dev", "query")])
def test_gold_queries_pass(folder, file, key):
    path = DATA / folder / f"{file}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"shared data is absent: {folder}")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            GUARDS["sqlite"].check(json.loads(line)[key])

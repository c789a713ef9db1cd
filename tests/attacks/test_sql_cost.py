"""What a guard costs is bounded by the length of a query, whatever its shape: seconds of the processor, memory."""

import os
import tracemalloc
from contextlib import suppress
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import QueryRejected, QueryTimeout
from helios.executors.base import Deadline, Language, Limits, NativeQuery
from helios.executors.cypher.guard import check as check_cypher
from helios.executors.duckdb import DuckdbExecutor
from helios.executors.sparql.guard import SparqlGuard
from helios.executors.sql import dialects
from helios.executors.sql.dialects import DIALECTS, MOST_SECONDS
from helios.executors.sql.guard import SqlGuard
from helios.executors.sql.postgresql_names import NameCheck

EXAMPLES = int(os.environ.get("HELIOS_FUZZ", "80"))
FREE, PER_WORD = 0.3, 0.002
"""Seconds that a guard may take, and those for each word of a query; a hundredth of that is usual."""

AROUND = {
    "sql": [
        ("(", ")"), ("abs(", ")"), ("abs(1+", ")"), ("(SELECT ", ")"), ("(SELECT * FROM ", ") AS a"), ("[", "]"),
        ("ARRAY[", "]"), ("{'a': ", "}"), ("CASE WHEN ", " THEN 1 END"), ("CAST(", " AS INT)"),
        ("NOT ", ""), ("- ", ""), ("EXISTS (SELECT 1 WHERE ", ")"), ("1 IN (SELECT 1 WHERE ", ")"), ("(1, ", ")"),
        ("extract(year FROM ", ")"),
        ("trim(both 'a' FROM ", ")"), ("substring(", " FROM 1 FOR 2)"), ("sum(1) OVER (PARTITION BY ", ")"),
        ("@ ", ""),
        ("count(DISTINCT ", ")"), ("list_transform([1], lambda x: ", ")"), ("[x FOR x IN ", "]"),
        ("a.", ""),
        ("if(", ", 2, 3)"), ("count(*) FILTER (WHERE ", ")"), ("INTERVAL ", ""), ("DATE ", ""), ("1::STRUCT(a ", ")"),
        ("WITH t AS (SELECT ", ") SELECT 1"), ("x -> ", ""),
    ],
    "cypher": [
        ("(", ")"), ("[", "]"), ("abs(", ")"), ("NOT ", ""), ("-", ""), ("CASE WHEN ", " THEN 1 END"),
        ("{a: ", "}"), ("EXISTS { MATCH (n) WHERE ", "}"), ("[x IN ", " WHERE true]"), ("[(a)-->(b) WHERE ", " | 1]"),
        ("((n)-->", ")"),
        ("all(x IN [1] WHERE ", ")"), ("reduce(a = 1, x IN ", " | 1)"), ("n{a: ", "}"), ("a.", ""),
    ],
    "sparql": [
        ("(", ")"), ("STR(", ")"), ("!", ""), ("-", ""), ("IF(", ", 1, 1)"), ("?a IN (", ")"),
        ("EXISTS { FILTER(", ")}"),
        ("COALESCE(1, ", ")"), ("?a + ", ""), ("EXISTS { SELECT * WHERE { FILTER(", ")}}"),
    ],
}  # fmt: skip
"""What may stand around an expression, again and again."""
CHAINS = {
    "sql": ["[1]", "[1:2]", "::int", "::int[]", ".b", "+1", " OR a=1", "->'b'", " LIKE 'b'", " IS NULL", "||'a'", ",1",
            " UNION SELECT 1", " BETWEEN 1 AND 2", " COLLATE x", " AT TIME ZONE 'x'", " AS a", " JOIN t ON 1=1", ";",
            " FROM t", ",t", " LIMIT 1", "^2", " # 1", "(1)", " 'a'", "/**/", "--\n", ".5", " NOT", "(", "["],
    "cypher": ["+1", ".a", "[0]", "[0..1]", " OR true", "<1", ",1", " UNION RETURN 1", "-->(m)", "/**/", " IS NULL"],
    "sparql": ["+1", "||?a", "<1", "/2", " IN (1)", "&&1", "!=?b", "#a\n"],
}  # fmt: skip
"""What may follow an expression, again and again."""
FRAMES = {"sql": "SELECT {}", "cypher": "MATCH (n) RETURN {}", "sparql": "SELECT * WHERE {{ FILTER({}) }}"}


@st.composite
def nasty(draw, language: str) -> str:
    """Shapes within shapes and chains behind them, up to some two thousand words."""
    text = draw(st.sampled_from(["1", "a", "?a", "(n)", "'a'"]))
    for _ in range(draw(st.integers(1, 3))):
        before, behind = draw(st.sampled_from(AROUND[language]))
        times = draw(st.sampled_from([1, 5, 20, 45, 90]))
        text = before * times + text + behind * times
        text += draw(st.sampled_from(CHAINS[language])) * draw(st.sampled_from([0, 1, 30, 240, 700]))
        if len(text) > 12_000:
            break
    return FRAMES[language].format(text)


def cost(check, text: str) -> float:
    """Seconds of the processor, refused or not, the least of three where it is long; all but a refusal is an error."""
    spent = []
    while not spent or (len(spent) < 3 and min(spent) > FREE / 2):
        began = thread_time()
        with suppress(QueryRejected):
            check(text)
        spent.append(thread_time() - began)
    return min(spent)


def allowed(text: str) -> float:
    return FREE + PER_WORD * len(text) / 2


@pytest.mark.parametrize("dialect", DIALECTS)
@given(text=nasty("sql"))
@settings(max_examples=EXAMPLES)
def test_sql_of_any_shape_is_read_soon_or_refused(dialect, text):
    assert cost(SqlGuard(dialect)._check, text) < min(allowed(text), 2 * MOST_SECONDS)


@given(text=nasty("sql"))
@settings(max_examples=EXAMPLES // 2)
def test_names_behind_dots_are_followed_soon(text):
    """The second reading of PostgreSQL, where a name is a function."""
    names = NameCheck(frozenset("ab"), lambda name, schema: frozenset("a"))
    assert cost(names.check, text) < min(allowed(text), 2 * MOST_SECONDS)


@given(text=nasty("cypher"))
@settings(max_examples=EXAMPLES)
def test_cypher_of_any_shape_is_read_soon_or_refused(text):
    assert cost(lambda text: check_cypher(NativeQuery(Language.CYPHER, text)), text) < allowed(text)


@given(text=nasty("sparql"))
@settings(max_examples=EXAMPLES // 2)
def test_sparql_of_any_shape_is_read_soon_or_refused(text):
    assert cost(read_sparql, text) < allowed(text)


def read_sparql(text: str) -> None:
    """By a guard that has read nothing yet, and keeps no verdict."""
    SparqlGuard().checked(NativeQuery(Language.SPARQL, text))


FOUND = {
    "subscripts of a sum": "SELECT (" + "+".join(["1"] * 1500) + ")" + "[1]" * 240,
    "subscripts": "SELECT a" + "[1]" * 1600,
    "slices": "SELECT a" + "[1:2]" * 900,
    "semicolons": "SELECT 1" + ";" * 4900,
    "a refused call around much": "SELECT nosuch((" + "+".join(["1"] * 1500) + ")" + "[1]" * 240 + ")",
    "a long number": "SELECT " + "9" * 90_000,
    "a long exponent": "SELECT 1e" + "9" * 90_000,
    "types": "SELECT 1" + "::int[]" * 900,
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_what_once_took_long(dialect, text):
    """Subscripts of a sum took 39 s: sqlglot looked at all of what stands before each of them."""
    tracemalloc.start()
    try:
        SqlGuard(dialect)  # imports are no part of it
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        with suppress(QueryRejected):
            SqlGuard(dialect)._check(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 100 * 2**20
    assert cost(SqlGuard(dialect)._check, text) < 2 * MOST_SECONDS


CHAIN = "SELECT 'a'" + ".upper()" * 1200
"""The parser tries the end of it again at every dot, and needs its second of the processor."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reading_a_query_ends_at_its_deadline(dialect, within):
    """On the clock of the wall: on busy cores a second of the processor took three."""
    guard = SqlGuard(dialect)
    guard.check("SELECT 1")
    with within(0.5), pytest.raises(QueryTimeout):
        guard.check(CHAIN, deadline=Deadline.after(0.05))


def test_reading_a_query_counts_against_the_time_of_its_source(tmp_path, within):
    (tmp_path / "t.csv").write_text("a\n1\n")
    executor = DuckdbExecutor(files={"t": tmp_path / "t.csv"}, limits=Limits(timeout=0.1), workers=1)
    executor.warm_up()
    executor.check(NativeQuery(Language.SQL, "SELECT a FROM t"))
    with within(1.1), pytest.raises(QueryTimeout):
        executor.execute(NativeQuery(Language.SQL, CHAIN))
    executor.close()


LONG_SPARQL = "SELECT * {{ ?s ?p ?x FILTER({}) }}"


def test_reading_sparql_ends_at_its_deadline(within):
    guard = SparqlGuard()
    guard.checked(NativeQuery(Language.SPARQL, "ASK {}"))
    text = LONG_SPARQL.format(" || ".join(["?x = 1"] * 240))
    with within(0.5), pytest.raises(QueryTimeout):
        guard.checked(NativeQuery(Language.SPARQL, text), deadline=Deadline.after(0.02))


def test_reading_sparql_takes_as_long_as_the_query_is():
    short, long = (LONG_SPARQL.format(" || ".join(["?x = 1"] * times)) for times in (30, 120))
    read_sparql(short)
    assert cost(read_sparql, long) < 8 * cost(read_sparql, short)


def test_a_number_of_a_sparql_query_has_a_length():
    with pytest.raises(QueryRejected, match="longer than"):
        SparqlGuard().checked(NativeQuery(Language.SPARQL, "SELECT * WHERE { FILTER(" + "9" * 40_000 + ") }"))


@pytest.mark.parametrize(("times", "refused"), [([0.0, 5.0], False), ([0.2 * step for step in range(40)], True)])
def test_a_pause_of_the_process_is_not_the_querys_cost(monkeypatch, times, refused):
    """The clock is ours, since a collection of garbage cannot be made to take a second at a given word."""
    left = list(times)
    monkeypatch.setattr(dialects, "thread_time", lambda: left.pop(0) if len(left) > 1 else left[0])
    text = "SELECT " + ", ".join(f"{number} + {number}" for number in range(400))
    if refused:
        with pytest.raises(QueryRejected, match="within 1 s"):
            SqlGuard("sqlite")._check(text)
    else:
        SqlGuard("sqlite")._check(text)

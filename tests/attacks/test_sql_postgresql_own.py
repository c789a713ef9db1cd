"""Functions, operators and casts that a database brings itself: none runs by the name or the sign of a listed one."""

import pytest

from helios.errors import QueryRejected
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.postgresql import PostgresqlAddress, PostgresqlExecutor

OWN = """
    CREATE TABLE secret (x text); INSERT INTO secret VALUES ('S3CRET'); CREATE TABLE item (id int, name text);
    INSERT INTO item VALUES (1, 'a'); GRANT SELECT ON item TO reader;
    CREATE FUNCTION abs(text) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT x FROM secret LIMIT 1';
    CREATE FUNCTION upper(int) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(6); RETURN 1; END';
    CREATE FUNCTION leak(text, int) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT x FROM secret LIMIT 1';
    CREATE OPERATOR + (LEFTARG = text, RIGHTARG = int, FUNCTION = leak);
    CREATE OPERATOR @@@ (RIGHTARG = text, FUNCTION = abs);
"""
CAST = """
    CREATE TYPE cplx AS (r float8, i float8); CREATE TABLE m (c cplx); INSERT INTO m VALUES (ROW(1, 2));
    GRANT SELECT ON m TO reader;
    CREATE FUNCTION told(cplx) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT x FROM secret LIMIT 1';
    CREATE CAST (cplx AS text) WITH FUNCTION told(cplx) AS IMPLICIT;
"""
GONE = """
    DROP OPERATOR IF EXISTS + (text, int), @@@ (NONE, text); DROP TYPE IF EXISTS cplx CASCADE;
    DROP FUNCTION IF EXISTS abs(text), upper(int), leak(text, int); DROP TABLE secret, item; DROP TABLE IF EXISTS m;
"""


@pytest.fixture(scope="module")
def own(server):
    server.run(OWN)
    yield server
    server.run(GONE)


@pytest.fixture
def ask(own, monkeypatch):
    monkeypatch.setenv("ATTACKED_PASSWORD", "reader")
    address = PostgresqlAddress("127.0.0.1", "postgres", "reader", own.port, "ATTACKED_PASSWORD")
    executor = PostgresqlExecutor(address, limits=Limits(timeout=3.0))
    yield lambda text: executor.execute(NativeQuery(Language.SQL, text)).rows
    executor.close()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SELECT abs('x'::text)", "function abs"), ("SELECT ABS ('x'::text)", "function abs"),
        ('SELECT "abs"(\'x\'::text)', "function abs"), ("SELECT upper(1)", "function upper"),
        ("SELECT 'a'::text + 1", "operator +"), ("SELECT @@@ 'x'::text", "operator @@@"),
    ],
)  # fmt: skip
def test_they_are_refused_by_name(ask, text, what):
    with pytest.raises(QueryRejected) as refused:
        ask(text)
    assert what in str(refused.value) and "revoke EXECUTE" in str(refused.value)


def test_what_calls_none_of_them_runs(ask):
    assert ask("SELECT length(name), id - 1 FROM item WHERE name IN ('a', 'b') AND name LIKE 'a%'") == ((1, 0),)


def test_a_function_that_the_role_may_not_execute_is_no_danger(own, ask):
    own.run("REVOKE EXECUTE ON FUNCTION upper(int) FROM PUBLIC")
    assert ask("SELECT upper('a')") == (("A",),)


def test_a_cast_of_the_database_refuses_all_until_it_is_out_of_reach(own, ask):
    own.run(CAST)
    for text in ("SELECT upper(c) FROM m", "SELECT c::text FROM m", "SELECT 1"):
        with pytest.raises(QueryRejected, match="cast from cplx to text"):
            ask(text)
    own.run("REVOKE EXECUTE ON FUNCTION told(cplx) FROM PUBLIC")
    assert ask("SELECT 1") == ((1,),)

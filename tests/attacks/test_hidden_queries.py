"""Something hostile inside of anything harmless is refused, however deep; the same with a harmless heart passes.

Each language has surroundings that may be put around an expression (§), again and again.
"""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.executors.cypher.guard import check as check_cypher
from helios.executors.sparql.guard import SparqlGuard
from helios.executors.sql.guard import SqlGuard

EXAMPLES = int(os.environ.get("HELIOS_FUZZ", "60"))
SQL_AROUND = [
    "(§)", "abs(§)", "coalesce(1, §)", "(SELECT §)", "CASE WHEN 1 = 1 THEN § END", "CASE § WHEN 1 THEN 2 END",
    "CAST(§ AS TEXT)", "(§) IS NULL", "1 IN (1, §)", "EXISTS (SELECT 1 WHERE (§) = 1)", "(SELECT max(§))",
    "count(§) OVER (PARTITION BY 1)", "(SELECT a FROM (SELECT § AS a) AS q)", "nullif(§, 1)",
    "(WITH w AS (SELECT § AS a) SELECT a FROM w)", "(SELECT 1 UNION ALL SELECT §)", "(§ , 1) = (1, 1)",
    "(SELECT 1 FROM item ORDER BY § LIMIT 1)", "(SELECT count(*) FROM item GROUP BY § HAVING (§) > 1)",
    "(SELECT 1 FROM item AS x JOIN item AS y ON (§) = 1)", "(VALUES (§))",
]  # fmt: skip
SQL_FRAMES = ["SELECT §", "SELECT 1 FROM item WHERE (§) = 1", "WITH w AS (SELECT § AS a) SELECT * FROM w", "VALUES (§)"]
SQL_HARMLESS = ["1", "abs(-1)", "'drop table item'", "'pg_sleep(1)'", "length('a')", '"name"']
SQL_HOSTILE = {
    "sqlite": [
        "load_extension('x')", "readfile('/etc/passwd')", "writefile('x', 'y')", "edit('x')", "fts3_tokenizer('x')",
        "(SELECT data FROM sqlite_dbpage)", "(SELECT name FROM pragma_database_list)", "LOAD_EXTENSION /**/ ('x')",
        '"load_extension"(\'x\')',
    ],
    "duckdb": [
        "getenv('HOME')", "(SELECT content FROM read_text('/etc/passwd'))", "(SELECT * FROM 'file.csv')",
        "(SELECT * FROM read_csv('x.csv'))", "(SELECT * FROM '/etc/passwd')", "(SELECT path FROM glob('/etc/*'))",
        "(SELECT 1 FROM duckdb_settings())", "(SELECT * FROM sniff_csv('x'))", "current_setting('s3_secret')",
        "(FROM read_parquet('x'))", "(SELECT * FROM query('DROP TABLE item'))", '"getenv"(\'HOME\')',
        "(SELECT * FROM \"x.csv\")", "nextval('s')",
    ],
    "postgres": [
        "pg_sleep(1)", "pg_read_file('x')", "lo_import('/etc/passwd')", "lo_export(1, 'x')",
        "set_config('a', 'b', false)",
        "nextval('s')", "pg_terminate_backend(1)", "pg_advisory_lock(1)", "query_to_xml('select 1', true, true, '')",
        "pg_catalog.pg_sleep(1)", "(SELECT pg_sleep(1))", "ts_stat('select 1')", "dblink('x', 'y')",
        "(SELECT rolpassword FROM pg_authid)", "(SELECT * FROM pg_ls_dir('.'))", "U&\"pg_sleep\"(1)", '"pg_sleep"(1)',
        "currval('s')", "txid_current()", "pg_notify('a', 'b')", "(WITH d AS (DELETE FROM item RETURNING 1) SELECT 1)",
        "(SELECT 1 FROM item FOR UPDATE)",
    ],
}  # fmt: skip
CYPHER_AROUND = [
    "(§)", "[§]", "{a: §}", "coalesce(1, §)", "CASE WHEN true THEN § END", "[x IN [1] | §]",
    "any(x IN [1] WHERE (§) = 1)", "reduce(a = 0, x IN [1] | §)", "(§) IS NULL", "1 IN [1, §]",
    "EXISTS { MATCH (m) WHERE (§) = 1 }", "COUNT { MATCH (m) WHERE (§) = 1 }",
]  # fmt: skip
CYPHER_FRAMES = [
    "RETURN § AS a",
    "MATCH (n) WHERE (§) = 1 RETURN n",
    "UNWIND [§] AS u RETURN u",
    "WITH § AS a RETURN a",
]
CYPHER_HARMLESS = ["1", "abs(-1)", "'CREATE (n)'", "size('x')"]
CYPHER_HOSTILE = [
    "apoc.load.json('x')", "apoc.cypher.runWrite('CREATE (n)', {})", "EXISTS { CREATE (m) RETURN m }",
    "COUNT { MATCH (m) DELETE m RETURN m }", "EXISTS { CALL db.labels() YIELD label RETURN label }", "db.index.x('y')",
    "EXISTS { LOAD CSV FROM 'file:///etc/passwd' AS l RETURN l }", "COLLECT { MATCH (m) SET m.a = 1 RETURN m }",
]  # fmt: skip
SPARQL_AROUND = [
    "(§)", "!(§)", "STR(§)", "COALESCE(1, §)", "IF(§, 1, 2)", "1 IN (1, §)", "(§) + 1", "BOUND(?s) && (§)",
    "EXISTS { ?s ?p ?o FILTER(§) }", "NOT EXISTS { { SELECT * WHERE { ?s ?p ?o FILTER(§) } } }",
]  # fmt: skip
SPARQL_FRAMES = ["SELECT * WHERE { ?s ?p ?o FILTER(§) }", "ASK { ?s ?p ?o FILTER(§) }"]
SPARQL_HARMLESS = ["1", "ABS(-1)", "'SERVICE <http://x/>'", "?s = <http://x/a>"]
SPARQL_HOSTILE = [
    "EXISTS { SERVICE <http://127.0.0.1/> { ?a ?b ?c } }", "EXISTS { { SERVICE SILENT <http://x/> { ?a ?b ?c } } }",
    "NOT EXISTS { OPTIONAL { service <http://x/> { ?a ?b ?c } } }", "<http://x/function>(1)",
    "EXISTS { SELECT * FROM <file:///etc/passwd> WHERE { ?a ?b ?c } }",
]  # fmt: skip


def hidden(hearts: list[str], around: list[str], frames: list[str]) -> st.SearchStrategy[str]:
    """A heart within up to four surroundings, in a frame."""

    def put_together(heart: str, surroundings: list[str], frame: str) -> str:
        for surrounding in (*surroundings, frame):
            heart = surrounding.replace("§", heart)
        return heart

    return st.builds(
        put_together, st.sampled_from(hearts), st.lists(st.sampled_from(around), max_size=4), st.sampled_from(frames)
    )


@pytest.mark.parametrize("dialect", SQL_HOSTILE)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_sql(dialect: str, data: st.DataObject):
    guard = SqlGuard(dialect)
    with pytest.raises(QueryRejected):
        guard.check(data.draw(hidden(SQL_HOSTILE[dialect], SQL_AROUND, SQL_FRAMES)))
    guard.check(data.draw(hidden(SQL_HARMLESS, SQL_AROUND, SQL_FRAMES)))


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_cypher(data: st.DataObject):
    def check(text: str) -> None:
        check_cypher(NativeQuery(Language.CYPHER, text))

    with pytest.raises(QueryRejected):
        check(data.draw(hidden(CYPHER_HOSTILE, CYPHER_AROUND, CYPHER_FRAMES)))
    check(data.draw(hidden(CYPHER_HARMLESS, CYPHER_AROUND, CYPHER_FRAMES)))


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_sparql(data: st.DataObject):
    def check(text: str) -> None:
        SparqlGuard().checked(NativeQuery(Language.SPARQL, text))

    with pytest.raises(QueryRejected):
        check(data.draw(hidden(SPARQL_HOSTILE, SPARQL_AROUND, SPARQL_FRAMES)))
    check(data.draw(hidden(SPARQL_HARMLESS, SPARQL_AROUND, SPARQL_FRAMES)))

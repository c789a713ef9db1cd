"""Who may see what: hidden tables, columns and rows, and masked values, on every SQL engine."""

import importlib.util
import json
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from helios.cli import build_app
from helios.errors import ConfigError, QueryFailed, QueryRejected, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery
from helios.routing.formulation.generator import SqlGenerator
from helios.routing.formulation.schema import SchemaView
from helios.routing.programs.stored import StoredTables
from helios.sources.descriptor_text import text as shown
from helios.sources.registry import Registry
from helios.sources.spec import read_spec

FOLDER = Path(__file__).parents[1] / "executors" / "sql"
SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(40), email VARCHAR(40), phone VARCHAR(40), born INTEGER);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER, buyer VARCHAR(40), amount INTEGER,
    region VARCHAR(40), note VARCHAR(40));
CREATE TABLE salary (id INTEGER PRIMARY KEY, pay INTEGER);
CREATE TABLE lone (pay INTEGER);
CREATE VIEW phones AS SELECT phone FROM customer;
CREATE VIEW names AS SELECT name FROM customer;
INSERT INTO customer VALUES (1, 'Ole Group', 'ole@a.example', 'tel-0101', 1970), (2, 'Nora Group', 'nora@b.example',
    'tel-0102', 1980), (3, 'Per Berg', 'per@c.example', 'tel-0103', 1990), (4, 'Ida Dal', NULL, 'tel-0104', 2000);
INSERT INTO purchase VALUES (1, 1, 'ole@a.example', 10, 'north', '1'), (2, 1, 'ole@a.example', 20, 'north', '2'),
    (3, 2, 'nora@b.example', 30, 'north', '3'), (4, 3, 'per@c.example', 777001, 'south', 'hidden777002');
INSERT INTO salary VALUES (1, 888001);
INSERT INTO lone VALUES (888002);
"""
ACCESS = {
    "exclude": ["customer.phone", "salary", "lone", "purchase.region"], "mask": ["*.email", "purchase.buyer"],
    "rows": {"purchase": "region = 'north'"}, "include": ["customer", "purchase", "names", "salary", "lone"],
}  # fmt: skip
SECRETS = ("@", "example", "ole@", "tel-", "777001", "777002", "888001", "888002", "south", "hidden")
"""What no result, message, descriptor or cache may have in it."""
KINDS = ("sqlite", "duckdb", "postgresql", "sql")


def module_of(name: str):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="module", params=KINDS)
def place(request, tmp_path_factory):
    """The registration of a database of each kind, without access."""
    folder = tmp_path_factory.mktemp(request.param)
    match request.param:
        case "sqlite":
            with closing(sqlite3.connect(folder / "shop.sqlite")) as connection, connection:
                connection.executescript(SCHEMA)
            connection.close()
            yield {"kind": "sqlite", "path": str(folder / "shop.sqlite")}
        case "duckdb":
            import duckdb

            with duckdb.connect(folder / "shop.duckdb") as connection:
                connection.execute(SCHEMA)
            yield {"kind": "duckdb", "path": str(folder / "shop.duckdb")}
        case "postgresql":
            pytest.importorskip("psycopg", reason="psycopg is not installed (extra sources)")
            module = module_of("postgresql_server")
            if (binaries := module.find_binaries()) is None:
                pytest.skip("no PostgreSQL server")
            with module.serve(binaries) as server:
                server.run(SCHEMA)
                server.run("CREATE ROLE reader LOGIN PASSWORD 'r'")
                server.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
                url = f"postgresql://reader@127.0.0.1:{server.port}/postgres"
                yield {"kind": "postgresql", "url": url, "password_env": "SHOP_PASSWORD"}
        case _:
            for package in ("sqlalchemy", "pymysql"):
                pytest.importorskip(package, reason=f"{package} is not installed (extra sql)")
            module = module_of("mariadb_server")
            if (programs := module.find_programs()) is None:
                pytest.skip("no MariaDB server: install the package mariadb-server")
            with module.serve(programs) as server:
                server.run("CREATE DATABASE shop", database="")
                server.run(SCHEMA)
                server.run("CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'r'")
                server.run("GRANT SELECT, SHOW VIEW ON shop.* TO reader@'127.0.0.1'")
                yield {"kind": "sql", "url": server.url("reader"), "password_env": "SHOP_PASSWORD"}


@pytest.fixture(scope="module")
def registry(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("registry")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_PASSWORD", "r")
        with Registry.open(folder / "sources.yaml", create=True) as registry:
            registry.add("shop", {**place, "access": ACCESS, "limits": {"timeout": 30}})
            yield registry


@pytest.fixture(scope="module")
def shop(registry):
    return registry.source("shop")


def ask(shop, query: str, **parameters):
    return shop.execute(NativeQuery(Language.SQL, query, parameters), Limits(timeout=30))


def test_what_is_described_is_what_may_be_seen(shop):
    described = shop.descriptor()
    tables = {table.name: table for table in described.schema.tables}
    assert set(tables) == {"customer", "purchase", "names"}
    assert [column.name for column in tables["customer"].columns] == ["id", "name", "email", "born"]
    email = tables["customer"].columns[2]
    assert email.masked and email.samples == ()
    assert tables["purchase"].row_count == 3
    told = shown(described)
    assert "masked" in told and not any(secret in told for secret in SECRETS)


def test_values_are_looked_up_among_what_may_be_seen(shop):
    found = shop.find_values(["ole group", "ole@a.example", "tel-0101", "north", "hidden777002", "south"])
    assert any(hit.value == "Ole Group" for hit in found)
    assert not [hit for hit in found if any(secret in hit.value for secret in SECRETS)]


PLAIN = [
    ("SELECT name FROM customer ORDER BY id", [("Ole Group",), ("Nora Group",), ("Per Berg",), ("Ida Dal",)]),
    ("SELECT count(*), sum(amount) FROM purchase", [(3, 60)]),
    ("SELECT p.amount FROM customer AS c JOIN purchase p ON p.customer_id = c.id WHERE c.name = 'Ole Group' ORDER BY 1",
     [(10,), (20,)]),
    ("SELECT count(DISTINCT email) FROM customer", [(3,)]),
    ("SELECT count(*) FROM customer WHERE email IS NULL", [(1,)]),
    ("SELECT c.name, count(*) FROM customer c JOIN purchase p ON p.buyer = c.email GROUP BY c.name ORDER BY 2 DESC",
     [("Ole Group", 2), ("Nora Group", 1)]),
    ("WITH big AS (SELECT * FROM purchase WHERE amount > 15) SELECT count(*) FROM big", [(2,)]),
    ("SELECT count(*) FROM customer WHERE email = 'ole@a.example'", [(0,)]),
    ("SELECT count(*) FROM customer WHERE id IN (SELECT customer_id FROM purchase)", [(2,)]),
    ("SELECT customer.name FROM customer WHERE customer.id = 1", [("Ole Group",)]),
    ("SELECT count(*) FROM names", [(4,)]),
    ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT count(*) FROM t, customer",
     [(12,)]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "rows"), PLAIN)
def test_the_rest_of_a_query_does_what_it_says(shop, query, rows):
    result = ask(shop, query)
    assert [tuple(int(v) if not isinstance(v, str) else v for v in row) for row in result.rows] == rows
    assert result.rewritten and result.to_json()["rewritten"] is True


def test_parameters_work_beside_masks(shop):
    mark = "$" if shop.kind == "duckdb" else ":"
    result = ask(shop, f"SELECT email, {mark}a FROM customer WHERE name = {mark}b", a=7, b="Ole Group")
    assert len(result) == 1 and str(result.rows[0][0]).startswith("m") and str(result.rows[0][1]) == "7"
    with pytest.raises(QueryRejected, match="no parameter may have this name"):
        ask(shop, f"SELECT {mark}helios_mask_key", helios_mask_key="x")


def test_tokens_differ_from_query_to_query(shop):
    query = "SELECT email FROM customer WHERE id = 1"
    assert ask(shop, query).rows != ask(shop, query).rows


TELLING = [
    'WITH "SALARY" AS (SELECT 1 AS pay) SELECT pay FROM salary',
    "WITH SALARY AS (SELECT 1 AS pay) SELECT pay FROM salary",
    "WITH `SALARY` AS (SELECT 1 AS pay) SELECT pay FROM salary",
    'WITH "Salary" AS (SELECT 1 AS pay) SELECT pay FROM Salary',
    'WITH RECURSIVE "LONE" AS (SELECT 1 AS pay UNION ALL SELECT pay FROM lone) SELECT pay FROM "LONE"',
    "WITH Customer AS (SELECT 1 AS email) SELECT email FROM customer",
    "SELECT * FROM customer",
    "SELECT c.* FROM customer c",
    "SELECT email FROM customer",
    "SELECT email AS x FROM customer",
    "SELECT upper(email) FROM customer",
    "SELECT substr(email, 1, 3) FROM customer",
    "SELECT min(email), max(email) FROM customer",
    "SELECT x FROM (SELECT email AS x FROM customer) t",
    "WITH t AS (SELECT email AS x FROM customer) SELECT x FROM t",
    "WITH t(x) AS (SELECT email FROM customer) SELECT x FROM t",
    "SELECT email FROM customer UNION SELECT buyer FROM purchase",
    "SELECT (SELECT max(email) FROM customer)",
    "SELECT name FROM customer ORDER BY (SELECT email FROM customer c LIMIT 1)",
    "SELECT CASE WHEN email LIKE 'ole%' THEN 'yes' ELSE 'no' END FROM customer",
    "SELECT coalesce(email, 'x') FROM customer",
    "SELECT concat(email, '') FROM customer",
    "SELECT replace(email, 'm', 'q') FROM customer",
    "SELECT CAST(email AS INTEGER) FROM customer",
    "SELECT abs(CAST(email AS DECIMAL(9, 2))) FROM customer",
    "SELECT * FROM customer NATURAL JOIN purchase",
    "SELECT * FROM customer c JOIN purchase p ON p.buyer = c.email",
    "SELECT * FROM purchase",
    "SELECT note FROM purchase",
    "SELECT amount FROM purchase WHERE 1 = 1 OR amount > 5",
    "SELECT * FROM purchase UNION ALL SELECT * FROM purchase",
    "SELECT max(amount) FROM purchase",
    "SELECT CAST(note AS INTEGER) FROM purchase",
    "SELECT 1 FROM purchase WHERE CAST(note AS INTEGER) > 0",
    "SELECT 1 FROM purchase WHERE CAST(note AS DATE) > '2020-01-01'",
    "SELECT 1 FROM purchase WHERE 1 / (amount - 777001) = 5",
    "SELECT phone FROM customer",
    "SELECT c.phone FROM customer c",
    "SELECT customer.phone FROM customer",
    "SELECT name FROM customer ORDER BY phone",
    "SELECT name FROM customer WHERE phone LIKE 'tel%'",
    "SELECT x.phone FROM (SELECT * FROM customer) x",
    "SELECT count(phone) FROM customer",
    "SELECT region FROM purchase",
    "SELECT count(*) FROM purchase WHERE region = 'south'",
    "SELECT * FROM salary",
    "SELECT s.pay FROM salary AS s",
    "SELECT (SELECT pay FROM salary)",
    "SELECT * FROM phones",
    'SELECT * FROM "salary"',
    "SELECT * FROM SALARY",
    "SELECT * FROM public.salary",
    "SELECT * FROM main.salary",
    "SELECT * FROM shop.salary",
    "SELECT name FROM customer WHERE EXISTS (SELECT 1 FROM salary)",
    "WITH salary AS (SELECT * FROM salary) SELECT * FROM salary",
    "WITH t AS (SELECT * FROM salary) SELECT * FROM t",
    "WITH t AS (WITH customer AS (SELECT 1 AS a) SELECT * FROM customer) SELECT * FROM t, salary",
    "SELECT (WITH salary AS (SELECT 1 AS pay) SELECT pay FROM salary), (SELECT pay FROM salary)",
    "WITH a AS (SELECT * FROM lone), lone AS (SELECT 1 AS pay) SELECT * FROM a",
    "SELECT 888002 IN lone",
    "SELECT name FROM customer WHERE 888001 IN (SELECT pay FROM salary)",
    "TABLE salary",
    "TABLE customer",
    "SELECT customer FROM customer",
    "SELECT to_json(customer) FROM customer",
    "SELECT row_to_json(c) FROM customer c",
    "SELECT * FROM customer, LATERAL (SELECT * FROM salary) s",
    "SELECT * FROM ONLY salary",
    "FROM salary",
    "FROM customer",
    "SELECT COLUMNS('.*') FROM customer",
    "SELECT rowid, phone FROM customer",
    "SELECT * FROM information_schema.columns",
    "SELECT helios_mask('a', email) FROM customer",
    "SELECT * FROM customer AS c(a, b, c, d)",
    "SELECT * FROM (customer CROSS JOIN salary)",
    "SELECT a.email FROM customer a, customer b WHERE a.email < b.email",
    "SELECT name, row_number() OVER (ORDER BY email) FROM customer WHERE email > 'o'",
    "SELECT group_concat(email) FROM customer",
    "SELECT string_agg(email, ',') FROM customer",
    "SELECT json_object('a', email) FROM customer",
    "SELECT * FROM customer WHERE email LIKE '%example'",
    "SELECT * FROM `salary`",
    "SELECT * FROM [salary]",
    "VALUES ((SELECT pay FROM salary))",
    "PIVOT customer ON name USING max(phone)",
    "SELECT * FROM customer TABLESAMPLE SYSTEM (100)",
    "SELECT json_extract(email, '$') FROM customer",
    "SELECT date(email), length(email) FROM customer",
]


@pytest.mark.parametrize("query", TELLING)
def test_nothing_tells_what_may_not_be_seen(shop, query):
    """A result or a message without it; or a refusal, which may repeat what the query itself said."""
    try:
        said = repr(ask(shop, query).rows)
    except QueryRejected:
        return
    except QueryFailed as error:
        said = str(error)
        for word in ("example", "tel-", "888002", "888001", "777001", "south"):
            said = said.replace(word, "") if word in query else said
    assert not [secret for secret in SECRETS if secret in said], said


DEAR = {"rows": {"purchase": "lower(upper(lower(upper(lower(upper(region)))))) = 'north'"}}
"""A condition that takes an engine longer than what a query asks of the rows: it would ask that first."""


def test_hidden_rows_are_not_tried_by_a_query_s_own_conditions(place, tmp_path, monkeypatch):
    """An error for one of them would tell what it holds."""
    monkeypatch.setenv("SHOP_PASSWORD", "r")
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("shop", {**place, "access": DEAR, "limits": {"timeout": 30}})
        shop = registry.source("shop")
        for condition in (
            "CAST(note AS DECIMAL(9, 0)) > 0",
            "1 / (amount - 777001) < 5",
            "amount * 9000000000000000 > 0",
        ):
            (row,) = ask(shop, f"SELECT count(*) FROM purchase WHERE {condition}").rows
            assert int(row[0]) == 3, condition


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT phone FROM customer", "this column is not to be seen: phone"),
        ("SELECT c.phone FROM customer AS c", "this column is not to be seen: c.phone"),
        ("SELECT pay FROM salary", "there is no such table, or it is not to be seen: salary"),
        ("SELECT a FROM nowhere", "there is no such table, or it is not to be seen: nowhere"),
        ("WITH customer AS (SELECT 1 AS a) SELECT a FROM customer", "a name of the query must not be that of a table"),
    ],
)
def test_a_refusal_says_why(shop, query, reason):
    with pytest.raises(QueryRejected, match=reason):
        ask(shop, query)


def test_a_slip_in_a_query_does_not_tell_which_rows_are_hidden(shop):
    with pytest.raises((QueryFailed, QueryRejected)) as slip:
        ask(shop, "SELECT id FROM purchase WHERE amount > 0 AND nowhere = 1")
    assert "north" not in str(slip.value)


def test_queries_without_a_language_model_leave_masked_columns_alone(shop):
    seen = SchemaView.of(shop.descriptor().schema)
    assert [column.ref.column for column in seen.tables["customer"].columns] == ["id", "name", "born"]
    found = SqlGenerator().formulate("Which customer has the highest email?", shop)
    assert not [one for one in found if "email" in one.query.text]
    stored = StoredTables.of(shop, shop.descriptor().schema)
    assert stored.columns["customer"] == ("id", "name", "born")
    assert stored.get("customer").header == ("id", "name", "born")


def test_masked_values_tell_no_order(shop):
    """Ordered by their tokens, which differ each time: in twelve tries not always as the values are."""
    query = "SELECT name FROM customer WHERE email IS NOT NULL ORDER BY email"
    assert len({ask(shop, query).rows for _ in range(12)}) > 1


def test_what_is_kept_has_nothing_hidden_and_is_for_its_owner(registry, shop):
    shop.descriptor()
    shop.find_values(["ole"])
    files = [path for path in registry.cache_folder.iterdir() if path.name.startswith("shop.")]
    assert {path.name for path in files} == {"shop.descriptor.json", "shop.values.npz"}
    assert stat.S_IMODE(registry.cache_folder.stat().st_mode) == 0o700
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        kept = path.read_bytes()
        assert not [word for word in ("a.example", "tel-01", "777001", "888001", "hidden") if word.encode() in kept]


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ({"exclude": ["custmer.phone"]}, "there is no table or column 'custmer.phone'"),
        ({"mask": ["customer"]}, "'customer' is no column; write table.column"),
        ({"rows": {"nowhere": "a = 1"}}, "there is no table 'nowhere'"),
        ({"rows": {"purchase": "region = 'north'; DROP TABLE purchase"}}, "this condition cannot be used"),
        ({"rows": {"purchase": "1 = 1) UNION SELECT (1"}}, "cannot be used|expected one condition"),
        ({"rows": {"purchase": "amount = (SELECT max(pay) FROM salary)"}}, "expected one condition"),
        ({"rows": {"purchase": "true) ORDER BY (1"}}, "cannot be used|expected one condition"),
    ],
)
def test_a_slip_closes_the_source(tmp_path, place, monkeypatch, access, said):
    monkeypatch.setenv("SHOP_PASSWORD", "r")
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("shop", {**place, "access": access})
        with pytest.raises(SourceUnavailable, match=said):
            ask(registry.source("shop"), "SELECT 1 FROM purchase")


def test_a_change_of_access_leaves_nothing_kept(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection, connection:
        connection.executescript(SCHEMA)
    connection.close()
    path = tmp_path / "sources.yaml"
    with Registry.open(path, create=True) as registry:
        registry.add("shop", {"kind": "sqlite", "path": "shop.sqlite"})
        registry.source("shop").descriptor()
        registry.source("shop").find_values(["ole"])
    kept = tmp_path / "sources.cache" / "shop.values.npz"
    assert b"ole@a.example" in kept.read_bytes()
    document = yaml.safe_load(path.read_text())
    document["sources"]["shop"]["access"] = ACCESS
    path.write_text(yaml.safe_dump(document))
    with Registry.open(path) as registry:
        registry.source("shop").descriptor()
        assert not kept.exists()


def test_registrations_with_slips_are_refused():
    with pytest.raises(ConfigError, match="unknown key 'access.exlude'; did you mean exclude"):
        read_spec("shop", {"kind": "sqlite", "path": "x", "access": {"exlude": ["a"]}}, where="test")
    with pytest.raises(ConfigError, match="unknown key 'access'"):
        read_spec("shop", {"kind": "corpus", "path": "x", "access": {}}, where="test")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "sparql", "url": "https://TOKEN@h/q"}, "expected no name before the host"),
        ({"kind": "sparql", "url": "https://h/q?key=x"}, "has a secret in its parameter 'key'"),
        ({"kind": "bolt", "url": "bolt://TOKEN@h"}, "expected no name before the host"),
        ({"kind": "bolt", "url": "bolt://h?key=x"}, "has a secret in its parameter 'key'"),
        ({"kind": "sql", "url": "snowflake://u@h/d?key=x"}, "has a secret in its parameter 'key'"),
    ],
)
def test_secrets_in_addresses_are_refused(values, said):
    with pytest.raises(ConfigError, match=said) as error:
        read_spec("shop", values, where="test")
    assert "TOKEN" not in str(error.value)


def test_the_command_shows_and_checks_it(tmp_path, monkeypatch):
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection, connection:
        connection.executescript(SCHEMA)
    connection.close()
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    added = runner.invoke(
        build_app(), ["sources", "add", "shop", "--path", "shop.sqlite", "--set", "access.exclude=[customer.phone]"]
    )
    assert added.exit_code == 0, added.output
    assert "phone" not in runner.invoke(build_app(), ["sources", "show", "shop"]).stdout
    (checked,) = json.loads(runner.invoke(build_app(), ["sources", "check", "--json"]).stdout)
    assert checked["ok"] and checked["access"] == "exclude customer.phone"

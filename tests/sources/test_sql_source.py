"""A MariaDB database as a source of the generic kind: described, looked up, asked, checked."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.errors import ConfigError, SourceUnavailable
from helios.executors.base import Language, NativeQuery
from helios.sources.registry import Registry
from helios.sources.spec import read_spec

FOLDER = Path(__file__).parents[1] / "executors" / "sql"
SCHEMA = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(40) COMMENT 'family name first', city TEXT)
        COMMENT 'who buys';
    CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER, amount DECIMAL(8, 2), photo BLOB,
        FOREIGN KEY (customer_id) REFERENCES customer (id));
    CREATE TABLE gone (a INTEGER);
    CREATE VIEW broken AS SELECT a FROM gone;
    CREATE VIEW cities AS SELECT DISTINCT city FROM customer;
    DROP TABLE gone;
    INSERT INTO customer VALUES (1, 'Ole Group', 'Bergen'), (2, 'Nora Group', 'Oslo'), (3, 'Per Berg', 'Oslo');
    INSERT INTO purchase VALUES (1, 1, 10.5, x'00'), (2, 1, 20, NULL), (3, 2, 5, NULL);
"""


def _server_module():
    if "mariadb_server" not in sys.modules:
        spec = importlib.util.spec_from_file_location("mariadb_server", FOLDER / "mariadb_server.py")
        sys.modules["mariadb_server"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["mariadb_server"])
    return sys.modules["mariadb_server"]


@pytest.fixture(scope="module")
def server():
    for package in ("sqlalchemy", "pymysql"):
        pytest.importorskip(package, reason=f"{package} is not installed (extra sql)")
    module = _server_module()
    if (programs := module.find_programs()) is None:
        pytest.skip("no MariaDB server: install the package mariadb-server")
    with module.serve(programs) as server:
        server.run("CREATE DATABASE shop", database="")
        server.run(SCHEMA)
        server.run("CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'r';\nGRANT SELECT ON shop.* TO reader@'127.0.0.1'")
        yield server


@pytest.fixture
def folder(server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_PASSWORD", "r")
    monkeypatch.chdir(tmp_path)
    with Registry.open("helios-sources.yaml", create=True) as registry:
        values = {"kind": "sql", "url": server.url("reader"), "password_env": "SHOP_PASSWORD"}
        registry.add("shop", values | {"description": "Customers and their purchases"})
    return tmp_path


def helios(*arguments: str):
    return CliRunner().invoke(build_app(), list(arguments))


def test_it_describes_itself_looks_up_and_answers(folder: Path):
    with Registry.open("helios-sources.yaml") as registry:
        shop = registry.source("shop")
        schema = shop.descriptor().schema
        tables = {table.name: table for table in schema.tables}
        assert schema.dialect == "mysql" and set(tables) == {"customer", "purchase", "cities"}
        customer, purchase = tables["customer"], tables["purchase"]
        assert (customer.row_count, customer.comment) == (3, "who buys")
        assert [(c.name, c.type, c.comment, c.primary_key) for c in customer.columns] == [
            ("id", "INTEGER(11)", "", True), ("name", "VARCHAR(40)", "family name first", False),
            ("city", "TEXT", "", False),
        ]  # fmt: skip
        assert customer.columns[2].samples == ("Oslo", "Bergen") and purchase.columns[3].samples == ()
        assert [(key.columns, key.table, key.referred) for key in purchase.foreign_keys] == [
            (("customer_id",), "customer", ("id",))
        ]
        hit = shop.find_values(["ole group"])[0]
        assert (hit.value, hit.place, hit.score) == ("Ole Group", ("customer", "name"), 1.0)
        text = "SELECT sum(amount) FROM purchase WHERE customer_id = :id"
        found = shop.execute(NativeQuery(Language.SQL, text, {"id": 1}))
        assert [str(value) for value in found.rows[0]] == ["30.50"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [("How many customers live in Oslo?", "2"), ("How many purchases are there?", "3")],
)
def test_questions_are_answered_without_a_model(folder: Path, question: str, answer: str):
    asked = helios("ask", question, "--sources", "helios-sources.yaml", "--json")
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)["answer"]["text"] == answer


def test_a_check_says_guards_and_role(folder: Path):
    (checked,) = json.loads(helios("sources", "check", "--json").stdout)
    assert (checked["ok"], checked["refuses_writes"], checked["role"]) == (True, True, "may only read")
    assert "role: may only read" in helios("sources", "check").stdout


def test_a_check_says_what_a_role_may_do_beyond_reading(folder: Path, server):
    server.run("CREATE USER IF NOT EXISTS writer@'127.0.0.1' IDENTIFIED BY 'r'")
    server.run("GRANT SELECT, INSERT ON shop.* TO writer@'127.0.0.1'")
    with Registry.open("helios-sources.yaml") as registry:
        registry.add("loose", {"kind": "sql", "url": server.url("writer"), "password_env": "SHOP_PASSWORD"})
    (checked,) = json.loads(helios("sources", "check", "loose", "--json").stdout)
    assert checked["ok"] and checked["role"] == "may do more than read: INSERT on shop.*"


def test_what_is_wrong_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SHOP_PASSWORD", "wrong")
    with Registry.open("helios-sources.yaml") as registry, pytest.raises(SourceUnavailable, match="cannot connect"):
        registry.source("shop").check()
    monkeypatch.delenv("SHOP_PASSWORD")
    with (
        Registry.open("helios-sources.yaml") as registry,
        pytest.raises((SourceUnavailable, ConfigError), match="not set"),
    ):
        registry.source("shop").check()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"url": "mysql+pymysql://a:b@h/d"}, "has a password in it"),
        ({"url": "oracle://h/d"}, "expected a URL mysql+pymysql://"),
        ({"url": "mysql+pymysql://h/d?local_infile=1"}, "a parameter that is not known here"),
        ({"url": "snowflake://u@account/d/s?token=x"}, "has a secret in its parameter 'token'"),
        ({"url": "mysql+pymysql://h/d", "password": "x"}, "write `password_env"),
    ],
)
def test_wrong_registrations_are_refused(values, said: str):
    with pytest.raises(ConfigError) as error:
        read_spec("shop", {"kind": "sql"} | values, where="test")
    assert said in str(error.value)


def test_a_driver_that_is_missing_is_named(tmp_path: Path):
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("lake", {"kind": "sql", "url": "snowflake://reader@account/shop/public?warehouse=w"})
        with pytest.raises(SourceUnavailable, match="'lake'.* needs snowflake"):
            registry.source("lake").check()

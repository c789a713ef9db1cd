"""A PostgreSQL database as a source, on a server that the test starts."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed (extra sources)", exc_type=ImportError)

from helios.errors import ConfigError, QueryRejected, SourceUnavailable
from helios.executors.base import Language, NativeQuery
from helios.sources.descriptor import ForeignKey, RelationalSchema
from helios.sources.registry import Registry

SERVER = Path(__file__).parents[1] / "executors" / "sql" / "postgresql_server.py"


@pytest.fixture(scope="module")
def server():
    name = "postgresql_server"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, SERVER)
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    module = sys.modules[name]
    binaries = module.find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server is installed")
    with module.serve(binaries) as server:
        server.run(f"""
            CREATE ROLE {module.READER} LOGIN PASSWORD '{module.PASSWORD}';
            CREATE TYPE mood AS ENUM ('happy', 'sad');
            CREATE TABLE customer (id INTEGER PRIMARY KEY, "full name" TEXT, mood mood, photo BYTEA);
            CREATE TABLE "order" (no INTEGER, customer INTEGER REFERENCES customer (id), PRIMARY KEY (no, customer));
            CREATE TABLE hidden (secret TEXT);
            CREATE VIEW happy AS SELECT * FROM customer WHERE mood = 'happy';
            COMMENT ON TABLE customer IS 'who buys';
            COMMENT ON COLUMN customer.mood IS 'on a good day';
            INSERT INTO customer VALUES (1, 'Ole Group', 'happy', '\\x00'), (2, NULL, 'sad', NULL);
            GRANT SELECT ON customer, "order", happy TO {module.READER};
        """)
        yield server, module


@pytest.fixture
def registry(server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    running, module = server
    monkeypatch.setenv(module.PASSWORD_ENV, module.PASSWORD)
    url = f"postgresql://{module.READER}@127.0.0.1:{running.port}/postgres"
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("shop", {"kind": "postgresql", "url": url, "password_env": module.PASSWORD_ENV})
        yield registry


def test_schema_values_and_queries(registry: Registry):
    source = registry.source("shop")
    source.check()
    schema = source.descriptor().schema
    assert isinstance(schema, RelationalSchema) and schema.dialect == "postgres"
    tables = {table.name: table for table in schema.tables}
    assert set(tables) == {"customer", "order", "happy"}
    customer = tables["customer"]
    assert (customer.row_count, customer.comment) == (2, "who buys")
    assert [column.type for column in customer.columns] == ["integer", "text", "mood (enum)", "bytea"]
    assert customer.columns[2].comment == "on a good day"
    assert customer.columns[1].samples == ("Ole Group",) and customer.columns[3].samples == ()
    assert tables["order"].foreign_keys == (ForeignKey(("customer",), "customer", ("id",)),)
    assert [column.primary_key for column in tables["order"].columns] == [True, True]
    assert source.find_values(["ole group"])[0].place == ("customer", "full name")
    assert source.execute(NativeQuery(Language.SQL, "SELECT count(*) FROM customer")).rows == ((2,),)
    with pytest.raises(QueryRejected):
        source.execute(NativeQuery(Language.SQL, "DELETE FROM customer"))


def test_a_server_that_is_not_there(registry: Registry):
    registry.add("gone", {"kind": "postgresql", "url": "postgresql://me@127.0.0.1:1/d"})
    with pytest.raises(SourceUnavailable, match="cannot connect"):
        registry.source("gone").check()


def test_a_password_that_is_not_set(registry: Registry, server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(server[1].PASSWORD_ENV)
    with pytest.raises((ConfigError, SourceUnavailable), match=f"{server[1].PASSWORD_ENV} is not set"):
        registry.source("shop").check()

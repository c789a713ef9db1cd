"""Contexts from DuckDB with CSV and Parquet files, and from a PostgreSQL server: typed times, keys of the settings."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from helios.augment.augmenter import Augmenter
from helios.augment.settings import AugmentSettings
from helios.sources.registry import Registry

SERVER = Path(__file__).parents[1] / "executors" / "sql" / "postgresql_server.py"


def test_parquet_and_csv_files_with_keys_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "customers.csv").write_text("id,name\n1,Ada\n2,Bo\n")
    (tmp_path / "ticket.csv").write_text(
        "id,customer,opened,title\n1,1,2024-01-05 10:00:00,The lid is loose\n"
        "2,1,2024-03-01 09:00:00,Off\n3,1,2024-05-01 09:00:00,Written later\n"
    )
    connection = duckdb.connect()
    connection.execute(
        f"COPY (SELECT 1 AS customer, DATE '2024-03-01' AS day, 'bought on the same day' AS what UNION ALL "
        f"SELECT 1, DATE '2024-02-29', 'bought on the day before') TO '{tmp_path / 'bought.parquet'}'"
    )
    connection.close()
    settings = AugmentSettings(
        keys=("ticket.customer -> customers.id", "bought.customer -> customers.id"),
        primary={"ticket": ("id",), "customers": ("id",)}, time={"ticket": "opened", "bought": "day"}, seconds=60.0,
    )  # fmt: skip
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        files = {"customers": "customers.csv", "ticket": "ticket.csv", "bought": "bought.parquet"}
        registry.add("shop", {"kind": "duckdb", "files": files})
        context = Augmenter(registry.source("shop"), settings).of("ticket:2")
    texts = " ".join(context.texts())
    assert "Ada" in texts and "The lid is loose" in texts and "bought on the day before" in texts
    assert "Written later" not in texts and "the same day" not in texts


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[object, object]]:
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra sources)", exc_type=ImportError)
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
    with module.serve(binaries) as running:
        running.run(f"""
            CREATE ROLE {module.READER} LOGIN PASSWORD '{module.PASSWORD}';
            CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(40), since DATE);
            CREATE TABLE bill (shop TEXT, no INTEGER, customer INTEGER REFERENCES customer (id),
                               created_at TIMESTAMPTZ, note TEXT, PRIMARY KEY (shop, no));
            CREATE TABLE line (id SERIAL PRIMARY KEY, shop TEXT, no INTEGER, item TEXT,
                               FOREIGN KEY (shop, no) REFERENCES bill (shop, no));
            INSERT INTO customer VALUES (1, 'Ada', '2020-01-01');
            INSERT INTO bill VALUES ('north', 1, 1, '2024-01-05T10:00:00Z', 'an early bill'),
              ('north', 2, 1, '2024-03-01T10:00:00Z', 'the bill'), ('south', 1, 1, '2024-03-01T10:00:01Z', 'later');
            INSERT INTO line (shop, no, item) VALUES ('north', 2, 'a blue chair'), ('south', 1, 'a red table');
            GRANT SELECT ON customer, bill, line TO {module.READER};
        """)
        yield running, module


def test_a_composite_key_and_typed_times_of_postgresql(
    server: tuple[object, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, module = server
    monkeypatch.setenv(module.PASSWORD_ENV, module.PASSWORD)  # type: ignore[attr-defined]
    url = f"postgresql://{module.READER}@127.0.0.1:{running.port}/postgres"  # type: ignore[attr-defined]
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("shop", {"kind": "postgresql", "url": url, "password_env": module.PASSWORD_ENV})  # type: ignore[attr-defined]
        augmenter = Augmenter(registry.source("shop"), AugmentSettings(seconds=60.0))
        context = augmenter.of("bill:north,2")
    texts = context.texts()
    assert {"Ada", "an early bill", "the bill", "a blue chair"} <= {
        text.removeprefix("item: ").removeprefix("note: ") for text in texts
    }
    assert not any("later" in text or "red table" in text for text in texts)
    assert not context.notes

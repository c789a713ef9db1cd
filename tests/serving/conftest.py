"""Real servers (uvicorn on loopback, in a thread) over the sample index."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

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
            made = ServerSettings(served, port=0, overrides=EXACT, limits=limits, **settings)
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

"""Real servers for the tests of executors, each started by the test that needs it."""

import shutil
import socket
import subprocess
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def oxigraph_server() -> Iterator[Callable[..., str]]:
    """Starts `oxigraph serve-read-only` over a store's folder and gives the address of its endpoint."""
    program = shutil.which("oxigraph") or shutil.which("oxigraph", path=sysconfig.get_path("scripts"))
    if program is None:
        pytest.skip("no oxigraph program: pip install oxigraph")
    started: list[subprocess.Popen[bytes]] = []

    def serve(store: Path, *options: str) -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [program, "serve-read-only", "--location", str(store), "--bind", f"127.0.0.1:{port}", *options]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(200):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/query?query=ASK%7B%7D", timeout=5):
                    return f"http://127.0.0.1:{port}/query"
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise RuntimeError("oxigraph did not start")

    yield serve
    for process in started:
        process.kill()
        process.wait()

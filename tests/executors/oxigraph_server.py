"""A real SPARQL server over a store on disk: the `oxigraph` program of the package of the same name."""

import shutil
import socket
import subprocess
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path


class OxigraphServers:
    """Starts `oxigraph serve-read-only` for folders with a store; `close` ends them all."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._started: list[subprocess.Popen[bytes]] = []

    def __call__(self, store: Path, *options: str) -> str:
        """The address of the endpoint, which answers already."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [self._program, "serve-read-only", "--location", str(store), "--bind", f"127.0.0.1:{port}", *options]
        self._started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(200):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/query?query=ASK%7B%7D", timeout=5):
                    return f"http://127.0.0.1:{port}/query"
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise RuntimeError("oxigraph did not start")

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()


def program() -> str | None:
    """Where the program is; None where it is not installed."""
    return shutil.which("oxigraph") or shutil.which("oxigraph", path=sysconfig.get_path("scripts"))

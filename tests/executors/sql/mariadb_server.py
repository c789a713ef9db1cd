"""A MariaDB server of our own on loopback, from the system's packages; it ends, and its files go, with the context."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

READER, PASSWORD_ENV, PASSWORD = "helios_reader", "HELIOS_TEST_MARIADB", "s3cret of the 'reader'"
START_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    """A running server; its owner needs no password on the socket, the reader one over TCP."""

    port: int
    folder: Path

    def connect(self, database: str = "shop"):
        """A connection as the owner."""
        import pymysql

        return pymysql.connect(
            unix_socket=str(self.folder / "socket"), user="root", database=database or None, autocommit=True,
            charset="utf8mb4",
        )  # fmt: skip

    def run(self, sql: str, parameters: Sequence | dict | None = None, *, database: str = "shop") -> list[tuple]:
        """Run statements, one a line ending with a semicolon, as the owner; the rows of the last one."""
        connection = self.connect(database)
        try:
            with connection.cursor() as cursor:
                for statement in sql.split(";\n"):
                    if statement.strip():
                        cursor.execute(statement, parameters)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def url(self, user: str = READER, database: str = "shop") -> str:
        return f"mysql+pymysql://{user}@127.0.0.1:{self.port}/{database}"


def find_programs() -> tuple[str, str] | None:
    """`mariadbd` and `mariadb-install-db`; None where no server is installed."""
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"])
    found = [shutil.which(name, path=search) for name in ("mariadbd", "mariadb-install-db")]
    return (found[0], found[1]) if found[0] and found[1] else None


@contextmanager
def serve(programs: tuple[str, str]) -> Iterator[Server]:
    """Start a server on a free port."""
    program, installer = programs
    folder = Path(tempfile.mkdtemp(prefix="mariadb"))
    user = _unprivileged()
    if user is not None:
        folder.chmod(0o755)
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"user": user, "cwd": folder, "env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)}}
    try:
        made = subprocess.run(
            [installer, "--no-defaults", f"--datadir={folder / 'data'}", "--auth-root-authentication-method=normal",
             "--skip-test-db", "--innodb-flush-log-at-trx-commit=0"],
            timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **quiet,
        )  # fmt: skip
        assert made.returncode == 0, made.stdout
        process = subprocess.Popen(
            [program, "--no-defaults", f"--datadir={folder / 'data'}", f"--socket={folder / 'socket'}",
             f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={folder / 'pid'}", "--skip-name-resolve",
             "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin",
             "--character-set-server=utf8mb4", "--secure-file-priv="],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **quiet,
        )  # fmt: skip
        try:
            server = Server(port, folder)
            _wait(server, process)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: Server, process: subprocess.Popen) -> None:
    ends = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, "mariadbd ended while it started"
        with socket.socket(socket.AF_UNIX) as line:
            if not line.connect_ex(str(server.folder / "socket")):
                return
        assert time.monotonic() < ends, "mariadbd did not start in time"
        time.sleep(0.05)


def _unprivileged() -> str | None:
    """The user that the server runs as: it refuses to be root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("mysql", "nobody") if name in names)

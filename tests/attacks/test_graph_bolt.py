"""Servers that speak Bolt badly, or not at all: typed errors within the deadline, and never rows that nobody sent."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helios.errors import QueryFailed, QueryTimeout, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.bolt import BoltExecutor

pytest.importorskip("neo4j")  # imported here, it does not count against the deadline

SECONDS = 2.0
VERSION = b"\x00\x00\x04\x05"
"""The server's side of the handshake: Bolt 5.4."""
HELLO = {
    "nothing": b"",
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a version that nobody asked for": b"\x00\x00\x00\x63",
    "noise": VERSION + b"\xff" * 70_000,
    "a message of unknown kind": VERSION + b"\x00\x02\xb1\x05\x00\x00",
    "a chunk without an end": VERSION + b"\xff\xff" + b"\xb1\x70",
    "an empty structure": VERSION + b"\x00\x01\xb0\x00\x00",
    "a list that is too long": VERSION + b"\x00\x06\xb1\x70\xd6\xff\xff\xff\x00\x00",
    "a list of 60,000 levels": VERSION + b"\xea\x62\xb1\x70" + b"\x91" * 60_000 + b"\x00\x00",
    "text that is no UTF-8": VERSION + b"\x00\x07\xb1\x70\xa1\x81\xff\x81x\x00\x00",
}
Listen = Callable[[bytes], str]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Starts a real TCP server that sends the same bytes to everybody, and then waits."""
    servers: list[socket.socket] = []

    def serve(server: socket.socket, data: bytes) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5.0)
                try:
                    connection.recv(20)
                    connection.sendall(data)
                    while data and connection.recv(4096):
                        pass
                except OSError:
                    continue

    def start(data: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        threading.Thread(target=serve, args=(server, data), daemon=True).start()
        return f"bolt://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize("data", HELLO.values(), ids=HELLO)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_server_that_speaks_badly(listen: Listen, data: bytes, within: Any) -> None:
    executor = BoltExecutor(listen(data), limits=Limits(timeout=SECONDS))
    with within(SECONDS + 1.0), pytest.raises((QueryFailed, SourceUnavailable, QueryTimeout)):
        executor.execute(NativeQuery(Language.CYPHER, "RETURN 1"))
    executor.close()

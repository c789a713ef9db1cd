"""Servers that speak Bolt badly, or not at all: typed errors within the deadline, and never rows that nobody sent."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
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
ROOM = 100 * 2**20
SUCCESS, RECORD = b"\xb1\x70", b"\xb1\x71\x91"
"""Signatures of messages; a record of one value."""
RUN, PULL = 0x10, 0x3F
CHUNK = b"\x00" * 0xFFF0


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
    executor.warm_up()
    with within(SECONDS + 1.0), pytest.raises((QueryFailed, SourceUnavailable, QueryTimeout)):
        executor.execute(NativeQuery(Language.CYPHER, "RETURN 1"))
    executor.close()


@pytest.fixture
def speak() -> Iterator[Callable[[Iterator[bytes]], str]]:
    """Starts a server that speaks Bolt 5.4, and answers a query with a message of these bytes."""
    servers: list[socket.socket] = []

    def serve(server: socket.socket, record: Iterator[bytes]) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, suppress(OSError, EOFError):
                connection.settimeout(20.0)
                _read(connection, 20)
                connection.sendall(VERSION)
                _answer(connection, record)

    def start(record: Iterator[bytes]) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        threading.Thread(target=serve, args=(server, record), daemon=True).start()
        return f"bolt://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in servers:
        server.close()


def _answer(connection: socket.socket, record: Iterator[bytes]) -> None:
    """Success for every message; before that of PULL the record."""
    while True:
        message = b""
        while size := int.from_bytes(_read(connection, 2), "big"):
            message += _read(connection, size)
        if not message:
            continue
        if message[1] == PULL:
            for piece in record:
                connection.sendall(len(piece).to_bytes(2, "big") + piece)
            connection.sendall(b"\x00\x00")
        fields = b"\xa1\x86fields\x91\x81x" if message[1] == RUN else b"\xa0"
        for part in (SUCCESS + fields, b""):
            connection.sendall(len(part).to_bytes(2, "big") + part)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def _pieces(start: bytes, filling: bytes, times: int) -> Iterator[bytes]:
    yield RECORD + start
    for _ in range(times):
        yield filling


BLOWN_UP = {
    "a text of 160 MB": (b"\xd2" + (0xFFF0 * 2560).to_bytes(4, "big"), CHUNK, 2560),
    "30,000,000 empty lists": (b"\xd6" + (0xFFF0 * 458).to_bytes(4, "big"), b"\x90" * 0xFFF0, 458),
    "a list of 60,000 levels": (b"", b"\x91" * 60_000, 1),
    "a record without an end": (b"\xd2\x7f\xff\xff\xff", CHUNK, 2**40),
}


@pytest.mark.parametrize(("start", "filling", "times"), BLOWN_UP.values(), ids=BLOWN_UP)
def test_a_record_of_any_size_takes_none_of_our_memory(
    speak: Any, within: Any, peak: Callable[[], int], start: bytes, filling: bytes, times: int
) -> None:
    limits = Limits(timeout=SECONDS, max_memory=2**28)
    executor = BoltExecutor(speak(_pieces(start, filling, times)), limits=limits)
    executor.warm_up()
    with within(SECONDS + 1.0), pytest.raises((QueryFailed, QueryTimeout)):
        executor.execute(NativeQuery(Language.CYPHER, "RETURN 1 AS x"))
    assert peak() < ROOM
    executor.close()


def test_values_beyond_the_cap_are_not_sent_on(speak: Any) -> None:
    text = b"\xd1" + (60_000).to_bytes(2, "big") + b"x" * 60_000
    executor = BoltExecutor(speak(iter([RECORD + text])), limits=Limits(timeout=10.0, max_bytes=50_000))
    result = executor.execute(NativeQuery(Language.CYPHER, "RETURN 1 AS x"))
    assert (result.rows, result.truncated) == ((), "bytes")
    executor.close()

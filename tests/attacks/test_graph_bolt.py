"""Servers that speak Bolt badly, or not at all: typed errors within the deadline, and never rows that nobody sent."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
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
Explaining = Callable[[Mapping[bytes, Mapping[str, Any]]], tuple[str, list[bytes]]]
ROWS, FAILURE = "rows", "failure"
"""With what a server says of a query: the values that it answers, and the code of an error."""
ROOM = 100 * 2**20
SUCCESS, RECORD = b"\xb1\x70", b"\xb1\x71\x91"
"""Signatures of messages; a record of one value."""
RUN, PULL = 0x10, 0x3F
EXPLAIN = b"EXPLAIN "
CHUNK = b"\x00" * 0xFFF0


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """Starts a real TCP server that talks to everybody in the same way; its address."""
    servers: list[socket.socket] = []

    def accept(server: socket.socket, talk: Callable[[socket.socket], None]) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, suppress(OSError, EOFError):
                connection.settimeout(20.0)
                talk(connection)

    def start(talk: Callable[[socket.socket], None]) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        threading.Thread(target=accept, args=(server, talk), daemon=True).start()
        return f"bolt://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def listen(serve: Any) -> Listen:
    """Starts a server that sends the same bytes to everybody, and then waits."""

    def talk(connection: socket.socket, data: bytes) -> None:
        connection.settimeout(5.0)
        connection.recv(20)
        connection.sendall(data)
        while data and connection.recv(4096):
            pass

    return lambda data: serve(partial(talk, data=data))


@pytest.mark.parametrize("data", HELLO.values(), ids=HELLO)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_server_that_speaks_badly(listen: Listen, data: bytes, within: Any) -> None:
    executor = BoltExecutor(listen(data), limits=Limits(timeout=SECONDS))
    executor.warm_up()
    with within(SECONDS + 1.0), pytest.raises((QueryFailed, SourceUnavailable, QueryTimeout)):
        executor.execute(NativeQuery(Language.CYPHER, "RETURN 1"))
    executor.close()


@pytest.fixture
def speak(serve: Any) -> Callable[[Iterator[bytes]], str]:
    """Starts a server that speaks Bolt 5.4, and answers a query with a message of these bytes."""

    def talk(connection: socket.socket, record: Iterator[bytes]) -> None:
        _read(connection, 20)
        connection.sendall(VERSION)
        _answer(connection, record)

    return lambda record: serve(partial(talk, record=record))


def _answer(connection: socket.socket, record: Iterator[bytes]) -> None:
    """Success for every message; before that of a query's PULL the record."""
    explained = False
    while True:
        message = _message(connection)
        explained = EXPLAIN in message if message[1] == RUN else explained
        if message[1] == PULL and not explained:
            for piece in record:
                connection.sendall(len(piece).to_bytes(2, "big") + piece)
            connection.sendall(b"\x00\x00")
        _send(connection, SUCCESS + (b"\xa1\x86fields\x91\x81x" if message[1] == RUN else b"\xa0"))


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(len(message).to_bytes(2, "big") + message + b"\x00\x00")


def _message(connection: socket.socket) -> bytes:
    """The next message; empty ones keep a connection awake."""
    message = b""
    while not message:
        while size := int.from_bytes(_read(connection, 2), "big"):
            message += _read(connection, size)
    return message


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


def _plan(*operators: str) -> dict[str, Any]:
    """The plan of a server, with these operators below its results."""
    names = ("ProduceResults", *operators)
    root, *children = ({"operatorType": f"{name}@graph", "identifiers": [], "args": {}} for name in names)
    return {**root, "children": children}


@pytest.fixture
def explain(serve: Any) -> Explaining:
    """Starts a server that explains queries, and keeps what it was asked.

    Neo4j's EXPLAIN cannot be had beside the tests: its server comes in no package, and the servers that do call every
    EXPLAIN a write. This one speaks Bolt 5.4, and says of a query what it is told to say.
    """

    def talk(connection: socket.socket, says: Mapping[bytes, Mapping[str, Any]], asked: list[bytes]) -> None:
        _read(connection, 20)
        connection.sendall(VERSION)
        said: Mapping[str, Any] = {}
        while True:
            message = _message(connection)
            if message[1] == RUN:
                asked.append(message)
                said = next((said for part, said in says.items() if part in message), {})
            if FAILURE in said and message[1] in (RUN, PULL):
                _send(connection, b"\xb1\x7f" + _packed({"code": said[FAILURE], "message": "no"}))
                continue
            for value in said.get(ROWS, []) if message[1] == PULL else []:
                _send(connection, RECORD + _packed(value))
            summary = {key: value for key, value in said.items() if key != ROWS}
            _send(connection, SUCCESS + _packed({RUN: {"fields": ["x"]}, PULL: summary}.get(message[1], {})))

    def start(says: Mapping[bytes, Mapping[str, Any]]) -> tuple[str, list[bytes]]:
        asked: list[bytes] = []
        return serve(partial(talk, says=says, asked=asked)), asked

    return start


READS = {"type": "r", "plan": _plan("Projection")}
READING = "MATCH (n:Person) RETURN n.name AS x"
TELLS = {b"EXPLAIN RETURN 1 AS one": READS}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"type": "rw", "plan": _plan("Projection")}, "type rw"),
        ({"type": "s", "plan": _plan()}, "type s"),
        ({}, "type None"),
        ({"type": "r", "plan": _plan("NodeByLabelScan", "SetProperty")}, "SetProperty"),
        ({"type": "r", "plan": {**_plan(), "children": [_plan("LoadCSV")]}}, "LoadCSV"),
        ({"type": "r", "plan": _plan("TransactionForeach")}, "TransactionForeach"),
    ],
)
def test_what_the_server_says_is_more_than_reading_does_not_run(explain: Any, said: Any, reason: str) -> None:
    url, asked = explain({**TELLS, b"EXPLAIN MATCH": said})
    executor = BoltExecutor(url, limits=Limits(timeout=10.0))
    with pytest.raises(QueryRejected, match=reason):
        executor.execute(NativeQuery(Language.CYPHER, READING))
    executor.close()
    assert len(asked) == 2 and all(EXPLAIN in message for message in asked)


def test_a_probe_that_fails_for_another_reason_is_asked_again(explain: Any) -> None:
    """A server that has no time at the moment may know EXPLAIN: nothing runs until it has said so."""
    says = {b"EXPLAIN RETURN 1 AS one": {FAILURE: "Neo.ClientError.Transaction.TransactionTimedOut"}}
    url, asked = explain(says)
    executor = BoltExecutor(url, limits=Limits(timeout=10.0), connections=1)
    for expected in (QueryTimeout, QueryTimeout, QueryRejected):
        if expected is QueryRejected:
            says.update({**TELLS, b"EXPLAIN MATCH": {"type": "rw", "plan": _plan()}})
        with pytest.raises(expected):
            executor.execute(NativeQuery(Language.CYPHER, READING))
    executor.close()
    assert all(EXPLAIN in message for message in asked)


@pytest.mark.parametrize("code", ["Neo.ClientError.Statement.SyntaxError", "Neo.DatabaseError.General.UnknownError"])
def test_a_server_that_knows_no_explain(explain: Any, code: str) -> None:
    url, asked = explain({EXPLAIN: {FAILURE: code}})
    executor = BoltExecutor(url, limits=Limits(timeout=10.0), connections=1)
    for _ in range(2):
        executor.execute(NativeQuery(Language.CYPHER, READING))
    executor.close()
    assert [EXPLAIN in message for message in asked] == [True, False, False]


def test_what_was_explained_on_one_connection_is_asked_again_on_the_next(explain: Any) -> None:
    says = {**TELLS, b"EXPLAIN MATCH": {"type": "r", "plan": _plan()}, b"RETURN 7": {FAILURE: "Neo.ClientError.X.Y"}}
    url, asked = explain(says)
    executor = BoltExecutor(url, limits=Limits(timeout=10.0), connections=1)
    executor.execute(NativeQuery(Language.CYPHER, READING))
    with pytest.raises(QueryFailed):
        executor.execute(NativeQuery(Language.CYPHER, "RETURN 7 AS x"))
    says[b"EXPLAIN MATCH"] = {"type": "rw", "plan": _plan()}
    with pytest.raises(QueryRejected):
        executor.execute(NativeQuery(Language.CYPHER, READING))
    executor.close()


def test_a_reading_query_is_explained_once_a_connection(explain: Any) -> None:
    url, asked = explain({**TELLS, b"EXPLAIN MATCH": {"type": "r", "plan": _plan("NodeByLabelScan", "Expand(All)")}})
    executor = BoltExecutor(url, limits=Limits(timeout=10.0), connections=1)
    for _ in range(3):
        executor.execute(NativeQuery(Language.CYPHER, READING))
    executor.close()
    assert [EXPLAIN in message for message in asked] == [True, True, False, False, False]


@pytest.mark.parametrize("said", [{}, {"type": "w", "plan": _plan("Whole")}, {"type": "r"}])
def test_a_server_whose_explain_tells_nothing_is_not_asked_again(explain: Any, said: Any) -> None:
    url, asked = explain({EXPLAIN: said})
    executor = BoltExecutor(url, limits=Limits(timeout=10.0), connections=1)
    for number in range(2):
        executor.execute(NativeQuery(Language.CYPHER, f"MATCH (n:Person) RETURN {number} AS x"))
    executor.close()
    assert [EXPLAIN in message for message in asked] == [True, False, False]


def test_what_the_user_may_do_beyond_reading_is_said(explain: Any) -> None:
    url, asked = explain(
        {**TELLS, b"SHOW USER PRIVILEGES": {"type": "r", ROWS: ["access", "match", "set_label", "write"]}}
    )
    executor = BoltExecutor(url, limits=Limits(timeout=10.0))
    assert executor.problems() == ["the user is granted set_label", "the user is granted write"]
    executor.close()
    assert len(asked) == 1


def _packed(value: Any) -> bytes:
    """A value as Bolt writes it: small maps and lists of short texts."""
    if isinstance(value, dict):
        return bytes([0xA0 + len(value)]) + b"".join(_packed(part) for item in value.items() for part in item)
    if isinstance(value, list):
        return bytes([0x90 + len(value)]) + b"".join(map(_packed, value))
    return b"\xd0" + bytes([len(value)]) + value.encode()

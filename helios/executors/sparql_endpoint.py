"""A SPARQL endpoint over HTTP (SPARQL 1.1 Protocol, results as JSON), read while they arrive.

The deadline covers everything from the name lookup to the last row: the exchange runs in a thread of its own, whose
connection is shut at the deadline, so a server that trickles bytes holds nobody. A reply is read piece by piece: its
bytes, its depth and what lies between two rows are bounded, whatever the server sends. Redirects are followed on the
same host alone. Where the server takes a deadline as a parameter it is told ours (`timeout_parameter`, milliseconds).
"""

import base64
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, urlencode, urljoin

from helios.errors import QueryFailed, QueryTimeout, SourceUnavailable
from helios.executors.address import read_address, shown
from helios.executors.base import Deadline, Language, Limits, NativeQuery, ResultSet
from helios.executors.rows import capped
from helios.executors.sparql.guard import SparqlGuard
from helios.executors.sparql.terms import ASK_COLUMN, literal_value
from helios.executors.values import Iri, Value

RESULTS = "application/sparql-results+json"
REDIRECTS = 3
REPLY_FACTOR = 8
"""A reply may be so many times as long as its values: names of variables, types."""
REPLY_EXTRA = 2**20
CHUNK = 2**14
"""Bytes that are parsed at once; nothing is deeper or longer than these before a bound is seen to."""
MAX_DEPTH = 60
"""Levels of a reply: a triple in a triple takes two, a term four."""
ROW_DEPTH = 3
"""Where rows lie: in the list of bindings in the results of the reply."""
MAX_PIECE = 20_000
"""Events of the parser before, between and behind rows, and so of a row: names of variables, terms."""
MESSAGE_LENGTH = 500
"""Bytes of a server's error page that are shown."""
AGENT = "helios-retrieval (SPARQL client)"


class _Enough(Exception):
    """More bytes than a reply may have."""


class _Malformed(Exception):
    """A reply that is JSON, and no result of a query."""


@dataclass(slots=True)
class _Exchange:
    """One request under way; `give_up` ends it from another thread."""

    deadline: float
    connection: http.client.HTTPConnection | None = None
    channel: socket.socket | None = None
    """The connection's, which forgets it where the server closes after its answer."""
    response: http.client.HTTPResponse | None = None
    result: Future[ResultSet] = field(default_factory=Future)
    given_up: bool = False

    def left(self) -> float:
        """Seconds until the deadline; TimeoutError where there are none."""
        left = self.deadline - monotonic()
        if left <= 0 or self.given_up:
            raise TimeoutError
        return left

    def give_up(self) -> None:
        """Shut the connection, whatever waits for it."""
        self.given_up = True
        if self.channel is not None:
            with suppress(OSError):
                self.channel.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close what is open, in the exchange's own thread."""
        for part in (self.response, self.connection):
            if part is not None:
                part.close()


class SparqlEndpointExecutor:
    """Runs SPARQL at one endpoint, at most `connections` queries at a time; threads may share it."""

    language = Language.SPARQL

    def __init__(
        self, url: str, *, prefixes: Mapping[str, str] | None = None, limits: Limits | None = None,
        user: str | None = None, password: str | None = None, token: str | None = None,
        timeout_parameter: str | None = None, connections: int = 4, services: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._target = _target(url)
        self.url = shown(url)
        """The address as it may be shown."""
        self.limits = limits or Limits()
        self.guard = SparqlGuard(prefixes, services=services)
        self._headers = {"Accept": RESULTS, "Accept-Encoding": "identity", "User-Agent": AGENT} | _authority(
            user, password, token
        )
        self._timeout_parameter = timeout_parameter
        self._free = threading.BoundedSemaphore(connections)
        self._connections = connections
        self._exchanges: dict[int, _Exchange] = {}
        self._closed = False
        self._lock = threading.Lock()

    def check(self, query: NativeQuery) -> None:
        """The guard alone."""
        self.guard.checked(query)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run a SELECT or an ASK; a variable without a value is None."""
        limits = limits or self.limits
        deadline = Deadline.after(limits.timeout)
        return self._read(self.guard.checked(query, deadline=deadline), limits, deadline)

    def read(self, statement: str, limits: Limits) -> ResultSet:
        """Run a statement of this package's own, past the guard; never one that came from outside."""
        return self._read(statement, limits, Deadline.after(limits.timeout))

    def _read(self, statement: str, limits: Limits, deadline: Deadline) -> ResultSet:
        exchange = _Exchange(deadline.at)
        if not self._free.acquire(timeout=deadline.left()):
            raise SourceUnavailable(f"{self.url}: all {self._connections} connections are busy; ask again later")
        with self._lock:
            if self._closed:
                self._free.release()
                raise SourceUnavailable("the source was closed")
            self._exchanges[id(exchange)] = exchange
        threading.Thread(target=self._run, args=(exchange, statement, limits), name="sparql", daemon=True).start()
        try:
            return exchange.result.result(max(0.0, exchange.deadline - monotonic()))
        except (FutureTimeout, TimeoutError):
            exchange.give_up()
            raise QueryTimeout(limits.timeout) from None

    def close(self) -> None:
        """Shut all connections."""
        with self._lock:
            self._closed = True
            exchanges = list(self._exchanges.values())
        for exchange in exchanges:
            exchange.give_up()

    def _run(self, exchange: _Exchange, text: str, limits: Limits) -> None:
        """The thread's side: the result, or what went wrong, goes into the exchange."""
        started = monotonic()
        try:
            exchange.result.set_result(self._exchange(exchange, text, limits, started))
        except BaseException as error:  # noqa: BLE001 - it goes on to the thread that waits for it
            exchange.result.set_exception(self._explained(error, exchange, limits))
        finally:
            exchange.close()
            with self._lock:
                self._exchanges.pop(id(exchange), None)
            self._free.release()

    def _explained(self, error: BaseException, exchange: _Exchange, limits: Limits) -> BaseException:
        if self._closed and exchange.given_up:
            return SourceUnavailable("the source was closed")
        if isinstance(error, TimeoutError) or exchange.given_up:
            return QueryTimeout(limits.timeout)
        if isinstance(error, (OSError, http.client.HTTPException)):
            return SourceUnavailable(f"{self.url}: {error or type(error).__name__}")
        return error

    def _exchange(self, exchange: _Exchange, text: str, limits: Limits, started: float) -> ResultSet:
        response = self._answer(exchange, text, limits)
        if response.status != http.client.OK:
            raise self._refusal(response, exchange, limits)
        kind = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if kind not in (RESULTS, "application/json"):
            raise SourceUnavailable(f"{self.url}: answers {kind or 'nothing'} where {RESULTS} was asked for")
        body = _Body(response, exchange, limits.max_bytes * REPLY_FACTOR + REPLY_EXTRA)
        columns, rows, truncated = read_results(body, limits)
        return ResultSet(columns, tuple(rows), truncated, (monotonic() - started) * 1e3)

    def _answer(self, exchange: _Exchange, text: str, limits: Limits) -> http.client.HTTPResponse:
        """The response to a query, after redirects on the same host."""
        form = {"query": text}
        if self._timeout_parameter:
            form[self._timeout_parameter] = str(round(limits.timeout * 1000))
        headers = self._headers | {"Content-Type": "application/x-www-form-urlencoded"}
        target = self._target
        for _ in range(REDIRECTS + 1):
            exchange.connection = connection = _connection(target, exchange.left())
            connection.connect()
            exchange.channel = connection.sock
            exchange.left()  # given up while it connected?
            connection.request("POST", _path(target), body=urlencode(form).encode(), headers=headers)
            exchange.response = response = connection.getresponse()
            if response.status not in (301, 302, 303, 307, 308):
                return response
            target = self._redirected(target, response.getheader("Location") or "")
            exchange.close()
        raise SourceUnavailable(f"{self.url}: redirects more than {REDIRECTS} times")

    def _redirected(self, target: SplitResult, location: str) -> SplitResult:
        try:
            url = urljoin(target.geturl(), location)
            new = read_address(url, schemes=("http", "https"))
        except ValueError:
            raise SourceUnavailable(f"{self.url}: redirects to an address that cannot be used") from None
        same = new.hostname == target.hostname and (new.scheme, new.port) == (target.scheme, target.port)
        safer = new.hostname == target.hostname and (target.scheme, new.scheme) == ("http", "https") and not new.port
        if not (same or safer):
            raise SourceUnavailable(f"{self.url}: redirects to {shown(url)}; register that address")
        return new

    def _refusal(self, response: http.client.HTTPResponse, exchange: _Exchange, limits: Limits) -> Exception:
        """What an error status means: the query's fault, the deadline, or the server's."""
        message = _Body(response, exchange, MESSAGE_LENGTH).start().decode("utf-8", "replace").strip()
        said = f"{response.status} {response.reason}: {' '.join(message.split())}".rstrip(": ")
        if response.status in (400, 413, 414, 422, 500):
            return QueryFailed(said)
        if response.status in (408, 504, 524):
            return QueryTimeout(limits.timeout)
        return SourceUnavailable(f"{self.url}: {said}")


class _Body:
    """A response's bytes, counted, with the deadline before each read; a file that ijson reads."""

    def __init__(self, response: http.client.HTTPResponse, exchange: _Exchange, room: int) -> None:
        self._response = response
        self._exchange = exchange
        self._room = room

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; _Enough beyond the room."""
        if size == 0:
            return b""
        left = self._exchange.left()
        if self._exchange.channel is not None:
            self._exchange.channel.settimeout(left)
        data = self._response.read1(2**16 if size < 0 else min(size, 2**16))
        self._room -= len(data)
        if self._room < 0:
            raise _Enough
        return data

    def start(self) -> bytes:
        """The first bytes, as many as there is room for."""
        kept = b""
        while self._room > 0 and (data := self.read(self._room)):
            kept += data
        return kept


def read_results(body: Any, limits: Limits) -> tuple[tuple[str, ...], list[tuple[Value, ...]], str | None]:
    """Columns, rows and the cap that ended them, of results in JSON that are read while they arrive.

    `head` must come before `results`, as all servers have it; QueryFailed for what are no results.
    """
    import ijson

    results = _Results(body)
    try:
        rows, truncated = capped(results.rows(), max_rows=limits.max_rows, max_bytes=limits.max_bytes)
    except (ijson.JSONError, _Malformed, UnicodeDecodeError) as error:
        reason = error.args[0] if error.args else type(error).__name__
        said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise QueryFailed(f"the server's reply is no SPARQL result in JSON ({' '.join(said.split())})") from None
    return results.columns, rows, "bytes" if results.cut else truncated


class _Results:
    """Rows of a reply in JSON, one by one; `columns` are known with the first row or at the end."""

    def __init__(self, body: Any) -> None:
        self._body = body
        self.columns: tuple[str, ...] = ()
        self.cut = False

    def rows(self) -> Iterator[Sequence[Value]]:
        """Rows in the order of the columns; ends early, with `cut` set, where the reply is too long."""
        import ijson

        columns: list[str] = []
        builder = None
        try:
            for prefix, event, value in ijson.parse(self._events()):
                if prefix == "head.vars.item":
                    columns.append(_string(value, "the name of a variable"))
                elif prefix == "boolean" and event == "boolean":
                    self.columns = (ASK_COLUMN,)
                    yield (value,)
                    return
                elif prefix == "results.bindings" and event == "start_array":
                    self.columns = tuple(columns)
                elif prefix == "results.bindings" and event == "end_array":
                    return
                elif prefix.startswith("results.bindings.item"):
                    builder = builder or _row_builder(event)
                    builder.event(event, value)
                    if prefix == "results.bindings.item" and event == "end_map":
                        yield self._row(builder.value)
                        builder = None
        except _Enough:
            self.cut = True
            return
        raise _Malformed("it has neither bindings nor a boolean")

    def _events(self) -> Iterator[tuple[str, Any]]:
        """The parser's events, before their places are known: what they may add up to is bounded here."""
        import ijson

        depth = piece = 0
        for event, value in ijson.basic_parse(self._body, use_float=True, buf_size=CHUNK):
            if event in ("start_map", "start_array"):
                depth += 1
            elif event in ("end_map", "end_array"):
                depth -= 1
                piece = 0 if depth == ROW_DEPTH else piece
            elif event == "map_key" and depth < ROW_DEPTH and "." in value:
                raise _Malformed("a name has a dot")  # a dot stands between the names of a place
            piece += 1
            if depth > MAX_DEPTH:
                raise _Malformed(f"it nests more than {MAX_DEPTH} levels deep")
            if piece > MAX_PIECE:
                raise _Malformed(f"a row, or what stands around the rows, has more than {MAX_PIECE:,} parts")
            yield event, value

    def _row(self, bindings: Mapping[str, Any]) -> Sequence[Value]:
        if not bindings.keys() <= set(self.columns):
            raise _Malformed("a row has a variable that head.vars, before it, does not name")
        return [_value(bindings.get(name)) for name in self.columns]


def _row_builder(event: str) -> Any:
    import ijson

    if event != "start_map":
        raise _Malformed("a row is no object")
    return ijson.ObjectBuilder()


def _value(term: Any) -> Value:
    """A term of SPARQL's JSON results."""
    if term is None:
        return None
    if not isinstance(term, Mapping):
        raise _Malformed("a term is no object")
    value, kind = term.get("value"), term.get("type")
    match kind:
        case "uri":
            return Iri(_string(value, "an IRI"))
        case "bnode":
            return Iri(f"_:{_string(value, 'a blank node')}")
        case "literal" | "typed-literal":
            datatype, language = (_string(term.get(key, ""), key) for key in ("datatype", "xml:lang"))
            return literal_value(_string(value, "a literal"), datatype, language)
        case "triple" if isinstance(value, Mapping):
            return [_value(value.get(part)) for part in ("subject", "predicate", "object")]
    raise _Malformed(f"it has a term of unknown type: {json.dumps(kind)[:80]}")


def _string(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise _Malformed(f"{what} is no text")
    return value


def _target(url: str) -> SplitResult:
    try:
        return read_address(url, schemes=("http", "https"))
    except ValueError as error:
        raise SourceUnavailable(
            f"{shown(url)}: expected the http or https address of a SPARQL endpoint ({error})"
        ) from None


def _connection(target: SplitResult, seconds: float) -> http.client.HTTPConnection:
    assert target.hostname is not None
    if target.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(target.hostname, target.port, timeout=seconds, context=context)
    return http.client.HTTPConnection(target.hostname, target.port, timeout=seconds)


def _path(target: SplitResult) -> str:
    return (target.path or "/") + (f"?{target.query}" if target.query else "")


def _authority(user: str | None, password: str | None, token: str | None) -> dict[str, str]:
    if token is not None:
        return {"Authorization": f"Bearer {token}"}
    if user is not None:
        secret = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
        return {"Authorization": f"Basic {secret}"}
    return {}

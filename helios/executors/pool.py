"""Worker processes of one source, kept warm: a query that outstays its deadline or its memory is killed.

A killed worker is replaced in the background, so that the next query finds one ready. One that nobody asks ends.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import psutil

import helios
from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.base import Deadline, Limits, NativeQuery, Outcome, ResultSet
from helios.executors.values import dumps, loads
from helios.executors.worker import HEADER

TICK = 0.02
"""Seconds between two looks at a worker's memory."""
END_SECONDS = 1.0
"""A process that has closed its pipe is gone after so long."""
START_SECONDS = 30.0
LOOK = 0.1
"""Seconds between two looks for an interrupt while a worker is waited for."""
START_GRACE = 1.0
"""Seconds beyond its deadline that a query may spend on the start of its process."""
IDLE_SECONDS = 600.0
"""After so long without a query a worker ends."""
REPLY_FACTOR = 8
"""A reply may be so many times as long as its values: tags, escapes."""
REPLY_EXTRA = 2**20
AHEAD_BYTES = 2**14
"""Requests beyond the one that runs may have so many bytes together: the smallest pipe holds them."""
PASSED_ON = (
    "PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)  # fmt: skip
"""What a worker sees of the environment: no keys, no passwords."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What a worker opens: a function `module:function` that takes the options and gives a Session."""

    opener: str
    options: Mapping[str, Any] = field(default_factory=dict)
    network: bool = False
    """Whether the engine is a client of a server."""


class WorkerPool:
    """At most `size` workers over one engine; threads share it."""

    def __init__(self, engine: Engine, *, size: int = 2, idle_seconds: float = IDLE_SECONDS) -> None:
        self.engine = engine
        self.size = size
        self.idle_seconds = idle_seconds
        """After so long without a query a worker ends; the next query starts another."""
        self._watched = False
        self._idle: deque[Worker] = deque()
        self._busy: set[Worker] = set()
        self._count = 0
        self._starting = 0
        self._closed = False
        self._changed = threading.Condition()

    def run(self, query: NativeQuery, limits: Limits, deadline: Deadline | None = None) -> ResultSet:
        """Run a query that its guard has passed, until `deadline` (by default the limits' seconds from now).

        Waiting for a process that is busy counts. The start of one counts beyond its first second: however slow
        the machine, an answer or an error is here a second after the deadline.
        """
        deadline = deadline or Deadline.after(limits.timeout)
        replied = False
        began = monotonic()
        worker = self._take(deadline.left())
        try:
            started = monotonic()
            spent = min(START_GRACE, max(0.0, worker.ready_at - began))
            reply = worker.ask(query, limits, deadline.at + spent)
            replied = not reply.get("ended", False)
        except QueryFailed:
            if self._closed:
                raise SourceUnavailable("the source was closed while it ran the query") from None
            raise
        finally:
            if replied:
                self._give(worker)
            else:
                self._drop(worker)
        return _result(reply, limits, (monotonic() - started) * 1e3)

    def run_many(self, queries: Sequence[NativeQuery], limits: Limits, deadline: Deadline) -> list[Outcome]:
        """Run queries that do not need each other's rows in one process, which has the next before it ends one.

        Each has the limits' seconds, all have until `deadline`. Where one ends the process the list ends with its
        error, and the queries after it have not run.
        """
        outcomes: list[Outcome] = []
        replied = False
        worker = self._take(deadline.left())
        try:
            started = monotonic()
            for reply in worker.ask_many(queries, limits, deadline.at):
                replied = len(outcomes) + 1 == len(queries) and not reply.get("ended", False)
                outcomes.append(_outcome(reply, limits, (monotonic() - started) * 1e3))
                if reply.get("ended", False):
                    break
                started = monotonic()
        except (QueryFailed, QueryTimeout) as error:
            if self._closed:
                raise SourceUnavailable("the source was closed while it ran the query") from None
            outcomes.append(error)
        finally:
            if replied:
                self._give(worker)
            else:
                self._drop(worker)
        return outcomes

    def warm_up(self) -> None:
        """Have one worker ready; SourceUnavailable where the engine cannot open the source."""
        self._give(self._take(START_SECONDS))

    def close(self) -> None:
        """Kill all workers; a query under way ends with SourceUnavailable."""
        with self._changed:
            self._closed = True
            idle, self._idle = list(self._idle), deque()
            for worker in self._busy:
                worker.stop()
            self._changed.notify_all()
        for worker in idle:
            worker.kill()

    def _take(self, seconds: float) -> "Worker":
        """A worker that is free within `seconds`; one that is being started is waited for a second longer.

        A start goes on when nobody waits for it any more: the next query finds the worker ready.
        """
        began = monotonic()
        start = _Start()
        with self._changed:
            while True:
                if self._closed:
                    raise SourceUnavailable("the source was closed")
                if start.error is not None:
                    raise start.error
                if self._idle:
                    worker = self._idle.pop()
                    self._busy.add(worker)
                    return worker
                if self._count < self.size and not start.begun:
                    self._count += 1
                    self._begin(start)
                left = began + seconds + (START_GRACE if self._starting else 0.0) - monotonic()
                if left <= 0:
                    if start.begun:
                        raise SourceUnavailable(
                            f"the engine's process did not start within {seconds + START_GRACE:.3g} s; ask again later"
                        )
                    raise SourceUnavailable(f"all {self.size} workers of the source are busy; ask again later")
                self._changed.wait(min(left, LOOK))

    def _begin(self, start: "_Start") -> None:
        """Start a worker in the background; the caller holds the lock and has counted it."""
        start.begun = True
        self._starting += 1
        threading.Thread(target=self._start, args=(start,), name="worker-start", daemon=True).start()

    def _start(self, start: "_Start") -> None:
        worker = None
        ready = False
        try:
            worker = Worker(self.engine)
            with self._changed:
                self._busy.add(worker)
                if self._closed:
                    worker.stop()
            worker.open()
            ready = True
        except SourceUnavailable as error:
            start.error = error
        except OSError as error:  # no more processes, no more memory
            start.error = SourceUnavailable(f"the engine's process did not start ({error})")
        finally:
            with self._changed:
                self._starting -= 1
                if not ready:
                    self._count -= 1
                    if worker is not None:
                        self._busy.discard(worker)
                self._changed.notify_all()
        if ready and worker is not None:
            self._give(worker)

    def _give(self, worker: "Worker") -> None:
        with self._changed:
            self._busy.discard(worker)
            if not self._closed:
                worker.idle_since = monotonic()
                self._idle.append(worker)
                self._watch(self.idle_seconds)
                self._changed.notify()
                return
        worker.kill()

    def _watch(self, seconds: float) -> None:
        """Have the idle workers looked at after so long; the caller holds the lock."""
        if not self._watched:
            self._watched = True
            timer = threading.Timer(seconds, _end_idle, args=(weakref.ref(self),))
            timer.daemon = True
            timer.start()

    def end_idle(self) -> None:
        """End workers that have been idle for long; those that were asked last are kept longest."""
        ended = []
        with self._changed:
            self._watched = False
            now = monotonic()
            while self._idle and now - self._idle[0].idle_since >= self.idle_seconds:
                ended.append(self._idle.popleft())
            self._count -= len(ended)
            if self._idle:
                self._watch(max(0.0, self._idle[0].idle_since + self.idle_seconds - now))
        for worker in ended:
            worker.kill()

    def _drop(self, worker: "Worker") -> None:
        """Kill a worker and start another for it; a start that fails shows at the next query.

        The query does not wait for the end of a process that has much memory to give back.
        """
        worker.stop()
        with self._changed:
            self._busy.discard(worker)
            if self._closed:
                self._count -= 1
            else:
                self._begin(_Start())
        threading.Thread(target=worker.kill, name="worker-end", daemon=True).start()


def _end_idle(pool: "weakref.ref[WorkerPool]") -> None:
    """What a timer calls; it keeps no pool alive that nobody has any more."""
    if (alive := pool()) is not None:
        alive.end_idle()


@dataclass(slots=True)
class _Start:
    """The start of a worker that a query waits for."""

    begun: bool = False
    error: SourceUnavailable | None = None


class Worker:
    """One process; `open` opens its engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._process = subprocess.Popen(
            [sys.executable, "-m", "helios.executors.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=_environment(), cwd="/", bufsize=0,
        )  # fmt: skip
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._memory = psutil.Process(self._process.pid)
        self.ready_at = self.idle_since = 0.0

    def open(self) -> None:
        """Open the engine; SourceUnavailable, and the process has ended, where it cannot be opened."""
        engine = self._engine
        setup = {"engine": engine.opener, "options": engine.options, "network": engine.network}
        ready = False
        try:
            until = monotonic() + START_SECONDS
            with self._told(None):
                self._write(_framed(setup), until)
                reply = self._reply(until, None, REPLY_EXTRA)
            if "error" in reply:
                raise SourceUnavailable(reply["message"])
            ready = True
            self.ready_at = monotonic()
        except (QueryTimeout, QueryFailed) as error:
            raise SourceUnavailable(f"the engine's process did not start ({error})") from error
        finally:
            if not ready:
                self.kill()

    def ask(self, query: NativeQuery, limits: Limits, deadline: float) -> Mapping[str, Any]:
        """One query, one reply; after an error the worker is of no more use."""
        return next(self.ask_many([query], limits, deadline))

    def ask_many(self, queries: Sequence[NativeQuery], limits: Limits, until: float) -> Iterator[Mapping[str, Any]]:
        """The replies, in order; each has the limits' seconds at most. After an error no more.

        Requests are sent ahead as far as the pipe is sure to take them, so that neither side waits for the other.
        """
        frames = deque(
            _framed({
                "text": query.text, "parameters": query.parameters,
                "max_rows": limits.max_rows, "max_bytes": limits.max_bytes, "max_memory": limits.max_memory,
            }) for query in queries
        )  # fmt: skip
        room = limits.max_bytes * REPLY_FACTOR + REPLY_EXTRA
        ahead: deque[int] = deque()
        while frames or ahead:
            deadline = min(until, monotonic() + limits.timeout)
            try:
                with self._told(limits.max_memory):
                    sent = b""
                    while frames and (not ahead or sum(ahead) + len(frames[0]) <= AHEAD_BYTES):
                        ahead.append(len(frames[0]))
                        sent += frames.popleft()
                    self._write(sent, deadline)
                    reply = self._reply(deadline, limits.max_memory, room)
            except QueryTimeout:
                raise QueryTimeout(limits.timeout) from None
            ahead.popleft()
            yield reply

    def stop(self) -> None:
        """End the process; whoever waits for its reply sees that it has ended."""
        self._process.kill()

    def kill(self) -> None:
        """End the process, whatever it does, and forget it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    @contextmanager
    def _told(self, max_memory: int | None) -> Iterator[None]:
        """What goes wrong between the two processes, as QueryFailed."""
        try:
            yield
        except (BrokenPipeError, EOFError):
            raise QueryFailed(f"the engine's process ended while it ran the query{self._why(max_memory)}") from None
        except ValueError as error:
            raise QueryFailed(f"the engine's process sent something unreadable ({error})") from error

    def _reply(self, deadline: float, max_memory: int | None, room: int) -> Mapping[str, Any]:
        """The next reply, of at most `room` bytes."""
        (length,) = HEADER.unpack(self._read(HEADER.size, deadline, max_memory))
        if length > room:
            raise QueryFailed(f"the engine's reply has {length} bytes, more than the {room} that it may have")
        reply: Mapping[str, Any] = loads(self._read(length, deadline, max_memory))
        return reply

    def _why(self, max_memory: int | None) -> str:
        """Engines that are refused memory give up by an abort."""
        with suppress(subprocess.TimeoutExpired):
            if self._process.wait(END_SECONDS) == -signal.SIGABRT and max_memory is not None:
                return f", most likely for want of memory: it may use {max_memory >> 20} MB"
        return ""

    def _write(self, data: bytes, deadline: float) -> None:
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        view = memoryview(data)
        while view:
            if not ready.poll(max(0.0, deadline - monotonic()) * 1e3):
                raise QueryTimeout(0.0)
            view = view[os.write(descriptor, view) :]

    def _read(self, length: int, deadline: float, max_memory: int | None) -> bytes:
        """Exactly `length` bytes of the reply, with an eye on the clock and on the process's memory."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        data = bytearray()
        while len(data) < length:
            left = deadline - monotonic()
            if left <= 0:
                raise QueryTimeout(0.0)
            if ready.poll(min(TICK, left) * 1e3):
                chunk = os.read(descriptor, min(length - len(data), 2**20))
                if not chunk:
                    raise EOFError
                data += chunk
            elif max_memory is not None and self._resident() > max_memory:
                raise QueryFailed(f"the query needs more than the {max_memory >> 20} MB of memory that it may use")
        return bytes(data)

    def _resident(self) -> int:
        try:
            return int(self._memory.memory_info().rss)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return 0


def _environment() -> dict[str, str]:
    """Where this package is found, and nothing that a query should not see."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    home = str(Path(helios.__file__).resolve().parents[1])
    paths = [home, *filter(os.path.isabs, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return environment | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def _framed(request: Mapping[str, Any]) -> bytes:
    data = dumps(request)
    return HEADER.pack(len(data)) + data


def _outcome(reply: Mapping[str, Any], limits: Limits, milliseconds: float) -> Outcome:
    try:
        return _result(reply, limits, milliseconds)
    except (QueryRejected, QueryTimeout, QueryFailed, SourceUnavailable) as error:
        return error


def _result(reply: Mapping[str, Any], limits: Limits, milliseconds: float) -> ResultSet:
    match reply.get("error"):
        case None:
            return ResultSet(tuple(reply["columns"]), tuple(reply["rows"]), reply["truncated"], milliseconds)
        case "rejected":
            raise QueryRejected(reply["reason"], reply["part"])
        case "timeout":
            raise QueryTimeout(limits.timeout)
        case "unavailable":
            raise SourceUnavailable(reply["message"])
        case _:
            raise QueryFailed(reply["message"])

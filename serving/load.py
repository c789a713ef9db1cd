"""`helios serve load`: a server under more and more questions, against its engine alone on the same machine.

Questions are sent at a fixed rate, whether or not those before were answered, as clients of a service do. The rate is
a multiple of the capacity: what the engine answers alone. That is measured before and after every rate, since a machine
that others share changes its speed from minute to minute. Both are asked every question once before they are measured.
The client is bounded: it holds so many connections at most, and says how many questions it could not send for that.
Latencies count from the moment at which a question was due.
"""

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from rich.table import Table as RichTable

from helios.engine import Engine
from helios.errors import HeliosError

CONNECTIONS = 256
"""That the client holds at most; a question that finds none free is not sent, and counted."""
REPLY_SECONDS = 60.0
SHOWN = 3
"""Edges of a reply."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """What is measured."""

    index: Path
    questions: Sequence[str]
    factors: Sequence[float]
    """Rates, as multiples of the capacity."""
    seconds: float
    """Of each rate."""
    permits: int
    queue: int
    overrides: tuple[str, ...] = ()
    k: int = 50


@dataclass(frozen=True, slots=True)
class LoadStep:
    """One rate."""

    factor: float
    engine: float
    """Answers a second of the engine alone: the mean of just before and just after."""
    rate: float
    """Questions a second that were due."""
    sent: int
    unsent: int
    answered: int
    refused: int
    late: int
    """That the server gave up at their deadline (504)."""
    failed: int
    cut: int
    """Answers that say that a stage was left out for want of time; they are not compared."""
    wrong: int
    """Whole answers whose edges or scores are not those of the engine."""
    throughput: float
    """Answers a second, from the first question that was due to the last answer."""
    p50_ms: float | None
    p95_ms: float | None
    refused_p50_ms: float | None
    refused_p95_ms: float | None
    memory_mb: float
    """Of the server, its own (not mapped from files), at the end."""


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """The engine alone and the server, in turns."""

    engine: tuple[float, ...]
    """Answers a second before the first rate and after each, by as many threads as the server has permits."""
    engine_p95_ms: float
    memory_mb: float
    """Of the server before the first rate."""
    steps: tuple[LoadStep, ...]

    def to_json(self) -> Json:
        """As plain JSON data."""
        return asdict(self)

    def table(self) -> RichTable:
        """For people."""
        alone = ", ".join(f"{rate:.2f}" for rate in self.engine)
        title = f"engine alone, before and after each: {alone} questions/s; p95 {self.engine_p95_ms:.0f} ms"
        shown = RichTable(title=title)
        names = (
            "times", "due/s", "sent", "answered", "refused", "late", "failed", "cut", "wrong", "answers/s", "of engine",
            "p50 ms", "p95 ms", "503 p50 ms", "503 p95 ms", "MB",
        )  # fmt: skip
        for name in names:
            shown.add_column(name, justify="right")
        for step in self.steps:
            shown.add_row(
                f"{step.factor:g}", f"{step.rate:.2f}", f"{step.sent}" + (f" (-{step.unsent})" if step.unsent else ""),
                str(step.answered), str(step.refused), str(step.late), str(step.failed), str(step.cut), str(step.wrong),
                f"{step.throughput:.2f}", f"{step.throughput / step.engine:.2f}",
                _shown(step.p50_ms), _shown(step.p95_ms), _shown(step.refused_p50_ms), _shown(step.refused_p95_ms),
                f"{step.memory_mb:.0f}",
            )  # fmt: skip
        return shown


def measure_server(settings: LoadSettings, told: Callable[[str], None] = lambda words: None) -> ServerLoad:
    """Start a server over the index, and ask it and the engine; `told` hears what is being done."""
    with _engine(settings) as engine:
        told("the engine alone")
        right = {question: _digest(_edges(engine, question, settings.k)) for question in settings.questions}
        first, p95 = _capacity(engine, settings)
        alone = [first]
        with _server(settings) as (address, process):
            at_start, steps = _memory_mb(process), []
            told("the server once through the questions")
            asyncio.run(_Client(address, settings, right).through())
            for factor in settings.factors:
                told(f"the server at {factor:g} times {alone[-1]:.1f} questions a second")
                step = asyncio.run(_Client(address, settings, right).step(factor, alone[-1] * factor, process))
                told("the engine again")
                alone.append(_capacity(engine, settings)[0])
                steps.append(replace(step, engine=(alone[-2] + alone[-1]) / 2))
    return ServerLoad(tuple(alone), p95, at_start, tuple(steps))


@contextmanager
def _engine(settings: LoadSettings) -> Any:
    with Engine.open(settings.index, overrides=settings.overrides) as engine:
        engine.warm_up()
        yield engine


def _capacity(engine: Engine, settings: LoadSettings) -> tuple[float, float]:
    """Questions a second and the 95th percentile of their milliseconds, by so many threads for so many seconds."""
    end, spent = time.monotonic() + settings.seconds, []

    def work(first: int) -> None:
        number = first
        while time.monotonic() < end:
            started = time.perf_counter()
            _edges(engine, settings.questions[number % len(settings.questions)], settings.k)
            spent.append((time.perf_counter() - started) * 1e3)
            number += settings.permits

    started = time.monotonic()
    with ThreadPoolExecutor(settings.permits) as pool:
        list(pool.map(work, range(settings.permits)))
    return len(spent) / (time.monotonic() - started), float(np.percentile(spent, 95))


@contextmanager
def _server(settings: LoadSettings) -> Any:
    """A server's address and its process; it is told to leave at the end, and waited for."""
    command = [
        sys.executable, "-m", "helios", "serve", "--index", f"load={settings.index.resolve()}", "--port", "0",
        "--permits", str(settings.permits), "--queue", str(settings.queue),
        *(f"--set={override}" for override in settings.overrides),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
        assert started.stdout is not None
        try:
            found = started.stdout.readline().removeprefix("listening on ").strip()
            if not found.startswith("http://"):
                raise HeliosError(f"the server did not start: try `helios serve --index {settings.index}` by itself")
            yield found, psutil.Process(started.pid)
        finally:
            started.terminate()
            try:
                started.wait(60)
            except subprocess.TimeoutExpired:
                started.kill()


@dataclass(slots=True)
class _Tally:
    """What became of the questions of one rate."""

    sent: int = 0
    unsent: int = 0
    late: int = 0
    failed: int = 0
    cut: int = 0
    wrong: int = 0
    answered_ms: list[float] = field(default_factory=list)
    refused_ms: list[float] = field(default_factory=list)
    last: float = 0.0


class _Client:
    """Sends questions at a fixed rate over connections that it keeps."""

    def __init__(self, address: str, settings: LoadSettings, right: dict[str, str]) -> None:
        where = urlsplit(address)
        self._host, self._port = where.hostname or "", where.port or 0
        self._settings = settings
        self._right = right
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._open = 0

    async def through(self) -> None:
        """Every question once, one after the other, as the engine alone was asked them before it was measured."""
        for question in self._settings.questions:
            await self._ask(question, time.perf_counter(), _Tally())
        self._close()

    async def step(self, factor: float, rate: float, process: psutil.Process) -> LoadStep:
        tally, started = _Tally(), time.perf_counter()
        count = max(1, round(rate * self._settings.seconds))
        under_way: set[asyncio.Task[None]] = set()
        for number in range(count):
            due = started + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if len(under_way) >= CONNECTIONS:
                tally.unsent += 1
                continue
            question = self._settings.questions[number % len(self._settings.questions)]
            task = asyncio.create_task(self._ask(question, due, tally))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)
        self._close()
        return LoadStep(
            factor, rate / factor, rate, tally.sent, tally.unsent, len(tally.answered_ms), len(tally.refused_ms),
            tally.late, tally.failed, tally.cut, tally.wrong,
            len(tally.answered_ms) / max(tally.last - started, self._settings.seconds),
            *_percentiles(tally.answered_ms), *_percentiles(tally.refused_ms), _memory_mb(process),
        )  # fmt: skip

    def _close(self) -> None:
        for _, writer in self._idle:
            writer.close()

    async def _ask(self, question: str, due: float, tally: _Tally) -> None:
        tally.sent += 1
        body = {"question": question, "k": self._settings.k, "limit": SHOWN}
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                status, reply = await self._post("/v1/search", json.dumps(body).encode())
        except (OSError, EOFError, ValueError, TimeoutError):
            tally.failed += 1
            return
        now = time.perf_counter()
        if status == 503:
            tally.refused_ms.append((now - due) * 1e3)
        elif status == 200:
            tally.answered_ms.append((now - due) * 1e3)
            tally.last = now
            found = json.loads(reply)
            if found["coverage"]["complete"]:
                tally.wrong += _digest(found["evidence"]["edges"]) != self._right[question]
            else:
                tally.cut += 1
        elif status == 504:
            tally.late += 1
        else:
            tally.failed += 1

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of a reply; httpx would take as much of the processor as a small server."""
        while self._idle:
            kept = self._idle.pop()
            try:
                return await self._asked(*kept, path, body)
            except (OSError, EOFError):
                continue  # the server has closed it meanwhile, as it does with what is idle
        return await self._asked(*await asyncio.open_connection(self._host, self._port), path, body)

    async def _asked(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
    ) -> tuple[int, bytes]:
        """The reply over a connection, which is kept where the server keeps it."""
        whole = False
        try:
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            reply = await reader.readexactly(length)
            whole = "connection: close" not in head
        finally:
            if whole:
                self._idle.append((reader, writer))
            else:
                writer.close()
        return int(head.split(" ", 2)[1]), reply


def _edges(engine: Engine, question: str, k: int) -> list[Json]:
    edges: list[Json] = engine.search(question, k=k).to_dict()["edges"][:SHOWN]
    return edges


def _digest(edges: list[Json]) -> str:
    return hashlib.sha256(json.dumps(edges, sort_keys=True).encode()).hexdigest()


def _percentiles(spent_ms: list[float]) -> tuple[float | None, float | None]:
    if not spent_ms:
        return None, None
    p50, p95 = np.percentile(spent_ms, (50, 95))
    return float(p50), float(p95)


def _memory_mb(process: psutil.Process) -> float:
    memory = process.memory_info()
    return float(memory.rss - getattr(memory, "shared", 0)) / 1e6


def _shown(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.0f}"

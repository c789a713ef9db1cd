"""Many questions at once: whether they get what one thread gets, how fast, and what memory it takes."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from threading import Lock

import numpy as np
import psutil
from rich.table import Table as RichTable

from helios.engine import Engine
from helios.types import Evidence

EARLY = 100
"""Searches after which memory is measured for the first time: what it grows by later is what a server would lose."""


@dataclass(frozen=True, slots=True)
class LoadRow:
    """Some clients that ask all questions together, each one after the other."""

    clients: int
    questions: int
    questions_per_second: float
    p50_ms: float
    p95_ms: float
    processor_ms: float
    """Processor time of the process, a question."""
    differing: int
    """Questions whose edges or scores are not, bit for bit, those of the first row."""
    memory_mb: float
    """Memory of the process that is its own (not mapped from files), at the end."""
    early_mb: float | None
    """The same after the first 100 searches; None where there are fewer."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """One row for every number of clients; the first is what the others are compared with."""

    rows: tuple[LoadRow, ...]

    def table(self) -> RichTable:
        """For people."""
        shown = RichTable(title="load")
        names = ("clients", "questions", "a second", "times the first", "p50 ms", "p95 ms", "processor ms", "differing")
        for name in (*names, f"MB after {EARLY}", "MB"):
            shown.add_column(name, justify="right")
        for row in self.rows:
            shown.add_row(
                str(row.clients), str(row.questions), f"{row.questions_per_second:.2f}",
                f"{row.questions_per_second / self.rows[0].questions_per_second:.2f}", f"{row.p50_ms:.0f}",
                f"{row.p95_ms:.0f}", f"{row.processor_ms:.0f}", str(row.differing),
                "" if row.early_mb is None else f"{row.early_mb:.0f}", f"{row.memory_mb:.0f}",
            )  # fmt: skip
        return shown


def measure_load(
    open_engine: Callable[[], Engine], questions: Sequence[str], clients: Sequence[int], *, k: int = 50,
    progress: Callable[[int], None] | None = None,
) -> LoadReport:  # fmt: skip
    """Ask all questions with each number of clients; `progress` hears how many searches are done.

    Each number of clients has an engine of its own, warmed up: none finds what another has reread.
    """
    rows: list[LoadRow] = []
    first: list[bytes] = []
    for count in clients:
        with open_engine() as engine:
            engine.warm_up()
            asked = _asked(engine, questions, count, k, partial(_tell, progress, len(rows) * len(questions)))
        first = first or asked.found
        differing = sum(one != other for one, other in zip(asked.found, first, strict=True))
        p50, p95 = (float(value) for value in np.percentile(asked.spent_ms, (50, 95)))
        rows.append(
            LoadRow(
                count,
                len(questions),
                len(questions) / asked.seconds,
                p50,
                p95,
                asked.processor_seconds * 1e3 / len(questions),
                differing,
                private_mb(),
                asked.early_mb,
            )  # fmt: skip
        )
    return LoadReport(tuple(rows))


def _tell(progress: Callable[[int], None] | None, before: int, done: int) -> None:
    if progress is not None:
        progress(before + done)


@dataclass(frozen=True, slots=True)
class _Asked:
    """All questions, asked once."""

    found: list[bytes]
    """A digest of the edges of each, in their order: the evidence itself would count as memory."""
    spent_ms: list[float]
    seconds: float
    processor_seconds: float
    early_mb: float | None


def _asked(engine: Engine, questions: Sequence[str], clients: int, k: int, progress: Callable[[int], None]) -> _Asked:
    spent: list[float] = []
    early: list[float] = []
    lock = Lock()

    def ask(question: str) -> bytes:
        started = time.perf_counter()
        evidence = engine.search(question, k=k)
        with lock:
            spent.append((time.perf_counter() - started) * 1e3)
            progress(len(spent))
            if len(spent) == EARLY:
                early.append(private_mb())
        return digest(evidence)

    started, processor = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(clients, thread_name_prefix="client") as pool:
        found = list(pool.map(ask, questions))
    seconds, busy = time.perf_counter() - started, time.process_time() - processor
    return _Asked(found, spent, seconds, busy, early[0] if early else None)


def digest(evidence: Evidence) -> bytes:
    """A hash of the edges with their scores and probabilities, to the last bit."""
    return sha256(json.dumps(evidence.to_dict()["edges"], sort_keys=True).encode()).digest()


def private_mb() -> float:
    """Memory of this process in MB, without the pages that it maps from files."""
    memory = psutil.Process().memory_info()
    return float(memory.rss - getattr(memory, "shared", 0)) / 1e6

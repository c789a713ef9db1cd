"""Many questions at once: whether they get what one thread gets, how fast, and what memory it takes."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np
import psutil
from rich.table import Table as RichTable

from helios.engine import Engine
from helios.types import Evidence


@dataclass(frozen=True, slots=True)
class LoadRow:
    """Some clients that ask all questions together, each one after the other."""

    clients: int
    questions: int
    questions_per_second: float
    p50_ms: float
    p95_ms: float
    differing: int
    """Questions whose edges or scores are not, bit for bit, those of the first row."""
    memory_mb: float
    """Memory of the process that is its own (not mapped from files), at the end."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """One row for every number of clients; the first is what the others are compared with."""

    rows: tuple[LoadRow, ...]

    def table(self) -> RichTable:
        """For people."""
        shown = RichTable(title="load")
        for name in ("clients", "questions", "a second", "times the first", "p50 ms", "p95 ms", "differing", "MB"):
            shown.add_column(name, justify="right")
        for row in self.rows:
            shown.add_row(
                str(row.clients), str(row.questions), f"{row.questions_per_second:.2f}",
                f"{row.questions_per_second / self.rows[0].questions_per_second:.2f}", f"{row.p50_ms:.0f}",
                f"{row.p95_ms:.0f}", str(row.differing), f"{row.memory_mb:.0f}",
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
    first: list[Evidence] = []
    for count in clients:
        with open_engine() as engine:
            engine.warm_up()
            told = partial(_tell, progress, len(rows) * len(questions))
            found, spent, seconds = _asked(engine, questions, count, k, told)
        first = first or found
        differing = sum(one.edges != other.edges for one, other in zip(found, first, strict=True))
        p50, p95 = (float(value) for value in np.percentile(spent, (50, 95)))
        rows.append(LoadRow(count, len(questions), len(questions) / seconds, p50, p95, differing, private_mb()))
    return LoadReport(tuple(rows))


def _tell(progress: Callable[[int], None] | None, before: int, done: int) -> None:
    if progress is not None:
        progress(before + done)


def _asked(
    engine: Engine, questions: Sequence[str], clients: int, k: int, progress: Callable[[int], None]
) -> tuple[list[Evidence], list[float], float]:
    """Evidence of all questions in their order, the milliseconds of each, and the seconds in all."""
    spent: list[float] = []
    lock = Lock()

    def ask(question: str) -> Evidence:
        started = time.perf_counter()
        evidence = engine.search(question, k=k)
        with lock:
            spent.append((time.perf_counter() - started) * 1e3)
            progress(len(spent))
        return evidence

    started = time.perf_counter()
    with ThreadPoolExecutor(clients, thread_name_prefix="client") as pool:
        found = list(pool.map(ask, questions))
    return found, spent, time.perf_counter() - started


def private_mb() -> float:
    """Memory of this process in MB, without the pages that it maps from files."""
    memory = psutil.Process().memory_info()
    return float(memory.rss - getattr(memory, "shared", 0)) / 1e6

"""How long work reports: a protocol, a silent implementation, bars for a terminal, and lines for a log."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

SECONDS_BETWEEN_LINES = 60.0
_STEPS = 1000


class Meter(Protocol):
    """The progress of one stage."""

    def start(self, total: int | None, unit: str, *, done: int = 0) -> None:
        """Announce the amount of work in `unit`s; `done` of it was finished in an earlier run.

        `total` is None where nobody knows it: then `at` may say how far the work is.
        """

    def at(self, share: float) -> None:
        """The share of the work that is done, from 0 to 1, where `total` is not known."""

    def advance(self, count: int = 1) -> None:
        """Report `count` more units as done."""


class Progress(Protocol):
    """The progress of a build: a meter for every stage that runs, a note for every one that need not."""

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """A meter for a stage, closed at the end of the block."""
        yield SilentMeter()

    def skipped(self, name: str) -> None:
        """A stage's result is there already."""


class SilentMeter:
    """Reports nothing."""

    def start(self, total: int | None, unit: str, *, done: int = 0) -> None:
        """Nothing to show."""

    def at(self, share: float) -> None:
        """Nothing to show."""

    def advance(self, count: int = 1) -> None:
        """Nothing to show."""


class SilentProgress:
    """Reports nothing: for scripts and tests."""

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """A silent meter."""
        yield SilentMeter()

    def skipped(self, name: str) -> None:
        """Nothing to show."""


@dataclass(slots=True)
class Pace:
    """What is done of a stage, how fast it goes, and what is left.

    The rate is that of the time since `start`, without what an earlier run had done.
    """

    unit: str = ""
    total: int | None = None
    done: int = 0
    share: float | None = None
    """Of the work that is done, where there is no total."""
    before: int = 0
    started: float = 0.0

    @property
    def fraction(self) -> float | None:
        """Of the work that is done, from 0 to 1; None where nobody knows."""
        return min(1.0, self.done / self.total) if self.total else self.share

    def told(self, now: float) -> str:
        """For example "12,000 of about 1,200,000 nodes (1 %), 310 nodes/s, about 64 min left"."""
        seconds = max(now - self.started, 1e-9)
        fraction, total, unit = self.fraction, self.total, f" {self.unit}" if self.unit else ""
        if total is None and self.share and self.done:
            total = round(self.done / self.share)
        about = "about " if self.total is None else ""
        texts = [f"{self.done:,}" + (f" of {about}{total:,}" if total else "") + unit]
        if fraction is not None:
            texts[0] += f" ({fraction:.0%})"
        speed = (self.done - self.before) / seconds
        if speed:
            texts.append((f"{speed:,.0f}" if speed >= 10 else f"{speed:.2f}") + f"{unit}/s")
        if fraction and total and speed and fraction < 1:
            texts.append(f"about {format_duration((total - self.done) / speed)} left")
        return ", ".join(texts)


class _PaceMeter:
    """Keeps a pace and tells `shown` of every change."""

    def __init__(self, shown: Callable[[Pace], None]) -> None:
        self.pace = Pace(started=time.monotonic())
        self._shown = shown

    def start(self, total: int | None, unit: str, *, done: int = 0) -> None:
        self.pace = Pace(unit, total, done, before=done, started=time.monotonic())
        self._shown(self.pace)

    def at(self, share: float) -> None:
        self.pace.share = share
        self._shown(self.pace)

    def advance(self, count: int = 1) -> None:
        self.pace.done += count
        self._shown(self.pace)


class BarProgress:
    """A bar per stage on stderr with what is done, how fast it goes, how long it took, and what is left."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """Show a bar while the stage runs; it stays on the screen when done."""
        bars = Bars(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description:10}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[told]}"),
            console=self._console,
        )
        task = bars.add_task(name, total=None, told="")

        def show(pace: Pace) -> None:
            completed = (pace.fraction or 0.0) * _STEPS
            total = None if pace.fraction is None else _STEPS
            bars.update(task, total=total, completed=completed, told=pace.told(time.monotonic()))

        with bars:
            yield _PaceMeter(show)
            bars.update(task, total=_STEPS, completed=_STEPS)

    def skipped(self, name: str) -> None:
        """One line for a stage that is done already."""
        self._console.print(f"✓ {name:10} done before", highlight=False)


class LineProgress:
    """A line a minute while a stage runs, and one at the end of a stage that had any, for a log."""

    def __init__(self, out: TextIO | None = None, *, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        self._out = out or sys.stderr
        self._seconds = seconds

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """Tell how the stage is going, also where it reports nothing for a while."""
        meter = _PaceMeter(lambda pace: None)
        started, ended = time.monotonic(), threading.Event()

        def tell() -> None:
            while not ended.wait(self._seconds):
                self._print(name, meter.pace.told(time.monotonic()), started)

        thread = threading.Thread(target=tell, name=f"progress-{name}", daemon=True)
        thread.start()
        try:
            yield meter
            if time.monotonic() - started >= self._seconds:
                self._print(name, f"done, {meter.pace.told(time.monotonic())}", started)
        finally:
            ended.set()
            thread.join()

    def skipped(self, name: str) -> None:
        """Nothing to show: the report has it."""

    def _print(self, name: str, told: str, started: float) -> None:
        self._out.write(f"{name:10} after {format_duration(time.monotonic() - started)}: {told}\n")
        self._out.flush()


def default_progress() -> Progress:
    """Bars when stderr is a terminal, lines otherwise."""
    return BarProgress() if sys.stderr.isatty() else LineProgress()


def format_duration(seconds: float) -> str:
    """For example "1 h 05 min"."""
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"

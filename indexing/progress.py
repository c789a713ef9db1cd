"""How long work reports: a protocol, a silent implementation and progress bars for a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text


class Meter(Protocol):
    """The progress of one stage."""

    def start(self, total: int | None, unit: str, *, done: int = 0) -> None:
        """Announce the amount of work in `unit`s; `done` of it was finished in an earlier run."""

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

    def advance(self, count: int = 1) -> None:
        """Nothing to show."""


class SilentProgress:
    """Reports nothing: for scripts, tests and output that is not a terminal."""

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """A silent meter."""
        yield SilentMeter()

    def skipped(self, name: str) -> None:
        """Nothing to show."""


class BarProgress:
    """A bar per stage on stderr with count, rate, elapsed time and time left."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """Show a bar while the stage runs; it stays on the screen when done."""
        bars = Bars(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description:10}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )
        with bars:
            yield _BarMeter(bars, bars.add_task(name, total=None))

    def skipped(self, name: str) -> None:
        """One line for a stage that is done already."""
        self._console.print(f"✓ {name:10} done before", highlight=False)


class _BarMeter:
    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def start(self, total: int | None, unit: str, *, done: int = 0) -> None:
        self._bars.reset(self._task, total=total, completed=done, unit=unit)

    def advance(self, count: int = 1) -> None:
        self._bars.advance(self._task, count)


class RateColumn(ProgressColumn):
    """Units per second over the last half minute."""

    def render(self, task: Task) -> Text:
        """For example "1,234 tables/s"."""
        speed = task.finished_speed or task.speed
        unit = task.fields.get("unit", "")
        if speed is None:
            return Text(f"- {unit}/s")
        return Text(f"{speed:,.0f} {unit}/s" if speed >= 10 else f"{speed:.2f} {unit}/s")


def default_progress() -> Progress:
    """Bars when stderr is a terminal, silence otherwise."""
    return BarProgress() if sys.stderr.isatty() else SilentProgress()

"""What a server knows of a question under way: its deadline, whether anybody still waits, and its stages.

The engine's stages are wrapped (`watched`), so that a question whose client is gone ends before its next stage.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from helios.retrieval.state import SearchState, Stage

_current: "ContextVar[Watch | None]" = ContextVar("watch", default=None)


class Abandoned(Exception):
    """Nobody waits for the answer any more."""


class ClientGone(Exception):
    """The client closed the connection before it had its reply."""


class Watch:
    """One question: threads that work on it and the event loop share it."""

    def __init__(self, seconds: float, *, on_stage: Callable[[str], None] | None = None) -> None:
        self.arrived = time.monotonic()
        self.deadline = self.arrived + seconds
        self.queue_ms = 0.0
        self.left_out: tuple[str, ...] = ()
        self.stages: list[tuple[str, float]] = []
        """The stages that began, with the instants of time.monotonic()."""
        self._on_stage = on_stage
        self._cancelled = threading.Event()

    def started(self) -> None:
        """Its turn has come: what came before was waiting."""
        self.queue_ms = (time.monotonic() - self.arrived) * 1e3

    def cancel(self) -> None:
        """Nobody waits any more."""
        self._cancelled.set()

    def seconds_left(self) -> float:
        """Seconds to the deadline, 0 if it has passed."""
        return max(0.0, self.deadline - time.monotonic())

    def elapsed_ms(self) -> float:
        """Milliseconds since the question came."""
        return (time.monotonic() - self.arrived) * 1e3

    def stage(self, name: str) -> None:
        """A stage begins; Abandoned where nobody waits."""
        if self._cancelled.is_set():
            raise Abandoned
        self.stages.append((name, time.monotonic()))
        if self._on_stage is not None:
            self._on_stage(name)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """The stages that this thread runs within the block report to the watch."""
    token = _current.set(watch)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True, slots=True)
class WatchedStage:
    """A stage that reports when it begins, and what it left out."""

    stage: Stage

    @property
    def name(self) -> str:
        """The stage's own."""
        return self.stage.name

    @property
    def depth(self) -> int:
        """The stage's own."""
        return self.stage.depth

    def run(self, state: SearchState) -> SearchState:
        """The stage's own."""
        watch = _current.get()
        if watch is None:
            return self.stage.run(state)
        watch.stage(self.name)
        state = self.stage.run(state)
        watch.left_out = state.left_out
        return state


def watched(stages: Sequence[Stage]) -> Iterable[Stage]:
    """For `stages=` of `Engine.open`."""
    return [WatchedStage(stage) for stage in stages]

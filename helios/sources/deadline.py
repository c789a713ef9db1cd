"""Work of this process that cannot be stopped, waited for no longer than it may take."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from threading import Semaphore, Thread
from typing import TypeVar

from helios.errors import QueryTimeout

Result = TypeVar("Result")


class Background:
    """At most `threads` pieces of work at the same time, in threads that hold up nobody, not even the process's end.

    A pool of `concurrent.futures` would be waited for when the process ends, however late its work is.
    """

    def __init__(self, threads: int, *, name: str) -> None:
        self._slots = Semaphore(threads)
        self._name = name

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        """Start a piece of work, or have it wait for one to end; work that was cancelled meanwhile is not begun."""
        future: Future[Result] = Future()

        def run() -> None:
            with self._slots:
                if future.set_running_or_notify_cancel():
                    _settle(future, work)

        Thread(target=run, name=self._name, daemon=True).start()
        return future


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """What `work` gives or raises; QueryTimeout after `seconds`.

    Late work goes on in its thread until it is done; nobody waits for it, not even the process at its end.
    """
    future = Background(1, name="within").submit(work)
    try:
        return future.result(seconds)
    except FutureTimeout:
        if future.done():
            raise
        raise QueryTimeout(seconds) from None


def _settle(future: "Future[Result]", work: Callable[[], Result]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 (raised again in the thread that waits)
        future.set_exception(error)

"""Work of this process that cannot be stopped, waited for no longer than it may take."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from threading import Thread
from typing import TypeVar

from helios.errors import QueryTimeout

Result = TypeVar("Result")


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """What `work` gives or raises; QueryTimeout after `seconds`.

    Late work goes on in its thread until it is done; nobody waits for it, not even the process at its end.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised again in the thread that waits)
            future.set_exception(error)

    Thread(target=run, name="within", daemon=True).start()
    try:
        return future.result(seconds)
    except FutureTimeout:
        if future.done():
            raise
        raise QueryTimeout(seconds) from None

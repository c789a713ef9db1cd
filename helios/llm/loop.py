"""An event loop in a thread of its own, for calls that many threads wait for."""

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

_CLOSING_SECONDS = 5.0
Value = TypeVar("Value")


class EventLoop:
    """Runs coroutines for other threads; `slots` limits how many calls are under way."""

    def __init__(self, *, slots: int) -> None:
        self.slots = asyncio.Semaphore(slots)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="helios-llm", daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether it can run anything; False after `close` and in the child of a fork."""
        return self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Wait for a coroutine; concurrent.futures.CancelledError if the loop is closed meanwhile."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # no effect on a finished one; ends the calls of an interrupted wait

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel what runs, do the last thing and end the thread."""
        winding_up = asyncio.run_coroutine_threadsafe(self._wind_up(last), self._loop)
        try:
            winding_up.result(_CLOSING_SECONDS)
        except TimeoutError:
            log.warning("calls of the language model did not end in %.0f s", _CLOSING_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSING_SECONDS)
        self._loop.close()

    async def _wind_up(self, last: Coroutine[Any, Any, None]) -> None:
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await last
        await self._loop.shutdown_default_executor()

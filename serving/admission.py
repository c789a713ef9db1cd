"""Who may work now: as many questions as there are permits, a bounded queue, and a refusal beyond it.

Everything here runs on the event loop; the work itself runs in threads. A permit is held until its thread ends, also
where the client is gone: no more threads work than there are permits.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TypeVar

from serving.problems import Problem
from serving.watch import Watch

Result = TypeVar("Result")
MEMORY = 0.9
"""How much of the mean duration of a question stays when the next one has ended."""
FIRST_GUESS = 0.5
"""Seconds that a question is taken to last before one has ended."""


class Rank(StrEnum):
    """Single questions go before those of a batch."""

    SINGLE = "single"
    BATCH = "batch"


class Admission:
    """Permits for work in threads; `queue` single questions may wait for one."""

    def __init__(self, *, permits: int, queue: int, name: str = "question") -> None:
        self.permits = permits
        self.queue = queue
        self.pool = ThreadPoolExecutor(permits, thread_name_prefix=name)
        self.waiting: dict[Rank, deque[asyncio.Future[None]]] = {rank: deque() for rank in Rank}
        self.free = permits
        self.mean_seconds = FIRST_GUESS
        self.measured = False
        """Whether a question has ended, so that the mean is more than a guess."""

    @property
    def working(self) -> int:
        """Permits that are held."""
        return self.permits - self.free

    async def run(
        self, work: Callable[[], Result], watch: Watch, *, rank: Rank = Rank.SINGLE, grace: float = 5.0
    ) -> Result:
        """The result of work in a thread; Problem `busy` or `deadline`. Cancelling the call cancels the watch."""
        await self._permit(watch, rank)
        started = time.monotonic()
        future = asyncio.get_running_loop().run_in_executor(self.pool, work)
        future.add_done_callback(lambda _: self._ended(future, started))
        try:
            done, _ = await asyncio.wait({future}, timeout=watch.seconds_left() + grace)
        except asyncio.CancelledError:
            watch.cancel()
            raise
        if not done:
            watch.cancel()
            raise Problem("deadline")
        return future.result()

    def close(self) -> None:
        """No more work; what runs ends by itself."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    async def _permit(self, watch: Watch, rank: Rank) -> None:
        """Wait for a permit, in the order of ranks and then of arrival.

        A question whose turn will come after its deadline, as things go, is refused at once: waiting would be in vain.
        """
        if self.free and not any(self.waiting.values()):
            self.free -= 1
            watch.started()
            return
        line = self.waiting[rank]
        too_late = self.measured and len(line) * self.mean_seconds / self.permits > watch.seconds_left()
        if rank is Rank.SINGLE and (len(line) >= self.queue or too_late):
            raise Problem("busy", headers={"Retry-After": str(self.retry_after())})
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            await asyncio.wait({turn}, timeout=watch.seconds_left())
        except asyncio.CancelledError:
            self._give_up(turn, line)
            raise
        if not turn.done():
            self._give_up(turn, line)
            raise Problem("deadline", "no place became free in time", headers={"Retry-After": str(self.retry_after())})
        watch.started()

    def retry_after(self) -> int:
        """Whole seconds until the queue has probably moved on, from 1 to 60."""
        ahead = sum(map(len, self.waiting.values())) + self.working
        return min(60, max(1, math.ceil(ahead * self.mean_seconds / self.permits)))

    def _give_up(self, turn: "asyncio.Future[None]", line: "deque[asyncio.Future[None]]") -> None:
        if turn.done():
            self._next()  # it had just been given the permit
        else:
            line.remove(turn)

    def _ended(self, future: "asyncio.Future[Result]", started: float) -> None:
        """A thread is free again; what it raised is nobody's news if nobody waits for it."""
        if not future.cancelled():
            future.exception()
        self.measured = True
        self.mean_seconds = MEMORY * self.mean_seconds + (1 - MEMORY) * (time.monotonic() - started)
        self._next()

    def _next(self) -> None:
        """Hand a permit to the next in line."""
        for rank in Rank:
            if self.waiting[rank]:
                self.waiting[rank].popleft().set_result(None)
                return
        self.free += 1

"""Who may work now: as many questions as there are permits, a bounded queue, and a refusal beyond it.

Everything here runs on the event loop; the work itself runs in threads. A permit is held until its thread ends, also
where the client is gone: no more threads work than there are permits. While a thread waits for a language model its
permit goes to the next question, and the thread is first in line for another one when the model has replied.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from threading import BoundedSemaphore
from typing import TypeVar

from helios.llm.client import elsewhere
from serving.problems import Problem
from serving.watch import Watch

Result = TypeVar("Result")
MEMORY = 0.9
"""How much of the mean duration of a question stays when the next one has ended."""
FIRST_GUESS = 0.5
"""Seconds that a question is taken to last before one has ended."""
ELSEWHERE = 32
"""Questions that may wait for a language model beside those that work; further ones keep their permits."""


class Rank(StrEnum):
    """Single questions go before those of a batch."""

    SINGLE = "single"
    BATCH = "batch"


@dataclass(slots=True)
class Permit:
    """The right of one question to work, which its thread may lend to others."""

    started: float
    """When it was given, as time.monotonic() says; later by what was spent elsewhere."""
    held: bool = True


class Admission:
    """Permits for work in threads; `queue` single questions may wait for one."""

    def __init__(self, *, permits: int, queue: int, name: str = "question") -> None:
        self.permits = permits
        self.queue = queue
        self.pool = ThreadPoolExecutor(permits + ELSEWHERE, thread_name_prefix=name)
        self.waiting: dict[Rank, deque[asyncio.Future[None]]] = {rank: deque() for rank in Rank}
        self.returning: deque[asyncio.Future[None]] = deque()
        """Questions that a language model has replied to, before all others."""
        self._elsewhere = BoundedSemaphore(ELSEWHERE)
        self.free = permits
        self.mean_seconds = FIRST_GUESS
        self.measured = False
        """Whether a question has ended, so that the mean is more than a guess."""

    @property
    def full(self) -> bool:
        """Whether a single question that came now would be refused."""
        return not self.free and len(self.waiting[Rank.SINGLE]) >= self.queue

    @property
    def working(self) -> int:
        """Permits that are held."""
        return self.permits - self.free

    async def run(
        self, work: Callable[[], Result], watch: Watch, *, rank: Rank = Rank.SINGLE, grace: float = 5.0
    ) -> Result:
        """The result of work in a thread; Problem `busy` or `deadline`. Cancelling the call cancels the watch."""
        await self._permit(watch, rank)
        permit, loop = Permit(time.monotonic()), asyncio.get_running_loop()

        def lending() -> Result:
            with elsewhere(lambda: self._lent(permit, watch, loop)):
                return work()

        future = loop.run_in_executor(self.pool, lending)
        future.add_done_callback(lambda _: self._ended(future, permit))
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
            raise self.refusal()
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

    def refusal(self) -> Problem:
        """What a question beyond the queue is told."""
        return Problem("busy", headers={"Retry-After": str(self.retry_after())})

    def retry_after(self) -> int:
        """Whole seconds until the queue has probably moved on, from 1 to 60."""
        ahead = sum(map(len, self.waiting.values())) + self.working
        return min(60, max(1, math.ceil(ahead * self.mean_seconds / self.permits)))

    @contextmanager
    def _lent(self, permit: Permit, watch: Watch, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """In the thread of a question: its permit goes to the next one for the time of the block.

        Where none comes back before the question's deadline, and where the server is closing, it goes on without: it
        has little left to do.
        """
        if not permit.held or not self._elsewhere.acquire(blocking=False):
            yield
            return
        left, permit.held = time.monotonic(), False
        try:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._next)
            yield
        finally:
            self._elsewhere.release()
            permit.started += time.monotonic() - left
            permit.held = self._given_back(watch, loop)

    def _given_back(self, watch: Watch, loop: asyncio.AbstractEventLoop) -> bool:
        """In the thread of a question: whether a permit came; this waits as long as the loop runs, so none is lost."""
        coming = self._back(watch.seconds_left())
        try:
            back = asyncio.run_coroutine_threadsafe(coming, loop)
        except RuntimeError:  # the loop is closed
            coming.close()
            return False
        while True:
            try:
                return back.result(1.0)
            except CancelledError:
                return False
            except TimeoutError:
                if not loop.is_running():
                    return False

    async def _back(self, seconds: float) -> bool:
        """Whether a permit came within these seconds."""
        if self.free:
            self.free -= 1
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.returning.append(turn)
        try:
            await asyncio.wait({turn}, timeout=seconds)
        finally:
            if not turn.done():
                self.returning.remove(turn)
        return turn.done()

    def _give_up(self, turn: "asyncio.Future[None]", line: "deque[asyncio.Future[None]]") -> None:
        if turn.done():
            self._next()  # it had just been given the permit
        else:
            line.remove(turn)

    def _ended(self, future: "asyncio.Future[Result]", permit: Permit) -> None:
        """A thread is free again; what it raised is nobody's news if nobody waits for it."""
        if not future.cancelled():
            future.exception()
        self.measured = True
        self.mean_seconds = MEMORY * self.mean_seconds + (1 - MEMORY) * (time.monotonic() - permit.started)
        if permit.held:
            self._next()

    def _next(self) -> None:
        """Hand a permit to the next in line."""
        for line in (self.returning, *(self.waiting[rank] for rank in Rank)):
            if line:
                line.popleft().set_result(None)
                return
        self.free += 1

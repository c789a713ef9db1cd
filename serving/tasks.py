"""Changes of indexes under way: one at a time, in the order in which they came, in a process of their own.

A task is done when the served index has taken its snapshot: questions that come later see what it changed. Tasks live
as long as the server: those that it has not begun when it leaves are lost, and the log says which. The snapshot of a
task that was done stays, whatever comes.
"""

import asyncio
import logging
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from serving.indexes import ServedIndexes
from serving.keys import Access, Scope
from serving.metrics import Metrics
from serving.problems import Problem
from serving.settings import Limits
from serving.writer import OperationFailed, Writer, can_write, problem_of_failure

log = logging.getLogger(__name__)
Json = dict[str, Any]
SPOOLED = "documents.jsonl"


class State(StrEnum):
    """Where a task is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing will become of it any more."""
        return self in (State.DONE, State.FAILED, State.CANCELLED)


@dataclass(slots=True, eq=False)
class Task:
    """One change, from its acceptance to its end."""

    id: str
    operation: str
    index: str
    """As the client called it."""
    served: str
    """The index that it is about: what an alias named when the task was accepted."""
    arguments: Json
    key_id: str
    created: str
    state: State = State.QUEUED
    stage: str | None = None
    started: str | None = None
    ended: str | None = None
    result: Json | None = None
    problem: Json | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    work: "asyncio.Task[Json] | None" = None

    def describe(self) -> Json:
        """As plain JSON data."""
        names = ("id", "operation", "index", "state", "stage", "created", "started", "ended", "result", "problem")
        return {name: getattr(self, name) for name in names}


class Tasks:
    """The tasks of a server; belongs to the event loop."""

    def __init__(self, indexes: ServedIndexes, writer: Writer, metrics: Metrics, limits: Limits) -> None:
        self.indexes = indexes
        self.metrics = metrics
        self.limits = limits
        self.accepting = can_write()
        self._writer = writer
        self._tasks: dict[str, Task] = {}
        self._waiting: asyncio.Queue[Task] = asyncio.Queue()
        self._spool: Path | None = None

    def add(self, operation: str, index: str, arguments: Json, access: Access, *, hold: bool = False) -> Task:
        """Accept a task; Problem `busy` where too many wait. With `hold` it waits for `release`."""
        if not self.accepting:
            raise Problem("not_ready", "it takes no changes: it is leaving, or it was installed without `indexing`")
        if sum(not task.state.ended for task in self._tasks.values()) >= self.limits.tasks:
            raise Problem("busy", f"{self.limits.tasks} tasks wait already", headers={"Retry-After": "5"})
        served = self.indexes.served(index)
        task = Task(uuid.uuid4().hex, operation, index, served, arguments, access.key_id, _now())
        self._tasks[task.id] = task
        self._forget()
        if not hold:
            self._waiting.put_nowait(task)
        return task

    async def add_file(self, operation: str, index: str, body: bytes, access: Access) -> Task:
        """The same, where the documents are JSON lines: they are kept in a file until the task has ended."""
        task = self.add(operation, index, {}, access, hold=True)
        try:
            task.arguments["file"] = str(await asyncio.to_thread(self._spooled, task, body))
        except OSError as error:
            log.error("documents of a task could not be kept: %s", error)
            self._end(task, State.FAILED, problem=Problem("internal"))
            raise Problem("internal") from None
        self._waiting.put_nowait(task)
        return task

    def within(self, access: Access) -> list[Task]:
        """The tasks of indexes within reach, newest first."""
        return [task for task in reversed(self._tasks.values()) if access.may_ask(task.index)]

    def find(self, access: Access, task_id: str) -> Task:
        """One of them; Problem `task_not_found`."""
        task = self._tasks.get(task_id)
        if task is None or not access.may_ask(task.index):
            raise Problem("task_not_found")
        return task

    def cancel(self, access: Access, task_id: str) -> Task:
        """End a task that has not ended; Problem `forbidden` where it is another key's, `task_ended`."""
        task = self.find(access, task_id)
        if task.key_id != access.key_id and Scope.ADMIN not in access.scopes:
            raise Problem("forbidden", "it is the task of another key; that needs the scope admin")
        if task.state.ended:
            raise Problem("task_ended", f"it is {task.state}")
        if task.work is not None:
            task.work.cancel()
        else:
            self._end(task, State.CANCELLED)
        return task

    async def wait(self, task: Task, seconds: float) -> Task:
        """The task when it has ended, or after so many seconds."""
        if seconds > 0 and not task.state.ended:
            try:
                async with asyncio.timeout(seconds):
                    await task.over.wait()
            except TimeoutError:
                pass
        return task

    async def run(self) -> None:
        """Work on tasks as they come, until cancelled."""
        while True:
            task = await self._waiting.get()
            if not task.state.ended:
                await self._run(task)

    async def close(self) -> None:
        """Take no more tasks, give the one that runs its time to end, and let go of the others."""
        self.accepting = False
        open_tasks = [task for task in self._tasks.values() if not task.state.ended]
        for task in open_tasks:
            if task.state is State.QUEUED:
                log.warning("task %s (%s of %s) was not begun and is lost", task.id, task.operation, task.served)
                self._end(task, State.CANCELLED)
        for task in open_tasks:
            await self.wait(task, self.limits.drain_seconds)
        await self._writer.close()
        if self._spool is not None:
            shutil.rmtree(self._spool, ignore_errors=True)

    async def _run(self, task: Task) -> None:
        task.state, task.started = State.RUNNING, _now()
        folder = self.indexes.folders[task.served]

        def told(stage: str) -> None:
            task.stage = stage

        task.work = asyncio.create_task(self._writer.run(task.operation, folder, task.arguments, told))
        try:
            await asyncio.wait({task.work})
        except asyncio.CancelledError:
            task.work.cancel()
            raise
        if task.work.cancelled():
            self._end(task, State.CANCELLED)
            return
        match task.work.exception():
            case None:
                await self._finish(task, task.work.result())
            case OperationFailed() as error:
                log.warning("task %s failed: %s", task.id, error)
                self._end(task, State.FAILED, problem=problem_of_failure(error, dict(self._hidden(task))))
            case error:
                log.error("task %s failed", task.id, exc_info=error)
                self._end(task, State.FAILED, problem=Problem("internal"))

    async def _finish(self, task: Task, result: Json) -> None:
        """Have the change served, then say that it is done."""
        task.stage = "serve"
        try:
            generation = await asyncio.to_thread(self.indexes.refreshed, task.served)
        except Exception as error:  # noqa: BLE001 - the change stands whatever becomes of serving it; it is logged
            log.error("task %s is done, but its snapshot cannot be served", task.id, exc_info=error)
            self._end(task, State.FAILED, problem=Problem("index_unusable"))
            return
        task.result = result | {"served_generation": generation}
        self._end(task, State.DONE)

    def _end(self, task: Task, state: State, *, problem: Problem | None = None) -> None:
        task.state, task.ended, task.stage = state, _now(), None
        task.problem = None if problem is None else problem.document(task.id)
        self.metrics.tasks.labels(task.operation, state.value).inc()
        if "file" in task.arguments:
            Path(task.arguments["file"]).unlink(missing_ok=True)
        task.arguments = {}
        task.over.set()

    def _hidden(self, task: Task) -> Iterator[tuple[str, str]]:
        """Paths that are the server's own, and what stands for them."""
        if "file" in task.arguments:
            yield task.arguments["file"], SPOOLED
            yield Path(task.arguments["file"]).name, SPOOLED
        for name in ("folder", "out"):
            if name in task.arguments:
                yield str(task.arguments[name]), name
        yield str(self.indexes.folders[task.served].resolve()), task.index

    def _spooled(self, task: Task, body: bytes) -> Path:
        if self._spool is None:
            self._spool = Path(tempfile.mkdtemp(prefix="helios-documents-"))
        path = self._spool / f"{task.id}.jsonl"
        path.write_bytes(body)
        return path

    def _forget(self) -> None:
        """The oldest that have ended, beyond those that are kept."""
        surplus = len(self._tasks) - self.limits.tasks_kept
        for task in [task for task in self._tasks.values() if task.state.ended][: max(0, surplus)]:
            del self._tasks[task.id]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

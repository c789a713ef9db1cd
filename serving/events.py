"""An answer as server-sent events: `stage`, `evidence`, `answer`; or `error`, a problem, in place of the answer."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.responses import Response

from serving.problems import Problem, encoded, problem_of
from serving.questions import Asked
from serving.state import Serving

log = logging.getLogger(__name__)
PING_SECONDS = 10.0
"""Between comments that keep an idle connection open."""
Event = tuple[str, Any]


async def ask_events(serving: Serving, asked: Asked, request_id: str, *, seconds: float | None) -> Response:
    """The stream. What is refused before any work (a full queue, a filter that cannot be read) is a plain problem."""
    loop, events = asyncio.get_running_loop(), asyncio.Queue[Event]()

    def told(event: str, data: Any) -> None:
        loop.call_soon_threadsafe(events.put_nowait, (event, data))

    watch = serving.questions.watch(seconds, told)
    task = asyncio.create_task(serving.questions.ask(asked, watch, told=told))
    await asyncio.sleep(0)  # it takes its permit or its place in the queue, or is refused
    await asyncio.sleep(0)
    if task.done() and task.exception() is not None:
        raise task.exception() or Problem("internal")
    return EventSourceResponse(_stream(task, events, request_id), headers={"Cache-Control": "no-store"})


async def _stream(
    task: "asyncio.Task[dict[str, Any]]", events: "asyncio.Queue[Event]", request_id: str
) -> AsyncIterator[bytes]:
    """Events as they come, then the last one; the task is cancelled when the client goes."""
    following = asyncio.create_task(events.get())
    try:
        while not (task.done() and events.empty() and not following.done()):
            await asyncio.wait({following, task}, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                yield _event(*following.result())
                following = asyncio.create_task(events.get())
                await asyncio.sleep(0)
            elif not task.done():
                yield KEEPALIVE_COMMENT
        yield _last(task, request_id)
    finally:
        following.cancel()
        task.cancel()


def _last(task: "asyncio.Task[dict[str, Any]]", request_id: str) -> bytes:
    """The answer, or the problem."""
    try:
        return _event("answer", {"request_id": request_id} | task.result())
    except Exception as error:  # noqa: BLE001 - the stream has begun: an error can only be told in it; it is logged
        problem = problem_of(error)
        if problem.code in ("internal", "index_unusable"):
            log.error("stream %s failed", request_id, exc_info=error)
        return _event("error", problem.document(request_id))


def _event(event: str, data: Any) -> bytes:
    return format_sse_event(event=event, data_str=encoded(data).decode())

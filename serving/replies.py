"""Replies of the routes: JSON, and work that ends when its client goes."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.responses import Response

from serving.problems import encoded, request_id_of
from serving.watch import ClientGone

Result = TypeVar("Result")


def web_address(url: str) -> str:
    """An address that data gave, where a browser may open it: `javascript:` and the like are none."""
    return url if url.startswith(("https://", "http://")) else ""


def json_reply(document: object, *, status: int = 200) -> Response:
    """JSON with its control characters escaped."""
    return Response(encoded(document), status, media_type="application/json")


def with_id(request: Request, document: dict[str, Any]) -> dict[str, Any]:
    """A document that names its request."""
    return {"request_id": request_id_of(request)} | document


def logged(request: Request, **fields: Any) -> None:
    """Fields for the log line of this request; `question` is left out unless the settings want it."""
    state = request.scope["state"]
    if "question" in fields:
        state["question"] = fields.pop("question")
    state.setdefault("logged", {}).update(fields)


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of the work; when the client closes its connection first, the work is cancelled: ClientGone."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

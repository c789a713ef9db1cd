"""OpenAI's newer shape, /v1/responses: what /v1/chat/completions gives, as items and as a stream of named events.

Nothing is kept: a request that refers to an earlier response is refused, and `store` is false in every reply.
"""

import time
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from serving.access import ServingOf, needs
from serving.keys import Access, Scope
from serving.problems import Problem, encoded, request_id_of
from serving.replies import json_reply
from serving.routes.chat import Said, said_to
from serving.schemas import ResponseReply

router = APIRouter(prefix="/v1", tags=["OpenAI's shapes"])
Json = dict[str, Any]
TEXTS = ("input_text", "text", "output_text")


class InputItem(BaseModel):
    """A message; what else it has, and items of other kinds, are passed over."""

    type: str = Field(default="message", max_length=100)
    role: str = Field(default="", max_length=50)
    content: str | list[Json] | None = None

    @property
    def text(self) -> str:
        """Its words."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") in TEXTS)
        return self.content or ""


class ResponsesRequest(BaseModel):
    """A request as OpenAI's clients send it; settings of a language model's sampling are passed over."""

    model: str = Field(max_length=300, examples=["helios/demo-index"])
    input: str | list[InputItem] = Field(max_length=100_000)
    stream: bool = False
    previous_response_id: str | None = Field(default=None, max_length=300)
    background: Literal[False] | None = None
    metadata: dict[str, str] | None = Field(default=None, max_length=16)

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "helios", "input": "Which is the longest river of Europe?"}]}
    )

    @property
    def question(self) -> str:
        """The last words of a user."""
        if isinstance(self.input, str):
            return self.input.strip()
        return next((item.text.strip() for item in reversed(self.input) if item.role == "user"), "")


@router.post(
    "/responses",
    response_model=ResponseReply,
    summary="Answer the last input of a user",
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def respond(
    body: ResponsesRequest, request: Request, serving: ServingOf, access: Annotated[Access, needs(Scope.ASK)]
) -> Response:
    """The answer as one message with `url_citation` annotations; with `stream` as the events of OpenAI's clients."""
    if body.previous_response_id is not None:
        raise Problem("invalid", "previous_response_id: responses are not kept; send the question itself")
    said = await said_to(body.question, body.model, "input", request, serving, access)
    response = _response(body, request_id_of(request), said)
    if not body.stream:
        return json_reply(response)
    return EventSourceResponse(iter(list(_events(response))), headers={"Cache-Control": "no-store"})


def _response(body: ResponsesRequest, request_id: str, said: Said) -> Json:
    flat = [{"type": "url_citation", **one["url_citation"]} for one in said.annotations]
    part = {"type": "output_text", "text": said.content, "annotations": flat, "logprobs": []}
    message = {
        "id": f"msg_{request_id}", "type": "message", "status": "completed", "role": "assistant", "content": [part]
    }  # fmt: skip
    return {
        "id": f"resp_{request_id}", "object": "response", "created_at": int(time.time()), "status": "completed",
        "model": body.model, "output": [message], "error": None, "incomplete_details": None, "instructions": None,
        "metadata": body.metadata or {}, "parallel_tool_calls": False, "tool_choice": "none", "tools": [],
        "temperature": None, "top_p": None, "previous_response_id": None, "store": False, "background": False,
        "text": {"format": {"type": "text"}}, "truncation": "disabled",
        "usage": {
            "input_tokens": said.tokens, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": said.tokens,
        },
    }  # fmt: skip


def _events(response: Json) -> Iterator[bytes]:
    """The events of a stream, numbered."""
    for number, (name, data) in enumerate(_named(response)):
        document = {"type": name, "sequence_number": number, **data}
        yield format_sse_event(event=name, data_str=encoded(document).decode())


def _named(response: Json) -> Iterator[tuple[str, Json]]:
    (message,) = response["output"]
    (part,) = message["content"]
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    place = {"item_id": message["id"], "output_index": 0, "content_index": 0}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    item = {**message, "status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": 0, "item": item}
    yield "response.content_part.added", {**place, "part": {**part, "text": "", "annotations": []}}
    for line in part["text"].splitlines(keepends=True):
        yield "response.output_text.delta", {**place, "delta": line, "logprobs": []}
    for number, annotation in enumerate(part["annotations"]):
        added = {**place, "annotation_index": number, "annotation": annotation}
        yield "response.output_text.annotation.added", added
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}
    yield "response.output_item.done", {"output_index": 0, "item": message}
    yield "response.completed", {"response": response}

"""OpenAI's shapes: /v1/models and /v1/chat/completions, where the model is HELIOS over an index.

The last message of the user is the question. The reply is the answer with the sentences and cells that say so, each an
annotation of the standard kind (`url_citation`). Requests of a chat program for itself (a title, tags) are answered
from what they hold: nothing is searched for them.
"""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from serving.access import ServingOf, chosen_index, names_within, needs, take
from serving.keys import Access, Scope
from serving.problems import Problem, encoded, request_id_of
from serving.questions import Asked
from serving.replies import json_reply, logged, web_address, while_connected
from serving.schemas import ChatReply, ModelJson, ModelsReply
from serving.state import Serving

router = APIRouter(prefix="/v1", tags=["OpenAI's shapes"])
NAME = "helios"
TASK = "### Task:"
"""What a chat program's requests for itself begin with (Open WebUI)."""
MOST_QUESTION = 2000
Json = dict[str, Any]


class Message(BaseModel):
    """A message of a chat; what else it has is passed over."""

    role: str = Field(max_length=50)
    content: str | list[Json] | None = None

    @property
    def text(self) -> str:
        """Its words."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")
        return self.content or ""


class StreamOptions(BaseModel):
    """What a stream has beside the answer."""

    include_usage: bool | None = False


class ChatRequest(BaseModel):
    """A request as OpenAI's clients send it; settings of a language model's sampling are passed over."""

    model: str = Field(max_length=300, examples=["helios/demo-index"])
    messages: list[Message] = Field(min_length=1, max_length=500)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=1, ge=1, le=1, description="One answer is given.")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "helios", "messages": [{"role": "user", "content": "Who designed Pascal?"}]}]
        }
    )


@router.get("/models", response_model=ModelsReply, summary="The indexes as models")
async def models(serving: ServingOf, access: Annotated[Access, needs(Scope.ASK)]) -> Response:
    """One model an index: `helios/NAME`."""
    return json_reply({"object": "list", "data": [_model(name) for name in names_within(serving, access)]})


@router.get("/models/{model:path}", response_model=ModelJson, summary="One index as a model")
async def model(model: str, serving: ServingOf, access: Annotated[Access, needs(Scope.ASK)]) -> Response:
    """The model of an index, `helios/NAME`; 404 for one that the key does not reach."""
    return json_reply(_model(_index(serving, access, model)))


def _model(name: str) -> Json:
    return {"id": f"{NAME}/{name}", "object": "model", "created": 0, "owned_by": NAME}


@router.post("/chat/completions", response_model=ChatReply, summary="Answer the last message of a chat")
async def complete(
    body: ChatRequest, request: Request, serving: ServingOf, access: Annotated[Access, needs(Scope.ASK)]
) -> Response:
    """The answer as a message of the assistant, also as a stream of chunks; a failure is never text of it."""
    question = next((one.text.strip() for one in reversed(body.messages) if one.role == "user"), "")
    said = await said_to(question, body.model, "messages", request, serving, access)
    head = {"id": f"chatcmpl-{request_id_of(request)}", "created": int(time.time()), "model": body.model}
    counted = body.stream_options is not None and bool(body.stream_options.include_usage)
    return _reply(head, said.content, said.annotations, said.tokens, stream=body.stream, counted=counted)


@dataclass(frozen=True, slots=True)
class Said:
    """What the assistant says, its citations as annotations, and the tokens of a language model."""

    content: str
    annotations: list[Json]
    tokens: int = 0


async def said_to(question: str, model: str, field: str, request: Request, serving: Serving, access: Access) -> Said:
    """What is said to the last words of a user; Problem `invalid` names the field that they came in."""
    index = _index(serving, access, model)
    if not question:
        raise Problem("invalid", f"{field}: there is no text of a user")
    if question.startswith(TASK):
        return Said(task_reply(question), [])
    if len(question) > MOST_QUESTION:
        raise Problem("invalid", f"{field}: the last one is the question, {MOST_QUESTION} characters at most")
    take(serving, access, 1)
    logged(request, index=index, question=question)
    work = serving.questions.ask(Asked(question, index), serving.questions.watch(None))
    found = await while_connected(request, work)
    content, annotations = written(found, str(request.base_url))
    return Said(content, annotations, found["tokens"])


def written(found: Json, base: str) -> tuple[str, list[Json]]:
    """An answer as a message, and its citations as annotations of the places that name them."""
    answer = found["answer"]
    if answer["abstained"]:
        return f"No answer: {answer['reason']}.", []
    passages = [edge["passage"] for edge in found["evidence"]["edges"] if edge["passage"]]
    urls = {passage["id"]: web_address(passage["url"]) for passage in passages}
    content, annotations = answer["text"], []
    if answer["explanation"]:
        content += f"\n\n{answer['explanation']}"
    content += "\n" if answer["citations"] else ""
    for number, citation in enumerate(answer["citations"], start=1):
        start = len(content) + 1
        content += f"\n[{number}] {citation['place']}: {citation['source']}"
        cited = {
            "start_index": start, "end_index": len(content), "title": citation["place"],
            "url": urls.get(citation["passage_id"]) or base + _address(citation, found["index"]),
        }  # fmt: skip
        annotations.append({"type": "url_citation", "url_citation": cited})
    return content, annotations


def task_reply(prompt: str) -> str:
    """What a chat program wants for itself, in the JSON that its prompt asks for, from the chat alone."""
    said = re.search(r"^\s*(?:USER|user|User):\s*(.+)$", prompt, re.MULTILINE)
    wanted: dict[str, Any] = {}
    for name, value in (
        ("title", said[1].strip()[:60] if said else "Chat"),
        ("tags", []),
        ("follow_ups", []),
        ("queries", []),
    ):
        if f'"{name}"' in prompt:
            wanted = {name: value}
            break
    return json.dumps(wanted, ensure_ascii=False)


def _index(serving: Serving, access: Access, model: str) -> str:
    if model == NAME:
        return chosen_index(serving, access, None)
    kind, slash, name = model.partition("/")
    if kind != NAME or not slash:
        raise Problem("index_not_found", "models are called helios/INDEX; GET /v1/models lists them")
    return chosen_index(serving, access, name)


def _address(citation: Json, index: str) -> str:
    if citation["segment"]:
        table, _, row = citation["segment"].rpartition("#")
        return "row?" + urlencode({"index": index, "table": table, "row": row})
    return "passage?" + urlencode({"index": index, "id": citation["passage_id"]})


def _reply(
    head: Json, content: str, annotations: list[Json], tokens: int, *, stream: bool, counted: bool
) -> Response:  # fmt: skip
    usage = {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}
    if stream:
        chunks = list(_chunks(head, content, annotations, usage if counted else None))
        return EventSourceResponse(iter(chunks), headers={"Cache-Control": "no-store"})
    message = {"role": "assistant", "content": content, "refusal": None, "annotations": annotations}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return json_reply(head | {"object": "chat.completion", "choices": [choice], "usage": usage})


def _chunks(head: Json, content: str, annotations: list[Json], usage: Json | None) -> Iterator[bytes]:
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": line} for line in content.splitlines(keepends=True)]
    deltas += [{"annotations": annotations}] if annotations else []
    for delta in [*deltas, {}]:
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
        chunk = head | {"object": "chat.completion.chunk", "choices": [choice]}
        yield format_sse_event(data_str=encoded(chunk).decode())
    if usage is not None:  # in a chunk of its own, without choices
        chunk = head | {"object": "chat.completion.chunk", "choices": [], "usage": usage}
        yield format_sse_event(data_str=encoded(chunk).decode())
    yield format_sse_event(data_str="[DONE]")

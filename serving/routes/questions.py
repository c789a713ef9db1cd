"""POST /v1/search, /v1/ask and /v1/batch."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from helios.errors import HeliosError
from serving.access import ServingOf, chosen_index, needs, take
from serving.admission import Rank
from serving.events import ask_events
from serving.keys import Access, Scope
from serving.problems import Problem, problem_of, request_id_of
from serving.questions import Asked
from serving.replies import json_reply, logged, while_connected, with_id
from serving.schemas import About, AskReply, AskRequest, BatchReply, BatchRequest, SearchReply, SearchRequest
from serving.state import Serving
from serving.watch import Watch

router = APIRouter(prefix="/v1", tags=["questions"])
STREAM = "text/event-stream"


@router.post("/search", response_model=SearchReply, summary="Rank evidence for a question")
async def search(
    body: SearchRequest, request: Request, serving: ServingOf,
    access: Annotated[Access, needs(Scope.SEARCH, questions=1)],
) -> Response:  # fmt: skip
    """Ranked edges, best first, a page at a time."""
    asked = asked_of(serving, access, body, body.question, explain=body.explain, limit=body.limit, cursor=body.cursor)
    logged(request, index=asked.index, question=asked.question)
    work = serving.questions.search(asked, serving.questions.watch(body.seconds))
    return json_reply(with_id(request, await while_connected(request, work)))


@router.post(
    "/ask",
    response_model=AskReply,
    summary="Answer a question with citations",
    responses={200: {"content": {STREAM: {"schema": {"type": "string"}}}}},
)
async def ask(
    body: AskRequest, request: Request, serving: ServingOf, access: Annotated[Access, needs(Scope.ASK, questions=1)]
) -> Response:
    """A short answer whose citations were checked, or an abstention that says why.

    As a stream the events are `stage`, `evidence`, `answer` (with its citations, the evidence in its last order, and
    all else that the JSON has), or `error` with a problem: an error is never text of an answer.
    """
    asked = asked_of(serving, access, body, body.question, limit=body.limit)
    logged(request, index=asked.index, question=asked.question)
    if body.stream or STREAM in request.headers.get("accept", ""):
        return await ask_events(serving, asked, request_id_of(request), seconds=body.seconds)
    work = serving.questions.ask(asked, serving.questions.watch(body.seconds))
    return json_reply(with_id(request, await while_connected(request, work)))


@router.post("/batch", response_model=BatchReply, summary="Many questions at once")
async def batch(
    body: BatchRequest, request: Request, serving: ServingOf, access: Annotated[Access, needs(Scope.SEARCH, Scope.ASK)]
) -> Response:
    """One result a question, in their order; `seconds` is for each of them, from its turn on."""
    limits = serving.settings.limits
    if Scope(body.kind) not in access.scopes:
        raise Problem("forbidden", f"it needs the scope {body.kind}")
    if len(body.questions) > limits.batch_questions:
        raise Problem("invalid", f"questions: at most {limits.batch_questions} in one batch")
    if serving.batches >= limits.batches:
        raise serving.admission.refusal()
    take(serving, access, len(body.questions))
    asked = [asked_of(serving, access, body, question, limit=body.limit) for question in body.questions]
    logged(request, index=asked[0].index, questions=len(asked))
    serving.batches += 1
    try:
        results = await while_connected(request, _all(serving, asked, body, request_id_of(request)))
    finally:
        serving.batches -= 1
    return json_reply(with_id(request, {"results": results}))


def asked_of(serving: Serving, access: Access, body: About, question: str, **more: Any) -> Asked:
    """A question as it will be asked, of an index within the caller's reach."""
    index = chosen_index(serving, access, body.index)
    return Asked(question, index, k=body.k, where=body.where, **more)


async def _all(serving: Serving, asked: Sequence[Asked], body: BatchRequest, request_id: str) -> list[dict[str, Any]]:
    """The results in order, as many under way as there are permits."""
    results: list[dict[str, Any]] = [{} for _ in asked]
    places = iter(range(len(asked)))

    async def work() -> None:
        for place in places:
            watch = serving.questions.watch(body.seconds)
            results[place] = await _one(serving, asked[place], body.kind, watch, request_id)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(serving.admission.permits, len(asked))):
            group.create_task(work())
    return results


async def _one(serving: Serving, asked: Asked, kind: str, watch: Watch, request_id: str) -> dict[str, Any]:
    questions = serving.questions
    try:
        if kind == "search":
            found = await questions.search(asked, watch, rank=Rank.BATCH)
        else:
            found = await questions.ask(asked, watch, rank=Rank.BATCH)
    except (Problem, HeliosError) as error:
        return problem_of(error).document(request_id)
    return {"request_id": request_id} | found

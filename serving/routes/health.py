"""Whether the server lives, whether it takes questions, and its metrics."""

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from serving.access import ServingOf, needs
from serving.keys import Access, Scope
from serving.metrics import CONTENT_TYPE
from serving.problems import Problem
from serving.replies import json_reply
from serving.schemas import AliveReply, ReadyReply

router = APIRouter(tags=["health"])
TEXT = {"text/plain": {"schema": {"type": "string"}}}


@router.get("/livez", response_model=AliveReply, summary="The process lives")
async def alive() -> Response:
    """Always 200."""
    return json_reply({"alive": True})


@router.get("/readyz", response_model=ReadyReply, summary="Questions are taken")
async def ready(request: Request, serving: ServingOf) -> Response:
    """200 when every index is open and warm; 503 before that, and from SIGTERM on."""
    if not serving.ready:
        raise Problem("not_ready", "leaving" if serving.draining else "starting")
    return json_reply({"ready": True})


@router.get("/metrics", summary="For Prometheus", responses={200: {"content": TEXT}}, response_class=Response)
async def metrics(serving: ServingOf, access: Annotated[Access, needs(Scope.ADMIN)]) -> Response:
    """Text format 0.0.4."""
    found, admission = serving.metrics, serving.admission
    for rank, line in admission.waiting.items():
        found.waiting.labels(rank.value).set(len(line))
    found.permits.labels("question").set(admission.permits)
    found.working.labels("question").set(admission.working)
    found.ready.set(serving.ready)
    for name in serving.indexes.names:
        with serving.indexes.lent(name) as index:
            found.snapshot.labels(name).set(index.generation)
            found.nodes.labels(name, "row").set(index.engine.index.segment_count)
            found.nodes.labels(name, "passage").set(index.engine.index.passage_count)
    return Response(found.text(), media_type=CONTENT_TYPE)

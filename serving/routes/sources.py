"""/v1/sources: registered databases, graphs and corpora, where the server was started with a file of them."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from serving.access import ServingOf, needs, take
from serving.keys import Access, Scope
from serving.problems import Problem
from serving.replies import json_reply, logged, while_connected, with_id
from serving.schemas import (
    AskSourcesReply,
    Body,
    CheckReply,
    QueryReply,
    Question,
    SourceSchemaJson,
    SourcesReply,
)
from serving.sources import ServedSources
from serving.state import Serving

router = APIRouter(prefix="/v1/sources", tags=["sources"])
Name = Annotated[str, Path(max_length=200)]
Looker = Annotated[Access, needs(Scope.SEARCH)]
Asker = Annotated[Access, needs(Scope.ASK)]
Admin = Annotated[Access, needs(Scope.ADMIN)]


class SourcesRequest(Body):
    """A question to the sources within reach."""

    question: Question = Field(examples=["What is the highest total of an invoice of Anna Berg?"])
    k: int | None = Field(default=None, ge=1, le=50, description="Sources that are asked, at most.")
    seconds: float | None = Field(default=None, gt=0, le=3600)

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"question": "How many invoices are there?"}]}
    )


class QueryRequest(Body):
    """A query in a source's own language; only what reads is run."""

    query: str = Field(min_length=1, max_length=20_000, examples=["SELECT count(*) FROM invoice"])
    seconds: float | None = Field(default=None, gt=0, le=3600)

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "SELECT count(*) FROM invoice"}]}
    )


@router.get("", response_model=SourcesReply, summary="The sources that you may ask")
async def list_sources(serving: ServingOf, access: Looker) -> Response:
    """Their names, kinds and languages."""
    return json_reply({"sources": await sources_of(serving).list(access)})


@router.post("/ask", response_model=AskSourcesReply, summary="Ask the sources in words")
async def ask_sources(body: SourcesRequest, request: Request, serving: ServingOf, access: Asker) -> Response:
    """The likeliest sources are asked, each in its language; the reply has every query with what became of it."""
    served = sources_of(serving)
    take(serving, access, 1)
    logged(request, question=body.question)
    return json_reply(
        with_id(request, await while_connected(request, served.ask(access, body.question, body.k, body.seconds)))
    )


@router.get("/{name}", response_model=SourceSchemaJson, summary="What a source holds")
async def describe_source(name: Name, serving: ServingOf, access: Looker) -> Response:
    """Its schema in words, cut to 1,500 tokens."""
    return json_reply(await sources_of(serving).describe(access, name))


@router.post("/{name}/query", response_model=QueryReply, summary="Run a query that reads")
async def query_source(name: Name, body: QueryRequest, request: Request, serving: ServingOf, access: Asker) -> Response:
    """Columns and rows; `truncated` says which cap ended them. The guard refuses whatever does not read."""
    served = sources_of(serving)
    served.find(access, name)
    take(serving, access, 1)
    logged(request, source=name, question=body.query)
    found = await while_connected(request, served.query(access, name, body.query, body.seconds))
    return json_reply(with_id(request, found))


@router.post("/{name}/check", response_model=CheckReply, summary="Whether a source can be used")
async def check_source(name: Name, request: Request, serving: ServingOf, access: Admin) -> Response:
    """It is opened and one thing is read."""
    return json_reply(with_id(request, await sources_of(serving).check(access, name, refresh=False)))


@router.post("/{name}/refresh", response_model=CheckReply, summary="Read a source's description again")
async def refresh_source(name: Name, request: Request, serving: ServingOf, access: Admin) -> Response:
    """For data that have changed."""
    return json_reply(with_id(request, await sources_of(serving).check(access, name, refresh=True)))


def sources_of(serving: Serving) -> ServedSources:
    """The server's sources; Problem where it was started without."""
    if serving.sources is None:
        raise Problem("source_not_found", "the server was started without --sources")
    return serving.sources

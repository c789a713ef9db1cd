"""The pages of sources: asked together in words, or one of them by a query that can be edited and run again.

A query is only run by a form of the page: it has to send the token that the form was made with, and it passes the
source's guard as every other query does.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from serving.access import ServingOf, needs, take
from serving.keys import Access, Scope
from serving.pages.forms import form_of
from serving.pages.rendering import rendered, token_of
from serving.problems import Problem, problem_of, request_id_of
from serving.replies import json_reply, logged, while_connected, with_id
from serving.routes.sources import sources_of
from serving.state import Serving

router = APIRouter(include_in_schema=False)
MOST_ROWS = 200
"""Rows of a query that the page shows."""
VERDICTS = {
    "query_rejected": "refused: it never reached the source",
    "query_failed": "passed, and the source could not run it",
    "deadline": "passed, and the time was up",
    "source_unavailable": "not asked: the source cannot be reached",
    "busy": "not asked: all places are taken",
}
"""What became of a query that gave no rows, by the problem's code."""
SPELT = {"sql": "SQL", "sparql": "SPARQL", "cypher": "Cypher", "text": "words"}
Json = dict[str, Any]
Asking = Annotated[str, Query(max_length=2000)]
Name = Annotated[str, Query(max_length=200)]
Text = Annotated[str, Query(max_length=20_000)]
Reader = Annotated[Access, needs(Scope.SEARCH, Scope.ASK)]
Asker = Annotated[Access, needs(Scope.ASK)]


@router.get("/sources")
async def sources(request: Request, serving: ServingOf, access: Reader, q: Asking = "") -> Response:
    """The sources within reach, and with a question what they say to it."""
    found = await _found(request, serving, access, q)
    return rendered(
        request,
        "sources.html",
        found=found,
        question=q.strip(),
        columns=conflict_columns(found["reply"]),
        outcome=outcome_words, spelt=spelt,
    )  # fmt: skip


@router.get("/sources.json")
async def sources_json(request: Request, serving: ServingOf, access: Reader, q: Asking = "") -> Response:
    """Its twin."""
    return json_reply(await _found(request, serving, access, q))


@router.get("/source")
async def source(request: Request, serving: ServingOf, access: Reader, name: Name, query: Text = "") -> Response:
    """What a source holds, and a query to edit; nothing is run yet."""
    found = await sources_of(serving).describe(access, name)
    return rendered(request, "source.html", found=found, query=query, ran=None, spelt=spelt)


@router.get("/source.json")
async def source_json(serving: ServingOf, access: Reader, name: Name) -> Response:
    """Its twin; `POST /v1/sources/{name}/query` runs queries for programs."""
    return json_reply(await sources_of(serving).describe(access, name))


@router.post("/source")
async def run_query(request: Request, serving: ServingOf, access: Asker) -> Response:
    """Run the query of the page's own form, and show what became of it."""
    form = await form_of(request)
    if not secrets.compare_digest(form.get("token", "").encode(), token_of(request).encode()):
        raise Problem("forbidden", "the form is not of this session; open the page again")
    served, query = sources_of(serving), form.get("query", "").strip()
    found = await served.describe(access, form.get("name", ""))
    if not query or len(query) > 20_000:
        raise Problem("invalid", "query: from 1 to 20,000 characters")
    take(serving, access, 1)
    logged(request, source=found["name"], question=query)
    ran = await _ran(request, served.query(access, found["name"], query))
    return rendered(
        request, "source.html", status=ran.get("status", 200), found=found, query=query, ran=ran, spelt=spelt
    )


def conflict_columns(reply: Json | None) -> list[list[Json]]:
    """The conflicts of a reply, each as what stands side by side: the answers of its sources."""
    return [] if reply is None else [list(answers) for answers in reply["conflicts"]]


def spelt(language: str) -> str:
    """A query language as people write it."""
    return SPELT.get(language, language)


def outcome_words(outcome: str) -> str:
    """What became of a query, for people."""
    return "passed" if outcome == "rows" else outcome


async def _found(request: Request, serving: Serving, access: Access, question: str) -> Json:
    served = sources_of(serving)
    found: Json = {"sources": await served.list(access), "reply": None}
    if question.strip():
        if Scope.ASK not in access.scopes:
            raise Problem("forbidden", "it needs the scope ask")
        take(serving, access, 1)
        logged(request, question=question)
        work = served.ask(access, question.strip(), None)
        found["reply"] = with_id(request, await while_connected(request, work))
    return found


async def _ran(request: Request, work: Any) -> Json:
    """Rows of a query with their verdict, or the problem that it came to."""
    try:
        rows: Mapping[str, Any] = await while_connected(request, work)
    except Exception as error:
        problem = problem_of(error)
        if problem.code not in VERDICTS:
            raise
        request.scope["state"]["code"] = problem.code
        return problem.document(request_id_of(request)) | {"verdict": VERDICTS[problem.code]}
    shown: Sequence[Any] = rows["rows"][:MOST_ROWS]
    return {**rows, "rows": shown, "count": len(rows["rows"]), "verdict": "passed: it only reads"}

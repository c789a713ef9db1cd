"""The addresses of the page. Each has a twin with `.json` that gives the same as data."""

import secrets
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from serving.access import ServingOf, chosen_index, needs, take
from serving.ego import DEEPEST, MOST, passage_graph, row_graph
from serving.keys import Access, Scope
from serving.pages.cards import cards_of, linked_name, question_words, row_of, sureness, text_of
from serving.pages.forms import form_of
from serving.pages.graphs import drawing
from serving.pages.rendering import rendered
from serving.pages.sessions import COOKIE
from serving.problems import Problem
from serving.questions import Asked
from serving.replies import json_reply, logged, while_connected, with_id
from serving.stars import passage_star, row_star
from serving.state import Serving

router = APIRouter(include_in_schema=False)
STATIC = Path(__file__).parent / "static"
TYPES = {
    "style.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
Word = Annotated[str, Query(max_length=200)]
Id = Annotated[str, Query(max_length=2000)]
RowNumber = Annotated[int | None, Query(ge=0, lt=1 << 31)]
Steps = Annotated[int, Query(ge=1, le=DEEPEST)]
Nodes = Annotated[int, Query(ge=2, le=MOST)]
Reader = Annotated[Access, needs(Scope.SEARCH, Scope.ASK)]
Asker = Annotated[Access, needs(Scope.ASK)]


@router.get("/")
async def home(request: Request, serving: ServingOf, access: Reader) -> Response:
    """Where a question is typed."""
    return rendered(request, "home.html", indexes=await _indexes(serving, access))


@router.get("/home.json")
async def home_json(serving: ServingOf, access: Reader) -> Response:
    """Its twin."""
    return json_reply({"indexes": await _indexes(serving, access)})


@router.get("/ask")
async def ask(
    request: Request, serving: ServingOf, access: Asker, q: Annotated[str, Query(max_length=2000)] = "",
    index: Word = "", where: Annotated[str, Query(max_length=10_000)] = "",
    limit: Annotated[int, Query(ge=1, le=50)] = 5,
) -> Response:  # fmt: skip
    """A question with its answer and evidence."""
    if not q.strip():
        return RedirectResponse("/", 303)
    found = await _asked(request, serving, access, q, index, where, limit)
    more = urlencode({"q": q, "index": index, "where": where, "limit": min(50, limit + 10)})
    return rendered(
        request, "ask.html", found=found, cards=cards_of(found), words=question_words(found), question=q, where=where,
        sureness=sureness(found["answer"]["confidence"]), more=f"/ask?{more}", limit=limit,
        indexes=await _indexes(serving, access),
    )  # fmt: skip


@router.get("/ask.json")
async def ask_json(
    request: Request, serving: ServingOf, access: Asker, q: Annotated[str, Query(min_length=1, max_length=2000)],
    index: Word = "", where: Annotated[str, Query(max_length=10_000)] = "",
    limit: Annotated[int, Query(ge=1, le=50)] = 5,
) -> Response:  # fmt: skip
    """Its twin."""
    return json_reply(await _asked(request, serving, access, q, index, where, limit))


@router.get("/row")
async def row(
    request: Request, serving: ServingOf, access: Reader, table: Annotated[str, Query(max_length=2000)],
    row: Annotated[int, Query(ge=0, lt=1 << 31)], index: Word = "",
) -> Response:  # fmt: skip
    """A row and its star."""
    name = chosen_index(serving, access, index or None)
    found = await serving.questions.look(name, lambda opened: row_star(opened, table, row))
    texts = [text_of(one["passage"], name, name=linked_name(found["row"], one["links"])) for one in found["passages"]]
    links = [link for one in found["passages"] for link in one["links"]]
    return rendered(request, "row.html", found=found, row=row_of(found["row"], links, name), texts=texts)


@router.get("/row.json")
async def row_json(
    serving: ServingOf, access: Reader, table: Annotated[str, Query(max_length=2000)],
    row: Annotated[int, Query(ge=0, lt=1 << 31)], index: Word = "",
) -> Response:  # fmt: skip
    """Its twin."""
    name = chosen_index(serving, access, index or None)
    return json_reply(await serving.questions.look(name, lambda opened: row_star(opened, table, row)))


@router.get("/passage")
async def passage(
    request: Request, serving: ServingOf, access: Reader, id: Annotated[str, Query(max_length=2000)], index: Word = ""
) -> Response:
    """A text and the rows that name it."""
    name = chosen_index(serving, access, index or None)
    found = await serving.questions.look(name, lambda opened: passage_star(opened, id))
    rows = [row_of(one["row"], one["links"], name) for one in found["rows"]]
    return rendered(request, "passage.html", found=found, text=text_of(found["passage"], name), rows=rows)


@router.get("/passage.json")
async def passage_json(
    serving: ServingOf, access: Reader, id: Annotated[str, Query(max_length=2000)], index: Word = ""
) -> Response:
    """Its twin."""
    name = chosen_index(serving, access, index or None)
    return json_reply(await serving.questions.look(name, lambda opened: passage_star(opened, id)))


@router.get("/graph")
async def graph(
    request: Request, serving: ServingOf, access: Reader, table: Id = "", row: RowNumber = None, id: Id = "",
    index: Word = "", steps: Steps = 2, most: Nodes = 60,
) -> Response:  # fmt: skip
    """The graph around a row or a text, drawn on the server."""
    found = await _graph(serving, access, index, table, row, id, steps, most)
    drawn = drawing(found)
    return rendered(request, "graph.html", found=found, drawing=drawn, centre=drawn.boxes[0], most=most)


@router.get("/graph.json")
async def graph_json(
    serving: ServingOf, access: Reader, table: Id = "", row: RowNumber = None, id: Id = "", index: Word = "",
    steps: Steps = 2, most: Nodes = 60,
) -> Response:  # fmt: skip
    """Its twin."""
    return json_reply(await _graph(serving, access, index, table, row, id, steps, most))


@router.get("/status")
async def status(request: Request, serving: ServingOf, access: Annotated[Access, needs(Scope.ADMIN)]) -> Response:
    """Indexes and health, for operators."""
    return rendered(request, "status.html", found=await _status(serving, access))


@router.get("/status.json")
async def status_json(serving: ServingOf, access: Annotated[Access, needs(Scope.ADMIN)]) -> Response:
    """Its twin."""
    return json_reply(await _status(serving, access))


@router.get("/login")
async def login_form(
    request: Request, serving: ServingOf, next: Annotated[str, Query(max_length=4000)] = "/"
) -> Response:
    """Where a key is typed."""
    if serving.keys is None:
        return RedirectResponse("/", 303)
    return rendered(request, "login.html", next=_local(next), wrong=False)


@router.post("/login")
async def login(request: Request, serving: ServingOf) -> Response:
    """Begin a session with a key; scripts of other sites were refused by their origin."""
    form = await form_of(request)
    access = None if serving.keys is None else serving.keys.access(form.get("key", "").strip())
    if access is None:
        return rendered(request, "login.html", status=401, next=_local(form.get("next", "/")), wrong=True)
    reply = RedirectResponse(_local(form.get("next", "/")), 303)
    reply.set_cookie(
        COOKIE, serving.sessions.begin(access.key_id), httponly=True, samesite="strict",
        secure=request.headers.get("x-forwarded-proto") == "https", path="/",
    )  # fmt: skip
    return reply


@router.post("/logout")
async def logout(request: Request, serving: ServingOf) -> Response:
    """End the session; its form proves that it comes from our page."""
    cookie, form = request.cookies.get(COOKIE, ""), await form_of(request)
    session = serving.sessions.find(cookie)
    if session is None or not secrets.compare_digest(form.get("token", "").encode(), session.token.encode()):
        raise Problem("forbidden", "the form is not of this session")
    serving.sessions.end(cookie)
    reply = RedirectResponse("/login", 303)
    reply.delete_cookie(COOKIE, path="/")
    return reply


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """Style, script and icon, from the package."""
    if name not in TYPES:
        raise Problem("not_found")
    headers = {"Cache-Control": "public, max-age=300"}
    return Response((STATIC / name).read_bytes(), media_type=TYPES[name], headers=headers)


async def _asked(
    request: Request, serving: Serving, access: Access, question: str, index: str, where: str, limit: int
) -> dict[str, Any]:
    take(serving, access, 1)
    name = chosen_index(serving, access, index or None)
    asked = Asked(question.strip(), name, where=where.strip() or None, limit=limit, explain=True)
    logged(request, index=name, question=asked.question)
    work = serving.questions.ask(asked, serving.questions.watch(None))
    return with_id(request, await while_connected(request, work))


async def _graph(
    serving: Serving, access: Access, index: str, table: str, row: int | None, id: str, steps: int, most: int
) -> dict[str, Any]:
    name = chosen_index(serving, access, index or None)
    if row is None and not id:
        raise Problem("invalid", "name a row by `table` and `row`, or a text by `id`")
    if row is None:
        return await serving.questions.look(name, lambda opened: passage_graph(opened, id, steps=steps, most=most))
    return await serving.questions.look(name, lambda opened: row_graph(opened, table, row, steps=steps, most=most))


async def _indexes(serving: Serving, access: Access) -> list[dict[str, Any]]:
    names = [name for name in serving.indexes.names if access.may_ask(name)]
    return [await serving.questions.look(name, lambda opened: opened.describe()) for name in names]


async def _status(serving: Serving, access: Access) -> dict[str, Any]:
    admission = serving.admission
    return {
        "ready": serving.ready,
        "permits": admission.permits,
        "working": admission.working,
        "waiting": {rank.value: len(line) for rank, line in admission.waiting.items()},
        "batches": serving.batches,
        "mean_seconds": round(admission.mean_seconds, 3),
        "indexes": await _indexes(serving, access),
    }


def _local(address: str) -> str:
    """An address of our own, so that a link to /login cannot lead elsewhere."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else "/"

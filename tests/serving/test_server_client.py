"""The typed client against a real server: every address has a method, and every reply is as /openapi.json says."""

import asyncio
import inspect
import re
import sqlite3
import time
from contextlib import closing
from typing import get_type_hints

import httpx
import jsonschema
import pytest

from helios.client import AsyncClient, Client, replies
from helios.errors import ServerError
from helios.index.backup import back_up
from helios.sources.registry import Registry

QUESTION = "Which is the longest river of Europe?"
TYPES = {
    "SearchReply": replies.SearchReply, "AskReply": replies.AskReply, "AnswerJson": replies.Answer,
    "Citation": replies.Citation, "Coverage": replies.Coverage, "BatchReply": replies.BatchReply,
    "IndexReply": replies.Index, "RowReply": replies.RowReply, "PassageReply": replies.PassageReply,
    "TaskJson": replies.Task, "SnapshotsReply": replies.Snapshots, "AliasReply": replies.Alias,
    "SourceJson": replies.Source, "SourceSchemaJson": replies.SourceSchema, "AskSourcesReply": replies.SourcesReply,
    "SourcesCoverage": replies.SourcesCoverage, "QueryReply": replies.QueryReply, "CheckReply": replies.CheckReply,
}  # fmt: skip


@pytest.fixture(scope="module")
def served(start_server, sample_index, tmp_path_factory):
    """A server with a copy of the sample index and a small database."""
    root = tmp_path_factory.mktemp("client")
    with closing(sqlite3.connect(root / "shop.sqlite")) as shop, shop:
        shop.execute("CREATE TABLE invoice (id INTEGER PRIMARY KEY, total REAL)")
        shop.execute("INSERT INTO invoice VALUES (1, 120.5)")
    shop.close()
    with Registry.open(root / "helios-sources.yaml", create=True) as registry:
        registry.add("shop", {"kind": "sqlite", "path": "shop.sqlite"})
    index = back_up(sample_index, root / "index").out
    return start_server(indexes={"rivers": index}, sources=root / "helios-sources.yaml", backups=root / "backups")


@pytest.fixture(scope="module")
def openapi(served) -> dict:
    return httpx.get(f"{served.address}/openapi.json").json()


class Recorded(httpx.HTTPTransport):
    """Keeps every request with its reply."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[httpx.Request, httpx.Response]] = []

    def handle_request(self, request):
        reply = super().handle_request(request)
        if "event-stream" not in reply.headers.get("content-type", ""):
            reply.read()
        self.seen.append((request, reply))
        return reply


def scenario():
    """Calls one after the other: each is yielded as (method, arguments, options), and sent its result."""
    found = yield "search", (QUESTION,), {"index": "rivers", "k": 5, "limit": 2, "explain": True}
    assert len(found["evidence"]["edges"]) == 2
    yield "search", (QUESTION,), {"k": 5, "limit": 2, "cursor": found["next_cursor"], "where": None, "seconds": 60.0}
    found = yield "ask", (QUESTION,), {"limit": 1}
    assert found["answer"]["text"] == "Volga"
    found = yield "batch", ([QUESTION],), {"kind": "search", "limit": 1}
    assert found["results"][0]["index"] == "rivers"
    (index,) = yield "indexes", (), {}
    assert index == (yield "index", ("rivers",), {})
    found = yield "row", ("rivers", "european-rivers", 0), {}
    yield "passage", ("rivers", found["passages"][0]["passage"]["id"]), {}
    task = yield "add", ("rivers",), {"passages": [{"id": "note", "text": "A note."}], "wait": 1}
    task = yield "ended", (task,), {}
    assert task["result"]["passages"] == 1
    task = yield "add_lines", ("rivers", [{"id": "note", "text": "Another note."}]), {"replace": True}
    assert (yield "ended", (task,), {})["result"]["replaced"] == 1
    task = yield "delete", ("rivers",), {"ids": ["note"], "relink": False}
    assert (yield "ended", (task,), {})["result"]["deleted_passages"] == 1
    task = yield "compact", ("rivers",), {"whole": True}
    yield "ended", (task,), {}
    assert (yield "task", (task["id"],), {"wait": 1})["state"] == "done"
    assert task["id"] in [one["id"] for one in (yield "tasks", (), {"limit": 5})]
    task = yield "fsck", (), {"wait": 1}
    assert (yield "ended", (task,), {})["result"]["sound"]
    task = yield "back_up", ("rivers", f"b{time.monotonic_ns()}"), {}
    yield "ended", (task,), {}
    assert (yield "snapshots", ("rivers",), {})["backups"]
    assert (yield "point", ("live", "rivers"), {})["index"] == "rivers"
    assert [one["alias"] for one in (yield "aliases", (), {})] == ["live"]
    assert (yield "drop_alias", ("live",), {})["before"] == "rivers"
    assert [one["name"] for one in (yield "sources", (), {})] == ["shop"]
    assert "invoice" in (yield "source", ("shop",), {})["schema"]
    found = yield "ask_sources", ("How many invoices are there?",), {"k": 1, "seconds": 60.0}
    assert found["coverage"]["sources"] == 1
    assert (yield "query", ("shop", "SELECT total FROM invoice"), {})["rows"] == [[120.5]]
    assert (yield "check_source", ("shop",), {})["usable"]
    assert (yield "refresh_source", ("shop",), {})["usable"]
    assert [one["id"] for one in (yield "models", (), {})] == ["helios/rivers"]
    assert (yield "model", ("helios/rivers",), {})["object"] == "model"
    assert (yield "complete", ([{"role": "user", "content": QUESTION}],), {})["choices"]
    assert (yield "respond", (QUESTION,), {})["output"]
    assert (yield "alive", (), {})
    assert (yield "ready", (), {})
    assert "helios_tasks_total" in (yield "metrics", (), {})


def run(call):
    """Drive a scenario by calls that give their results."""
    steps = scenario()
    step = next(steps)
    while True:
        try:
            step = steps.send(call(*step))
        except StopIteration:
            return


@pytest.mark.slow
def test_every_address_has_a_method_and_every_reply_validates(served, openapi):
    recorded = Recorded()
    with Client(served.address, seconds=120, transport=recorded) as client:
        run(lambda name, args, options: getattr(client, name)(*args, **options))
        assert client.cancel.__doc__  # its reply is a task, as those of others; there is none to cancel any more
        with pytest.raises(ServerError) as refused:
            client.cancel(client.tasks()[0]["id"])
        assert refused.value.code == "task_ended"
    patterns = {path: re.compile(re.sub(r"\\{(\w+)\\}", "(.+)", re.escape(path))) for path in openapi["paths"]}
    called = set()
    for request, reply in recorded.seen:
        fitting = [path for path, one in patterns.items() if one.fullmatch(request.url.path)]
        path = max(fitting, key=lambda one: (len(one.split("/")), -one.count("{")))
        operation = openapi["paths"][path][request.method.lower()]
        called.add((request.method.lower(), path))
        described = operation["responses"][str(reply.status_code)]
        while "$ref" in described:
            described = openapi["components"]["responses"][described["$ref"].rpartition("/")[2]]
        content = described["content"][reply.headers["content-type"].partition(";")[0]]
        if "json" in reply.headers["content-type"]:
            schema = content["schema"] | {"components": openapi["components"]}
            jsonschema.Draft202012Validator(schema).validate(reply.json())
    described = {(method, path) for path, operations in openapi["paths"].items() for method in operations}
    assert described == called


@pytest.mark.slow
def test_the_same_to_await(served):
    async def work() -> None:
        async with AsyncClient(served.address, seconds=120) as client:
            steps = scenario()
            step = next(steps)
            while True:
                name, args, options = step
                try:
                    step = steps.send(await getattr(client, name)(*args, **options))
                except StopIteration:
                    break
            events = [event async for event in client.ask_events(QUESTION, limit=1)]
            assert events[-1].data["answer"]["text"] == "Volga"
            assert len([edge async for edge in client.search_all(QUESTION, k=5, limit=2)]) == 5

    asyncio.run(work())


def test_streams_and_pages(served):
    with Client(served.address, seconds=120) as client:
        events = list(client.ask_events(QUESTION, limit=1))
        assert [event.name for event in events][-2:] == ["stage", "answer"]
        assert events[-1].data["answer"]["text"] == "Volga"
        ranks = [edge["rank"] for edge in client.search_all(QUESTION, k=5, limit=2)]
        assert ranks == [1, 2, 3, 4, 5]
        for wrong in ("title =", "nowhere = 1"):
            with pytest.raises(ServerError) as refused:
                list(client.ask_events(QUESTION, where=wrong))
            assert refused.value.code == "where_invalid"


def test_both_clients_are_one():
    def methods(client: type) -> dict[str, tuple]:
        named = {name: one for name, one in vars(client).items() if inspect.isfunction(one) and name[0] != "_"}
        return {
            name: (str(inspect.signature(one)).replace("AsyncIterator", "Iterator"), one.__doc__)
            for name, one in named.items()
        }

    assert methods(Client) == methods(AsyncClient)
    for name, method in vars(AsyncClient).items():
        if inspect.isfunction(method) and name[0] != "_":
            assert inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method), name


@pytest.mark.parametrize("name", TYPES)
def test_types_are_those_of_the_description(openapi, name):
    schema = openapi["components"]["schemas"][name]
    assert set(get_type_hints(TYPES[name])) >= set(schema["required"])
    assert set(get_type_hints(TYPES[name])) <= set(schema["properties"])


@pytest.mark.parametrize(
    ("method", "path"),
    [("search", "/v1/search"), ("ask", "/v1/ask"), ("batch", "/v1/batch"), ("ask_sources", "/v1/sources/ask")],
)
def test_parameters_are_those_of_the_description(openapi, method, path):
    body = openapi["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    schema = openapi["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    own = set(inspect.signature(getattr(Client, method)).parameters) - {"self"}
    assert own == set(schema["properties"]) - {"stream"}


def test_what_is_refused_says_what_to_do(served):
    with Client(served.address, seconds=120) as client:
        with pytest.raises(ServerError) as refused:
            client.index("nothing")
        assert (refused.value.code, refused.value.status) == ("index_not_found", 404)
        assert refused.value.todo and refused.value.request_id
        with pytest.raises(ServerError, match="documents_invalid"):
            client.ended(client.add_lines("rivers", b"no document\n"))
    assert Client("http://127.0.0.1:9").alive() is False
    with pytest.raises(ServerError, match="unreachable: .*helios serve"):
        Client("http://127.0.0.1:9").indexes()


def test_a_busy_server_is_asked_again_and_nonsense_is_told(serve):
    replied = []

    def reply(handler) -> None:
        replied.append(handler.path)
        status, body = [
            (503, b'{"code": "busy", "title": "All places are taken", "status": 503, "todo": "Wait."}'),
            (200, b'{"index": "a"}'),
            (502, b"<p>Bad gateway</p>"),
        ][len(replied) - 1]
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("Retry-After", "0")
        handler.end_headers()
        handler.wfile.write(body)

    with Client(serve(reply).removesuffix("/sparql"), retries=1) as client:
        assert client.search(QUESTION)["index"] == "a"
        assert replied == ["/v1/search"] * 2
        with pytest.raises(ServerError, match="unexpected: .* replied 502.*helios serve"):
            client.search(QUESTION)


@pytest.mark.parametrize("own", [".", ".."])
def test_ids_that_are_steps_on_the_way_are_not_asked_for(own):
    with Client("http://127.0.0.1:9") as client, pytest.raises(ValueError, match="search for it"):
        client.passage("sample", own)

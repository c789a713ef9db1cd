"""Registered sources over HTTP and for agents: SQLite behind its guard, keys that reach some, one that is gone."""

import asyncio

import httpx
import pytest
from mcp import Client

from serving.keys import Key, KeyFile, Scope

QUESTION = "What is the highest total of an invoice of Anna Berg?"


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return KeyFile(tmp_path_factory.mktemp("keys") / "keys.json")


@pytest.fixture(scope="module")
def guarded(start_server, registry, keys):
    keys.add(Key("", "first", "", ("admin",)))
    return start_server(sources=registry, keys=keys.path)


def send(server, keys, method: str, path: str, body=None, *, scopes=tuple(Scope), sources=("*",)) -> httpx.Response:
    key = keys.add(Key("", "any", "", tuple(scopes), sources=sources))
    return httpx.request(
        method, server.address + path, json=body, headers={"Authorization": f"Bearer {key}"}, timeout=60
    )


def test_sources_are_listed_without_where_they_are(guarded, keys, registry):
    reply = send(guarded, keys, "GET", "/v1/sources")
    assert [one["name"] for one in reply.json()["sources"]] == ["shop", "gone"]
    assert reply.json()["sources"][0] == {"name": "shop", "kind": "sqlite", "language": "sql"}
    assert str(registry.parent) not in reply.text
    assert "CREATE TABLE" in send(guarded, keys, "GET", "/v1/sources/shop").json()["schema"]


def test_a_question_becomes_a_query(guarded, keys, registry):
    reply = send(guarded, keys, "POST", "/v1/sources/ask", {"question": QUESTION})
    found = reply.json()
    assert str(registry.parent) not in reply.text
    assert found["notes"][0].startswith("gone: not considered (source 'gone': …: no such file")
    assert found["answer"]["text"] == "120.5"
    assert found["answer"]["source"] == "shop"
    assert "SELECT" in found["answer"]["query"]


def test_a_deadline_is_honoured(guarded, keys):
    """What there was no time for is said; a query that had none is a problem."""
    found = send(guarded, keys, "POST", "/v1/sources/ask", {"question": QUESTION, "seconds": 0.001}).json()
    if "code" in found:
        assert found["code"] == "deadline"
    else:
        assert set(found["coverage"]["asked"]) <= {"shop", "gone"}
        assert found["coverage"]["complete"] == (not found["coverage"]["left_out"])
    counting = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT max(i) FROM n"
    )
    late = send(guarded, keys, "POST", "/v1/sources/shop/query", {"query": counting, "seconds": 0.2})
    assert (late.status_code, late.json()["code"]) == (504, "deadline")
    whole = send(guarded, keys, "POST", "/v1/sources/ask", {"question": QUESTION}).json()["coverage"]
    assert whole["complete"]
    assert "shop" in whole["asked"]


def test_a_query_reads_rows(guarded, keys):
    body = {"query": "SELECT name FROM customer ORDER BY id"}
    found = send(guarded, keys, "POST", "/v1/sources/shop/query", body).json()
    assert (found["columns"], found["rows"], found["truncated"]) == (["name"], [["Anna Berg"], ["Jon Falk"]], None)


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM customer",
        "ATTACH 'x' AS y",
        "PRAGMA query_only=0",
        "SELECT 1; SELECT 2",
        "SELECT load_extension('x')",
    ],
)
def test_the_guard_refuses_what_does_not_read(guarded, keys, query):
    reply = send(guarded, keys, "POST", "/v1/sources/shop/query", {"query": query})
    assert (reply.status_code, reply.json()["code"]) == (400, "query_rejected")


def test_a_source_that_is_gone_says_so_without_its_place(guarded, keys, registry):
    reply = send(guarded, keys, "POST", "/v1/sources/gone/query", {"query": "SELECT 1"})
    assert (reply.status_code, reply.json()["code"]) == (502, "source_unavailable")
    assert str(registry.parent) not in reply.text
    assert send(guarded, keys, "POST", "/v1/sources/gone/check").json()["code"] == "source_unavailable"
    assert send(guarded, keys, "POST", "/v1/sources/shop/refresh").json()["usable"]


@pytest.mark.parametrize(
    ("method", "path", "body", "needed"),
    [
        ("GET", "/v1/sources", None, Scope.SEARCH),
        ("GET", "/v1/sources/shop", None, Scope.SEARCH),
        ("POST", "/v1/sources/ask", {"question": QUESTION}, Scope.ASK),
        ("POST", "/v1/sources/shop/query", {"query": "SELECT 1"}, Scope.ASK),
        ("POST", "/v1/sources/shop/check", None, Scope.ADMIN),
        ("POST", "/v1/sources/shop/refresh", None, Scope.ADMIN),
    ],
)
def test_scopes_and_reach(guarded, keys, method, path, body, needed):
    assert httpx.request(method, guarded.address + path, json=body).status_code == 401
    for scope in Scope:
        reply = send(guarded, keys, method, path, body, scopes=(scope,))
        assert reply.status_code == (200 if scope is needed else 403), scope
    elsewhere = send(guarded, keys, method, path, body, sources=("other",))
    if path == "/v1/sources":
        assert elsewhere.json() == {"sources": []}
    else:
        assert (elsewhere.status_code, elsewhere.json()["code"]) == (404, "source_not_found")


def test_agents_query_sources_too(start_server, registry):
    server = start_server(sources=registry)

    async def work():
        async with Client(f"{server.address}/mcp", read_timeout_seconds=60) as client:
            query = {"source": "shop", "query": "SELECT max(total) AS most FROM invoice"}
            return [
                await client.call_tool("list_sources", {}),
                await client.call_tool("describe_source", {"source": "shop"}),
                await client.call_tool("query_source", query),
                await client.call_tool("query_source", query | {"query": "DROP TABLE invoice"}),
            ]

    listed, described, found, refused = asyncio.run(work())
    assert [one["name"] for one in listed.structured_content["sources"]] == ["shop", "gone"]
    assert "invoice" in described.structured_content["schema"]
    assert found.structured_content == {"columns": ["most"], "rows": [[300.0]], "truncated": None}
    assert refused.is_error
    assert "guard" in refused.content[0].text


def test_without_sources_there_are_none(server):
    reply = httpx.get(f"{server.address}/v1/sources")
    assert (reply.status_code, reply.json()["code"]) == (404, "source_not_found")

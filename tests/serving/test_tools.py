"""The tools for agents, through the SDK's own client: over HTTP in both versions of the protocol, and as a process."""

import asyncio
import json
import sys
from urllib.parse import quote

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from serving.keys import Key, KeyFile

QUESTION = "Which is the longest river of Europe?"
MODES = ["auto", "legacy"]


def run(target, work, **options):
    """What `work` gives of a connected client."""

    async def connected():
        async with Client(target, read_timeout_seconds=240, **options) as client:
            return await work(client)

    return asyncio.run(connected())


def call(client, name: str, **arguments):
    return client.call_tool(name, arguments)


@pytest.fixture(params=MODES)
def connect(request, server):
    return lambda work: run(f"{server.address}/mcp", work, mode=request.param)


def test_the_tools_are_described(connect):
    listed = connect(lambda client: client.list_tools())
    tools = {tool.name: tool for tool in listed.tools}
    assert {"search", "fetch", "ask"} <= tools.keys()
    assert tools["search"].input_schema["required"] == ["query"]
    assert tools["fetch"].input_schema["required"] == ["id"]
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert all(tool.output_schema for tool in tools.values())


def test_search_and_fetch_are_as_connectors_expect_them(connect, engine):
    """`results` with id, title and url; then a document with id, title, text, url and metadata; as text and as data."""
    found = connect(lambda client: call(client, "search", query=QUESTION, limit=4))
    results = found.structured_content["results"]
    assert json.loads(found.content[0].text) == found.structured_content
    assert len(results) == 4
    best = engine.search(QUESTION, k=1).edges[0]
    assert results[0]["id"] == f"helios://row/sample/{best.segment.segment_id.table_id}/{best.segment.segment_id.row}"
    assert results[1]["id"] == f"helios://passage/sample/{best.passage.passage_id}"
    assert all({"id", "title", "url", "text"} <= one.keys() for one in results)
    for one in results[:2]:
        document = connect(lambda client, one=one: call(client, "fetch", id=one["id"])).structured_content
        assert document.keys() == {"id", "title", "text", "url", "metadata"}
        assert document["id"] == one["id"]
        assert "Volga" in document["text"]
        resource = connect(lambda client, one=one: client.read_resource(one["id"]))
        assert resource.contents[0].text == document["text"]


def test_an_answer_cites_what_can_be_fetched(connect):
    found = connect(lambda client: call(client, "ask", question=QUESTION)).structured_content
    assert found["answer"] == "Volga"
    assert found["citations"]
    assert "Volga" in found["citations"][0]["text"]
    cited = found["citations"][0]["id"]
    assert connect(lambda client: call(client, "fetch", id=cited)).structured_content["id"] == cited
    none = connect(lambda client: call(client, "ask", question="Who won the 2031 chess championship?"))
    assert none.structured_content["abstained"]
    assert none.structured_content["reason"]


def test_resources_have_templates(connect):
    listed = connect(lambda client: client.list_resource_templates())
    assert {one.uri_template for one in listed.resource_templates} == {
        "helios://row/{index}/{table}/{row}", "helios://passage/{index}/{passage}"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("fetch", {"id": "helios://row/sample/none/0"}, "No such row"),
        ("fetch", {"id": "helios://row/sample/european-rivers/-1"}, "a row is a number"),
        ("fetch", {"id": "helios://passage/sample/" + quote("../../etc/passwd", safe="")}, "No such passage"),
        ("fetch", {"id": "file:///etc/passwd"}, "ids look like"),
        ("fetch", {"id": "helios://passage/elsewhere/volga"}, "No such index"),
        ("search", {"query": " "}, "1 to 2,000 characters"),
        ("search", {"query": "x", "where": "title ="}, "filter"),
        ("ask", {"question": "x", "index": "elsewhere"}, "No such index"),
    ],
)
def test_what_goes_wrong_is_told_in_words(server, tool, arguments, words):
    found = run(f"{server.address}/mcp", lambda client: call(client, tool, **arguments))
    assert found.is_error
    assert words in found.content[0].text
    assert "Traceback" not in found.content[0].text


def test_the_address_takes_a_post_as_it_is(server):
    """No redirect to /mcp/, which clients do not follow with their body."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    assert httpx.post(f"{server.address}/mcp", json=body, headers=headers).status_code == 200
    for path in ("/mcp", "/mcp/"):
        evil = httpx.post(server.address + path, json=body, headers=headers | {"Origin": "https://evil.example"})
        assert evil.status_code == 403


def test_tools_need_the_scopes_of_their_key(start_server, tmp_path):
    keys = KeyFile(tmp_path / "keys.json")
    key = keys.add(Key("", "reader", "", ("search",)))
    guarded = start_server(keys=keys.path)
    refused = httpx.post(f"{guarded.address}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")

    async def tools():
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(f"{guarded.address}/mcp", http_client=http)) as client,
        ):
            return await call(client, "search", query=QUESTION, limit=1), await call(client, "ask", question=QUESTION)

    found, asked = asyncio.run(tools())
    assert found.structured_content["results"]
    assert asked.is_error
    assert "scope ask" in asked.content[0].text


def test_helios_mcp_serves_an_agent_over_standard_input(demo_index):
    command = ["-m", "helios", "mcp", "--index", f"sample={demo_index}"]

    async def work(client: Client):
        return await client.list_tools(), await call(client, "ask", question=QUESTION)

    listed, found = run(StdioServerParameters(command=sys.executable, args=command), work)
    assert "ask" in {tool.name for tool in listed.tools}
    assert found.structured_content["answer"] == "Volga"

"""POST /v1/search, /v1/ask, /v1/batch, and rows and passages by id: what the engine gives, over a real server."""

import gzip
import json
import time

import httpx
import jsonschema
import pytest

from helios.evidence_json import evidence_schema

QUESTION = "Which is the longest river of Europe?"
OTHERS = ["Who designed Pascal?", "In which town did the chemist who discovered germanium teach?"]


@pytest.fixture(scope="module")
def openapi(server) -> dict:
    return httpx.get(f"{server.address}/openapi.json").json()


def check(openapi: dict, name: str, document: dict) -> None:
    """Against the server's own description."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": openapi["components"]}
    jsonschema.Draft202012Validator(schema).validate(document)


def events(text: str) -> list[tuple[str, dict]]:
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_a_search_is_the_engines(client, engine, openapi):
    found = client.post("/v1/search", json={"question": QUESTION, "k": 20, "limit": 20, "explain": True}).json()
    check(openapi, "SearchReply", found)
    jsonschema.Draft202012Validator(evidence_schema()).validate(found["evidence"])
    own = engine.search(QUESTION, k=20, explain=True).to_dict()
    timings = found["evidence"].pop("timings_ms")
    assert timings.keys() == own.pop("timings_ms").keys()
    assert found["evidence"] == own
    assert found["evidence"]["edges"][0]["matches"]
    assert found["coverage"] == {
        "generation": 1, "rows": 66, "passages": 67, "filtered": False, "complete": True, "left_out": []
    }  # fmt: skip
    assert {"queue", "total", "retrieve", "rank"} <= found["timings_ms"].keys()
    assert found["degraded"] is False


def test_pages_are_cut_from_one_ranking(client):
    whole = client.post("/v1/search", json={"question": QUESTION, "k": 11, "limit": 11}).json()
    assert whole["next_cursor"] is None
    ranks, cursor = [], None
    for size in (4, 4, 3):
        page = client.post("/v1/search", json={"question": QUESTION, "k": 11, "limit": 4, "cursor": cursor}).json()
        assert len(page["evidence"]["edges"]) == size
        ranks += page["evidence"]["edges"]
        cursor = page["next_cursor"]
    assert cursor is None
    assert ranks == whole["evidence"]["edges"]


@pytest.mark.parametrize("cursor", ["x", "bm90IGpzb24", "W10", "WzEsMSwx", "é", "W" * 200])
def test_a_cursor_that_is_none(client, cursor):
    reply = client.post("/v1/search", json={"question": QUESTION, "cursor": cursor})
    assert (reply.status_code, reply.json()["code"]) == (400, "cursor_invalid")


def test_a_cursor_of_another_question(client):
    first = client.post("/v1/search", json={"question": QUESTION, "limit": 1}).json()
    for other in (
        {"question": OTHERS[0]},
        {"question": QUESTION, "k": 3},
        {"question": QUESTION, "where": "id ~ '*'"},
    ):
        reply = client.post("/v1/search", json=other | {"cursor": first["next_cursor"]})
        assert (reply.status_code, reply.json()["code"]) == (400, "cursor_invalid")


def test_a_filter(client, openapi):
    where = "table.title = 'Rivers of Europe' and passage.title = 'Volga'"
    found = client.post("/v1/search", json={"question": QUESTION, "where": where}).json()
    assert {edge["segment"]["title"] for edge in found["evidence"]["edges"] if edge["segment"]} == {"Rivers of Europe"}
    assert found["coverage"]["rows"] == 5
    assert found["coverage"]["passages"] == 1
    assert found["coverage"]["filtered"]
    for wrong in ("title =", "no_such_field = 1", "(" * 60 + "id ~ '*'"):
        reply = client.post("/v1/search", json={"question": QUESTION, "where": wrong})
        assert (reply.status_code, reply.json()["code"]) == (400, "where_invalid")
        check(openapi, "ProblemDocument", reply.json())


def test_an_answer_with_its_citations(client, openapi, engine):
    found = client.post("/v1/ask", json={"question": QUESTION, "limit": 3}).json()
    check(openapi, "AskReply", found)
    assert found["answer"]["text"] == engine.ask(QUESTION).text == "Volga"
    assert found["answer"]["support"] == "checked"
    for citation in found["answer"]["citations"]:
        assert citation["source"][citation["start"] : citation["end"]] == citation["text"]
    assert len(found["evidence"]["edges"]) == 3
    assert "read" in found["timings_ms"]


def test_an_abstention_says_why(client):
    answer = client.post("/v1/ask", json={"question": "Who won the 2031 chess championship?"}).json()["answer"]
    assert answer["abstained"]
    assert answer["text"] == ""
    assert answer["reason"]


@pytest.mark.parametrize("how", [{"stream": True}, {}])
def test_a_stream(client, how):
    headers = {} if how else {"Accept": "text/event-stream"}
    reply = client.post("/v1/ask", json={"question": QUESTION, "limit": 2, **how}, headers=headers)
    assert reply.headers["content-type"].startswith("text/event-stream")
    found = events(reply.text)
    names = [name for name, _ in found]
    stages = [data["stage"] for name, data in found if name == "stage"]
    assert stages[:2] == ["retrieve", "rank"]
    assert stages[-1] == "read"
    assert names.index("evidence") < names.index("answer") == len(names) - 1
    plain = client.post("/v1/ask", json={"question": QUESTION, "limit": 2}).json()
    last = found[-1][1]
    assert last["answer"] == plain["answer"]
    assert last["evidence"]["edges"] == plain["evidence"]["edges"]
    assert last["request_id"] == reply.headers["x-request-id"]


def test_a_stream_that_is_refused_is_a_plain_problem(client):
    reply = client.post("/v1/ask", json={"question": QUESTION, "stream": True, "where": "title ="})
    assert reply.status_code == 400
    assert reply.headers["content-type"] == "application/problem+json"


def test_a_stream_that_fails_ends_with_an_error_and_no_answer(client):
    """The field is only known to be absent when the index is looked at, within the stream."""
    reply = client.post("/v1/ask", json={"question": QUESTION, "stream": True, "where": "nowhere = 1"})
    found = events(reply.text)
    assert [name for name, _ in found] == ["error"]
    assert found[0][1]["code"] == "where_invalid"
    assert "answer" not in reply.text.replace("answer for", "")


def test_a_batch_in_its_order(client, openapi):
    body = {"questions": [*OTHERS, QUESTION], "kind": "ask", "limit": 1}
    found = client.post("/v1/batch", json=body).json()
    check(openapi, "BatchReply", found)
    assert [one["evidence"]["question"] for one in found["results"]] == body["questions"]
    single = client.post("/v1/ask", json={"question": QUESTION, "limit": 1}).json()
    assert found["results"][2]["answer"] == single["answer"]


def test_what_fails_in_a_batch_is_its_own_problem(client):
    found = client.post("/v1/batch", json={"questions": OTHERS, "where": "nowhere = 1"}).json()
    assert [one["code"] for one in found["results"]] == ["where_invalid"] * 2


def test_a_deadline_is_honoured(client):
    """What there was no time for is said; where there was no time at all, that is a problem."""
    started = time.monotonic()
    reply = client.post("/v1/search", json={"question": QUESTION, "seconds": 1e-6})
    assert time.monotonic() - started < 5
    if reply.status_code == 200:
        assert not reply.json()["coverage"]["complete"]
    else:
        assert (reply.status_code, reply.json()["code"]) == (504, "deadline")
    found = client.post("/v1/search", json={"question": QUESTION, "seconds": 0.02})
    if found.status_code == 200 and not found.json()["coverage"]["complete"]:
        assert found.json()["coverage"]["left_out"][0].startswith("no time left")


def test_an_index_and_its_nodes(client, openapi, engine):
    (index,) = client.get("/v1/indexes").json()["indexes"]
    assert client.get("/v1/indexes/sample").json() == index
    assert (index["rows"], index["passages"], index["generation"]) == (66, 67, 1)
    edge = engine.search(QUESTION, k=1).edges[0]
    row = client.get(f"/v1/indexes/sample/rows/{edge.segment.segment_id.table_id}/{edge.segment.segment_id.row}").json()
    check(openapi, "RowReply", row)
    assert row["row"]["cells"] == list(edge.segment.cells)
    assert edge.passage.passage_id in [linked["passage"]["id"] for linked in row["passages"]]
    passage = client.get(f"/v1/indexes/sample/passages/{edge.passage.passage_id}").json()
    check(openapi, "PassageReply", passage)
    assert str(edge.segment.segment_id) in [linked["row"]["id"] for linked in passage["rows"]]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/indexes/other", "index_not_found"),
        ("/v1/indexes/sample/rows/european-rivers/99", "row_not_found"),
        ("/v1/indexes/sample/rows/european-rivers/-1", "invalid"),
        ("/v1/indexes/sample/rows/no-such-table/0", "row_not_found"),
        ("/v1/indexes/sample/rows/a/0" + "9" * 30, "invalid"),
        ("/v1/indexes/sample/passages/no-such", "passage_not_found"),
        ("/v1/indexes/sample/passages/..%2f..%2fetc%2fpasswd", "passage_not_found"),
        ("/v1/indexes/sample/passages/%00%1b%5b31m", "passage_not_found"),
        ("/v1/indexes/..%2f..%2fsample", "not_found"),
        ("/v1/nothing", "not_found"),
    ],
)
def test_nothing_outside_of_the_index_is_served(client, path, code):
    reply = client.get(path)
    assert reply.json()["code"] == code
    assert reply.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "question"),
        ({"question": "   "}, "question"),
        ({"question": "x" * 2001}, "question"),
        ({"question": QUESTION, "k": 0}, "k"),
        ({"question": QUESTION, "k": 10**9}, "k"),
        ({"question": QUESTION, "limit": 201}, "limit"),
        ({"question": QUESTION, "seconds": -1}, "seconds"),
        ({"question": QUESTION, "colour": "red"}, "colour"),
        ({"question": QUESTION, "index": "other"}, None),
        ({"question": ["a"]}, "question"),
        ([], "body"),
    ],
)
def test_requests_that_are_wrong_say_where(client, body, field):
    reply = client.post("/v1/search", json=body)
    problem = reply.json()
    if field is None:
        assert problem["code"] == "index_not_found"
        return
    assert (reply.status_code, problem["code"]) == (422, "invalid")
    assert [error["field"] for error in problem["errors"]] == [field]
    assert problem["todo"]


def test_a_failure_repeats_nothing_of_the_request(client):
    reply = client.post("/v1/search", json={"question": "\u001b[31m", "secret": "hk_12345678_very-secret"})
    assert "very-secret" not in reply.text
    reply = client.post("/v1/search", content=b'{"question": "\\ud800"}', headers={"content-type": "application/json"})
    assert reply.status_code == 422


def test_control_characters_are_escaped(client):
    found = client.post("/v1/search", json={"question": "Volga \u009b31m \u202e \u001b[2J", "limit": 1})
    assert found.status_code == 200
    assert not any(mark in found.text for mark in ("\u009b", "\u202e", "\u001b"))
    assert found.json()["evidence"]["question"] == "Volga \u009b31m \u202e \u001b[2J"


def test_replies_are_compressed_for_those_who_ask(client):
    body = {"question": QUESTION}
    with client.stream("POST", "/v1/search", json=body, headers={"Accept-Encoding": "gzip"}) as reply:
        packed = b"".join(reply.iter_raw())
    assert reply.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed))["index"] == "sample"


def test_the_description_is_whole(openapi):
    assert openapi["openapi"].startswith("3.1")
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert "503" in operation["responses"]
    examples = openapi["components"]["schemas"]["SearchRequest"]["examples"]
    check(openapi, "SearchRequest", examples[0])
    text = json.dumps(openapi)
    for reference in {part.partition('"')[0] for part in text.split('"$ref": "#/')[1:]}:
        found = openapi
        for name in reference.split("/"):
            found = found[name]

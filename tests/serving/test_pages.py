"""The page without a browser: what it shows, its twins, its headers, sessions, and that hostile data stay text."""

import json
from dataclasses import replace
from urllib.parse import urljoin

import httpx
import pytest
from lxml import html

from helios.config import load_config
from indexing.pipeline import build_index
from serving.keys import Key, KeyFile
from serving.pages.cards import probability_words
from serving.pages.graphs import drawing
from serving.pages.marks import Mark, matches_in, names_in, pieces
from serving.pages.routes import router
from serving.pages.sessions import Sessions
from serving.pages.sources import conflict_columns
from serving.pages.sources import router as source_router

QUESTION = "Which is the longest river of Europe?"
HOSTILE = '<script>alert(1)</script>" onmouseover="x \u202e\u001b[31m'


def page(client: httpx.Client, path: str, status: int = 200, **query):
    reply = client.get(path, params=query or None)
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = reply.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "default-src 'none'" in policy
    found = html.fromstring(reply.text)
    assert not found.xpath("//@style | //@onclick | //style | //script[not(@src)]")
    assert found.xpath("//html/@lang") == ["en"]
    assert len(found.xpath("//h1")) == 1
    return found


def words(element) -> str:
    return " ".join(element.text_content().split())


def test_home_asks_and_says_what_is_served(client):
    found = page(client, "/")
    assert found.xpath("//form/@action") == ["/ask"]
    assert "66 rows, 67 texts" in words(found)
    assert client.get("/home.json").json()["indexes"][0]["name"] == "sample"


def test_an_answer_with_its_evidence(client):
    found = page(client, "/ask", q=QUESTION)
    assert words(found.xpath("//h1")[0]) == "Volga"
    assert found.xpath("//input[@id='q']/@value") == [QUESTION]
    card = found.xpath("//li[@id='e1']")[0]
    assert [words(one) for one in card.xpath(".//th")] == ["River", "Length (km, about)", "Flows into"]
    assert words(card.xpath(".//td[contains(@class, 'linking')]")[0]) == "Volga"
    assert "Volga" in [one.text_content() for one in card.xpath(".//*[contains(@class, 'is-answer')]")]
    assert card.xpath(".//h3//*[contains(@class, 'is-link')]")
    assert card.xpath(".//meter/@aria-label")
    assert [words(one) for one in found.xpath("//mark")]
    twin = client.get(urljoin("/", found.xpath("//nav/a[text()='JSON']/@href")[0])).json()
    assert twin["answer"]["text"] == "Volga"
    assert twin["evidence"]["edges"][0]["matches"]


def test_words_of_the_question_have_what_they_light(client):
    found = page(client, "/ask", q=QUESTION)
    asked = found.xpath("//p[@class='words']/*/@data-word")
    assert "river" in asked
    matched = set(found.xpath("//li[contains(@class, 'card')]//*/@data-word"))
    assert matched
    assert matched <= set(asked)


def test_an_abstention_is_a_state_of_its_own(client):
    found = page(client, "/ask", q="Who won the 2031 chess championship?")
    (section,) = found.xpath("//section[contains(@class, 'none')]")
    assert words(section.xpath(".//h1")[0]) == "No answer"
    assert words(section.xpath(".//p[@class='why']")[0])
    assert found.xpath("//li[contains(@class, 'card')]")


def test_filters_are_in_the_address(client):
    where = "source = 'passages.jsonl'"
    found = page(client, "/ask", q=QUESTION, where=where)
    assert found.xpath("//input[@id='where']/@value") == [where]
    assert "with your filter" in words(found)
    wrong = page(client, "/ask", 400, q=QUESTION, where="title =")
    assert "filter" in words(wrong.xpath("//h1")[0])
    assert client.get("/ask.json", params={"q": QUESTION, "where": "title ="}).json()["code"] == "where_invalid"
    assert client.get("/ask", params={"q": "  "}).headers["location"] == "/"


def test_citations_lead_to_rows_and_texts_with_their_stars(client):
    found = page(client, "/ask", q=QUESTION)
    row = found.xpath("//li[@id='e1']//caption/a/@href")[0]
    star = page(client, row)
    assert "Row 0 of 5" in words(star)
    assert [words(one) for one in star.xpath("//h3")] == ["Volga"]
    assert page(client, star.xpath("//a[text()='Next row']/@href")[0]).xpath(
        "//td[text()='Danube'] | //td/span[text()='Danube']"
    )
    text = page(client, star.xpath("//h3/a/@href")[0])
    assert "Rivers of Europe" in words(text.xpath("//caption")[0])
    for path in (row, star.xpath("//h3/a/@href")[0]):
        address, _, query = path.partition("?")
        assert client.get(f"{address}.json?{query}").json()["index"] == "sample"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/row?table=none&row=0", 404),
        ("/passage?id=none", 404),
        ("/row?table=x&row=-1", 422),
        ("/ask?q=x&limit=99", 422),
        ("/ask?q=x&index=none", 404),
        ("/row", 422),
    ],
)
def test_problems_are_pages_here(client, path, status):
    found = page(client, path, status)
    assert found.xpath("//section[@role='alert']")
    assert words(found.xpath("//section/p")[-2])


def test_static_files_are_those_of_the_package(client):
    for name in ("style.css", "page.js", "icon.svg"):
        reply = client.get(f"/static/{name}")
        assert reply.status_code == 200
        assert "http" not in reply.text.replace("http://www.w3.org/2000/svg", "")
    for name in ("routes.py", "..%2froutes.py", "%2e%2e/rendering.py"):
        assert client.get(f"/static/{name}").status_code == 404


def test_the_graph_around_a_row_and_a_text(client):
    star = page(client, "/row", table="summer-olympics", row=1)
    found = page(client, star.xpath("//a[text()='Graph around it']/@href")[0])
    nodes = found.xpath("//*[local-name()='svg']//*[contains(@class, 'node')]")
    assert [node.get("class") for node in nodes] == ["node row centre", "node passage"]
    assert "nothing is left out" in words(found)
    text = page(client, nodes[1].get("href"))
    page(client, text.xpath("//a[text()='Graph around it']/@href")[0])
    twin = client.get("/graph.json", params={"table": "summer-olympics", "row": 1, "most": 2}).json()
    assert [node["kind"] for node in twin["nodes"]] == ["row", "passage"]
    assert (twin["edges"], twin["left_out"]) == ([[0, 1]], 0)
    page(client, "/graph", 422)
    page(client, "/graph", 404, table="none", row=0)
    page(client, "/graph", 404, id="none")


def test_a_drawing_has_a_column_a_step():
    nodes = [
        {"kind": "row", "step": 0, "links": 1, "table": "a&b", "row": 3, "title": "T", "cells": ["x" * 60, " "]},
        {"kind": "passage", "step": 1, "links": 2, "id": "p", "title": "Ulm"},
        {"kind": "row", "step": 2, "links": 1, "table": "t", "row": 0, "title": "T", "cells": [""]},
        {"kind": "row", "step": 2, "links": 1, "table": "t", "row": 1, "title": "T", "cells": ["y"]},
    ]
    drawn = drawing({"index": "one", "nodes": nodes, "edges": [(0, 1), (1, 2), (1, 3)]})
    assert [box.centre for box in drawn.boxes] == [True, False, False, False]
    assert drawn.boxes[0].x < drawn.boxes[1].x < drawn.boxes[2].x == drawn.boxes[3].x
    assert drawn.boxes[2].y < drawn.boxes[3].y
    assert drawn.boxes[0].label.endswith("…")
    assert drawn.boxes[0].address == "index=one&table=a%26b&row=3"
    assert drawn.boxes[2].label == "(empty row)"
    assert len(drawn.curves) == 3
    assert all(box.x >= 0 and box.x + drawn.box_width <= drawn.width for box in drawn.boxes)


@pytest.fixture(scope="module")
def asking(start_server, registry):
    """A client of a server with sources and without keys."""
    with httpx.Client(base_url=start_server(sources=registry).address, timeout=60) as client:
        yield client


def test_sources_answer_on_their_page(asking):
    home = page(asking, "/sources")
    assert [words(one) for one in home.xpath("//ul[@class='indexes']/li/a")] == ["shop", "gone"]
    found = page(asking, "/sources", q="What is the highest total of an invoice of Anna Berg?")
    assert words(found.xpath("//h1")[0]) == "120.5"
    assert "Guard: passed" in words(found)
    (edit,) = found.xpath("//a[text()='Edit and run']/@href")
    form = page(asking, edit)
    assert form.xpath("//textarea")[0].text_content().strip().startswith("SELECT MAX")
    twin = asking.get(urljoin("/", found.xpath("//nav/a[text()='JSON']/@href")[0])).json()
    assert twin["reply"]["answer"]["text"] == "120.5"
    assert asking.get("/source.json?name=shop").json()["schema"]
    none = page(asking, "/sources", q="Who painted the oldest ship of the moon?")
    assert words(none.xpath("//section[contains(@class, 'none')]//h1")[0]) == "No answer"


def run_query(client, query, status=200, **fields):
    token = page(client, "/source", name="shop").xpath("//input[@name='token']/@value")[0]
    return client.post("/source", data={"token": token, "name": "shop", "query": query} | fields)


def test_a_query_is_edited_and_run_under_the_guard(asking):
    found = html.fromstring(run_query(asking, "SELECT name FROM customer ORDER BY name DESC").text)
    assert [words(one) for one in found.xpath("//td")] == ["Jon Falk", "Anna Berg"]
    assert words(found.xpath("//dd[@class='verdict']")[0]) == "passed: it only reads"
    refused = run_query(asking, "DELETE FROM customer")
    assert refused.status_code == 400
    shown = html.fromstring(refused.text)
    assert "refused" in words(shown.xpath("//dd[@class='verdict']")[0])
    assert shown.xpath("//textarea")[0].text_content().strip() == "DELETE FROM customer"
    wrong = html.fromstring(run_query(asking, "SELECT nothing FROM customer").text)
    assert "could not run it" in words(wrong.xpath("//dd[@class='verdict']")[0])
    assert run_query(asking, " ").status_code == 422


def test_a_query_needs_the_form_of_the_page(asking):
    sent = {"name": "shop", "query": "SELECT 1"}
    for token in ({}, {"token": ""}, {"token": "x" * 43}):
        reply = asking.post("/source", data=sent | token)
        assert reply.status_code == 403
        assert "not of this session" in reply.text
    token = page(asking, "/source", name="shop").xpath("//input[@name='token']/@value")[0]
    foreign = asking.post("/source", data=sent | {"token": token}, headers={"Origin": "https://evil.example"})
    assert foreign.json()["code"] == "origin_refused"


def test_conflicts_stand_side_by_side():
    answers = [{"source": "a", "text": "1"}, {"source": "b", "text": "2"}]
    assert conflict_columns({"conflicts": [answers]}) == [answers]
    assert conflict_columns(None) == []


def test_without_sources_their_page_says_so(client):
    assert "without --sources" in words(page(client, "/sources", 404))


def test_status_for_operators(client):
    assert "Takes questionsyes" in words(page(client, "/status"))
    assert client.get("/status.json").json()["indexes"][0]["rows"] == 66


def test_hostile_data_stay_text(tmp_path, start_server):
    corpus, index = tmp_path / "corpus", tmp_path / "index"
    corpus.mkdir()
    passage = {"id": HOSTILE, "title": HOSTILE, "text": f"Odd {HOSTILE}. More.", "url": "javascript:alert(1)"}
    (corpus / "passages.jsonl").write_text(json.dumps(passage) + "\n")
    table = {"id": "a/b#1\n?", "title": HOSTILE, "header": [HOSTILE, "x"], "rows": [[HOSTILE, "1"], ["plain", "2"]]}
    (corpus / "tables.jsonl").write_text(json.dumps(table) + "\n")
    build_index(corpus, index, config=load_config(overrides=["encoder.runtime=torch"]))
    server = start_server(indexes={"odd": index})
    with httpx.Client(base_url=server.address, timeout=60) as client:
        found = page(client, "/ask", q=f"{HOSTILE} plain")
        rows, texts = found.xpath("//caption/a/@href"), found.xpath("//h3/a/@href")
        assert rows
        for path in [*rows, *texts]:
            page(client, path)
        asked = {"model": "helios/odd", "messages": [{"role": "user", "content": "Odd. More."}]}
        assert "javascript:" not in client.post("/v1/chat/completions", json=asked).text
        for reply in (client.get("/ask", params={"q": HOSTILE}), *map(client.get, [*rows, *texts])):
            assert "<script>alert" not in reply.text
            assert "javascript:" not in "".join(html.fromstring(reply.text).xpath("//@href"))
            assert "\u202e" not in reply.text
            assert "\u001b" not in reply.text


@pytest.fixture(scope="module")
def guarded(start_server, registry, tmp_path_factory):
    keys = KeyFile(tmp_path_factory.mktemp("keys") / "keys.json")
    keys.add(Key("", "first", "", ("admin",)))
    return start_server(keys=keys.path, sources=registry), keys


def test_signing_in_and_out(guarded):
    server, keys = guarded
    key = keys.add(Key("", "person", "", ("search", "ask")))
    with httpx.Client(base_url=server.address, timeout=60) as client:
        moved = client.get("/ask", params={"q": QUESTION})
        assert moved.status_code == 303
        assert moved.headers["location"].startswith("/login?next=%2Fask%3Fq%3D")
        assert client.get("/ask.json", params={"q": QUESTION}).status_code == 401
        form = page(client, moved.headers["location"])
        assert client.post("/login", data={"key": "hk_wrong", "next": "/"}).status_code == 401
        reply = client.post("/login", data={"key": key, "next": form.xpath("//input[@name='next']/@value")[0]})
        assert reply.status_code == 303
        assert reply.headers["location"].startswith("/ask?q=")
        cookie = reply.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert key not in cookie
        found = page(client, "/ask", q=QUESTION)
        page(client, "/status", 403)
        assert client.post("/v1/search", json={"question": "x"}).status_code == 401, "a cookie is for pages alone"
        token = found.xpath("//input[@name='token']/@value")[0]
        assert client.post("/logout", data={"token": "x"}).status_code == 403
        evil = client.post("/logout", data={"token": token}, headers={"Origin": "https://evil.example"})
        assert evil.json()["code"] == "origin_refused"
        assert client.post("/logout", data={"token": token}).status_code == 303
        assert client.get("/").status_code == 303


def test_a_query_needs_the_scope_and_the_token_of_its_session(guarded):
    server, keys = guarded
    with httpx.Client(base_url=server.address, timeout=60) as client:
        assert run_without_form(client).headers["location"] == "/login?next=%2Fsources"
        client.post("/login", data={"key": keys.add(Key("", "looker", "", ("search",)))})
        assert page(client, "/source", name="shop").xpath("//textarea")
        assert run_query(client, "SELECT 1").status_code == 403
        client.post("/login", data={"key": keys.add(Key("", "asker", "", ("ask",)))})
        assert run_query(client, "SELECT 1").status_code == 200
        assert run_query(client, "SELECT 1", name="gone").status_code == 502
        assert run_without_form(client).status_code == 403
        client.post("/login", data={"key": keys.add(Key("", "elsewhere", "", ("ask",), sources=("other",)))})
        token = page(client, "/").xpath("//input[@name='token']/@value")[0]
        reply = client.post("/source", data={"token": token, "name": "shop", "query": "SELECT 1"})
        assert reply.status_code == 404


def run_without_form(client):
    return client.post("/source", data={"name": "shop", "query": "SELECT 1"})


def test_a_session_ends_with_its_key(guarded):
    server, keys = guarded
    key = keys.add(Key("", "short", "", ("ask",)))
    with httpx.Client(base_url=server.address) as client:
        client.post("/login", data={"key": key})
        assert client.get("/").status_code == 200
        keys.revoke(key.split("_")[1])
        assert client.get("/").status_code == 303


@pytest.mark.parametrize("after", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_signing_in_leads_nowhere_else(guarded, after):
    server, keys = guarded
    key = keys.add(Key("", "any", "", ("ask",)))
    assert httpx.post(f"{server.address}/login", data={"key": key, "next": after}).headers["location"] == "/"


def test_sessions_end_and_are_bounded():
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    first = sessions.begin("a")
    assert sessions.find(first).key_id == "a"
    now[0] = 12 * 3600.0
    assert sessions.find(first) is None
    cookies = [sessions.begin(str(number)) for number in range(1001)]
    assert sessions.find(cookies[0]) is None
    assert sessions.find(cookies[-1]).key_id == "1000"


def test_marks_cut_a_text():
    found = pieces("The Volga is long", [Mark(4, 9, "link"), Mark(4, 9, "answer"), Mark(6, 12, "match", "w", 0.5)])
    assert [(piece.text, piece.kinds) for piece in found] == [
        ("The ", ()), ("Vo", ("link", "answer")), ("lga", ("link", "answer", "match")), (" is", ("match",)),
        (" long", ()),
    ]  # fmt: skip
    assert pieces("", []) == []
    assert pieces("abc", [Mark(2, 9, "link")]) == pieces("abc", [])
    assert [piece.text for piece in pieces("ab", [replace(Mark(0, 1, "link"), kind="answer")])] == ["a", "b"]


def test_words_are_found_whole():
    match = {"query_token": "River", "word": "a", "similarity": 0.5, "where": "title"}
    assert [(mark.start, mark.word) for mark in matches_in("A banana a", [match], "title")] == [(9, "river")]
    assert matches_in("a", [match], "cell:0") == []
    assert [mark.start for mark in names_in("Ulm, not Ulmer; Ulm.", "Ulm")] == [0, 16]
    assert names_in("anything", " ") == []


def test_probabilities_in_words():
    assert [probability_words(chance) for chance in (0.9, 0.5, 0.3, 0.06, 0.01)] == [
        "very likely evidence", "likely evidence", "possibly evidence", "unlikely", "hardly evidence"
    ]  # fmt: skip


QUERIES = {
    "/": {}, "/home": {}, "/ask": {"q": QUESTION}, "/row": {"table": "european-rivers", "row": 0},
    "/passage": {"id": "volga"}, "/graph": {"id": "volga"}, "/status": {}, "/sources": {}, "/source": {"name": "shop"},
}  # fmt: skip
"""Every page that is not public, with what it needs to be asked."""
OPEN = {"/login", "/logout", "/static/{name}"}


def test_every_page_needs_a_key_of_its_scope(guarded):
    server, keys = guarded
    wrong = keys.add(Key("", "writer", "", ("write",)))
    right = {scope: keys.add(Key("", scope, "", (scope,))) for scope in ("ask", "admin")}
    paths = {route.path for route in (*router.routes, *source_router.routes)} - OPEN
    assert {path.removesuffix(".json") for path in paths} == set(QUERIES)
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for path in sorted(paths):
            query = QUERIES[path.removesuffix(".json")]
            assert client.get(path, params=query).status_code == (401 if path.endswith(".json") else 303), path
            for key, status in ((wrong, 403), (right["admin" if "status" in path else "ask"], 200)):
                reply = client.get(path, params=query, headers={"Authorization": f"Bearer {key}"})
                assert reply.status_code == status, (path, status)

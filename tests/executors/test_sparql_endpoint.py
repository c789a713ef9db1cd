"""A remote endpoint: a real `oxigraph serve-read-only`, and servers that misbehave."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from helios.errors import QueryFailed, QueryTimeout, SourceError, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.sparql_endpoint import RESULTS, SparqlEndpointExecutor
from helios.executors.values import Iri, Literal

ASK = NativeQuery(Language.SPARQL, "ASK {}")
TRUE = json.dumps({"head": {}, "boolean": True})


def sparql(text: str) -> NativeQuery:
    return NativeQuery(Language.SPARQL, text)


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory, oxigraph_server) -> Iterator[SparqlEndpointExecutor]:
    folder = tmp_path_factory.mktemp("endpoint")
    (folder / "a.nt").write_text(
        "".join(f'<n:{i}> <p:to> <n:{(i + 1) % 500}> .\n<n:{i}> <p:name> "node {i}"@en .\n' for i in range(500))
    )
    making = "import sys; from pyoxigraph import Store; Store(sys.argv[1]).load(path=sys.argv[2])"
    subprocess.run([sys.executable, "-c", making, str(folder / "store"), str(folder / "a.nt")], check=True)
    executor = SparqlEndpointExecutor(oxigraph_server(Path(folder / "store"), "--timeout-s", "20"))
    yield executor
    executor.close()


Answer = Callable[[BaseHTTPRequestHandler], None]


def send(handler: BaseHTTPRequestHandler, body: str, *, status: int = 200, kind: str = RESULTS, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body.encode())


def test_rows(executor: SparqlEndpointExecutor):
    result = executor.execute(sparql("SELECT ?s ?n ?none { ?s <p:to> <n:2> ; <p:name> ?n }"))
    assert result.columns == ("s", "n", "none")
    assert result.rows == ((Iri("n:1"), Literal("node 1", "", "en"), None),)
    assert executor.execute(ASK).rows == ((True,),)


def test_caps_end_the_reading(executor: SparqlEndpointExecutor):
    everything = sparql("SELECT * { ?s ?p ?o . ?a ?b ?c }")
    rows = executor.execute(everything, Limits(max_rows=5))
    assert (len(rows), rows.truncated) == (5, "rows")
    size = executor.execute(everything, Limits(max_bytes=2048, max_rows=10**6))
    assert 0 < len(size) < 500
    assert size.truncated == "bytes"


def test_a_runaway_query_is_given_up(executor: SparqlEndpointExecutor, within: Any):
    text = sparql("SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }")
    executor.check(text)
    with within(2.0), pytest.raises(QueryTimeout):
        executor.execute(text, Limits(timeout=1.0))
    assert executor.execute(ASK).rows == ((True,),)


def test_the_engine_says_what_is_wrong(executor: SparqlEndpointExecutor):
    with pytest.raises(QueryFailed, match="unbound"):
        executor.execute(sparql("SELECT ?s ?p { ?s ?p ?o } GROUP BY ?s"))


def test_a_server_that_trickles_is_given_up(serve, within):
    def trickle(handler: BaseHTTPRequestHandler) -> None:
        send(handler, '{"head": {"vars": ["x"]}, "results": {"bindings": [')
        for _ in range(200):
            handler.wfile.write(b" ")
            time.sleep(0.05)

    executor = SparqlEndpointExecutor(serve(trickle))
    with within(1.7), pytest.raises(QueryTimeout):
        executor.execute(ASK, Limits(timeout=0.7))


def test_headers_that_trickle_are_given_up(serve, within):
    def trickle(handler: BaseHTTPRequestHandler) -> None:
        for i in range(200):
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n" if i == 0 else b"X: y\r\n")
            time.sleep(0.05)

    with within(1.7), pytest.raises(QueryTimeout):
        SparqlEndpointExecutor(serve(trickle)).execute(ASK, Limits(timeout=0.7))


def test_an_endless_value_ends_at_the_cap(serve):
    def endless(handler: BaseHTTPRequestHandler) -> None:
        send(handler, '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "')
        while True:
            handler.wfile.write(b"x" * 65536)

    result = SparqlEndpointExecutor(serve(endless)).execute(sparql("SELECT ?x {}"), Limits(max_bytes=1024))
    assert (result.rows, result.truncated) == ((), "bytes")


def test_redirects_stay_on_the_host(serve):
    elsewhere = []
    other = serve(lambda handler: elsewhere.append(handler.path))
    executor = SparqlEndpointExecutor(serve(lambda handler: send(handler, "", status=307, Location=other)))
    with pytest.raises(SourceUnavailable, match="redirects to"):
        executor.execute(ASK)
    assert elsewhere == []


def test_a_redirect_on_the_host_is_followed_with_the_query(serve):
    def answer(handler) -> None:
        if handler.path == "/sparql":
            send(handler, "", status=308, Location="/sparql/")
        else:
            send(handler, json.dumps({"head": {}, "boolean": handler.form["query"] == ["ASK {}"]}))

    assert SparqlEndpointExecutor(serve(answer)).execute(ASK).rows == ((True,),)


def test_redirects_end(serve):
    executor = SparqlEndpointExecutor(serve(lambda handler: send(handler, "", status=302, Location="/sparql")))
    with pytest.raises(SourceUnavailable, match="redirects more than"):
        executor.execute(ASK)


@pytest.mark.parametrize(
    ("body", "status", "kind", "error", "message"),
    [
        ("malformed query", 400, "text/plain", QueryFailed, "400 Bad Request: malformed query"),
        ("out of memory", 500, "text/plain", QueryFailed, "out of memory"),
        ("", 401, "text/plain", SourceUnavailable, "401"),
        ("", 404, "text/plain", SourceUnavailable, "404"),
        ("", 503, "text/plain", SourceUnavailable, "503"),
        ("", 504, "text/plain", QueryTimeout, "stopped"),
        ("<html>", 200, "text/html", SourceUnavailable, "answers text/html"),
        ("{", 200, RESULTS, QueryFailed, "no SPARQL result"),
        ("[]", 200, RESULTS, QueryFailed, "no SPARQL result"),
        ('{"head": {}}', 200, RESULTS, QueryFailed, "no SPARQL result"),
        ('{"head": {"vars": ["x"]}, "results": {"bindings": [7]}}', 200, RESULTS, QueryFailed, "no SPARQL result"),
        ('{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {}}]}}', 200, RESULTS, QueryFailed, "no SPARQL"),
        (
            '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "?"}}]}}',
            200,
            RESULTS,
            QueryFailed,
            "type",
        ),
        ("", 200, RESULTS, QueryFailed, "no SPARQL result"),
    ],
)
def test_replies_that_are_no_results(serve, body: str, status: int, kind: str, error: type[SourceError], message: str):
    executor = SparqlEndpointExecutor(serve(lambda handler: send(handler, body, status=status, kind=kind)))
    with pytest.raises(error, match=message):
        executor.execute(sparql("SELECT ?x {}"))


def test_credentials_and_the_deadline_are_sent(serve):
    seen = []

    def answer(handler) -> None:
        seen.append((handler.headers["Authorization"], handler.form.get("timeout")))
        send(handler, TRUE)

    url = serve(answer)
    SparqlEndpointExecutor(url, token="abc", timeout_parameter="timeout").execute(ASK, Limits(timeout=2.5))
    SparqlEndpointExecutor(url, user="me", password="pw").execute(ASK)
    assert seen == [("Bearer abc", ["2500"]), ("Basic bWU6cHc=", None)]


def test_a_server_that_is_not_there():
    with pytest.raises(SourceUnavailable, match="127.0.0.1"):
        SparqlEndpointExecutor("http://127.0.0.1:1/sparql").execute(ASK)


@pytest.mark.parametrize(
    "url", ["ftp://host/", "file:///etc/passwd", "nonsense", "http://", "http://a b/", "http://[/"]
)
def test_addresses_that_are_none(url: str):
    with pytest.raises(SourceUnavailable, match="expected the http"):
        SparqlEndpointExecutor(url)


def test_closing_ends_a_query_under_way(serve, within):
    executor = SparqlEndpointExecutor(serve(lambda handler: time.sleep(5)))
    threading.Timer(0.3, executor.close).start()
    with within(2.0), pytest.raises(SourceUnavailable, match="closed"):
        executor.execute(ASK, Limits(timeout=4.0))
    with pytest.raises(SourceUnavailable, match="closed"):
        executor.execute(ASK)

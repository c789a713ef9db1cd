"""SPARQL endpoints that send anything but results: typed errors, within the deadline, in little memory."""

import os
import resource
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceError, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.sparql.terms import literal_value, term_text
from helios.executors.sparql_endpoint import RESULTS, SparqlEndpointExecutor
from helios.executors.values import Iri, Literal

ROOM = 300 * 2**20
SECONDS = 3.0
QUERY = NativeQuery(Language.SPARQL, "SELECT ?x {}")
START = '{"head":{"vars":["x"]},"results":{"bindings":['
A = '{"type":"uri","value":"a:a"}'
XSD = "http://www.w3.org/2001/XMLSchema#"
Serve = Callable[[Callable[[Any], None]], str]


def _triple(depth: int) -> str:
    return '{"type":"triple","value":{"subject":' * depth + A + f',"predicate":{A},"object":{A}}}}}' * depth


REFUSED = {
    "deep list": "[" * 400_000,
    "deep map": '{"a":' * 100_000,
    "deep list in the head": '{"head":' + "[" * 400_000,
    "deep list in a row": START + '{"x":{"type":"uri","value":' + "[" * 400_000,
    "deep part that is not looked at": '{"meta":' + '[{"a":' * 200_000,
    "3,000,000 variables": '{"head":{"vars":[' + '"a",' * 3_000_000 + '"b"]},"results":{"bindings":[{}]}}',
    "a row of 1,000,000 names": START + "{" + ",".join(f'"k{i}":0' for i in range(1_000_000)) + "}]}}",
    "a row in a name with a dot": '{"head":{"vars":["x"]},"results.bindings":[{' + '"a":{},' * 1_000_000 + '"x":0}]}',
    "deep triples": START + '{"x":' + _triple(1000) + "}]}}",
    "a number of 5,000 digits": START + '{"x":{"type":"literal","value":' + "9" * 5000 + "}}]}}",
    "a float that is none": '{"head":{"vars":[1e999]},"results":{"bindings":[{}]}}',
    "variables that are no text": '{"head":{"vars":[1,null]},"results":{"bindings":[{}]}}',
    "a value that is a map": START + '{"x":{"type":"literal","value":{"a":[1]}}}]}}',
    "an IRI that is a number": START + '{"x":{"type":"uri","value":7}}]}}',
    "a datatype that is a list": START + '{"x":{"type":"literal","value":"a","datatype":[1]}}]}}',
    "a language that is a list": START + '{"x":{"type":"literal","value":"a","xml:lang":["a"]}}]}}',
    "a type that is a list": START + '{"x":{"type":["uri"],"value":"a"}}]}}',
    "a term that is a list": START + '{"x":["uri"]}]}}',
    "half a triple": START + '{"x":{"type":"triple","value":[1]}}]}}',
    "a variable without a name": START + '{"y":' + A + "}]}}",
    "rows before the head": '{"results":{"bindings":[{"x":' + A + '}]},"head":{"vars":["x"]}}',
    "a part of a row": START + '{"x":{"type":"uri"',
}
REDIRECTS = [
    "http://[::1", "http://127.0.0.1:99999/", "http://127.0.0.1:abc/", "javascript:alert(1)", "/\x01x", "/a b", "/é",
    "http://user:s3cret@example.org/", "http://127.0.0.1:80:80/", "http://\u2100/", "http://example.org/?token=s3cret",
    "/x#s3cret", "/" + "x" * 70_000, "", "//",
]  # fmt: skip


@pytest.fixture
def little_memory() -> Iterator[None]:
    """This process may take ROOM more than it has, and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def _sends(body: str) -> Callable[[Any], None]:
    def answer(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", RESULTS)
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


def _ask(url: str) -> Any:
    return SparqlEndpointExecutor(url).execute(QUERY, Limits(timeout=SECONDS))


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("little_memory")
def test_a_reply_that_is_no_result(serve: Serve, body: str, within: Any) -> None:
    with within(SECONDS + 1.0), pytest.raises(QueryFailed, match="no SPARQL result in JSON"):
        _ask(serve(_sends(body)))


@pytest.mark.usefixtures("little_memory")
def test_a_number_without_end_meets_the_deadline(serve: Serve, within: Any) -> None:
    with within(SECONDS + 1.0), pytest.raises((QueryFailed, QueryTimeout)):
        _ask(serve(_sends('{"meta":' + "9" * 10_000_000 + "}")))


def test_rows_end_with_their_list(serve: Serve) -> None:
    second = START + "{}]" + ',"bindings":[{"x":' + A + "}]}}"
    assert _ask(serve(_sends(second))).rows == ((None,),)
    assert _ask(serve(_sends('{"head":{},"boolean":true' + ',"boolean":false' * 1000 + "}"))).rows == ((True,),)
    assert _ask(serve(_sends(START + '{"x":' + _triple(5) + "}]}}"))).rows[0][0][1] == Iri("a:a")


@pytest.mark.parametrize("location", REDIRECTS, ids=[location[:30] for location in REDIRECTS])
def test_an_odd_redirect(serve: Serve, location: str) -> None:
    def answer(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.0 307 Moved\r\nLocation: " + location.encode() + b"\r\n\r\n")

    with pytest.raises(SourceUnavailable) as refusal:
        _ask(serve(answer))
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.0 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"HTTP/1.0 abc OK\r\n\r\n", b"junk\r\n\r\n", b"",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
    ],
)  # fmt: skip
def test_http_that_is_none(serve: Serve, response: bytes) -> None:
    with pytest.raises(SourceError):
        _ask(serve(lambda handler: handler.wfile.write(response)))


@pytest.mark.parametrize(
    ("text", "datatype"),
    [
        ("1E+300000000", "decimal"), ("9" * 5000, "decimal"), ("9" * 5000, "integer"), ("1_000", "integer"),
        ("NaN", "decimal"), ("1e999999999", "double"), ("infinity", "double"), ("٣", "integer"), ("9" * 5000, "double"),
    ],
)  # fmt: skip
def test_a_number_that_its_datatype_does_not_have_stays_text(text: str, datatype: str) -> None:
    assert literal_value(text, XSD + datatype) == Literal(text, XSD + datatype)


def test_numbers_stay_numbers() -> None:
    assert literal_value("-12", XSD + "int") == -12
    assert literal_value("+1.50", XSD + "decimal") == Decimal("1.50")
    assert literal_value("-1.5e3", XSD + "double") == -1500.0
    assert literal_value("INF", XSD + "float") == float("inf")


LONG = [Decimal("1E+300000000"), Decimal("1E-300000000"), Decimal("NaN"), 10**5000]


@pytest.mark.parametrize("value", LONG, ids=["large", "small", "none", "whole"])
@pytest.mark.usefixtures("little_memory")
def test_a_parameter_that_would_be_very_long_is_refused(value: Any) -> None:
    with pytest.raises(QueryRejected, match="digits"):
        term_text(value)

"""What every request passes first: host, origin, body, time; and what is logged of it. Rude clients on raw sockets."""

import json
import logging
import socket
import time

import httpx
import pytest

from serving.gate import JsonLines, too_deep

QUESTION = {"question": "Which is the longest river of Europe?"}


@pytest.fixture(scope="module")
def strict(start_server):
    """A server whose limits a test can reach."""
    return start_server(
        body_bytes=2000, body_seconds=0.5, header_seconds=0.5, connections=20, allowed_hosts=("helios.example",),
        allowed_origins=("https://ours.example",),
    )  # fmt: skip


def dialled(server) -> socket.socket:
    return socket.create_connection(server.bound.getsockname()[:2], timeout=10)


def read_all(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.1:{port}", "[::1]", "HELIOS.example:99"])
def test_hosts_that_are_ours(strict, host):
    port = strict.bound.getsockname()[1]
    assert httpx.get(f"{strict.address}/livez", headers={"Host": host.format(port=port)}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1@evil.example", "0.0.0.0"])
def test_other_hosts_are_refused(strict, host):
    reply = httpx.get(f"{strict.address}/v1/indexes", headers={"Host": host})
    assert (reply.status_code, reply.json()["code"]) == (421, "host_refused")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://", "http://["]
)
def test_scripts_of_other_sites_are_refused(strict, origin):
    reply = httpx.post(f"{strict.address}/v1/search", json=QUESTION, headers={"Origin": origin})
    assert (reply.status_code, reply.json()["code"]) == (403, "origin_refused")
    assert "access-control-allow-origin" not in reply.headers


def test_our_own_scripts_and_allowed_ones_are_not(strict):
    for origin in (strict.address, "https://ours.example"):
        reply = httpx.post(f"{strict.address}/v1/search", json=QUESTION, headers={"Origin": origin}, timeout=60)
        assert reply.status_code == 200
        assert reply.headers.get("access-control-allow-origin") == (None if origin == strict.address else origin)
    asked = {"Origin": "https://ours.example", "Access-Control-Request-Method": "POST"}
    reply = httpx.options(f"{strict.address}/v1/search", headers=asked)
    assert reply.headers["access-control-allow-origin"] == "https://ours.example"
    assert "authorization" in reply.headers["access-control-allow-headers"].lower()


def test_a_large_body_is_refused_before_it_is_read(strict):
    reply = httpx.post(f"{strict.address}/v1/search", json={"question": "x" * 3000})
    assert (reply.status_code, reply.json()["code"]) == (413, "body_too_large")


def test_a_body_without_end_is_cut_off(strict):
    with dialled(strict) as rude:
        rude.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")  # fmt: skip
        chunk = b"400\r\n" + b"[" * 1024 + b"\r\n"
        try:
            for _ in range(1000):
                rude.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            return
        assert b"413" in read_all(rude).partition(b"\r\n")[0]


def test_half_a_body_does_not_hold_the_server(strict):
    with dialled(strict) as rude:
        rude.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Content-Length: 100\r\n\r\n{")  # fmt: skip
        started = time.monotonic()
        reply = read_all(rude)
    assert b"408" in reply.partition(b"\r\n")[0]
    assert b"body_slow" in reply
    assert time.monotonic() - started < 8


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTTP/1.1\r\nHost: loc"])
def test_half_a_head_is_given_up(strict, sent):
    with dialled(strict) as rude:
        rude.sendall(sent)
        started = time.monotonic()
        assert read_all(rude) == b""
    assert 0.3 < time.monotonic() - started < 8


def test_bytes_that_trickle_do_not_prolong_the_head(strict):
    with dialled(strict) as rude:
        started = time.monotonic()
        try:
            for byte in b"GET /livez HTTP/1.1\r\nX-Long: " + b"x" * 200:
                rude.sendall(bytes([byte]))
                time.sleep(0.05)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert time.monotonic() - started < 8


def test_a_head_that_is_too_long(strict):
    with dialled(strict) as rude:
        rude.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 100_000)
        assert b"400" in read_all(rude).partition(b"\r\n")[0]


def test_too_many_connections_do_not_lock_others_out_for_long(strict):
    idle = [dialled(strict) for _ in range(40)]
    end = time.monotonic() + 10
    while True:
        try:
            assert httpx.get(f"{strict.address}/livez").status_code == 200
            break
        except httpx.TransportError:
            assert time.monotonic() < end
            time.sleep(0.1)
    for connection in idle:
        connection.close()


@pytest.mark.parametrize(
    ("content", "media_type", "code"),
    [
        (b'{"question": "Who?"}', "text/plain", "media_type"),
        (b'{"question": "Who?"}', "application/x-www-form-urlencoded", "media_type"),
        (b"{", "application/json", "json_invalid"),
        (b"\xff\xfe", "application/json", "json_invalid"),
        (b'{"question": ' + b"[" * 200 + b"]" * 200 + b"}", "application/json", "json_too_deep"),
        (b"[" * 1900, "application/json", "json_too_deep"),
        (b'{"question": "' + b"[" * 200 + b'"}', "application/json", None),
        (b"", "application/json", "invalid"),
    ],
)
def test_hostile_bodies(strict, content, media_type, code):
    headers = {"Content-Type": media_type}
    reply = httpx.post(f"{strict.address}/v1/search", content=content, headers=headers, timeout=60)
    assert reply.json().get("code") == code


def test_depth_counts_brackets_outside_of_strings_alone():
    assert too_deep(b"[[[1]]]", 2)
    assert not too_deep(b"[[[1]]]", 3)
    assert not too_deep(rb'["[[[[", "\"[[[[", {}]', 2)
    assert not too_deep(b"[] [] [] []", 1)


@pytest.mark.parametrize("path", ["/healthz", "/v1/indexes", "/"])
def test_a_head_is_that_of_the_reply_to_get(client, path):
    whole, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert client.get(path).status_code == whole.status_code, "the connection is still in step"


def test_a_head_of_nothing(client):
    assert client.head("/nowhere").status_code == 404
    assert client.head("/v1/ask").status_code == 405
    assert client.head("/mcp").status_code == 405, "an event stream has no end"


def test_ids_of_requests_go_in_and_out(client):
    reply = client.post("/v1/search", json=QUESTION, headers={"X-Request-ID": "mine-1"})
    assert reply.headers["x-request-id"] == reply.json()["request_id"] == "mine-1"
    for wrong in ("a b", "x" * 81, 'a"b'):
        made = client.get("/livez", headers={"X-Request-ID": wrong}).headers["x-request-id"]
        assert made != wrong
        assert len(made) == 32


def line_of(caplog, request_id: str) -> str:
    """The log line of a request; it comes after the reply."""
    for _ in range(200):
        for record in caplog.records:
            if getattr(record, "fields", {}).get("request_id") == request_id:
                return JsonLines().format(record)
        time.sleep(0.01)
    raise AssertionError(request_id)


def test_logs_hold_no_question_unless_they_shall(client, start_server, caplog):
    caplog.set_level(logging.INFO, logger="serving.requests")
    client.post("/v1/search", json={"question": "a private matter"}, headers={"X-Request-ID": "quiet"})
    line = json.loads(line_of(caplog, "quiet"))
    assert (line["request_id"], line["route"], line["status"], line["index"]) == ("quiet", "/v1/search", 200, "sample")
    assert "private" not in json.dumps(line)
    talkative = start_server(log_questions=True)
    body, headers = {"question": "a public\nmatter"}, {"X-Request-ID": "loud"}
    httpx.post(f"{talkative.address}/v1/search", json=body, headers=headers, timeout=60)
    text = line_of(caplog, "loud")
    assert json.loads(text)["question"] == "a public\nmatter"
    assert "\n" not in text


def test_labels_of_metrics_stay_few(client):
    for number in range(5):
        client.get(f"/v1/indexes/sample/passages/none-{number}")
        client.get(f"/nothing/{number}")
    text = client.get("/metrics").text
    assert "none-1" not in text
    assert "/nothing" not in text
    assert 'route="/v1/indexes/{name}/passages/{passage_id:path}",status="404"' in text
    for name in ("helios_stage_seconds_bucket", "helios_queue_waiting", "helios_index_generation", "helios_ready 1.0"):
        assert name in text

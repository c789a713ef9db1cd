"""A server that is changed, called by rude clients, and fails to reach its language model, while others ask: they get
what they would have got."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from helios.index.backup import back_up

pytestmark = pytest.mark.slow
QUESTION = "Which is the longest river of Europe?"
ANSWER = "Volga"


@pytest.fixture(scope="module")
def changed(sample_index, tmp_path_factory):
    """A copy of the sample index, to change."""
    return back_up(sample_index, tmp_path_factory.mktemp("faults") / "index").out


@contextmanager
def asking(address: str, right):
    """Two clients that ask until the end of the block; every reply has to be right. Yields their counts."""
    counts, wrong, ended = [0, 0], [], threading.Event()

    def work(number: int) -> None:
        with httpx.Client(base_url=address, timeout=120) as client:
            while not ended.is_set():
                reply = client.post("/v1/ask", json={"question": QUESTION, "limit": 1})
                if reply.status_code != 200 or not right(reply.json()):
                    wrong.append(reply.text)
                    return
                counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        ended.set()
        for thread in threads:
            thread.join(120)
    assert not wrong, wrong[0]
    assert min(counts) > 0


def test_an_index_is_changed_and_compacted_under_load(start_server, changed):
    """Each answer is that of one snapshot, and each snapshot is seen once its task is done."""
    server = start_server(indexes={"changed": changed})
    seen = set()

    def right(found: dict) -> bool:
        seen.add(found["coverage"]["generation"])
        return found["answer"]["text"] == ANSWER and found["coverage"]["generation"] == found["evidence"]["generation"]

    with asking(server.address, right), httpx.Client(base_url=server.address, timeout=120) as client:
        for number, (path, body) in enumerate(
            [
                ("/v1/indexes/changed/documents", {"passages": [{"id": "a", "text": "A text about other things."}]}),
                ("/v1/indexes/changed/documents", {"passages": [{"id": "b", "text": "Another one, on boats."}]}),
                ("/v1/tasks", {"operation": "compact", "whole": True}),
            ],
            start=2,
        ):
            task = client.post(path, json=body).json()
            until = time.monotonic() + 300
            while task["state"] in ("queued", "running"):
                assert time.monotonic() < until
                task = client.get(f"/v1/tasks/{task['id']}", params={"wait": 30}).json()
            assert task["state"] == "done", task
            found = client.post("/v1/search", json={"question": QUESTION}).json()
            assert found["coverage"]["generation"] == task["result"]["served_generation"] == number
    assert seen <= {1, 2, 3, 4}
    assert 1 in seen


def test_rude_clients_are_not_noticed_by_others(start_server, changed):
    server = start_server(indexes={"changed": changed}, header_seconds=1.0, body_seconds=1.0)
    where, rude = server.bound.getsockname()[:2], []
    body = json.dumps({"question": QUESTION, "stream": True}).encode()
    head = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with asking(server.address, lambda found: found["answer"]["text"] == ANSWER) as counts:
        for _ in range(10):
            for sent in (
                b"GET /livez HTTP/1.1\r\nHost: loc",
                head + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"[" * 1024 + b"\r\n",
                head + b"Content-Length: 100000\r\n\r\n{",
                b"\x16\x03\x01" + b"\x00" * 50,
            ):
                connection = socket.create_connection(where, timeout=10)
                connection.sendall(sent)
                rude.append(connection)
            with socket.create_connection(where, timeout=10) as leaving:
                leaving.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                leaving.recv(200)
        before, until = list(counts), time.monotonic() + 60
        while min(count - then for count, then in zip(counts, before, strict=True)) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
    for connection in rude:
        connection.close()
    until = time.monotonic() + 30
    while server.serving.admission.working:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert httpx.get(f"{server.address}/readyz").status_code == 200


def broken_model(replies: bytes | None) -> socket.socket:
    """A port that says this and closes to whoever calls; with None it never says anything."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)

    def listen() -> None:
        kept = []
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            if replies is None:
                kept.append(connection)
                continue
            with connection:
                connection.recv(1 << 20)
                connection.sendall(replies)

    threading.Thread(target=listen, daemon=True).start()
    return listening


NONSENSE = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"choices": 7'


@pytest.mark.parametrize("replies", [None, b"", NONSENSE], ids=["hangs", "dies", "talks nonsense"])
def test_a_broken_language_model_is_not_noticed_by_others(start_server, sample_index, replies):
    """One permit: whoever waits for the model must not hold it."""
    with broken_model(replies) as model:
        where = f"llm.base_url=http://127.0.0.1:{model.getsockname()[1]}/v1"
        patience = "advanced.llm.question_seconds=6"
        server = start_server(
            indexes={"sample": sample_index}, permits=1, seconds=120.0,
            overrides=(where, "llm.model=any", "reading.reader=llm", patience),
        )  # fmt: skip
        with ThreadPoolExecutor(4) as pool, httpx.Client(base_url=server.address, timeout=180) as client:
            body = {"question": QUESTION, "limit": 1}
            asked = [pool.submit(client.post, "/v1/ask", json=body) for _ in range(4)]
            if replies is None:
                assert client.post("/v1/search", json={"question": QUESTION}).status_code == 200
                assert not all(one.done() for one in asked)
            for one in asked:
                found = one.result()
                assert found.status_code == 200, found.text
                assert found.json()["degraded"]
        until = time.monotonic() + 30
        while server.serving.admission.working:
            assert time.monotonic() < until
            time.sleep(0.05)

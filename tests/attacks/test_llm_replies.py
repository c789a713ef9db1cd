"""Language-model servers that send anything but replies: failures within the deadline, in little memory."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from helios.config import LanguageModelSettings
from helios.llm import Failure, LlmClient, Message, Request

pytest.importorskip("openai", reason="openai is not installed (extra llm)")

SECONDS = 3.0
ROOM = 256 * 2**20
PIECE = 2**16


class Rows(BaseModel):
    rows: list[int]


def _content(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


def _endless(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece


def _long(start: bytes, piece: bytes, times: int) -> Iterator[bytes]:
    yield start
    for _ in range(times):
        yield piece


JSON = {"Content-Type": "application/json"}
BODIES: dict[str, tuple[int, dict[str, str], Callable[[], Iterator[bytes]]]] = {
    "without an end": (200, JSON, lambda: _endless(b" " * PIECE)),
    "a text without an end": (200, JSON, lambda: _long(b'{"choices":[{"message":{"content":"', b"a" * PIECE, 10**6)),
    "an error without an end": (400, JSON, lambda: _endless(b"[" * PIECE)),
    "a stream of events without an end": (
        200, {"Content-Type": "text/event-stream"}, lambda: _endless(b'data: {"choices":[]}\n\n' * 1000)
    ),
    "compressed": (200, JSON | {"Content-Encoding": "gzip"}, lambda: iter([gzip.compress(b" " * 2**20)])),
    "deep": (200, JSON, lambda: iter([b"[" * 2**21])),
    "deep parts that nobody reads": (200, JSON, lambda: iter([b'{"choices":[],"usage":{"a":' + b"[" * 2**21])),
    "a deep text": (200, JSON, lambda: iter([_content("[" * 2**21)])),
    "a deep error": (500, JSON, lambda: iter([b'{"error":' + b"[" * 2**21])),
    "a number of a million digits": (200, JSON, lambda: iter([_content('{"rows":[' + "9" * 2**20 + "]}")])),
    "a million choices": (200, JSON, lambda: iter([b'{"choices":[' + b"{}," * 2**20 + b"{}]}"])),
    "a million rows of no number": (200, JSON, lambda: iter([_content('{"rows":[' + "[]," * 2**20 + "1]}")])),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("status", "headers", "pieces"), BODIES.values(), ids=BODIES)
def test_a_reply_of_any_size_or_depth(
    serve: Any, within: Any, peak: Callable[[], int], status: int, headers: dict[str, str],
    pieces: Callable[[], Iterator[bytes]],
) -> None:  # fmt: skip
    def answer(handler: Any) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        for piece in pieces():
            handler.wfile.write(piece)

    request = Request((Message("user", "Which rows?"),), Rows, 32)
    settings = LanguageModelSettings(base_url=serve(answer), model="any", call_seconds=SECONDS)
    with LlmClient.open(settings) as client, within(SECONDS + 1.0):
        (outcome,) = client.ask([request], budget=client.budget(deadline=time.monotonic() + SECONDS))
    assert isinstance(outcome, Failure)
    assert len(str(outcome)) < 2000
    assert peak() < ROOM

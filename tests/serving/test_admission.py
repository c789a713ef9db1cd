"""Permits, the queue, refusals, batches that give way, clients that leave: the parts alone and over a real server."""

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from pydantic import BaseModel

from helios.config import LanguageModelSettings
from helios.llm.backend import Undelivered
from helios.llm.client import LlmClient
from helios.llm.outcome import Failure, FailureKind
from helios.llm.request import Message, Request
from serving.admission import Admission, Rank
from serving.problems import Problem
from serving.watch import Abandoned, Watch, WatchedStage, watching

QUESTION = "Which is the longest river of Europe?"


class Held:
    """Work that lasts until it is let go."""

    def __init__(self) -> None:
        self.begun, self.free = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.free.wait(30)
        return "done"


@pytest.fixture
def admission():
    admission = Admission(permits=1, queue=2)
    yield admission
    admission.close()


def test_beyond_the_queue_there_is_a_refusal(admission, within):
    async def run() -> None:
        held = Held()
        first = asyncio.create_task(admission.run(held, Watch(10)))
        await asyncio.to_thread(held.begun.wait)
        waiting = [asyncio.create_task(admission.run(lambda: "next", Watch(10))) for _ in range(2)]
        await asyncio.sleep(0)
        with within(0.05), pytest.raises(Problem) as refused:
            await admission.run(lambda: "too many", Watch(10))
        assert refused.value.code == "busy"
        assert int(refused.value.headers["Retry-After"]) >= 1
        held.free.set()
        assert [await first, *await asyncio.gather(*waiting)] == ["done", "next", "next"]
        await asyncio.sleep(0)
        assert admission.working == 0

    asyncio.run(run())


def test_a_turn_that_would_come_too_late_is_refused_at_once(admission):
    async def run() -> None:
        held = Held()
        admission.mean_seconds, admission.measured = 5.0, True
        first = asyncio.create_task(admission.run(held, Watch(60)))
        await asyncio.to_thread(held.begun.wait)
        second = asyncio.create_task(admission.run(lambda: "next", Watch(1)))  # nobody waits before it
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await admission.run(lambda: "too late", Watch(4))
        assert refused.value.code == "busy"
        third = asyncio.create_task(admission.run(lambda: "in time", Watch(6)))
        await asyncio.sleep(0)
        held.free.set()
        assert [await first, await second, await third] == ["done", "next", "in time"]

    asyncio.run(run())


def test_single_questions_go_before_batches(admission):
    async def run() -> None:
        held, order = Held(), []
        first = asyncio.create_task(admission.run(held, Watch(10)))
        await asyncio.to_thread(held.begun.wait)
        later = [
            asyncio.create_task(admission.run(lambda rank=rank: order.append(rank), Watch(10), rank=rank))
            for rank in (Rank.BATCH, Rank.BATCH, Rank.SINGLE, Rank.SINGLE)
        ]
        await asyncio.sleep(0)
        held.free.set()
        await asyncio.gather(first, *later)
        assert order == [Rank.SINGLE, Rank.SINGLE, Rank.BATCH, Rank.BATCH]

    asyncio.run(run())


def test_who_leaves_the_queue_takes_no_permit(admission):
    async def run() -> None:
        held = Held()
        first = asyncio.create_task(admission.run(held, Watch(10)))
        await asyncio.to_thread(held.begun.wait)
        left = asyncio.create_task(admission.run(lambda: pytest.fail("nobody waits for it"), Watch(10)))
        late = asyncio.create_task(admission.run(lambda: pytest.fail("it was late"), Watch(0.05)))
        await asyncio.sleep(0)
        left.cancel()
        with pytest.raises(Problem, match="deadline"):
            await late
        held.free.set()
        assert await first == "done"
        assert await admission.run(lambda: "next", Watch(10)) == "next"
        await asyncio.sleep(0)
        assert (admission.working, [len(line) for line in admission.waiting.values()]) == (0, [0, 0])

    asyncio.run(run())


def test_a_permit_is_held_until_the_thread_ends(admission):
    async def run() -> None:
        held, watch = Held(), Watch(0.05)
        with pytest.raises(Problem, match="deadline"):
            await admission.run(held, watch, grace=0.05)
        assert admission.working == 1
        with pytest.raises(Abandoned):
            watch.stage("the next one")
        held.free.set()
        assert await admission.run(lambda: "next", Watch(10)) == "next"

    asyncio.run(run())


def test_what_fails_frees_its_permit(admission):
    async def run() -> None:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await admission.run(lambda: 1 // 0, Watch(10))
        await asyncio.sleep(0)
        assert admission.working == 0

    asyncio.run(run())


def test_stages_of_the_engine_end_where_nobody_waits(engine):
    stages, watch = [WatchedStage(stage) for stage in engine.pipeline.stages], Watch(10)
    state = engine.begin(QUESTION)
    with watching(watch):
        state = stages[0].run(state)
        watch.cancel()
        with pytest.raises(Abandoned):
            stages[1].run(state)


@pytest.fixture(scope="module")
def narrow(start_server):
    """A server with one permit and one place in the queue."""
    return start_server(permits=1, queue=1)


def occupied(server) -> Held:
    """The server's only permit is held until it is let go."""
    held, questions = Held(), server.serving.questions
    loop = server.servers[0].get_loop()
    asyncio.run_coroutine_threadsafe(questions.admission.run(held, Watch(60), grace=60), loop)
    assert held.begun.wait(10)
    return held


def waiting(server) -> int:
    return sum(map(len, server.serving.admission.waiting.values()))


def until(condition, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_full_server_refuses_at_once(narrow, quick):
    held = occupied(narrow)
    with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=narrow.address, timeout=60) as client:
        accepted = pool.submit(client.post, "/v1/search", json={"question": QUESTION})
        until(lambda: waiting(narrow) == 1)
        with httpx.Client(base_url=narrow.address, timeout=60) as other:
            for path in ("/v1/search", "/v1/ask"):
                refused = other.post(path, json={"question": QUESTION, **({"stream": True} if "ask" in path else {})})
                assert (refused.status_code, refused.json()["code"]) == (503, "busy")
                assert int(refused.headers["retry-after"]) >= 1
            quick(0.02, lambda: other.post("/v1/search", json={"question": QUESTION}))  # 40 ms with Nagle's algorithm
            assert other.get("/livez").status_code == other.get("/readyz").status_code == 200
            counted = other.get("/metrics").text
            assert 'helios_problems_total{code="busy"}' in counted
            assert 'helios_requests_total{route="/v1/search",status="503"}' in counted
        held.free.set()
        assert accepted.result().status_code == 200


def test_a_client_that_leaves_the_queue_is_forgotten(narrow):
    held = occupied(narrow)
    body = b'{"question": "Who?"}'
    head = "POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(narrow.bound.getsockname()[:2]) as rude:
        rude.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: waiting(narrow) == 1)
    until(lambda: waiting(narrow) == 0)
    held.free.set()
    assert httpx.post(f"{narrow.address}/v1/search", json={"question": QUESTION}).status_code == 200


def test_a_client_that_leaves_a_stream_stops_the_work(narrow):
    asked = narrow.serving.metrics.questions.labels("ask", "single")
    before = asked._value.get()
    with httpx.stream("POST", f"{narrow.address}/v1/ask", json={"question": QUESTION, "stream": True}) as reply:
        for line in reply.iter_lines():
            if line.startswith("event: stage"):
                break
    until(lambda: narrow.serving.admission.working == 0)
    assert asked._value.get() == before
    assert httpx.post(f"{narrow.address}/v1/search", json={"question": QUESTION}).status_code == 200


def test_only_so_many_batches(narrow):
    held = occupied(narrow)
    body = {"questions": [QUESTION]}
    limit = narrow.serving.settings.limits.batches
    with ThreadPoolExecutor(limit) as pool:
        under_way = [pool.submit(httpx.post, f"{narrow.address}/v1/batch", json=body, timeout=60) for _ in range(limit)]
        until(lambda: narrow.serving.batches == limit)
        refused = httpx.post(f"{narrow.address}/v1/batch", json=body)
        assert (refused.status_code, refused.json()["code"]) == (503, "busy")
        held.free.set()
        assert [reply.result().status_code for reply in under_way] == [200] * limit
    until(lambda: narrow.serving.batches == 0)
    too_many = httpx.post(f"{narrow.address}/v1/batch", json={"questions": [QUESTION] * 101})
    assert (too_many.status_code, too_many.json()["code"]) == (422, "invalid")


def test_many_clients_get_what_one_gets(server, client):
    """More than there are permits, of several kinds at once: every reply is the right one."""
    bodies = [{"question": f"{word} river", "limit": 3} for word in ("longest", "shortest", "European", "German")] * 4
    expected = [client.post("/v1/search", json=body).json()["evidence"]["edges"] for body in bodies[:4]]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda body: httpx.post(f"{server.address}/v1/search", json=body, timeout=60), bodies))
    assert [reply.json()["evidence"]["edges"] for reply in replies] == expected * 4


class HeldModel:
    """A language model that replies when it is told to, which a real one cannot be."""

    model = "held"

    def __init__(self) -> None:
        self.asked, self.may_reply = threading.Event(), threading.Event()

    async def reply(self, messages, schema, *, max_tokens, timeout):
        self.asked.set()
        await asyncio.to_thread(self.may_reply.wait, 30)
        return Undelivered(FailureKind.UNAVAILABLE, "it says nothing")

    async def close(self) -> None:
        self.may_reply.set()


class NoWords(BaseModel):
    """What it is asked for."""


@pytest.fixture
def held_model():
    """The model, and work that asks it."""
    model = HeldModel()
    with LlmClient(model, LanguageModelSettings(model="held")) as client:
        request = Request((Message("user", "Well?"),), NoWords, 32)
        yield model, lambda: client.ask([request], budget=client.budget())[0]


def test_whoever_waits_for_a_model_lends_its_permit(admission, held_model):
    """Others work meanwhile; the reply goes before those that wait, and all permits are there in the end."""
    model, ask = held_model

    async def run() -> None:
        order = []
        first = asyncio.create_task(admission.run(lambda: (ask(), order.append("replied")), Watch(30)))
        await asyncio.to_thread(model.asked.wait)
        held = Held()
        second = asyncio.create_task(admission.run(held, Watch(30)))
        await asyncio.to_thread(held.begun.wait)
        third = asyncio.create_task(admission.run(lambda: order.append("waited"), Watch(30)))
        model.may_reply.set()
        while not admission.returning:
            await asyncio.sleep(0.01)
        held.free.set()
        await asyncio.gather(first, second, third)
        await asyncio.sleep(0)
        assert (order, admission.working, admission.free) == (["replied", "waited"], 0, 1)

    asyncio.run(run())


def test_work_that_gets_no_permit_back_returns_none(admission, held_model):
    model, ask = held_model

    async def run() -> None:
        first = asyncio.create_task(admission.run(ask, Watch(1.0), grace=30))
        await asyncio.to_thread(model.asked.wait)
        held = Held()
        second = asyncio.create_task(admission.run(held, Watch(30)))
        await asyncio.to_thread(held.begun.wait)
        model.may_reply.set()
        assert isinstance(await first, Failure)
        assert (admission.working, len(admission.returning)) == (1, 0)
        held.free.set()
        await second
        await asyncio.sleep(0)
        assert (admission.working, admission.free) == (0, 1)

    asyncio.run(run())

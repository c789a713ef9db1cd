"""The client: schema, repair, cache, budget, deadlines and a concurrency limit over any backend."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol

from helios.config import LanguageModelSettings
from helios.errors import ConfigError
from helios.extras import installation
from helios.llm.backend import Backend, Reply, Undelivered
from helios.llm.budget import Budget, estimate_tokens
from helios.llm.cache import ReplyCache
from helios.llm.loop import EventLoop
from helios.llm.outcome import Answer, Failure, FailureKind, Outcome, Shape, Usage
from helios.llm.request import Message, Misfit, Request

_DELIVERIES = 2
"""Times that a call is sent where the server was at fault."""
_ECHOED_CHARACTERS = 2000
"""Of a reply that does not fit, what is shown to the model again."""
_elsewhere: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar("elsewhere", default=nullcontext)


@contextmanager
def elsewhere(waiting: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Within the block a thread that waits for a model does so within `waiting()`: its processor is free meanwhile."""
    token = _elsewhere.set(waiting)
    try:
        yield
    finally:
        _elsewhere.reset(token)


class LanguageModel(Protocol):
    """Anything that answers requests; what refiners and readers know."""

    def budget(self, *, deadline: float | None = None) -> Budget:
        """A fresh budget for one question; `deadline` is an instant of time.monotonic()."""
        ...

    def ask(self, requests: Sequence[Request[Shape]], *, budget: Budget) -> list[Outcome[Shape]]:
        """An outcome for every request, in their order; all are under way together, the first ones first."""
        ...


class LlmClient:
    """A language model as the engine sees it; safe to share between threads, one per process is enough.

    Calls run in an event loop of their own, in a thread that the first question starts, so that all questions
    share the connections and the limit of concurrent calls.
    """

    def __init__(self, backend: Backend, settings: LanguageModelSettings, *, cache: ReplyCache | None = None) -> None:
        self.backend = backend
        self.settings = settings
        self.cache = cache
        self._lock = threading.Lock()
        self._loop: EventLoop | None = None

    def __repr__(self) -> str:
        return f"LlmClient({self.settings.model!r} at {self.settings.base_url or self.settings.backend})"

    @classmethod
    def open(cls, settings: LanguageModelSettings) -> "LlmClient":
        """A client of the configured model; a server is sent nothing yet, a model in this process is loaded.

        Raises ConfigError where no model is configured or what it needs is missing; see `open_backend`.
        """
        cache = ReplyCache(settings.cache, entries=settings.cache_entries) if settings.cache else None
        return cls(open_backend(settings), settings, cache=cache)

    def budget(self, *, deadline: float | None = None) -> Budget:
        """A fresh budget for one question; `deadline` is an instant of time.monotonic()."""
        limits = self.settings
        return Budget(
            calls=limits.question_calls,
            tokens=limits.question_tokens,
            seconds=limits.question_seconds,
            deadline=deadline,
        )

    def ask(self, requests: Sequence[Request[Shape]], *, budget: Budget) -> list[Outcome[Shape]]:
        """An outcome for every request, in their order; all are under way together, the first ones first."""
        if not requests:
            return []
        loop = self._running()
        try:
            with _elsewhere.get()():
                return loop.run(self._ask_all(loop.slots, requests, budget))
        except CancelledError:
            return [Failure(FailureKind.UNAVAILABLE, "the client was closed") for _ in requests]

    def close(self) -> None:
        """End the calls that are under way and close the connections; a later question starts anew."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.close(self.backend.close())

    def __enter__(self) -> "LlmClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _running(self) -> EventLoop:
        """The event loop; a new one after a fork, which carries no threads over."""
        with self._lock:
            if self._loop is None or not self._loop.is_alive():
                self._loop = EventLoop(slots=self.settings.concurrency)
            return self._loop

    async def _ask_all(
        self, slots: asyncio.Semaphore, requests: Sequence[Request[Shape]], budget: Budget
    ) -> list[Outcome[Shape]]:
        return list(await asyncio.gather(*(self._ask(slots, request, budget) for request in requests)))

    async def _ask(self, slots: asyncio.Semaphore, request: Request[Shape], budget: Budget) -> Outcome[Shape]:
        """From the cache, or from the model; a reply that does not fit is sent back once with what is wrong."""
        key = request.key(self.backend.model)
        known = await self._recall(request, key)
        if known is not None:
            return known
        outcome, repair = await self._attempt(slots, request, request.messages, budget)
        if repair and isinstance(outcome, Failure):
            second, _ = await self._attempt(slots, request, repair, budget)
            outcome = _second_try(outcome, second)
        if self.cache is not None and isinstance(outcome, Answer):
            await asyncio.to_thread(self.cache.put, key, outcome.value.model_dump_json())
        return outcome

    async def _recall(self, request: Request[Shape], key: str) -> Answer[Shape] | None:
        if self.cache is None:
            return None
        text = await asyncio.to_thread(self.cache.get, key)
        value = None if text is None else request.read(text)
        return None if value is None or isinstance(value, Misfit) else Answer(value, cached=True)

    async def _attempt(
        self, slots: asyncio.Semaphore, request: Request[Shape], messages: Sequence[Message], budget: Budget
    ) -> tuple[Outcome[Shape], tuple[Message, ...]]:
        """The outcome of one reply and, where the reply does not fit, the messages that ask to mend it."""
        reply, used = await self._send(slots, request, messages, budget)
        if isinstance(reply, Undelivered):
            return Failure(reply.kind, reply.detail, used), ()
        value = request.read(reply.text)
        if not isinstance(value, Misfit):
            return Answer(value, used), ()
        failure = _failure(reply, value, used)
        return failure, _repair(messages, reply, failure)

    async def _send(
        self, slots: asyncio.Semaphore, request: Request[Shape], messages: Sequence[Message], budget: Budget
    ) -> tuple[Reply | Undelivered, Usage]:
        """Wait for a free slot and deliver, twice where the server was at fault; within the question's time."""
        try:
            async with asyncio.timeout(budget.seconds_left()):
                await slots.acquire()
        except TimeoutError:
            return Undelivered(FailureKind.LATE, "no call was free in the time of the question"), Usage()
        try:
            outcome, used = await self._deliver(request, messages, budget)
            for _ in range(1, _DELIVERIES):
                pause = None if isinstance(outcome, Reply) else outcome.again_after
                if pause is None or pause >= budget.seconds_left():
                    break
                await asyncio.sleep(pause)
                outcome, usage = await self._deliver(request, messages, budget)
                used += usage
            return outcome, used
        finally:
            slots.release()

    async def _deliver(
        self, request: Request[Shape], messages: Sequence[Message], budget: Budget
    ) -> tuple[Reply | Undelivered, Usage]:
        """One call on the account of the budget."""
        schema = request.schema()
        prompt = estimate_tokens(str(schema)) + sum(estimate_tokens(message.content) for message in messages)
        reserved = prompt + request.max_tokens
        if spent := budget.reserve(reserved):
            return Undelivered(FailureKind.OVER_BUDGET, spent), Usage()
        seconds = min(self.settings.call_seconds, budget.seconds_left())
        usage = Usage(1, prompt)
        try:
            async with asyncio.timeout(seconds):
                outcome = await self.backend.reply(messages, schema, max_tokens=request.max_tokens, timeout=seconds)
            usage = _charge(outcome, prompt)
        except TimeoutError:
            outcome = Undelivered(FailureKind.LATE, f"no reply in {seconds:.1f} s")
        finally:
            budget.settle(reserved, usage)
        return outcome, usage


def open_backend(settings: LanguageModelSettings) -> Backend:
    """The server or the model in this process that the settings name.

    Raises ConfigError where `llm.model`, or for a server `llm.base_url`, is not set, the environment variable named
    by `llm.api_key_env` holds no key, or the package that is needed is not installed.
    """
    if settings.backend == "vllm":
        if not settings.model:
            raise ConfigError("no language model is configured: set llm.model to a folder or a hub name")
        from helios.llm.vllm_engine import VllmEngine

        return VllmEngine.load(settings.model, context_tokens=settings.context_tokens, gpus=settings.gpus)
    if not settings.base_url or not settings.model:
        raise ConfigError("no language model is configured: set llm.base_url and llm.model")
    try:
        from helios.llm.endpoint import OpenAiEndpoint
    except ImportError as error:
        raise ConfigError(f"the language model needs {error.name}: {installation('openai')}") from None
    return OpenAiEndpoint(settings.base_url, settings.model, api_key=read_key(settings.api_key_env))


def read_key(variable: str | None) -> str | None:
    """The key in an environment variable, None where none is named; ConfigError, without it, if it cannot be one."""
    if not variable:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"llm.api_key_env names {variable}, which is not set in the environment")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the environment variable {variable} holds characters that no key has")
    return key


def _charge(outcome: Reply | Undelivered, prompt: int) -> Usage:
    """What a call took; the prompt's estimate where the server counted nothing but worked."""
    if isinstance(outcome, Reply):
        return outcome.usage or Usage(1, prompt, estimate_tokens(outcome.text))
    return Usage(1, prompt if outcome.kind is FailureKind.LATE else 0)


def _failure(reply: Reply, misfit: Misfit, used: Usage) -> Failure:
    """The failure of a reply that came but is none."""
    cut = f"cut off after {reply.usage.completion_tokens if reply.usage else 'its'} tokens; " if reply.truncated else ""
    return Failure(misfit.kind, f"{cut}{misfit.detail}", used)


def _repair(messages: Sequence[Message], reply: Reply, failure: Failure) -> tuple[Message, ...]:
    """The conversation with the reply and what is wrong with it; roles go on taking turns."""
    note = f"That reply cannot be used ({failure.detail}). Reply again, with nothing but JSON that fits the schema."
    if failure.kind is FailureKind.EMPTY:
        last = messages[-1]
        return (*messages[:-1], Message(last.role, f"{last.content}\n\n{note}"))
    echoed = Message("assistant", reply.text[:_ECHOED_CHARACTERS])
    return (*messages, echoed, Message("user", note))


def _second_try(first: Failure, second: Outcome[Shape]) -> Outcome[Shape]:
    """The mended answer, or the first failure with what became of the second try."""
    used = first.usage + second.usage
    if isinstance(second, Answer):
        return Answer(second.value, used)
    return Failure(first.kind, f"{first.detail}; second try {second}", used)

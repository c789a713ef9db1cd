"""A model behind an OpenAI-compatible server: vLLM, llama.cpp or a vendor. Needs the extra `llm`.

The openai SDK carries the request; its reply is read here, because the SDK hands on whatever a server sends
without checking it.
"""

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import BaseModel, FailFast, Field, ValidationError

from helios.llm.backend import Reply, Undelivered
from helios.llm.outcome import FailureKind, Usage
from helios.llm.quoting import clip
from helios.llm.request import Message

_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
_DETAIL_BYTES = 300
_REPLY_BYTES = 4 * 2**20
"""Of a server's whole reply; what the messages of a question ask for is a thousandth of it."""
_CHOICES, _MODELS = 100, 10_000
_NO_KEY = "none"
"""Sent where no key is configured, so that the SDK takes none from the environment."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Envelope(BaseModel):
    """The parts of a chat completion that are used; everything else is ignored."""

    choices: Annotated[list[_Choice], Field(max_length=_CHOICES), FailFast()]
    usage: dict[str, Any] | None = None


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    data: Annotated[list[_Model], Field(max_length=_MODELS), FailFast()]


class OpenAiEndpoint:
    """One model of one server.

    Redirects are not followed: the key and the evidence go to the configured host and to no other.
    """

    def __init__(self, base_url: str, model: str, *, api_key: str | None = None) -> None:
        self.base_url = base_url
        self._model = model
        self._key = api_key
        self._client: openai.AsyncOpenAI | None = None
        self._form = _Form()

    @property
    def model(self) -> str:
        return self._model

    async def reply(
        self, messages: Sequence[Message], schema: dict[str, Any], *, max_tokens: int, timeout: float
    ) -> Reply | Undelivered:
        """One chat completion; see `Backend.reply`."""
        turns: Any = [{"role": message.role, "content": message.content} for message in messages]
        shape: Any = {
            "type": "json_schema",
            "json_schema": {"name": schema.get("title", "reply"), "schema": schema, "strict": True},
        }
        while True:
            form = self._form
            try:
                response = await self._connection().chat.completions.with_raw_response.create(
                    model=self._model, messages=turns, response_format=shape, timeout=timeout,
                    **form.arguments(max_tokens),
                )  # fmt: skip
            except openai.APIError as error:
                other = form.other(error)
                if other == form:
                    return self._undelivered(error)
                self._form = other
                continue
            return self._read(response.http_response.content)

    async def models(self, *, timeout: float) -> tuple[str, ...] | Undelivered:
        """Names of the models that the server offers."""
        try:
            response = await self._connection().models.with_raw_response.list(timeout=timeout)
        except openai.APIError as error:
            return self._undelivered(error)
        try:
            listed = _Models.model_validate_json(response.http_response.content)
        except ValidationError:
            return Undelivered(FailureKind.MALFORMED, "not a list of models")
        return tuple(model.id for model in listed.data)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _connection(self) -> openai.AsyncOpenAI:
        """The SDK's client, made in the event loop that uses it."""
        if self._client is None:
            headers: Any = {
                "OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit(), "Accept-Encoding": "identity",
            }  # fmt: skip
            self._client = openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key or _NO_KEY,
                max_retries=0,
                default_headers=headers,
                http_client=openai.DefaultAsyncHttpxClient(
                    follow_redirects=False, event_hooks={"response": [_bounded]}
                ),
            )
        return self._client

    def _undelivered(self, error: openai.APIError) -> Undelivered:
        if isinstance(error, openai.APITimeoutError):
            return Undelivered(FailureKind.LATE, "the server did not reply in time")
        if isinstance(error, openai.APIStatusError):
            return self._rejected(error)
        cause = f": {error.__cause__}" if error.__cause__ is not None and str(error.__cause__) else ""
        return Undelivered(FailureKind.UNAVAILABLE, self._clean(f"{error.message}{cause}"), _PAUSE)

    def _rejected(self, error: openai.APIStatusError) -> Undelivered:
        if error.response.is_redirect:
            host = urlsplit(error.response.headers.get("location", "")).netloc or "another path"
            words = f"HTTP {error.status_code}: redirects to {host}, which is not followed: set llm.base_url to it"
            return Undelivered(FailureKind.UNAVAILABLE, self._clean(words))
        detail = self._clean(f"HTTP {error.status_code}: {error.message}")
        if error.code == "content_filter":
            return Undelivered(FailureKind.REFUSED, detail)
        again = error.status_code in (408, 409, 429) or error.status_code >= 500
        return Undelivered(FailureKind.UNAVAILABLE, detail, _pause(error) if again else None)

    def _clean(self, text: str) -> str:
        """A server's words in one short line, without the key."""
        return clip(text.replace(self._key, "***") if self._key else text, _DETAIL_BYTES)

    def _read(self, content: bytes) -> Reply | Undelivered:
        """The text of a chat completion; MALFORMED if it is none, REFUSED if the model declined."""
        try:
            envelope = _Envelope.model_validate_json(content)
        except ValidationError as error:
            return Undelivered(FailureKind.MALFORMED, f"not a chat completion ({error.error_count()} errors)", _PAUSE)
        usage = _usage(envelope.usage)
        if not envelope.choices:
            return Reply("", usage=usage)
        choice = envelope.choices[0]
        if choice.message.refusal or choice.finish_reason == "content_filter":
            refusal = choice.message.refusal or "stopped by the server's filter"
            return Undelivered(FailureKind.REFUSED, self._clean(refusal))
        text = choice.message.content or ""
        text = text.replace(self._key, "***") if self._key else text
        return Reply(text, truncated=choice.finish_reason == "length", usage=usage)


@dataclass(frozen=True, slots=True)
class _Form:
    """How a model wants its parameters; models that reason refuse what all others know."""

    limit: str = "max_tokens"
    temperature: bool = True

    def arguments(self, max_tokens: int) -> dict[str, Any]:
        greedy = {"temperature": 0.0} if self.temperature else {}
        return {self.limit: max_tokens, **greedy}

    def other(self, error: openai.APIError) -> "_Form":
        """The form that a refusal asks for, or the same one; each part changes once at most."""
        if not isinstance(error, openai.BadRequestError):
            return self
        message = error.message
        refused = error.code in ("unsupported_parameter", "unsupported_value") or "not support" in message
        if not refused:
            return self
        if self.limit == "max_tokens" and "max_completion_tokens" in message:
            return replace(self, limit="max_completion_tokens")
        if self.temperature and (error.param == "temperature" or "'temperature'" in message):
            return replace(self, temperature=False)
        return self


async def _bounded(response: httpx2.Response) -> None:
    """Have a reply's bytes counted while they arrive; a compressed one, which nobody asked for, may become any size."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise httpx2.DecodingError(f"the reply is compressed ({clip(encoding, 20)})", request=response.request)
    response.stream = _Counted(response)


class _Counted(httpx2.AsyncByteStream):
    """The body of a reply, up to _REPLY_BYTES."""

    def __init__(self, response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream = response.stream
        self._request = response.request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room = _REPLY_BYTES
        async for piece in self._stream:
            room -= len(piece)
            if room < 0:
                raise httpx2.ReadError(f"the reply has more than {_REPLY_BYTES:,} bytes", request=self._request)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _usage(counts: dict[str, Any] | None) -> Usage | None:
    """The server's token counts; None unless it gives both as numbers."""
    prompt, completion = ((counts or {}).get(name) for name in ("prompt_tokens", "completion_tokens"))
    if not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    return Usage(1, max(0, prompt), max(0, completion))


def _pause(error: openai.APIStatusError) -> float:
    """Seconds that the server asks to wait, within reason."""
    try:
        asked = float(error.response.headers.get("retry-after", _PAUSE))
    except ValueError:
        return _PAUSE
    return min(max(asked, 0.0), _LONGEST_PAUSE) if math.isfinite(asked) else _PAUSE

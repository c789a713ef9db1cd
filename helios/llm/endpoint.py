"""A model behind an OpenAI-compatible server: vLLM, llama.cpp or a vendor. Needs the extra `llm`.

The openai SDK carries the request; its reply is read here, because the SDK hands on whatever a server sends
without checking it.
"""

from collections.abc import Sequence
from typing import Any

import openai
from pydantic import BaseModel, ValidationError

from helios.llm.backend import Reply, Undelivered
from helios.llm.outcome import FailureKind, Usage
from helios.llm.request import Message

_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
_DETAIL_CHARACTERS = 300
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

    choices: list[_Choice]
    usage: dict[str, Any] | None = None


class OpenAiEndpoint:
    """One model of one server."""

    def __init__(self, base_url: str, model: str, *, api_key: str | None = None) -> None:
        self.base_url = base_url
        self._model = model
        self._key = api_key
        self._client: openai.AsyncOpenAI | None = None

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
        try:
            response = await self._connection().chat.completions.with_raw_response.create(
                model=self._model,
                messages=turns,
                response_format=shape,
                temperature=0.0,
                max_tokens=max_tokens,
                timeout=timeout,
            )
        except openai.APIError as error:
            return self._undelivered(error)
        return _read(response.http_response.content)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _connection(self) -> openai.AsyncOpenAI:
        """The SDK's client, made in the event loop that uses it."""
        if self._client is None:
            omitted: Any = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
            self._client = openai.AsyncOpenAI(
                base_url=self.base_url, api_key=self._key or _NO_KEY, max_retries=0, default_headers=omitted
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
        detail = self._clean(f"HTTP {error.status_code}: {error.message}")
        if error.code == "content_filter":
            return Undelivered(FailureKind.REFUSED, detail)
        again = error.status_code in (408, 409, 429) or error.status_code >= 500
        return Undelivered(FailureKind.UNAVAILABLE, detail, _pause(error) if again else None)

    def _clean(self, text: str) -> str:
        """A server's words in one short line, without the key."""
        line = " ".join(text.split())
        if self._key:
            line = line.replace(self._key, "***")
        return line[:_DETAIL_CHARACTERS]


def _read(content: bytes) -> Reply | Undelivered:
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
        refusal = " ".join((choice.message.refusal or "stopped by the server's filter").split())
        return Undelivered(FailureKind.REFUSED, refusal[:_DETAIL_CHARACTERS])
    return Reply(choice.message.content or "", truncated=choice.finish_reason == "length", usage=usage)


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
    return min(max(asked, 0.0), _LONGEST_PAUSE)

"""What a language model has to offer to stand behind `LlmClient`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from helios.llm.outcome import FailureKind, Usage
from helios.llm.request import Message


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a reply as it came; `usage` is None where the server counts no tokens."""

    text: str
    truncated: bool = False
    """Whether the reply was cut off at its limit of tokens."""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Undelivered:
    """No reply; `again_after` is the pause in seconds after which a second try makes sense, None if it never does."""

    kind: FailureKind
    detail: str
    again_after: float | None = None


class Backend(Protocol):
    """One model, asked for one reply at a time; many calls may be under way in one event loop."""

    @property
    def model(self) -> str:
        """The model's name, part of the cache key."""
        ...

    async def reply(
        self, messages: Sequence[Message], schema: dict[str, Any], *, max_tokens: int, timeout: float
    ) -> Reply | Undelivered:
        """Greedy decoding (temperature 0), constrained to the schema as far as the model can.

        `timeout` in seconds; the caller cancels the call once it has passed. What a server does wrong comes back as
        `Undelivered`, never as an exception.
        """
        ...

    async def close(self) -> None:
        """Let go of connections or memory; called in the event loop of the calls."""
        ...

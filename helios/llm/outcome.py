"""What becomes of a request: an answer of the asked shape, or a failure that says of which kind."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from pydantic import BaseModel

Shape = TypeVar("Shape", bound=BaseModel)


class FailureKind(StrEnum):
    """Why there is no answer; none of these means `no`."""

    REFUSED = "refused"
    """The model, or a filter before it, declined."""
    MALFORMED = "malformed"
    """Two replies in a row did not fit the schema, or the server's envelope was not readable."""
    LATE = "late"
    """No complete reply before the deadline of the call or of the question."""
    CONTRADICTORY = "contradictory"
    """Two replies in a row did not fit; the first one fits the schema but says two things at once."""
    EMPTY = "empty"
    """A reply without any content."""
    UNAVAILABLE = "unavailable"
    """The server cannot be reached, is overloaded, or rejects the call."""
    OVER_BUDGET = "over budget"
    """The question's calls, tokens or seconds are spent; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls sent and tokens counted by the server (estimated where it counts none)."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Answer(Generic[Shape]):
    """A validated reply; `usage` is zero where it came from the cache."""

    value: Shape
    usage: Usage = Usage()
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer: of which kind, in which words, and what was spent on it."""

    kind: FailureKind
    detail: str
    usage: Usage = Usage()

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind.value


Outcome: TypeAlias = Answer[Shape] | Failure

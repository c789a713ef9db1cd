"""A request to a language model: messages and the shape that the reply must have."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Generic, Literal

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from helios.llm.outcome import FailureKind, Shape
from helios.llm.quoting import clip

_FORMAT = 1
"""Part of every cache key; raise it when the way a request is sent changes."""
_TOKEN_CHARACTERS = 200
"""More than any token has."""
_ERRORS_SHOWN = 3
_ERROR_BYTES = 160
_CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a reply is none: MALFORMED, CONTRADICTORY or EMPTY, in words."""

    kind: FailureKind
    detail: str


def contradiction(detail: str) -> PydanticCustomError:
    """What a validator of a shape raises for a reply that says two things at once."""
    return PydanticCustomError(_CONTRADICTION, "{detail}", {"detail": detail})


@dataclass(frozen=True, slots=True)
class Request(Generic[Shape]):
    """Messages, the pydantic model of the reply, and the most tokens that the reply may take."""

    messages: tuple[Message, ...]
    shape: type[Shape]
    max_tokens: int = 512

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the reply."""
        return self.shape.model_json_schema()

    def key(self, model: str) -> str:
        """A hash of model, messages and schema: equal for requests that have the same answer."""
        parts = [_FORMAT, model, [[message.role, message.content] for message in self.messages], self.schema()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def read(self, text: str) -> "Shape | Misfit":
        """The reply as a value of the shape, or why it is none; nothing else of a reply is ever looked at."""
        most = self.max_tokens * _TOKEN_CHARACTERS
        if len(text) > most:  # each part that does not fit is an error of its own
            return Misfit(FailureKind.MALFORMED, f"the reply has {len(text):,} characters, at most {most:,} fit")
        if not text.strip():
            return Misfit(FailureKind.EMPTY, "the reply has no content")
        try:
            return self.shape.model_validate_json(text, strict=True)
        except ValidationError as error:
            return _explain(error, text)


def _explain(error: ValidationError, text: str) -> Misfit:
    """The first errors with their places, short and without the library's links; what is no JSON is shown in part."""
    problems = error.errors(include_url=False)
    lines = []
    for problem in problems[:_ERRORS_SHOWN]:
        where = ".".join(str(part) for part in problem["loc"])
        lines.append(clip(f"{where}: {problem['msg']}" if where else problem["msg"], _ERROR_BYTES))
    kinds = {problem["type"] for problem in problems}
    if "json_invalid" in kinds:
        lines.append(f"it begins {clip(text, 60)!r}")
    kind = FailureKind.CONTRADICTORY if kinds == {_CONTRADICTION} else FailureKind.MALFORMED
    return Misfit(kind, "; ".join(lines))

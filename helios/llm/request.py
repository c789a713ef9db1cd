"""A request to a language model: messages and the shape that the reply must have."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Generic, Literal

from pydantic import ValidationError

from helios.llm.outcome import Shape

_FORMAT = 1
"""Part of every cache key; raise it when the way a request is sent changes."""
_ERRORS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


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

    def read(self, text: str) -> "Shape | str":
        """The reply as a value, or in words why it does not fit the schema."""
        try:
            return self.shape.model_validate_json(text, strict=True)
        except ValidationError as error:
            return _explain(error)


def _explain(error: ValidationError) -> str:
    """The first errors with their places, without the library's links."""
    lines = []
    for problem in error.errors(include_url=False)[:_ERRORS_SHOWN]:
        where = ".".join(str(part) for part in problem["loc"])
        lines.append(f"{where}: {problem['msg']}" if where else problem["msg"])
    return "; ".join(lines)

"""Does the language model answer? One list of models and one small request, for `helios doctor` and `--llm`."""

import asyncio
import time
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict

from helios.config import LanguageModelSettings
from helios.errors import ConfigError
from helios.llm.backend import Undelivered
from helios.llm.client import LlmClient, open_backend
from helios.llm.outcome import Answer
from helios.llm.request import Message, Request

SECONDS = 10.0


class _Ready(BaseModel):
    model_config = ConfigDict(extra="forbid")
    ready: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of asking; `problem` is empty if the model answered as its schema wants."""

    base_url: str
    model: str
    models: tuple[str, ...] = ()
    """Names that the server lists; empty where it lists none."""
    milliseconds: float = 0.0
    """Time of the small request."""
    problem: str = ""


def probe(settings: LanguageModelSettings) -> Probe:
    """Ask a server for its models and its model for a word; ConfigError for settings that cannot be used.

    Without `llm.model` the only model of the server is taken.
    """
    listed = list_models(settings)
    models = () if isinstance(listed, Undelivered) else listed
    model = settings.model or (models[0] if len(models) == 1 else "")
    found = Probe(settings.base_url or "", model, models)
    if not model:
        return replace(found, problem=_which(listed))
    seconds = min(SECONDS, settings.call_seconds)
    limits = settings.model_copy(update={"model": model, "cache": None, "call_seconds": seconds})
    request = Request((Message("user", 'Reply with the JSON object {"ready": true}.'),), _Ready, 32)
    started = time.monotonic()
    with LlmClient.open(limits) as client:
        (outcome,) = client.ask([request], budget=client.budget(deadline=started + 2 * seconds))
    problem = "" if isinstance(outcome, Answer) else str(outcome)
    return replace(found, milliseconds=(time.monotonic() - started) * 1e3, problem=problem)


def only_model(settings: LanguageModelSettings) -> str:
    """The name of the one model of a server; ConfigError if it has several or does not say."""
    listed = list_models(settings)
    if isinstance(listed, Undelivered) or len(listed) != 1:
        raise ConfigError(f"{settings.base_url}: {_which(listed)}")
    return listed[0]


def list_models(settings: LanguageModelSettings) -> tuple[str, ...] | Undelivered:
    """The models of the configured server; ConfigError for settings that cannot be used."""
    backend = open_backend(settings.model_copy(update={"model": settings.model or "?"}))
    from helios.llm.endpoint import OpenAiEndpoint

    if not isinstance(backend, OpenAiEndpoint):
        raise ConfigError("llm.backend: only a server can be asked for its models")

    async def listed() -> tuple[str, ...] | Undelivered:
        try:
            async with asyncio.timeout(SECONDS):
                return await backend.models(timeout=SECONDS)
        finally:
            await backend.close()

    try:
        return asyncio.run(listed())
    except TimeoutError:
        raise ConfigError(f"{settings.base_url}: does not list its models in {SECONDS:.0f} s") from None


def _which(listed: tuple[str, ...] | Undelivered) -> str:
    if isinstance(listed, Undelivered):
        return f"which model? The server does not say ({listed.kind}: {listed.detail}); name one"
    return f"which model? The server has {', '.join(listed) or 'none'}; name one"

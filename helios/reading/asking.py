"""From an engine and a question to a checked answer: search, read, read again what is cited."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from helios.config import Config
from helios.reading.base import Answer, Reader
from helios.reading.citations import checked
from helios.reading.extractive import ExtractiveReader
from helios.reading.vectors import StoredVectors
from helios.types import Evidence

if TYPE_CHECKING:
    from helios.engine import Engine


@contextmanager
def open_reader(engine: "Engine", config: Config) -> Iterator[Reader]:
    """The reader that `reading.reader` names, over the engine's own token vectors.

    Raises ModelError without usable weights, ConfigError where the language model is not configured.
    """
    settings = config.reading
    model = Path(settings.model).expanduser() if settings.model else None
    extractive = ExtractiveReader.load(
        StoredVectors(engine.part, engine.encoder), model, edges=settings.edges, min_confidence=settings.min_confidence
    )
    if settings.reader == "extractive":
        yield extractive
        return
    from helios.llm.client import LlmClient
    from helios.reading.llm import LlmReader

    with LlmClient.open(config.llm) as client:
        limits = config.llm
        yield LlmReader(
            client, prompt_tokens=limits.prompt_tokens, reply_tokens=limits.reply_tokens, fallback=extractive
        )


def answer_question(engine: "Engine", reader: Reader, question: str, *, k: int = 50) -> tuple[Answer, Evidence]:
    """Search the k best edges, read them, and keep the citations that the store confirms."""
    evidence = engine.search(question, k=k)
    return checked(reader.read(question, evidence), engine.corpus), evidence

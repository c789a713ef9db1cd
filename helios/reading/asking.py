"""From an engine and a question to a checked answer: search, read, read again what is cited."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from helios.config import Config
from helios.reading.base import Answer, Citation, ComputedAnswer, Reader
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
    computed = computed_answer(evidence)
    answer = with_cells(reader.read(question, evidence, computed=computed), computed)
    return checked(answer, engine.corpus), evidence


def computed_answer(evidence: Evidence) -> ComputedAnswer | None:
    """What refinement computed, as a reader takes it: the compared cells of the rows that it chose."""
    computed = evidence.computed
    chosen = [] if computed is None else [cell for cell in computed.cells if cell[0] in computed.rows and cell[2]]
    if computed is None or not chosen:
        return None
    citations = tuple(Citation(text, row, column, end=len(text)) for row, column, text in chosen)
    return ComputedAnswer(citations[0].text, computed.operation, citations, value=False)


def with_cells(answer: Answer, computed: ComputedAnswer | None) -> Answer:
    """An answer that rests on a row which an aggregation chose also cites the cells that it was chosen by."""
    if computed is None or answer.abstained:
        return answer
    rows = {citation.segment_id for citation in answer.citations if citation.segment_id is not None}
    cited = {(citation.segment_id, citation.column) for citation in answer.citations}
    added = [c for c in computed.citations if c.segment_id in rows and (c.segment_id, c.column) not in cited]
    return replace(answer, citations=(*answer.citations, *added)) if added else answer

"""From an engine and a question to a checked answer: search, read, read again what is cited."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helios.config import Config, load_config
from helios.llm.budget import Budget
from helios.llm.outcome import Usage
from helios.reading.base import Answer, Citation, ComputedAnswer, Node, Reader
from helios.reading.choice import Choice
from helios.reading.citations import checked
from helios.reading.extractive import ExtractiveReader
from helios.reading.llm import LlmReader
from helios.reading.passages import PassageReader
from helios.reading.queries.reader import QueryReader
from helios.reading.tables.reader import Sheets, TableReader
from helios.reading.vectors import StoredVectors
from helios.reading.whether import WhetherReader
from helios.types import Evidence, EvidenceEdge, Origin, SegmentId

if TYPE_CHECKING:
    from helios.augment.context import Context
    from helios.corpus.where import Where
    from helios.engine import Engine
    from helios.index.reader import Corpus
    from helios.opened import OpenSnapshot

EDGES_SHARE = 0.2
"""How much the probability of an edge counts beside the chances of the answers that rest on its row or text."""
TRIES = 2
"""Times that a model is asked for one reading."""
FRAME_TOKENS = 2000
"""Tokens around the evidence: instructions, schema, question, and a reply that has to be mended."""


def load_reader(engine: "Engine | OpenSnapshot") -> Reader:
    """The reader that `reading.reader` names, over the token vectors of an open snapshot.

    Raises ModelError without usable weights, ConfigError where the language model is not configured.
    """
    config = engine.config
    settings, more = config.reading, config.advanced.reading
    runs: Any = {"runtime": config.encoder.runtime, "threads": engine.models.threads}
    tables = passages = queries = whether = choice = None
    sheets = Sheets(engine.corpus, engine.encoder)
    if more.table_model != "none":
        tables = TableReader.load(sheets, folder_of(more.table_model), **runs)
    if more.queries:
        queries = QueryReader(sheets)
    if more.passage_model != "none":
        passages = PassageReader.load(folder_of(more.passage_model), **runs)
    if more.whether:
        whether = WhetherReader()
    if more.choice != "none":
        choice = Choice.load(folder_of(more.choice), **runs)
    extractive = ExtractiveReader.load(
        StoredVectors(engine.index, engine.encoder), folder_of(more.model), tables=tables, passages=passages,
        queries=queries, whether=whether, choice=choice, edges=more.edges, least=settings.least,
        least_read=more.least_read, present=more.present,
        encoder=engine.index.encoder["fingerprint"],
    )  # fmt: skip
    if settings.reader == "extractive":
        return extractive
    limits = config.advanced.llm
    client = engine.models.language_model(config)
    return LlmReader(
        client, evidence_tokens=limits.evidence_tokens, reply_tokens=limits.reply_tokens, fallback=extractive
    )


def reader_over(reader: Reader, opened: "OpenSnapshot") -> Reader:
    """A reader with the models of another one, over the tables and token vectors of an open snapshot."""
    if isinstance(reader, LlmReader) and reader.fallback is not None:
        return reader.falling_back(reader_over(reader.fallback, opened))
    if isinstance(reader, ExtractiveReader):
        sheets = Sheets(opened.corpus, opened.encoder)
        return reader.over(StoredVectors(opened.index, opened.encoder), sheets)
    return load_reader(opened)


def folder_of(configured: str | None) -> Path | None:
    """The folder of weights that a setting names; None for the packaged ones."""
    return None if configured is None else Path(configured).expanduser()


def answer_question(
    engine: "Engine", reader: Reader, question: str, *, k: int = 50, where: "str | Where | None" = None,
    seconds: float | None = None, context: "Context | None" = None,
) -> tuple[Answer, Evidence]:  # fmt: skip
    """Search the k best edges, read them, and keep the citations that the store confirms.

    What likely answers rest on then comes first: the largest of a thousand rows is like all others until they are
    compared.
    """
    evidence, budget = find_evidence(engine, reader, question, k=k, where=where, seconds=seconds, context=context)
    answer = read_evidence(engine, reader, evidence, budget=budget)
    return answer, in_order_of_answers(evidence, answer, engine.corpus)


def find_evidence(
    engine: "Engine", reader: Reader, question: str, *, k: int = 50, where: "str | Where | None" = None,
    seconds: float | None = None, explain: bool = False, context: "Context | None" = None,
) -> tuple[Evidence, Budget | None]:  # fmt: skip
    """The k best edges, and what is left for this reader to spend on a language model, None if it asks none.

    Refiner and reader share what the question may spend; the reader's share is kept for it.
    """
    budget = reader.model.budget() if isinstance(reader, LlmReader) else None
    before = _before_reading(budget, engine.config)
    evidence = engine.search(
        question, k=k, where=where, explain=explain, seconds=seconds, budget=before, context=context
    )
    return evidence, budget


def _before_reading(budget: Budget | None, config: Config) -> Budget | None:
    """The budget without what a reading takes at most: a second try, each sent twice."""
    if budget is None:
        return None
    limits = config.advanced.llm
    tokens = TRIES * (limits.evidence_tokens + limits.reply_tokens + FRAME_TOKENS)
    return budget.keeping(calls=2 * TRIES, tokens=tokens, seconds=limits.call_seconds)


def read_evidence(engine: "Engine", reader: Reader, evidence: Evidence, *, budget: Budget | None = None) -> Answer:
    """A checked answer from evidence that was found, with the notes and failures of the search before its own."""
    computed = computed_answer(evidence)
    spent = Usage(evidence.calls, evidence.tokens)
    if isinstance(reader, LlmReader):
        budget = budget or reader.model.budget()
        before = budget.spent
        answer = reader.read(evidence.question, evidence, computed=computed, budget=budget)
        spent += Usage(budget.spent.calls - before.calls, budget.spent.tokens - before.tokens)
    else:
        answer = reader.read(evidence.question, evidence, computed=computed)
    answer = checked(with_cells(answer, computed), engine.corpus)
    notes = (*evidence.notes, *answer.notes)
    degraded = answer.degraded or evidence.degraded
    return replace(answer, notes=notes, degraded=degraded, calls=spent.calls, tokens=spent.tokens)


def in_order_of_answers(evidence: Evidence, answer: Answer, corpus: "Corpus") -> Evidence:
    """The evidence by what its rows and texts are for the answers: their chances, and a share of the edge's own.

    A row that no edge has, as the program over a whole table finds one, comes with the chance of the best edge.
    """
    if not evidence.edges or not answer.likely:
        return evidence
    best, edges = evidence.edges[0], list(evidence.edges)
    weights = [EDGES_SHARE * edge.probability for edge in edges]
    known = dict(answer.likely)
    for node, chance in answer.likely:
        holding = [at for at, edge in enumerate(edges) if node in _nodes_of(edge)]
        if holding:
            weights[max(holding, key=lambda at: sum(known.get(one, 0.0) for one in _nodes_of(edges[at])))] += chance
        elif isinstance(node, SegmentId):
            segment = corpus.segment(corpus.segment_number(node))
            edges.append(EvidenceEdge(0, best.score, best.probability, Origin.AGGREGATED, segment, None))
            weights.append(chance)
    order = sorted(range(len(edges)), key=lambda at: -weights[at])[: len(evidence.edges)]
    ranked = (replace(edges[at], rank=rank) for rank, at in enumerate(order, start=1))
    return replace(evidence, edges=tuple(ranked))


def _nodes_of(edge: EvidenceEdge) -> list[Node]:
    found: list[Node] = [] if edge.segment is None else [edge.segment.segment_id]
    return found if edge.passage is None else [*found, edge.passage.passage_id]


def llm_overrides(base_url: str | None, model: str | None, overrides: Sequence[str] = ()) -> list[str]:
    """`overrides` after the settings that send every stage that can ask a language model to this one.

    Without a model's name the server is asked for its only one. ConfigError if it has several or does not say.
    """
    if base_url is None:
        return list(overrides)
    settings = [f"llm.base_url={json.dumps(base_url)}", "refinement.mode=llm", "reading.reader=llm", *overrides]
    limits = load_config(overrides=settings).language_model
    if not (model or limits.model):
        from helios.llm.probe import only_model

        model = only_model(limits)
    return [*([f"llm.model={json.dumps(model)}"] if model else []), *settings]


def computed_answer(evidence: Evidence) -> ComputedAnswer | None:
    """What refinement computed, as a reader takes it: the compared cells of the rows that it chose."""
    computed = evidence.computed
    chosen = [] if computed is None else [cell for cell in computed.cells if cell[0] in computed.rows and cell[2]]
    if computed is None or not chosen:
        return None
    citations = tuple(Citation(text, row, column, end=len(text)) for row, column, text in chosen)
    return ComputedAnswer(citations[0].text, computed.operation, citations, computed.chance)


def with_cells(answer: Answer, computed: ComputedAnswer | None) -> Answer:
    """An answer that rests on a row which an aggregation chose also cites the cells that it was chosen by."""
    if computed is None or answer.abstained:
        return answer
    rows = {citation.segment_id for citation in answer.citations if citation.segment_id is not None}
    cited = {(citation.segment_id, citation.column) for citation in answer.citations}
    added = [c for c in computed.citations if c.segment_id in rows and (c.segment_id, c.column) not in cited]
    return replace(answer, citations=(*answer.citations, *added)) if added else answer

"""Lexical: term counts of every node, for BM25 over edges, and the terms of titles, for node expansion."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from helios.corpus import CorpusStore
from helios.index.languages import SAMPLE, Analysis
from helios.index.lexical import Postings, write_postings
from helios.index.titles import TitleTerms
from indexing.encoding import node_count, node_texts
from indexing.stage import BuildRequest, StageContext, StageResult

ROWS = 20
"""Rows of a table that are looked at to tell its language."""


@dataclass(frozen=True)
class LexicalStage:
    """Corpus store → postings and terms of titles."""

    name: str = "lexical"
    version: int = 3
    component: str | None = "lexical"
    inputs: tuple[str, ...] = ("ingest",)
    settings: tuple[str, ...] = ()

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """Nothing besides its inputs."""
        return {}

    def run(self, context: StageContext) -> StageResult:
        """Write the postings of all nodes and the terms of all titles."""
        store = CorpusStore.open(context.inputs["ingest"])
        nodes = node_count(store)
        context.meter.start(nodes, "nodes")
        analysis = Analysis.of_texts(language_samples(store))
        terms = write_postings(
            node_texts(store, 0, nodes),
            context.out,
            segment_count=store.segment_count,
            analysis=analysis,
            progress=context.meter.advance,
        )
        TitleTerms.of(store.passages.titles(), Postings(context.out).idf, analysis).write(context.out)
        return StageResult(counts={"terms": terms})


def language_samples(store: CorpusStore) -> Iterator[str]:
    """Texts that tell the languages of a corpus: a table's first rows, a passage; evenly from all."""
    tables, passages = len(store.tables), len(store.passages)
    for number in range(0, tables, 1 + tables // SAMPLE):
        table = store.tables[number]
        yield "\n".join(
            [table.title, table.section, *table.header, *(cell for row in table.rows[:ROWS] for cell in row)]
        )
    for number in range(0, passages, 1 + passages // SAMPLE):
        yield f"{store.passages[number].title}\n{store.passages[number].text}"

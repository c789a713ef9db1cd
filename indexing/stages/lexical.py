"""Lexical: term counts of every node, for BM25 over edges, and the terms of titles, for node expansion."""

from dataclasses import dataclass
from typing import Any

from helios.corpus import CorpusStore
from helios.index.lexical import Postings, write_postings
from helios.index.titles import TitleTerms
from indexing.encoding import node_count, node_texts
from indexing.stage import BuildRequest, StageContext, StageResult


@dataclass(frozen=True)
class LexicalStage:
    """Corpus store → postings and terms of titles."""

    name: str = "lexical"
    version: int = 2
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
        terms = write_postings(
            node_texts(store, 0, nodes),
            context.out,
            segment_count=store.segment_count,
            progress=context.meter.advance,
        )
        TitleTerms.of(store.passages.titles(), Postings(context.out).idf).write(context.out)
        return StageResult(counts={"terms": terms})

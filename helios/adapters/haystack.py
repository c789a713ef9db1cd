"""A component of Haystack (extra `haystack`).

    with Engine.open("demo-index") as engine:
        HeliosRetriever(engine, top_k=5).run(query="Who designed Pascal?")["documents"]

It holds an open engine or client, so a pipeline with it cannot be written to YAML.
"""

from haystack import Document, component

from helios.adapters.records import Searches, records


@component
class HeliosRetriever:
    """Edges as documents, best first; the score is the chance that a document is evidence."""

    def __init__(self, source: Searches, top_k: int = 10, where: str | None = None) -> None:
        self.source = source
        self.top_k = top_k
        self.where = where

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None, where: str | None = None) -> dict[str, list[Document]]:
        """The documents for a query."""
        k = self.top_k if top_k is None else top_k
        found = records(self.source, query, k=k, where=where or self.where)
        documents = [
            Document(id=one.record_id, content=one.text, score=one.probability, meta=one.metadata) for one in found
        ]
        return {"documents": documents}

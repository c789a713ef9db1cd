"""A retriever of LangChain (extra `langchain`).

with Engine.open("demo-index") as engine:
    HeliosRetriever(source=engine, k=5).invoke("Who designed Pascal?")
"""

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from helios.adapters.records import records


class HeliosRetriever(BaseRetriever):
    """Edges as documents, best first; `metadata` says where each is from and how likely it is evidence."""

    source: Any
    """An `Engine`, or a client of a server."""
    k: int = 10
    """Documents, at most."""
    where: str | None = None
    """A filter, as in docs/filters.md."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, where: str | None = None
    ) -> list[Document]:
        found = records(self.source, query, k=self.k if k is None else k, where=where or self.where)
        return [Document(id=one.record_id, page_content=one.text, metadata=one.metadata) for one in found]

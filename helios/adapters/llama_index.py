"""A retriever of LlamaIndex (extra `llama-index`).

with Engine.open("demo-index") as engine:
    HeliosRetriever(engine, k=5).retrieve("Who designed Pascal?")
"""

from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from helios.adapters.records import Record, Searches, records


class HeliosRetriever(BaseRetriever):
    """Edges as nodes, best first; the score is the chance that a node is evidence."""

    def __init__(
        self,
        source: Searches,
        *,
        k: int = 10,
        where: str | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.source = source
        self.k = k
        self.where = where

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = records(self.source, query_bundle.query_str, k=self.k, where=self.where)
        return [NodeWithScore(node=_node(one), score=one.probability) for one in found]


def _node(record: Record) -> Any:
    """The metadata lead to the place and are not shown to models: the text says what there is to say."""
    hidden = list(record.metadata)
    return TextNode(
        id_=record.record_id, text=record.text, metadata=record.metadata, excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )  # fmt: skip

"""One part of an index, opened for search: corpus, graph, tokens, postings, titles and units, each on first use."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from helios.corpus import CorpusStore
from helios.graph import DataGraph
from helios.index.lexical import Postings
from helios.index.search import RECENT, FactoredSearch, Query, Units
from helios.index.snapshot import PartView
from helios.index.titles import TitleTerms
from helios.index.tokens import TokenStore
from helios.models.encoder import TokenEncoder
from helios.once import once
from helios.types import Edge, Link

FloatArray = NDArray[np.float32]
POOL_BLOCK = 512
"""Nodes whose token vectors are decoded at once for pooling."""


class SearchPart:
    """The components of a part by their role; numbers inside are the part's own (segments, then passages)."""

    def __init__(self, view: PartView, *, threads: int, k1: float, b: float) -> None:
        self.view = view
        self.deleted = view.deleted_nodes()
        """Deleted nodes, ascending; read now, for a newer snapshot removes the list of this one."""
        self._threads = threads
        self._k1 = k1
        self._b = b
        self._queries = lru_cache(RECENT)(_query)

    @once
    def corpus(self) -> CorpusStore:
        """Tables and passages."""
        return CorpusStore.open(self.view.path("corpus"))

    @once
    def graph(self) -> DataGraph:
        """The links between segments and passages."""
        return DataGraph.open(self.view.path("graph"))

    @once
    def tokens(self) -> TokenStore:
        """Token vectors of all nodes."""
        return TokenStore(self.view.path("tokens"))

    @once
    def postings(self) -> Postings:
        """Term counts of all nodes."""
        return Postings(self.view.path("lexical"))

    @once
    def titles(self) -> TitleTerms:
        """Terms of all titles; read from the corpus where an older build did not store them."""
        stored = TitleTerms.open(self.view.path("lexical"))
        return stored or TitleTerms.of(self.corpus.passages.titles(), self.postings)

    @once
    def search(self) -> FactoredSearch:
        """The searcher over all edges and lone nodes that are not deleted."""
        units = edge_units(self.graph, self.deleted)
        return FactoredSearch(self.tokens, self.postings, units, threads=self._threads, k1=self._k1, b=self._b)

    def query(self, encoder: TokenEncoder, question: str) -> Query:
        """The question with its token vectors, the same object for every stage of a search."""
        return self._queries(encoder, question, self.tokens)

    def close(self) -> None:
        """End the searcher's threads; searches that run are finished first."""
        if "search" in self.__dict__:
            self.search.close()

    def pooled_nodes(self) -> tuple[FloatArray, FloatArray]:
        """One unit vector a node, the mean of its stored token vectors: segments (S, D), passages (P, D)."""
        store, segments = self.tokens, self.graph.segment_count
        pooled = np.empty((store.node_count, store.quantiser.dimension), np.float32)
        for first in range(0, store.node_count, POOL_BLOCK):
            last = min(store.node_count, first + POOL_BLOCK)
            bounds = np.array(store.offsets[first : last + 1])
            sums = np.add.reduceat(store.decode(int(bounds[0]), int(bounds[-1])), bounds[:-1] - bounds[0])
            pooled[first:last] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return pooled[:segments], pooled[segments:]

    def edge(self, unit: int) -> Edge:
        """The edge that a unit of `search` stands for."""
        segments, nodes = self.graph.segment_count, self.tokens.node_count
        left, right = int(self.search.units.left[unit]), int(self.search.units.right[unit])
        return Edge(left if left < nodes else None, right - segments if right < nodes else None)

    def stars(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> list[NDArray[np.int64]]:
        """For each pair, by node numbers, the nodes that would be in the row's star; of a lone passage, itself.

        The node count on a side stands for no node.
        """
        graph, deleted, none = self.graph, self.deleted, self.tokens.node_count
        stars = []
        for segment, passage in zip(left.tolist(), right.tolist(), strict=True):
            linked = graph.passages_of(segment) if segment < graph.segment_count else np.zeros(0, np.int64)
            others = np.append(np.asarray(linked, np.int64) + graph.segment_count, passage)
            own = [segment] if segment < none else []
            stars.append(np.append(np.setdiff1d(others[others < none], deleted), np.array(own, np.int64)))
        return stars

    def links(self, edge: Edge) -> tuple[Link, ...]:
        """Where an edge comes from; empty for lone nodes and for pairs that are not linked."""
        if edge.segment is None or edge.passage is None:
            return ()
        number = self.graph.edge_number(edge.segment, edge.passage)
        return () if number is None else self.graph.links(number)


def _query(encoder: TokenEncoder, question: str, tokens: TokenStore) -> Query:
    return Query.of(question, encoder.encode_question(question), tokens)


def edge_units(graph: DataGraph, deleted: NDArray[np.int64]) -> Units:
    """Every edge, then every node without an edge; a deleted node leaves its neighbours behind as lone nodes."""
    nodes = graph.segment_count + graph.passage_count
    left = np.array(graph.edge_segments, np.int32)
    right = np.array(graph.edge_passages, np.int32) + np.int32(graph.segment_count)
    alive = np.ones(nodes + 1, bool)
    alive[deleted] = False
    kept = alive[left] & alive[right]
    left, right = left[kept], right[kept]
    lone = alive.copy()
    lone[nodes] = False
    lone[left] = False
    lone[right] = False
    lone_nodes = np.flatnonzero(lone).astype(np.int32)
    is_segment = lone_nodes < graph.segment_count
    none = np.int32(nodes)
    return Units(
        np.concatenate([left, np.where(is_segment, lone_nodes, none)]),
        np.concatenate([right, np.where(is_segment, none, lone_nodes)]),
    )


def node_units(graph: DataGraph) -> Units:
    """Every node on its own: segments, then passages (for the comparison of retrieval units, HELIOS Table 6)."""
    count = graph.segment_count + graph.passage_count
    numbers = np.arange(count, dtype=np.int32)
    is_segment = numbers < graph.segment_count
    none = np.int32(count)
    return Units(np.where(is_segment, numbers, none), np.where(is_segment, none, numbers))

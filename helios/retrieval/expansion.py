"""Query-relevant node expansion (HELIOS 4.2): edges that the data graph lacks, from the best nodes of a subgraph.

    p(u, v | q) = p(u | q) · p(v | u, q)

Seeds u are the subgraph's best nodes by softmax of their scores. For a segment v is any passage, for a passage any
segment, whether linked or not. p(v | u, q) is a softmax of pair scores over all nodes of the other side:

    MaxSim of the question against u and v together      (centroid bounds: u's side is known, v's shared by all seeds)
  + the share of the passage's title that the row holds
  + BM25 of [q; Γ(u)] against v

The edges of the data graph are left out: edge retrieval has scored all of them.
Shape legend: B nodes to score, N nodes of the other side.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.config import ExpansionSettings
from helios.graph import Subgraph
from helios.index.lexical import term_hash, terms_of
from helios.index.search import Query
from helios.models.encoder import TokenEncoder
from helios.models.text import passage_text, segment_text
from helios.once import once
from helios.retrieval.part import SearchPart
from helios.retrieval.titles import TitleTerms
from helios.types import Edge, Origin, ScoredEdge

FloatArray = NDArray[np.float32]
NodeArray = NDArray[np.int64]
COMMON = 0.02
"""Words that a larger share of all nodes holds say nothing about a link."""
MIN_COMMON = 100
MIN_TITLE = 0.25
"""Least share of a title that makes its passage a candidate."""
NEAR = 200
"""Nodes nearest to the question alone that are candidates of every seed."""


class NodeScorer(Protocol):
    """g_n: how relevant nodes are to a question."""

    def score(self, query: Query, nodes: NodeArray, subgraph: Subgraph) -> FloatArray:
        """One logit a node of the subgraph (segments, then passages, by their numbers in the part): (B)."""


class EdgeScorer(Protocol):
    """What gives new edges the scores that they are ranked by beside those of the subgraph."""

    def score(self, query: Query, edges: Sequence[Edge]) -> FloatArray:
        """One score an edge, on the scale of the subgraph's scores."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Nodes to expand, best first, with log p(u | q)."""

    nodes: NodeArray
    log_p: FloatArray


@dataclass(frozen=True, slots=True)
class ExpandedPair:
    """A new edge, the seed that it was found from, and log p(u, v | q)."""

    edge: Edge
    seed: int
    log_p: float


class BestEdges:
    """The default node scorer: a node is as good as its best edge.

    On train questions its seeds led to four times as many missing links as seeds by the node's own MaxSim did.
    """

    def __init__(self, part: SearchPart) -> None:
        self.part = part

    def score(self, query: Query, nodes: NodeArray, subgraph: Subgraph) -> FloatArray:
        segments = self.part.graph.segment_count
        best: dict[int, float] = {}
        for scored in reversed(subgraph.edges):
            if scored.edge.segment is not None:
                best[scored.edge.segment] = scored.score
            if scored.edge.passage is not None:
                best[scored.edge.passage + segments] = scored.score
        return np.array([best[int(node)] for node in nodes], np.float32)


class NodeExpander:
    """Expands the subgraphs of one part; holds no state of a question, so threads may share it."""

    def __init__(
        self, part: SearchPart, encoder: TokenEncoder, settings: ExpansionSettings, *,
        node_scorer: NodeScorer | None = None,
    ) -> None:  # fmt: skip
        self.part = part
        self.encoder = encoder
        self.settings = settings
        self.node_scorer = node_scorer or BestEdges(part)

    def expand(self, question: str, subgraph: Subgraph, *, edge_scorer: EdgeScorer) -> Subgraph:
        """The subgraph with at most `beam` new edges, their origin EXPANDED and their scores the scorer's."""
        query = self.query(question)
        pairs = self.pairs(query, subgraph)
        if not pairs:
            return subgraph
        edges = [pair.edge for pair in pairs]
        scores = edge_scorer.score(query, edges)
        return subgraph.merge(
            ScoredEdge(edge, float(score), Origin.EXPANDED) for edge, score in zip(edges, scores, strict=True)
        )

    def query(self, question: str) -> Query:
        """The question with its token vectors."""
        return Query.of(question, self.encoder.encode_question(question), self.part.tokens)

    def pairs(self, query: Query, subgraph: Subgraph) -> list[ExpandedPair]:
        """The best `beam` pairs by p(u, v | q) that are neither linked nor in the subgraph, best first."""
        beam = self.settings.beam
        if beam == 0 or not subgraph.edges:
            return []
        seeds = self.seeds(query, subgraph)
        best: dict[Edge, ExpandedPair] = {}
        for pair in self._candidates(query, subgraph, seeds):
            rival = best.get(pair.edge)
            if rival is None or pair.log_p > rival.log_p:
                best[pair.edge] = pair
        order = sorted(best.values(), key=lambda p: (-p.log_p, p.edge.segment or 0, p.edge.passage or 0))
        return order[:beam]

    def seeds(self, query: Query, subgraph: Subgraph) -> Seeds:
        """The best nodes of the subgraph: `seeds` segments and as many passages (first step of the beam search)."""
        touched, segments = subgraph.nodes(), self.part.graph.segment_count
        nodes = np.array([*touched.segments, *(passage + segments for passage in touched.passages)], np.int64)
        log_p = _log_softmax(
            self.node_scorer.score(query, nodes, subgraph) / np.float32(self.settings.node_temperature)
        )
        order = np.lexsort((nodes, -log_p))
        is_segment = nodes[order] < segments
        chosen = np.concatenate([order[is_segment][: self.settings.seeds], order[~is_segment][: self.settings.seeds]])
        chosen = chosen[np.lexsort((nodes[chosen], -log_p[chosen]))]
        return Seeds(nodes[chosen], log_p[chosen])

    @once
    def titles(self) -> TitleTerms:
        """The words of the passages' titles."""
        return TitleTerms(self.part.corpus.passages.titles(), self.part.postings)

    def _candidates(self, query: Query, subgraph: Subgraph, seeds: Seeds) -> Iterable[ExpandedPair]:
        """The best pairs of every seed: the second step of the beam search."""
        search, segments = self.part.search, self.part.graph.segment_count
        bounds = search.node_bounds(query)
        own_N = search.bound_sums(bounds)
        asked = set(terms_of(query.text))
        sides = (_Passages(self, asked, own_N), _Segments(self, asked, own_N))
        for seed, prior in zip(seeds.nodes.tolist(), seeds.log_p.tolist(), strict=True):
            side = sides[0] if seed < segments else sides[1]
            nodes, beside = side.candidates(seed, subgraph)
            if not len(nodes):
                continue
            scores = search.pair_bounds(bounds, seed, nodes + side.first) + beside
            log_p = _log_softmax(scores / np.float32(self.settings.pair_temperature))
            for n in np.argsort(-log_p, kind="stable")[: self.settings.beam]:
                yield ExpandedPair(side.edge(seed, int(nodes[n])), seed, prior + float(log_p[n]))


class _Side(ABC):
    """The nodes [first, last) that a seed may be paired with, and what a pair's score holds beside MaxSim.

    Candidates of a seed: nodes that share title words with it, and the nodes nearest to the question alone.
    """

    def __init__(self, expander: NodeExpander, asked: set[str], first: int, own_N: FloatArray) -> None:
        self.titles = expander.titles
        self.part = expander.part
        self.settings = expander.settings
        self.asked = asked
        self.first = first
        self.count = len(own_N)
        self.common = int(COMMON * self.part.tokens.node_count) + MIN_COMMON
        self._question = self._lexical(asked)
        self._own = self._own_weight() * own_N
        near = min(NEAR, len(own_N))
        self._near = np.argpartition(-own_N, near - 1)[:near] if near else np.zeros(0, np.int64)
        deleted = self.part.view.deleted_nodes()
        self._deleted = deleted[(deleted >= first) & (deleted < first + self.count)] - first

    def candidates(self, seed: int, subgraph: Subgraph) -> tuple[NodeArray, FloatArray]:
        """Positions on this side that are new to the seed, and what counts beside the pair's MaxSim."""
        terms, met, title = self._text(seed)
        mask = title >= MIN_TITLE
        mask[self._near] = True
        mask[self._deleted] = False
        mask[self._known(seed, subgraph)] = False
        nodes = np.flatnonzero(mask)
        settings = self.settings
        beside = settings.title_weight * met[nodes] + settings.question_weight * self._question[nodes]
        beside += settings.lexical_weight * self._lexical(terms - self.asked)[nodes]
        beside += self._own[nodes]
        return nodes, np.asarray(beside, np.float32)

    @abstractmethod
    def edge(self, seed: int, n: int) -> Edge:
        """The pair of a seed and the side's n-th node."""

    @abstractmethod
    def _text(self, seed: int) -> tuple[set[str], FloatArray, FloatArray]:
        """The terms of Γ(u), and for every node the share of the passage's title that the row meets, alone and with
        the question's help: (N) each.
        """

    @abstractmethod
    def _own_weight(self) -> float:
        """What the MaxSim of the side's node alone adds: rows count as they do in edge retrieval."""

    @abstractmethod
    def _known(self, seed: int, subgraph: Subgraph) -> NodeArray:
        """Positions of the nodes that the seed is linked to, and of those that it has in the subgraph."""

    def _lexical(self, terms: Iterable[str]) -> FloatArray:
        """BM25 of the side's nodes: (N)."""
        search = self.part.search
        last = self.first + self.count
        return self.part.postings.node_scores(terms, self.first, last, k1=search.k1, b=search.b, common=self.common)


class _Passages(_Side):
    """Segment to passage: f_S→P."""

    def _own_weight(self) -> float:
        return 0.0

    def __init__(self, expander: NodeExpander, asked: set[str], own_N: FloatArray) -> None:
        segments = expander.part.graph.segment_count
        super().__init__(expander, asked, segments, own_N[segments:])

    def edge(self, seed: int, n: int) -> Edge:
        return Edge(seed, n)

    def _text(self, seed: int) -> tuple[set[str], FloatArray, FloatArray]:
        segment = self.part.corpus.segment(seed)
        terms = set(terms_of(segment_text(segment).text))
        met = self.titles.cover(terms_of(" ".join(segment.cells)))
        return terms, met, np.where(met > 0, self.titles.cover(terms | self.asked), np.float32(0.0))

    def _known(self, seed: int, subgraph: Subgraph) -> NodeArray:
        held = [s.edge.passage for s in subgraph.edges if s.edge.segment == seed and s.edge.passage is not None]
        return np.concatenate([self.part.graph.passages_of(seed), np.array(held, np.int64)]).astype(np.int64)


class _Segments(_Side):
    """Passage to segment: f_P→S."""

    def _own_weight(self) -> float:
        return self.settings.segment_weight

    def __init__(self, expander: NodeExpander, asked: set[str], own_N: FloatArray) -> None:
        super().__init__(expander, asked, 0, own_N[: expander.part.graph.segment_count])

    def edge(self, seed: int, n: int) -> Edge:
        return Edge(n, seed - self.part.graph.segment_count)

    def _text(self, seed: int) -> tuple[set[str], FloatArray, FloatArray]:
        passage = self.part.corpus.passages[seed - self.part.graph.segment_count]
        return set(terms_of(passage_text(passage).text)), *self._cover(passage.title)

    def _cover(self, title: str) -> tuple[FloatArray, FloatArray]:
        """The share of the title that each segment holds, alone and with the question: (N) each."""
        postings = self.part.postings
        terms = list(dict.fromkeys(terms_of(title)))
        rarity = postings.idf(np.array([term_hash(term) for term in terms], np.uint64))
        shares = rarity / max(float(rarity.sum()), 1e-6)
        met = np.zeros(self.count, np.float32)
        both = np.zeros(self.count, np.float32)
        for term, share in zip(terms, shares, strict=True):
            nodes = postings.nodes[postings.nodes_with(term, 0, self.count)]
            met[nodes] += share
            if term in self.asked:
                both += share
            else:
                both[nodes] += share
        return met, np.where(met > 0, both, np.float32(0.0))

    def _known(self, seed: int, subgraph: Subgraph) -> NodeArray:
        passage = seed - self.part.graph.segment_count
        held = [s.edge.segment for s in subgraph.edges if s.edge.passage == passage and s.edge.segment is not None]
        return np.concatenate([self.part.graph.segments_of(passage), np.array(held, np.int64)]).astype(np.int64)


def _log_softmax(scores: FloatArray) -> FloatArray:
    """Logarithms of the softmax of scores."""
    shifted = scores - scores.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()), np.float32)

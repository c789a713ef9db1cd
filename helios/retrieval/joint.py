"""Edges encoded jointly, as HELIOS does (4.1): a row and a passage are one text, and its tokens see each other.

An index of joint edges holds every node once for each of its edges. For the 740,000 predicted links of the OTT-QA
sample that is 134.6 million token vectors beside the 25.0 million of its nodes, 5.4 times as many (`token_counts`
counts any index; two to ten times is usual), all of them encoded again whenever a link changes. This is why
`factored` is the default, and why `JointRetrieval` encodes the best factored candidates while it searches: the two ways
can be compared over the same candidates without an index of edges. It is slow, and meant for that comparison.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from helios.graph import Subgraph
from helios.index.products import products, weighted_sums
from helios.index.reader import IndexReader
from helios.index.search import PairScores
from helios.models.encoder import TokenEncoder, TokenVectors
from helios.models.text import passage_text, segment_text
from helios.retrieval.ranking.fused import FusedModel
from helios.retrieval.state import SearchState, edges_of, pairs_of
from helios.types import Edge, ScoredEdge

FloatArray = NDArray[np.float32]


class JointEdges:
    """MaxSim of questions with the texts of edges, each encoded as one sequence; threads take turns."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder = encoder
        self._turn = Lock()

    def __repr__(self) -> str:
        return f"JointEdges({self.encoder!r})"

    def maxsim(self, index: IndexReader, tokens: TokenVectors, edges: Sequence[Edge]) -> FloatArray:
        """One score an edge, from vectors that are not quantised: (E)."""
        texts = [" ".join(node_texts(index, edge)) for edge in edges]
        with self._turn:
            maxima_EQ = token_maxima(self.encoder, texts, tokens.vectors)
        return weighted_sums(maxima_EQ, index.tokens.token_weights(tokens.ids))

    def scorer(self, fused: FusedModel) -> "NewJointEdges":
        """What scores edges that were not retrieved."""
        return NewJointEdges(self, fused)


@dataclass(frozen=True, slots=True)
class JointRetrieval:
    """The stage: the best `read` factored candidates with the MaxSim of their joint texts in place of the factored one.

    BM25 and the MaxSim of row and star count as they do in the fused score; no learned ranking, which knows factored
    scores alone. The other candidates keep their factored score.
    """

    joint: JointEdges
    fused: FusedModel
    candidates: int
    exact: int
    read: int
    name: str = "retrieve"

    @property
    def depth(self) -> int:
        """Edges that it reads."""
        return self.read

    def run(self, state: SearchState) -> SearchState:
        """The state with candidates, and the best `state.depth` as ranked edges."""
        found = state.search.candidates(
            state.query, count=max(self.candidates, state.depth), exact=max(self.exact, state.depth)
        )
        edges = edges_of(state.index, found.pairs)
        head = found.scores.take(np.arange(min(self.read, len(found))))
        maxsim = self.joint.maxsim(state.index, state.query.tokens, edges[: self.read])
        joint = PairScores.of(maxsim, head.segment, head.star, head.lexical, self.fused.fusion)
        scores = np.concatenate([joint.fused, found.scores.fused[self.read :]])
        order = np.lexsort((found.units, -scores))
        best = float(scores[order[0]]) if len(order) else 0.0
        log_odds = self.fused.scale.log_odds(scores[order], np.arange(len(order)), best=best)
        ranked = [ScoredEdge(edges[at], score) for at, score in zip(order.tolist(), log_odds.tolist(), strict=True)]
        return replace(
            state, candidates=found, maxima=found.maxima, subgraph=Subgraph.from_edges(ranked).top(state.depth)
        )


@dataclass(frozen=True, slots=True)
class NewJointEdges:
    """Scores of edges that were not retrieved, as `JointRetrieval` would have scored them."""

    joint: JointEdges
    fused: FusedModel

    def score(self, state: SearchState, edges: Sequence[Edge]) -> tuple[SearchState, FloatArray]:
        """Log-odds of each edge."""
        pairs = pairs_of(state.index, edges)
        maxima = state.maxima or state.search.no_maxima(state.query)
        new, maxima = state.search.pair_scores(state.query, pairs, maxima, state.found.bounds)
        maxsim = self.joint.maxsim(state.index, state.query.tokens, edges)
        fused = PairScores.of(maxsim, new.segment, new.star, new.lexical, self.fused.fusion).fused
        known = state.found.scores.fused
        best = max(float(known[0]) if len(known) else 0.0, float(fused.max(initial=0.0)))
        ranks = np.searchsorted(-known, -fused)
        return replace(state, maxima=maxima), self.fused.scale.log_odds(fused, ranks, best=best)


def apart_maxsim(encoder: TokenEncoder, index: IndexReader, tokens: TokenVectors, edges: Sequence[Edge]) -> FloatArray:
    """Factored MaxSim from vectors that are not quantised: (E); beside the joint one, only the encoding differs."""
    nodes = [node_texts(index, edge) for edge in edges]
    places = {text: place for place, text in enumerate(dict.fromkeys(text for texts in nodes for text in texts))}
    maxima = token_maxima(encoder, list(places), tokens.vectors)
    best_EQ = np.zeros((len(edges), len(tokens.vectors)), np.float32)
    for place, texts in enumerate(nodes):
        best_EQ[place] = maxima[[places[text] for text in texts]].max(axis=0)
    return weighted_sums(best_EQ, index.tokens.token_weights(tokens.ids))


def node_texts(index: IndexReader, edge: Edge) -> list[str]:
    """The texts of the nodes that an edge has, the row first, as an index holds them."""
    texts = []
    if edge.segment is not None:
        texts.append(segment_text(index.corpus.segment(edge.segment)).text)
    if edge.passage is not None:
        texts.append(passage_text(index.corpus.passages[edge.passage]).text)
    return texts


def token_maxima(encoder: TokenEncoder, texts: Sequence[str], vectors_QD: FloatArray) -> FloatArray:
    """Largest product of each question token with the tokens of each text: (texts, Q)."""
    maxima = np.zeros((len(texts), len(vectors_QD)), np.float32)
    for place, tokens in enumerate(encoder.encode_documents(texts)):
        maxima[place] = products(tokens.vectors, vectors_QD).max(axis=0)
    return maxima


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Token vectors that an index of nodes holds, and that one of jointly encoded edges would hold."""

    units: int
    factored: int
    joint: int

    @property
    def ratio(self) -> float:
        """Joint of factored, 1 for an empty index."""
        return self.joint / self.factored if self.factored else 1.0


def token_counts(index: IndexReader) -> TokenCounts:
    """Counted from the token stores and the units of an index; what a longest text would cut off is not taken off."""
    lengths = np.append(index.tokens.lengths_of(np.arange(index.node_count)), 0)
    units = index.units
    return TokenCounts(len(units), int(lengths.sum()), int(lengths[units.left].sum() + lengths[units.right].sum()))

"""Edges encoded jointly, as HELIOS does (4.1): a row and a passage are one text, and its tokens see each other.

An index of joint edges holds every node once for each of its edges. For the 740,000 predicted links of the OTT-QA
sample that is 134.6 million token vectors beside the 25.0 million of its nodes, 5.4 times as many (`token_counts`
counts any index; two to ten times is usual), all of them encoded again whenever a link changes. This is why
`factored` is the default, and why `JointEdges` encodes the best factored candidates while it searches: the two ways
can be compared over the same candidates without an index of edges. It is slow, and meant for that comparison.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from helios.index.search import Query
from helios.models.encoder import TokenEncoder, TokenVectors
from helios.models.ranker import EdgeRanker
from helios.models.text import passage_text, segment_text
from helios.once import once
from helios.retrieval.edges import FactoredEdges, edge_sides, fusion_of, reorder
from helios.retrieval.part import SearchPart
from helios.types import Edge, ScoredEdge

FloatArray = NDArray[np.float32]


class JointEdges:
    """The best `joint_depth` factored candidates, with the MaxSim of their joint texts in place of the factored one.

    BM25 and the MaxSim of row and star count as they do in the fused score; no learned ranking, which knows factored
    scores alone. The other candidates follow in their order.
    """

    def __init__(self, factored: FactoredEdges) -> None:
        self.factored = factored
        self.settings = factored.settings
        self.ranker: EdgeRanker | None = None

    def retrieve(self, question: str, *, k: int) -> list[list[ScoredEdge]]:
        tokens = self.factored.encoder.encode_question(question)
        return [self._retrieve(part, question, tokens, k=k) for part in self.factored.parts]

    def new_edges(self, part: SearchPart) -> "NewJointEdges":
        """What scores edges that the graph lacks as if it had them."""
        return NewJointEdges(part, self)

    @once
    def texts(self) -> "JointTexts":
        """What encodes edges."""
        return JointTexts(self.factored.encoder.for_pairs())

    def _retrieve(self, part: SearchPart, question: str, tokens: TokenVectors, *, k: int) -> list[ScoredEdge]:
        depth = self.settings.joint_depth
        found, fused = self.factored.found(part, question, depth=max(k, depth)).top(max(k, depth))
        edges = [part.edge(unit) for unit in found.units.tolist()]
        head = found.take(np.arange(min(depth, len(edges))))
        joint = replace(head, maxsim=self.texts.maxsim(part, tokens, edges[:depth]))
        scores = reorder(joint.fused(fusion_of(self.settings)), fused)
        order = np.lexsort((found.units, -scores))[:k]
        return [ScoredEdge(edges[place], float(scores[place])) for place in order.tolist()]


class NewJointEdges:
    """Scores of edges that were not retrieved, on the scale of `JointEdges` (the edge scorer of expansion)."""

    def __init__(self, part: SearchPart, joint: JointEdges) -> None:
        self.part = part
        self.joint = joint

    def score(self, query: Query, edges: Sequence[Edge]) -> FloatArray:
        """One score an edge."""
        fusion = fusion_of(self.joint.settings)
        left, right = edge_sides(self.part, edges)
        new = self.part.search.pair_scores(query, left, right, self.part.stars(left, right), fusion=fusion)
        tokens = self.joint.factored.encoder.encode_question(query.text)
        return replace(new, maxsim=self.joint.texts.maxsim(self.part, tokens, edges)).fused(fusion)


class JointTexts:
    """MaxSim of questions with the texts of edges, each encoded as one sequence; threads take turns."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder = encoder
        self._turn = Lock()

    def maxsim(self, part: SearchPart, tokens: TokenVectors, edges: Sequence[Edge]) -> FloatArray:
        """One score an edge, from vectors that are not quantised: (E)."""
        texts = [" ".join(node_texts(part, edge)) for edge in edges]
        with self._turn:
            maxima_EQ = token_maxima(self.encoder, texts, tokens.vectors)
        scores: FloatArray = maxima_EQ @ part.tokens.token_weights(tokens.ids)
        return scores


def apart_maxsim(encoder: TokenEncoder, part: SearchPart, tokens: TokenVectors, edges: Sequence[Edge]) -> FloatArray:
    """Factored MaxSim from vectors that are not quantised: (E); beside the joint one, only the encoding differs."""
    nodes = [node_texts(part, edge) for edge in edges]
    places = {text: place for place, text in enumerate(dict.fromkeys(text for texts in nodes for text in texts))}
    maxima = token_maxima(encoder, list(places), tokens.vectors)
    best_EQ = np.zeros((len(edges), len(tokens.vectors)), np.float32)
    for place, texts in enumerate(nodes):
        best_EQ[place] = maxima[[places[text] for text in texts]].max(axis=0)
    scores: FloatArray = best_EQ @ part.tokens.token_weights(tokens.ids)
    return scores


def node_texts(part: SearchPart, edge: Edge) -> list[str]:
    """The texts of the nodes that an edge has, the row first, as an index holds them."""
    texts = []
    if edge.segment is not None:
        texts.append(segment_text(part.corpus.segment(edge.segment)).text)
    if edge.passage is not None:
        texts.append(passage_text(part.corpus.passages[edge.passage]).text)
    return texts


def token_maxima(encoder: TokenEncoder, texts: Sequence[str], vectors_QD: FloatArray) -> FloatArray:
    """Largest product of each question token with the tokens of each text: (texts, Q)."""
    maxima = np.zeros((len(texts), len(vectors_QD)), np.float32)
    for place, tokens in enumerate(encoder.encode_documents(texts)):
        maxima[place] = (tokens.vectors @ vectors_QD.T).max(axis=0)
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


def token_counts(part: SearchPart) -> TokenCounts:
    """Counted from the token store and the units of a part; what a longest text would cut off is not taken off."""
    lengths = np.append(np.diff(part.tokens.offsets), 0).astype(np.int64)
    units = part.search.units
    return TokenCounts(len(units), int(lengths.sum()), int(lengths[units.left].sum() + lengths[units.right].sum()))

"""A question's context in late interaction: attributes as further query vectors (DAQu 3.2, for MaxSim).

The stage runs where a question comes with a context, and only there: the engine puts it in before the list is spread.

    join     the best edges by question and columns together, which the question alone may not have found
    score    of every attribute its MaxSim with each edge, pooled by column, columns weighted: (E, A) → (E, C) → (E)
    add      what is above the edges' mean to their log-odds, by the slope that MaxSim has there

One vector stands for an attribute, the unit mean of its tokens: a context of 200 attributes is 200 query vectors. An
edge's similarity with a column is the mean of its FEW best attributes: a question is about some of its author's earlier
posts, not about all. What similarity unlike texts have too (FLOOR) counts for nothing, and a column counts by how much
it tells the edges apart, so that a customer's name does not blur what the customer's lamp says. Tags count
less than texts, numbers and dates not at all unless they are given a weight: "score: 32" is like any other number.

What the question's own row says in words is no attribute but part of the question (`with_own_row`): its tokens take
part one by one.

Shape legend: E edges, U nodes, T their tokens, A attributes, C columns, Q question tokens, D dimension.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.augment.context import Context, ContextColumn, Kind
from helios.augment.model import ROW_COLUMN
from helios.augment.words import cleaned
from helios.index.products import padded
from helios.index.search import Pairs, places_in
from helios.index.visible import Query
from helios.models.encoder import TokenVectors
from helios.retrieval.explain import words_of_tokens
from helios.retrieval.ranking.fused import FusedModel
from helios.retrieval.ranking.stage import EdgeScorer
from helios.retrieval.state import SearchState, Stage, edges_of, pairs_of
from helios.types import ContextMatch, ContextWeight, Edge, Origin, ScoredEdge

if TYPE_CHECKING:
    from helios.augment.encoding import AttributeVectors, ColumnWeights
    from helios.models.encoder import TokenEncoder

FloatArray = NDArray[np.float32]
Numbers = NDArray[np.int64]

FEW = 3
"""Attributes of a column, those most like an edge, whose mean is the column's similarity."""
FLOOR = 0.25
"""Similarity that a text and an edge reach though they have nothing in common."""
WEIGHTS = {Kind.TEXT: 1.0, Kind.CATEGORY: 0.25, Kind.NUMBER: 0.0, Kind.DATE: 0.0}
"""What a column counts by the kind of its values, unless it is given a weight: a tag is like whatever mentions it."""
OWN_WORDS = 12
"""Words of the row's own text from which on the row speaks for itself, and what its keys lead to only blurs it."""
JOINING = 30
"""Edges that join by question and columns together, at most."""
COLUMNS = 32
"""Columns whose mean helps to find edges that join, those of the greatest weight."""
MATCHES = 3
"""Attributes that are named for an edge."""
LEAST = 0.005
"""Log-odds that an attribute adds to be named."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextScores:
    """What a context adds to edges: kept in the search's state for the evidence to tell."""

    edges: tuple[Edge, ...]
    columns: tuple[ContextColumn, ...]
    weights_C: FloatArray
    """Shares of the columns; they sum to 1."""
    similarities_EA: FloatArray
    gains_EA: FloatArray
    """What each attribute adds to the log-odds of each edge, above the mean of the edges."""
    vectors_AD: FloatArray

    def __repr__(self) -> str:
        return f"ContextScores({len(self.edges)} edges, {len(self.vectors_AD)} attributes)"

    def weights(self) -> tuple[ContextWeight, ...]:
        """The columns, those first that moved the edges most."""
        found, start = [], 0
        for column, weight in zip(self.columns, self.weights_C.tolist(), strict=True):
            gains = self.gains_EA[:, start : start + column.kept].sum(axis=1)
            start += column.kept
            spread = float(gains.std()) if len(gains) else 0.0
            found.append(ContextWeight(column.role, column.kept, weight, spread))
        return tuple(sorted(found, key=lambda one: (-one.spread, -one.weight, one.column)))

    def matches(self, state: SearchState, edge: Edge, encoder: "TokenEncoder | None") -> tuple[ContextMatch, ...]:
        """The attributes that add most to an edge; with an encoder, also the word that each matched best."""
        if edge not in self.edges:
            return ()
        gains = self.gains_EA[self.edges.index(edge)]
        similarities = self.similarities_EA[self.edges.index(edge)]
        attributes = [(column, one) for column in self.columns for one in column.attributes]
        best = [n for n in np.argsort(-gains, kind="stable")[:MATCHES].tolist() if gains[n] >= LEAST]
        words = [""] * len(best)
        if encoder is not None and best:
            words = words_of_tokens(state.index, encoder, self.vectors_AD[best], edge)
        return tuple(
            ContextMatch(attributes[n][0].role, attributes[n][1].text, word, float(similarities[n]), float(gains[n]))
            for n, word in zip(best, words, strict=True)
        )


@dataclass(frozen=True, slots=True)
class ContextStage:
    """The stage; it belongs to one question."""

    context: Context
    vectors: "AttributeVectors"
    weights: "ColumnWeights"
    scorer: EdgeScorer
    fused: FusedModel
    first: int = 100
    """Edges whose similarity is computed."""
    name: str = "context"

    @property
    def depth(self) -> int:
        """Edges that it reads."""
        return self.first

    def run(self, state: SearchState) -> SearchState:
        """The state with its edges in the order that question and context give together."""
        columns = tuple(column for column in _others(self.context, state.question) if self._weight(column) > 0)
        weights_C = np.array([self._weight(column) for column in columns], np.float32)
        if not state.subgraph.edges or not columns or self.weights.share >= 1.0:
            return state
        if not state.in_time():
            return state.without("for the question's context")
        weights_C /= weights_C.sum()
        vectors_AD = self.vectors.of([text for column in columns for text in column.texts()])
        state = self._joined(state, columns, weights_C, vectors_AD)
        edges = tuple(scored.edge for scored in state.subgraph.edges[: self.first])
        similarities_EA = _similarities(state, edges, vectors_AD)
        weights_C, parts_EA = _pooled(similarities_EA, [column.kept for column in columns], weights_C)
        gains_EA = np.asarray(self._slope(state) * (parts_EA - parts_EA.mean(axis=0)), np.float32)
        found = ContextScores(edges, columns, weights_C, similarities_EA, gains_EA, vectors_AD)
        gains = dict(zip(edges, gains_EA.sum(axis=1).tolist(), strict=True))
        ranked = (replace(one, score=one.score + gains.get(one.edge, 0.0)) for one in state.subgraph.edges)
        return replace(state, context=found).with_edges(ranked)

    def _weight(self, column: ContextColumn) -> float:
        """What a column counts before shares are made of it."""
        if self.weights.weights is not None:
            return float(self.weights.of(column))
        return WEIGHTS[column.attributes[0].kind]

    def _slope(self, state: SearchState) -> float:
        """Log-odds for one unit of a column's similarity, were the context so much of the MaxSim sum as its share says.

        A lone node's MaxSim counts in the fused score with its row's and its star's.
        """
        fused, best = self.fused, float(state.found.scores.fused[0]) if len(state.found) else 1.0
        times = 1.0 + fused.fusion.segment + fused.fusion.star
        share = max(self.weights.share, 0.05)
        total = float(state.query.weights_Q.sum()) * (1.0 - share) / share
        return float(-fused.scale.gap / max(best, 1.0) ** 0.5 * times * total)

    def _joined(
        self, state: SearchState, columns: Sequence[ContextColumn], weights_C: FloatArray, vectors_AD: FloatArray
    ) -> SearchState:
        """The state with the best edges by question and columns that it lacks, each with the log-odds of its own."""
        query = _together(state, columns, weights_C, vectors_AD, self.weights.share)
        found = state.search.candidates(query, count=2 * self.first, exact=self.first, depth=JOINING)
        known = {scored.edge for scored in state.subgraph.edges[: self.first]}
        edges = [edge for edge in edges_of(state.index, found.pairs)[: self.first] if edge not in known][:JOINING]
        if not edges:
            return state
        state, log_odds = self.scorer.score(state, edges)
        joining = [ScoredEdge(edge, score, Origin.LINKED) for edge, score in zip(edges, log_odds.tolist(), strict=True)]
        listed = list(state.subgraph.edges)
        there = {scored.edge for scored in listed}
        kept, rest = listed[: self.first], listed[self.first :]
        added = [scored for scored in joining if scored.edge not in there]
        return state.with_edges([*kept, *added, *rest])


def with_own_row(question: str, context: Context, weights: "ColumnWeights") -> "tuple[str, Context, ColumnWeights]":
    """The question with the texts of its own row after it, the context that is left, and the weights for that.

    A context of one's own values has no row, and stays as it is. Where the row has OWN_WORDS of text, what its keys
    lead to is left out unless there are learned weights; with these it keeps its part of the context's share.
    """
    own = [column for column in _others(context, question) if _is_own_text(column)] if context.row else []
    words = "\n".join(text for column in own for text in column.texts() if column.name != ROW_COLUMN)
    if not words:
        return question, context, weights
    rest = tuple(column for column in context.columns if not _is_own_text(column))
    if weights.weights is not None:
        told, left = (sum(map(weights.of, columns)) for columns in (own, rest))
        part = left / (told + left) if left > 0 else 0.0
        weights = replace(weights, share=1.0 - (1.0 - weights.share) * part)
    elif len(words.split()) >= OWN_WORDS:
        rest = tuple(column for column in rest if not column.path)
    return f"{question}\n{words}", replace(context, columns=rest), weights


def _is_own_text(column: ContextColumn) -> bool:
    return not column.path and bool(column.attributes) and column.attributes[0].kind is Kind.TEXT


def with_context(stages: Sequence[Stage], stage: ContextStage) -> tuple[Stage, ...]:
    """The stages with this one before the list is spread; last where nothing spreads it."""
    names = [one.name for one in stages]
    place = names.index("spread") if "spread" in names else len(names)
    return (*stages[:place], stage, *stages[place:])


def _others(context: Context, question: str) -> Iterator[ContextColumn]:
    """The columns without what the question says already, those that are left with some attributes."""
    asked = cleaned(question).casefold()
    for column in context.columns:
        kept = tuple(one for one in column.attributes if cleaned(one.text).casefold() != asked)
        if kept:
            yield column if len(kept) == column.kept else replace(column, attributes=kept)


def _together(
    state: SearchState, columns: Sequence[ContextColumn], weights_C: FloatArray, vectors_AD: FloatArray, share: float
) -> Query:
    """The question with one further vector a column, as a query."""
    query, index = state.query, state.index
    means, start = [], 0
    for column in columns:
        mean = vectors_AD[start : start + column.kept].mean(axis=0)
        means.append(mean / max(float(np.linalg.norm(mean)), 1e-9))
        start += column.kept
    chosen = np.argsort(-weights_C, kind="stable")[:COLUMNS]
    chosen = chosen[weights_C[chosen] > 0]
    own = len(query.tokens.ids)
    count = own + len(chosen)
    vectors_QD = np.zeros((padded(count), query.tokens.vectors.shape[1]), np.float32)
    vectors_QD[:own] = query.tokens.vectors
    vectors_QD[own:count] = np.stack(means)[chosen]
    weights = np.zeros(len(vectors_QD), np.float32)
    weights[:own] = query.weights_Q[:own]
    share = max(share, 0.05)
    weights[own:count] = weights_C[chosen] * float(query.weights_Q.sum()) * (1.0 - share) / share
    tables, step = index.tokens.tables(vectors_QD, weights)
    tokens = TokenVectors(
        vectors_QD[:count],
        np.concatenate([query.tokens.ids, np.zeros(len(chosen), np.int32)]),
        np.concatenate([query.tokens.spans, np.zeros((len(chosen), 2), np.int32)]),
    )
    return Query(query.text, tokens, weights, tables, step, query.terms)


def _similarities(state: SearchState, edges: Sequence[Edge], vectors_AD: FloatArray) -> FloatArray:
    """MaxSim of every attribute with every edge, the larger of its two nodes': (E, A)."""
    index = state.index
    pairs: Pairs = pairs_of(index, edges)
    nodes = pairs.nodes(index.node_count)
    best_UA = np.full((len(nodes) + 1, len(vectors_AD)), -1.0, np.float32)
    best_UA[: len(nodes)] = index.tokens.similarities(vectors_AD, nodes)
    left, right = (places_in(nodes, side) for side in (pairs.left, pairs.right))
    return np.maximum(best_UA[left], best_UA[right])


def _pooled(similarities_EA: FloatArray, counts: Sequence[int], weights_C: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The columns' shares (C), and what each attribute adds to an edge's similarity with the context (E, A).

    The rows of the latter sum to that similarity. The FEW best of a column share its weight, which is the given one
    times the standard deviation of the column's similarities.
    """
    parts_EA, shares_C = np.zeros_like(similarities_EA), weights_C.copy()
    start = 0
    for number, count in enumerate(counts):
        own = np.maximum(similarities_EA[:, start : start + count] - np.float32(FLOOR), 0.0)
        few = min(FEW, count)
        best = np.argpartition(-own, few - 1, axis=1)[:, :few]
        rows = np.arange(len(own))[:, None]
        parts_EA[rows, start + best] = own[rows, best] / few
        shares_C[number] *= parts_EA[:, start : start + count].sum(axis=1).std()
        start += count
    total = float(shares_C.sum())
    shares_C = shares_C / total if total > 0 else shares_C
    return shares_C, np.asarray(parts_EA * np.repeat(shares_C, counts), np.float32)

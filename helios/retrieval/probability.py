"""What scores mean: the chance that an edge is evidence, and that the corpus holds what a question asks for.

Stages only rank. Their scores share one scale, log-odds, but how far it holds differs with what has run: a ranking that
nothing read again is surer of itself than it should be. So the meaning is decided here, once, after the last stage, by
two logistic regressions over what every search has: the score, the rank, how far the best edge is ahead, and how much
of the question the best edges say again. They learned (`helios train probability`) from searches with every stage and
with each of them left out, in the corpus as it is and without the nodes that hold the answer. docs/ranking.md shows
how well the chances hold.

Shape legend: E edges, T terms of the question, Q question tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.index.products import weighted_sums
from helios.models.card import read_card
from helios.retrieval.state import SearchState, pairs_of
from helios.types import Origin, ScoredEdge

FloatArray = NDArray[np.float64]
SHIPPED = Path(__file__).parent / "weights" / "probability"
ROLE = "probability"
QUESTION_FEATURES = ("best", "lead", "terms_of_best", "tokens_of_best")
"""Of a question: its best score, how far that is above the median of the best ten, and the largest shares of the
question's words (by rarity) and of its tokens' similarities that one of the best ten edges has."""
EDGE_FEATURES = (
    "score", "rank", "below_best", "expanded", "aggregated", "rejected", *QUESTION_FEATURES,
)  # fmt: skip
"""Of an edge: its score, the logarithm of its rank, its distance to the best score, how it was found."""
BEST = 10
FLOOR, CEILING = -8.0, 4.0
"""Scores count between these: beyond them there is nothing to tell apart."""


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic regression over named features."""

    weights: Mapping[str, float]
    intercept: float

    def chances(self, rows: FloatArray, names: Sequence[str]) -> FloatArray:
        """For rows (E, features) of features with these names: (E)."""
        weights = np.array([self.weights.get(name, 0.0) for name in names])
        sums = (rows * weights).sum(axis=1)  # the same bits however many rows there are; a matrix product's are not
        chances: FloatArray = 1 / (1 + np.exp(-(sums + self.intercept)))
        return chances


@dataclass(frozen=True, slots=True)
class Judged:
    """The chance of each of the first k edges that it is evidence, and that the corpus holds any."""

    probabilities: tuple[float, ...]
    present: float


@dataclass(frozen=True, slots=True)
class EvidenceModel:
    """One calibration for all stages and ranks; holds no state, so threads may share it."""

    edge: Logistic
    presence: Logistic

    @classmethod
    def load(cls, folder: Path | None = None) -> "EvidenceModel":
        """The packaged one, or that of a folder; ModelError if it is missing, damaged, or knows other features."""
        folder = folder or SHIPPED
        values = read_card(folder, ROLE).values
        try:
            models = [
                Logistic(dict(values[name]["weights"]), float(values[name]["intercept"]))
                for name in ("edge", "presence")
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"{folder}: its card lacks a number ({error}); train it again (`helios train probability`)"
            ) from error
        for model, known in zip(models, (EDGE_FEATURES, QUESTION_FEATURES), strict=True):
            if unknown := set(model.weights) - set(known):
                raise ModelError(
                    f"{folder}: weights of features that this version does not have: {', '.join(sorted(unknown))}"
                )
        return cls(*models)

    def judge(self, state: SearchState) -> Judged:
        """What the first k edges of a finished search are worth."""
        edges, question = features_of(state)
        if not len(edges):
            return Judged((), 0.0)
        chances = self.edge.chances(edges[: state.k], EDGE_FEATURES)
        (present,) = self.presence.chances(question[None, :], QUESTION_FEATURES)
        return Judged(tuple(chances.tolist()), float(present))


def features_of(state: SearchState) -> tuple[FloatArray, FloatArray]:
    """Features of the first k edges, or of the best ten, (E, EDGE_FEATURES), and of the question, (QUESTION_FEATURES).

    They do not depend on k.
    """
    edges = state.subgraph.edges[: max(state.k, BEST)]
    if not edges:
        return np.zeros((0, len(EDGE_FEATURES))), np.zeros(len(QUESTION_FEATURES))
    scores = np.clip([scored.score for scored in edges], FLOOR, CEILING)
    best = float(scores[:BEST].max())
    terms, tokens = _shares(state, edges[:BEST])
    about = np.array([best, best - np.median(scores[:BEST]), terms.max(), tokens.max()])
    own: list[Any] = [
        scores, np.log1p(np.arange(len(edges))), best - scores,
        *([scored.origin is origin for scored in edges] for origin in (Origin.EXPANDED, Origin.AGGREGATED)),
        [scored.rejected for scored in edges],
    ]  # fmt: skip
    return np.column_stack([*own, np.tile(about, (len(edges), 1))]).astype(np.float64), about


def _shares(state: SearchState, edges: Sequence[ScoredEdge]) -> tuple[FloatArray, FloatArray]:
    """Of each edge the share of the question's words that it holds, and the mean similarity of its tokens: (E), (E)."""
    index, query = state.index, state.query
    pairs = pairs_of(index, [scored.edge for scored in edges])
    nodes = pairs.nodes(index.node_count)
    sides = [np.minimum(np.searchsorted(nodes, side), len(nodes) - 1) for side in (pairs.left, pairs.right)]
    there = [side < index.node_count for side in (pairs.left, pairs.right)]
    held_UT = index.postings.counts(query.terms, nodes) > 0
    held_ET = np.logical_or(*(held_UT[side] & seen[:, None] for side, seen in zip(sides, there, strict=True)))
    rarest = float(index.postings.statistics.rarity(np.zeros(1, np.int64))[0])
    whole = float(query.terms.idf_T.sum()) + query.terms.missing * rarest
    terms = weighted_sums(held_ET, query.terms.idf_T.astype(np.float64)) / max(whole, 1e-9)
    maxima = state.with_maxima(nodes).maxima
    assert maxima is not None
    places = maxima.places(nodes)
    reached = [
        np.where(seen[:, None], maxima.values_UQ[places[side]], 0.0) for side, seen in zip(sides, there, strict=True)
    ]
    weights = query.weights_Q.astype(np.float64)
    return terms, weighted_sums(np.maximum(*reached), weights) / max(float(weights.sum()), 1e-9)

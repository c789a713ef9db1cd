"""Documents: texts that no row links to, put in order by what is known of finding texts.

The stages before were learned on rows with their passages. A text without a row has none of what they compare, so
among themselves such texts are ordered by three scores: BM25, late interaction, and the cosine of the mean vectors of
question and text, which is what the encoder was trained for. Each is taken against the best one of the question; the
weights are a small model. The best by the mean vectors join even if retrieval left them out. Between rows and
texts nothing changes: the texts take, in their new order, the scores that the texts of the list had.

Where a question comes with a context and an augmenter was trained for such questions (`helios.augment.model`), its
vector and its map stand in for the mean vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.index.reader import IndexReader
from helios.index.search import Pairs, largest
from helios.models.card import read_card
from helios.retrieval.state import SearchState, Stage
from helios.types import Edge

if TYPE_CHECKING:
    from helios.augment.model import AugmentModel

SHIPPED = Path(__file__).parent / "weights" / "documents"
ROLE = "document ranking"
BLOCK = 8192
"""Texts whose vectors are read at once."""
TRAINED = 2.0
"""How much more a question's vector counts where an augmenter made it; chosen on validation questions."""
FEW = 2
"""Texts in the list from which on there is an order to choose."""

Numbers = NDArray[np.int64]
FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DocumentWeights:
    """How much each score counts, each between 0 and 1 over the texts that are compared."""

    lexical: float
    late: float
    pooled: float
    k1: float
    b: float

    @classmethod
    def load(cls, folder: Path | None = None) -> "DocumentWeights":
        """The packaged ones, or those of a folder; ModelError if they are missing or damaged."""
        values = read_card(folder or SHIPPED, ROLE).values
        try:
            return cls(**values)
        except TypeError as error:
            raise ModelError(f"{folder or SHIPPED}: its card does not hold the weights of {ROLE} ({error})") from error


@dataclass(frozen=True, slots=True, eq=False)
class TrainedQuestion:
    """A question with its context as one vector, and the augmenter whose map it and the texts are compared by."""

    vector_D: FloatArray
    """q̃ as the map leaves it (D), of length 1."""
    model: "AugmentModel"

    def cosines(self, index: IndexReader, lone: Numbers) -> FloatArray:
        """With the mapped mean vectors of the index's lone passages: (passages).

        The map goes over to the question, so that of the texts only how long it makes them is kept.
        """
        vector_D = self.model.transposed(self.vector_D)
        lengths = index.remembered("mapped lengths", self.model.fingerprint, lambda: self._lengths(index, lone))
        return np.asarray(np.linalg.norm(vector_D) * index.tokens.pooled_cosines(vector_D, lone) / lengths, np.float32)

    def _lengths(self, index: IndexReader, lone: Numbers) -> FloatArray:
        blocks = (lone[start : start + BLOCK] for start in range(0, len(lone), BLOCK))
        return np.concatenate([self.model.lengths(index.tokens.pooled_vectors(block)) for block in blocks])


@dataclass(frozen=True, slots=True)
class DocumentOrder:
    """The stage; an index that was built without pooled vectors keeps its order."""

    weights: DocumentWeights
    joining: int
    """The best texts by each of BM25 and mean vectors that are compared beside those of the list."""
    trained: TrainedQuestion | None = None
    """Belongs to one question."""
    name: str = "documents"
    depth: int = 0

    def run(self, state: SearchState) -> SearchState:
        """The state with its lone texts in the new order, the others as they were."""
        if not state.index.tokens.has_pooled:
            return state
        lone = _lone_passages(state.index)
        known = {
            n: place for n, one in enumerate(state.subgraph.edges) if (place := _place(lone, one.edge)) is not None
        }
        if len(known) < FEW:
            return state
        cosines = self._cosines(state, lone)
        words = state.index.postings.passage_bm25(
            state.query.terms, k1=self.weights.k1, b=self.weights.b, most=state.index.passage_count
        )[lone]
        listed = np.array(list(known.values()), np.int64)
        compared = np.unique(np.concatenate([listed, largest(cosines, self.joining), largest(words, self.joining)]))
        state, late = _late_interaction(state, lone[compared])
        scores = (
            self.weights.lexical * _of_range(words[compared], low=0.0)
            + self.weights.late * _of_range(late)
            + self.weights.pooled * (1.0 if self.trained is None else TRAINED) * _of_range(cosines[compared])
        )
        best = lone[compared[largest(np.asarray(scores, np.float32), len(listed))]].tolist()
        edges = list(state.subgraph.edges)
        for place, passage in zip(known, best, strict=True):
            edges[place] = replace(edges[place], edge=Edge(None, passage))
        return state.with_edges(edges)

    def _cosines(self, state: SearchState, passages: Numbers) -> FloatArray:
        """Of the question as one vector with some passages."""
        if self.trained is not None:
            return self.trained.cosines(state.index, passages)
        return state.index.tokens.pooled_cosines(state.query.tokens.vectors.mean(axis=0), passages)


def with_trained(stages: Sequence[Stage], trained: TrainedQuestion) -> tuple[Stage, ...]:
    """The stages for a question whose vector an augmenter has made."""
    return tuple(replace(one, trained=trained) if isinstance(one, DocumentOrder) else one for one in stages)


def _lone_passages(index: IndexReader) -> Numbers:
    """Passages that no row links to, ascending."""
    units, segments = index.units, index.segment_count
    return index.remembered(
        "lone passages", "", lambda: np.sort(units.right[(units.left == units.nodes)].astype(np.int64)) - segments
    )


def _place(lone: Numbers, edge: Edge) -> int | None:
    """Which of these passages an edge is; None for one with a row and for a passage that has one."""
    if edge.segment is not None or edge.passage is None:
        return None
    place = int(np.searchsorted(lone, edge.passage))
    return place if place < len(lone) and lone[place] == edge.passage else None


def _late_interaction(state: SearchState, passages: Numbers) -> tuple[SearchState, FloatArray]:
    """MaxSim of some passages (ascending), and the state with what was computed of them."""
    nodes = passages + state.index.segment_count
    state = state.with_maxima(nodes)
    assert state.maxima is not None
    none = np.full(len(nodes), state.index.node_count, np.int64)
    maxsim, _ = state.search.maxsim(state.query, Pairs(none, nodes), state.maxima)
    return state, maxsim


def _of_range(values: FloatArray, *, low: float | None = None) -> FloatArray:
    """Values from 0, the least of them or `low`, to 1, the largest."""
    least = float(values.min()) if low is None else low
    return (values - np.float32(least)) / np.float32(max(float(values.max()) - least, 1e-9))

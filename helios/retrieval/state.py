"""One question on its way through the stages of a search (HELIOS, Algorithm 1).

A `SearchState` holds all that is known of a question: what it is in the terms of the index, the candidates and what
was computed of their nodes, the ranked edges, what refinement did. A stage takes a state and returns a new one with its
part filled in; no stage finds another's work anywhere else, and none computes again what the state has.

    from dataclasses import replace

    from helios.engine import Engine
    from helios.retrieval.state import SearchState
    from helios.types import ScoredEdge

    class OfThisCentury:
        name = "of this century"
        depth = 0

        def run(self, state: SearchState) -> SearchState:
            passages = state.index.corpus.passages

            def raised(scored: ScoredEdge) -> ScoredEdge:
                says_so = scored.edge.passage is not None and " 20" in passages[scored.edge.passage].text
                return replace(scored, score=scored.score + 0.5 * says_so)

            return state.with_edges(map(raised, state.subgraph.edges))

    with Engine.open("index", stages=lambda usual: [*usual[:-1], OfThisCentury(), usual[-1]]) as engine:
        evidence = engine.search("Where were the Summer Olympics held?")

The last of the usual stages spreads: it leaves edges in an order that is not that of their scores, which a stage after
it would undo by `with_edges`.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from helios.graph import Subgraph
from helios.index.reader import IndexReader
from helios.index.search import Candidates, EdgeSearch, NodeMaxima, Pairs, PairScores
from helios.index.visible import Query
from helios.retrieval.report import RefinementReport
from helios.types import Edge, ScoredEdge

if TYPE_CHECKING:
    from helios.llm.budget import Budget
    from helios.retrieval.context import ContextScores
    from helios.retrieval.ranking.features import NodeFacts

FloatArray = NDArray[np.float32]


class Stage(Protocol):
    """A step of a search; it holds models and settings, nothing of a question or an index: threads may share it."""

    @property
    def name(self) -> str:
        """What its time is called in `Evidence.timings_ms`."""

    @property
    def depth(self) -> int:
        """How many ranked edges it wants to be given at least."""

    def run(self, state: "SearchState") -> "SearchState":
        """The state with this stage's part filled in."""


@dataclass(frozen=True, slots=True, eq=False)
class RankedPairs:
    """Pairs that the learned ranking has seen together, with what it saw of them."""

    pairs: Pairs
    scores: PairScores
    edges: tuple[Edge, ...]
    features: FloatArray
    """(C, features) of `helios.retrieval.ranking.features`."""
    own: NDArray[np.float64]
    """Of these features what does not depend on the other pairs."""
    log_odds: FloatArray

    def __repr__(self) -> str:
        return f"RankedPairs({len(self.edges)})"

    def features_of(self, edges: Sequence[Edge]) -> FloatArray:
        """The features of some of them, by the edge; KeyError for one that was not ranked."""
        places = {edge: place for place, edge in enumerate(self.edges)}
        return self.features[[places[edge] for edge in edges]]


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """A question, and what the stages so far have found for it."""

    query: Query
    search: EdgeSearch
    k: int
    """Edges that the caller wants."""
    depth: int
    """Edges that retrieval has to give so that every stage has its input."""
    deadline: float | None = None
    """An instant of time.monotonic(), after which stages leave out what they can."""
    budget: "Budget | None" = None
    """What the question may spend on a language model."""
    subgraph: Subgraph = field(default_factory=Subgraph)
    """The ranked edges, best first; their scores are log-odds of being evidence, as far as the stages know."""
    candidates: Candidates | None = None
    maxima: NodeMaxima | None = None
    """Exact MaxSim of nodes that some stage needed."""
    facts: "NodeFacts | None" = None
    """What the features of edges need of nodes that were ranked."""
    ranked: RankedPairs | None = None
    report: RefinementReport = field(default_factory=RefinementReport)
    context: "ContextScores | None" = None
    """What the question's context added, where it has one."""
    left_out: tuple[str, ...] = ()
    """What there was no time for, in words."""
    milliseconds: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        done = ", ".join(self.milliseconds)
        return f"SearchState({self.question!r}, k={self.k}, {len(self.subgraph)} edges, done: {done})"

    @property
    def index(self) -> IndexReader:
        """What the question is asked of: one snapshot, and of it what the filter leaves."""
        return self.search.index

    @property
    def question(self) -> str:
        """The question's text."""
        return self.query.text

    @property
    def found(self) -> Candidates:
        """The candidates; ValueError where no stage has retrieved any."""
        if self.candidates is None:
            raise ValueError("no stage has retrieved candidates: the first stage must")
        return self.candidates

    def with_edges(self, edges: Iterable[ScoredEdge]) -> "SearchState":
        """The same with these edges, sorted by their scores."""
        return replace(self, subgraph=Subgraph.from_edges(edges))

    def with_maxima(self, nodes: NDArray[np.int64]) -> "SearchState":
        """The same with the exact MaxSim of these nodes (ascending) too."""
        known = self.maxima or self.search.no_maxima(self.query)
        found = self.search.with_maxima(self.query, known, nodes)
        return self if found is self.maxima else replace(self, maxima=found)

    def without(self, words: str) -> "SearchState":
        """The same, with what a stage had no time for."""
        return replace(self, left_out=(*self.left_out, f"no time left {words}"))

    def in_time(self) -> bool:
        """Whether the question's deadline has not passed."""
        return self.deadline is None or time.monotonic() < self.deadline

    def seconds_left(self) -> float | None:
        """Seconds to the deadline, 0 if it has passed; None where there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


def pairs_of(index: IndexReader, edges: Sequence[Edge]) -> Pairs:
    """Edges as pairs of node numbers; a missing side is the count of nodes."""
    none, segments = index.node_count, index.segment_count
    left = [none if edge.segment is None else edge.segment for edge in edges]
    right = [none if edge.passage is None else edge.passage + segments for edge in edges]
    return Pairs(np.array(left, np.int64), np.array(right, np.int64))


def edges_of(index: IndexReader, pairs: Pairs) -> tuple[Edge, ...]:
    """Pairs of node numbers as edges."""
    none, segments = index.node_count, index.segment_count
    sides = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    return tuple(Edge(None if a == none else a, None if b == none else b - segments) for a, b in sides)


def run_stages(state: SearchState, stages: Iterable[Stage]) -> SearchState:
    """Every stage in turn, each with its time in `milliseconds`."""
    for stage in stages:
        started = time.perf_counter()
        state = stage.run(state)
        spent = {**state.milliseconds, stage.name: (time.perf_counter() - started) * 1e3}
        state = replace(state, milliseconds=spent)
    return state

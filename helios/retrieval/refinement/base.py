"""What a refiner is, what it reports, and the two moves it makes on a subgraph (HELIOS 4.3).

`LocalRefiner` (local.py) plans and executes; the LLM refiner asks. Both bring rows to the front and edges behind
the others with the functions here, so that their results look alike. No edge is ever dropped.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from helios.graph import Subgraph
from helios.retrieval.part import SearchPart
from helios.types import Edge, Origin, ScoredEdge

GAP = 1e-3
"""Space left between the scores of the kept edges and of those moved behind them."""


class RefinementMode(StrEnum):
    """Who refined: nobody, the local planner and verifier, or a language model."""

    OFF = "off"
    LOCAL = "local"
    LLM = "llm"


@dataclass(frozen=True, slots=True)
class Contribution:
    """A cell that an aggregation read to choose its rows."""

    segment: int
    column: int
    header: str
    text: str


@dataclass(frozen=True, slots=True)
class RefinementReport:
    """What a refinement did for one question, for people and for the reader."""

    mode: RefinementMode = RefinementMode.OFF
    aggregation: float = 0.0
    """Probability that the question needs an aggregation over a column."""
    plans: tuple[str, ...] = ()
    """What was executed, in words, best first: `largest Score in "Open Championship", rows where ...`."""
    cells: tuple[Contribution, ...] = ()
    """The cells that chose the rows."""
    segments: tuple[int, ...] = ()
    """The rows that the aggregation chose, best first."""
    promoted: tuple[Edge, ...] = ()
    """Edges brought to the front."""
    demoted: tuple[Edge, ...] = ()
    """Edges that verification moved behind the others."""
    calls: int = 0
    """Calls of a language model."""
    model: str = ""
    """Whether a language model was asked, and why or why not; empty where none is configured."""
    degraded: bool = False
    """Whether a language model gave no usable reply somewhere, so that the local result stands there."""
    problems: tuple[str, ...] = ()
    """What went wrong or was left out (a deadline, a refused reply); empty when all was done."""
    milliseconds: float = 0.0

    def notes(self) -> tuple[str, ...]:
        """What a reader of the evidence should know: who refined, what was executed, what went wrong."""
        if self.mode is RefinementMode.OFF:
            return self.problems
        executed = self.plans[:1] if self.promoted else ()
        asked = (self.model,) if self.model else ()
        return (f"refined: {self.mode.value}", *asked, *executed, *self.problems)


@dataclass(frozen=True, slots=True)
class Refinement:
    """The refined subgraph with the report."""

    subgraph: Subgraph
    report: RefinementReport


class Refiner(Protocol):
    """Anything that refines the stars of a question's subgraph."""

    def refine(
        self, question: str, subgraph: Subgraph, part: SearchPart, *, deadline: float | None = None
    ) -> Refinement:
        """Aggregate and verify; `deadline` is an instant of time.monotonic().

        Past the deadline what is done so far counts; `report.problems` says what was left out. Raises nothing
        for a question that cannot be planned: the subgraph is returned as it came.
        """
        ...


def promote(subgraph: Subgraph, edges: Iterable[ScoredEdge], *, boost: float) -> Subgraph:
    """Raise these edges by `boost` over their score; the ones not in the subgraph enter as aggregated.

    An edge that is already there keeps its own score as the base, and its origin.
    """
    present = {scored.edge: scored for scored in subgraph.edges}
    raised: dict[Edge, ScoredEdge] = {}
    for scored in edges:
        base = present.get(scored.edge, ScoredEdge(scored.edge, scored.score, Origin.AGGREGATED))
        raised[scored.edge] = ScoredEdge(base.edge, base.score + boost, base.origin)
    others = (scored for scored in subgraph.edges if scored.edge not in raised)
    return Subgraph.from_edges([*others, *raised.values()])


def demote(subgraph: Subgraph, edges: Collection[Edge]) -> Subgraph:
    """Move these edges behind all others, in their own order: their scores are lowered by one common amount.

    Moving all of them, or none, changes nothing.
    """
    kept = [scored for scored in subgraph.edges if scored.edge not in edges]
    moved = [scored for scored in subgraph.edges if scored.edge in edges]
    if not kept or not moved:
        return subgraph
    drop = max(0.0, moved[0].score - kept[-1].score + GAP)
    return Subgraph.from_edges([*kept, *(ScoredEdge(s.edge, s.score - drop, s.origin) for s in moved)])

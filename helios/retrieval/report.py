"""What a refinement did for one question, for people and for the reader (HELIOS 4.3)."""

from dataclasses import dataclass
from enum import StrEnum

from helios.index.reader import Corpus
from helios.types import Computation, Edge


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
    """What a refinement did for one question."""

    mode: RefinementMode = RefinementMode.OFF
    aggregation: float = 0.0
    """Probability that the question needs an aggregation over a column."""
    plans: tuple[str, ...] = ()
    """What was executed, in words, best first: `largest Score in "Open Championship", rows where ...`."""
    cells: tuple[Contribution, ...] = ()
    """The cells that chose the rows."""
    segments: tuple[int, ...] = ()
    """The rows that the aggregation chose, best first."""
    chance: float = 0.0
    """Probability of the plan that chose them."""
    promoted: tuple[Edge, ...] = ()
    """Edges of the chosen rows, best first."""
    rejected: tuple[Edge, ...] = ()
    """Edges that verification takes for no evidence."""
    calls: int = 0
    """Calls of a language model."""
    tokens: int = 0
    """Tokens of their prompts and replies."""
    model: str = ""
    """Whether a language model was asked, and why or why not; empty where none is configured."""
    degraded: bool = False
    """Whether a language model gave no usable reply somewhere, so that the local result stands there."""
    problems: tuple[str, ...] = ()
    """What went wrong or was left out (a deadline, a refused reply); empty when all was done."""

    def notes(self) -> tuple[str, ...]:
        """What a reader of the evidence should know: who refined, what was executed, what went wrong."""
        idle = self.mode is RefinementMode.LOCAL and not (self.plans or self.rejected or self.model)
        if self.mode is RefinementMode.OFF or idle:
            return self.problems
        executed = self.plans[:1] if self.promoted else ()
        asked = (self.model,) if self.model else ()
        return (f"refined: {self.mode.value}", *asked, *executed, *self.problems)

    def computed(self, corpus: Corpus) -> Computation | None:
        """The executed aggregation by the names of its rows, None where there is none."""
        if not self.plans or not self.segments:
            return None
        rows = tuple(corpus.segment_id(segment) for segment in self.segments)
        cells = tuple((corpus.segment_id(cell.segment), cell.column, cell.text) for cell in self.cells)
        return Computation(self.plans[0], self.chance, rows, cells)

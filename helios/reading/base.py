"""What a reader gives: an answer with the places that hold it, or an abstention that says why."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from helios.types import Evidence, SegmentId


class Support(StrEnum):
    """Whether the corpus holds what an answer cites."""

    CHECKED = "checked"
    """Every citation left was read again from the store and holds its words; one of them holds the answer."""
    CITED = "cited"
    """The citations hold their words, but none holds the answer word by word (a count, a rephrasing)."""
    UNSUPPORTED = "unsupported"
    """An answer without any valid citation."""
    ABSTAINED = "abstained"
    UNCHECKED = "unchecked"
    """As the reader gave it: nothing has been read again yet."""


@dataclass(frozen=True, slots=True)
class Citation:
    """Words of one cell, or of one sentence or the title of a passage.

    A segment's citation has `segment_id` and `column`; a passage's has `passage_id` and `sentence`, which is None
    for the title. Characters [start, end) are counted in the cell, the sentence or the title.
    """

    text: str
    segment_id: SegmentId | None = None
    column: int | None = None
    passage_id: str | None = None
    sentence: int | None = None
    start: int = 0
    end: int = 0

    def __post_init__(self) -> None:
        if (self.segment_id is None) == (self.passage_id is None):
            raise ValueError("a citation is of a cell or of a passage")
        if (self.segment_id is None) != (self.column is None):
            raise ValueError("a citation of a cell needs its column")


@dataclass(frozen=True, slots=True)
class ComputedAnswer:
    """The result of an executed aggregation, such as a count, and the cells that it was computed from."""

    text: str
    operation: str
    """In words, for the report: `count of rows where Goals > 10`."""
    citations: tuple[Citation, ...] = ()
    """Every contributing cell."""
    chance: float = 1.0
    """Probability that this is what the question asks for."""


Node = SegmentId | str
"""A row, or the id of a passage."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A short answer, or an abstention: then `text` is empty and `reason` says why."""

    question: str
    text: str
    citations: tuple[Citation, ...] = ()
    confidence: float = 0.0
    """From 0 to 1: how often answers that look like this one were right on held-out questions."""
    support: Support = Support.UNCHECKED
    reader: str = ""
    reason: str = ""
    dropped: tuple[str, ...] = ()
    """Citations that did not check out, and why."""
    alternatives: tuple[tuple[str, float], ...] = ()
    """Other answers with their confidence, best first."""
    notes: tuple[str, ...] = ()
    """What the search and the reader did or could not do, in words, in the order of the stages."""
    degraded: bool = False
    """Whether a language model failed somewhere, so that a local stage or reader stands in its place."""
    explanation: str = ""
    """How the evidence leads to the answer, in a sentence or two; a language model's, and it names its places."""
    calls: int = 0
    """Calls of a language model for this question, of search and reading together."""
    tokens: int = 0
    """Tokens of their prompts and replies."""
    likely: tuple[tuple[Node, float], ...] = ()
    """Rows and texts that the likely answers rest on, given or not, and how likely together these are."""

    @property
    def abstained(self) -> bool:
        """Whether there is no answer."""
        return not self.text

    @classmethod
    def abstain(cls, question: str, reason: str, *, reader: str, dropped: tuple[str, ...] = ()) -> "Answer":
        """No answer, for a reason that a person can act on."""
        return cls(question, "", support=Support.ABSTAINED, reader=reader, reason=reason, dropped=dropped)


class Reader(Protocol):
    """Anything that answers from evidence alone."""

    @property
    def name(self) -> str:
        """Short name for reports."""
        ...

    def read(self, question: str, evidence: Evidence, *, computed: ComputedAnswer | None = None) -> Answer:
        """An answer that cites the evidence, or an abstention; the citations are not checked against a store."""
        ...


def nothing_found(evidence: Evidence) -> str:
    """Why there is no evidence at all."""
    return "nothing passes the filter" if evidence.filtered else "no evidence was found"

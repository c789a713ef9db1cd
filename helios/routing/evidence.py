"""What sources reply and what comes of it: values that keep where everything is from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from helios.executors.base import Language, NativeQuery, ResultSet
from helios.executors.values import Value
from helios.routing.selection import Selection


class MadeBy(StrEnum):
    """How a query came about."""

    MODEL = "language model"
    TAUGHT = "taught"
    """A query that a person taught the source, for this question or one that differs by its literals."""
    GENERATOR = "generator"
    """The schema-linked generators that need no language model."""
    KEYWORD = "keyword"
    """No query of the question's meaning: rows, triples and paths that hold its phrases."""
    SEARCH = "search"
    """A text search."""
    READER = "reader"
    """The extractive reader, from what a text search found."""


FROM_MEANING = (MadeBy.MODEL, MadeBy.TAUGHT, MadeBy.GENERATOR)
"""Ways to a query of the question's meaning, whose result may answer it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A query that was tried and what became of it; `outcome` is empty where it gave rows."""

    query: NativeQuery
    made_by: MadeBy
    outcome: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Execution:
    """A query that ran; one that gave no row says that nothing matches."""

    source: str
    query: NativeQuery
    made_by: MadeBy
    result: ResultSet
    confidence: float
    """From 0 to 1: how sure it is that the query asks what the question asks."""
    explanation: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names of the IRIs and blank nodes in the rows, where the source has them."""


@dataclass(frozen=True, slots=True)
class SourceReply:
    """All that one source gave for a question."""

    source: str
    language: Language
    executions: tuple[Execution, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[str, ...] = ()
    degraded: bool = False
    milliseconds: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether a query of the question's meaning ran; keyword evidence and searches do not count."""
        return any(e.made_by in FROM_MEANING for e in self.executions)


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One piece of evidence, in words and as it came: the whole result of a query, a document, or a single row.

    What a query of the question's meaning gave is one piece, its rows in their order. Documents of a search, and rows
    that hold words of the question alone, are pieces of their own.
    """

    source: str
    language: Language
    text: str
    """In words, as it is ranked and shown; of many rows the first ones."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    first_row: int
    """The number of the first of `rows` among those of the query, from 0."""
    row_count: int
    """Rows that the query gave."""
    truncated: str | None
    """Which cap ended the query's rows; None where all of them came."""
    query: NativeQuery
    made_by: MadeBy
    milliseconds: float
    """Of the query."""
    also: tuple[tuple[str, NativeQuery], ...] = ()
    """Other sources whose queries gave the same values, with those queries."""
    score: float = 0.0
    """A logarithm; see `parts`."""
    parts: dict[str, float] = field(default_factory=dict)
    """What the score is the sum of: `match`, `source`, `confidence`; and a language model's `choice`, its place."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A short answer that one query gave, with the rows that hold it."""

    source: str
    text: str
    values: tuple[Value, ...]
    query: NativeQuery
    made_by: MadeBy
    rows: tuple[int, ...]
    """Numbers of the query's rows; none where the answer is that there are none."""
    confidence: float
    citations: tuple[str, ...] = ()
    """Of a reader's answer: the cells and sentences that say so, in words."""
    also: tuple[str, ...] = ()
    """Other sources whose queries gave the same values."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Sources that answer the same question with different values."""

    answers: tuple[SourceAnswer, ...]

    def __str__(self) -> str:
        said = "; ".join(f"{answer.source} says {answer.text}" for answer in self.answers)
        return f"the sources differ: {said}"


@dataclass(frozen=True, slots=True)
class OmniAnswer:
    """Evidence of all sources that were asked, and the answer where queries gave one."""

    question: str
    evidence: tuple[EvidenceItem, ...]
    """What was chosen first, then the rest in its ranking."""
    answer: SourceAnswer | None
    """The first of `parts`."""
    selection: Selection
    replies: tuple[SourceReply, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = ()
    degraded: bool = False
    """Whether a source or a language model failed, so that something is missing or made in a simpler way."""
    timings_ms: dict[str, float] = field(default_factory=dict)
    calls: int = 0
    """Calls of a language model."""
    tokens: int = 0
    """Tokens of their prompts and replies."""
    parts: tuple[SourceAnswer, ...] = ()
    """The answers that together answer a question of several parts; most questions have one."""
    sentence: str = ""
    """The answer in words, from the rows of `parts`; empty without a language model."""
    left_out: tuple[EvidenceItem, ...] = ()
    """What a language model saw and did not choose."""
    declined: bool = False
    """Whether a language model chose none of what it saw."""

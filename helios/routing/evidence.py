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
    GENERATOR = "generator"
    """The schema-linked generators that need no language model."""
    KEYWORD = "keyword"
    """No query of the question's meaning: rows, triples and paths that hold its phrases."""
    SEARCH = "search"
    """A text search."""
    READER = "reader"
    """The extractive reader, from what a text search found."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A query that was tried and what became of it; `outcome` is empty where it gave rows."""

    query: NativeQuery
    made_by: MadeBy
    outcome: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Execution:
    """A query that gave rows."""

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
        """Whether a query of the question's meaning gave rows; keyword evidence and searches do not count."""
        return any(e.made_by in (MadeBy.MODEL, MadeBy.GENERATOR) for e in self.executions)


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One piece of evidence: a row, a triple, a path, a passage or an edge, in words and as it came."""

    source: str
    language: Language
    text: str
    """In words, as it is ranked and shown."""
    columns: tuple[str, ...]
    row: tuple[Value, ...]
    row_number: int
    """Of the query's rows, from 0."""
    query: NativeQuery
    made_by: MadeBy
    milliseconds: float
    """Of the query."""
    score: float = 0.0
    """A logarithm; see `parts`."""
    parts: dict[str, float] = field(default_factory=dict)
    """What the score is the sum of: `match`, `source`, `confidence`, or a language model's `choice`."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A short answer that one query gave, with the rows that hold it."""

    source: str
    text: str
    values: tuple[Value, ...]
    query: NativeQuery
    made_by: MadeBy
    rows: tuple[int, ...]
    confidence: float
    citations: tuple[str, ...] = ()
    """Of a reader's answer: the cells and sentences that say so, in words."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Sources that answer the same question with different values."""

    answers: tuple[SourceAnswer, ...]

    def __str__(self) -> str:
        said = "; ".join(f"{answer.source} says {answer.text}" for answer in self.answers)
        return f"the sources differ: {said}"


@dataclass(frozen=True, slots=True)
class OmniAnswer:
    """Evidence of all sources that were asked, ranked together, and the answer where queries gave one."""

    question: str
    evidence: tuple[EvidenceItem, ...]
    answer: SourceAnswer | None
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

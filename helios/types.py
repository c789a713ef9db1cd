"""The vocabulary of HELIOS as frozen values (CONTRIBUTING.md has the words).

Everything here is plain data: no I/O, no models. Functions elsewhere return new values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class TableKind(StrEnum):
    """A relational grid, or an infobox whose rows are attribute and value."""

    TABLE = "table"
    INFOBOX = "infobox"


class Origin(StrEnum):
    """How an edge came into the query's subgraph (HELIOS 4.1, 4.2, 4.3)."""

    LINKED = "linked"
    EXPANDED = "expanded"
    AGGREGATED = "aggregated"


Metadata = tuple[tuple[str, str | float | bool], ...]
"""A record's own fields by name, in the order of the names; filters select by them (`helios.corpus.where`)."""


@dataclass(frozen=True, slots=True)
class Hyperlink:
    """A gold link of a corpus that has them: the cell at (row, column) points to a passage."""

    row: int
    column: int
    passage_id: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table: every row has as many cells as the header. Infoboxes have the header (attribute, value)."""

    table_id: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    section: str = ""
    intro: str = ""
    url: str = ""
    kind: TableKind = TableKind.TABLE
    hyperlinks: tuple[Hyperlink, ...] = ()
    source: str = ""
    """The file that it came from, relative to the corpus."""
    metadata: Metadata = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A short text, about 100 words, with the title of the page that it is from."""

    passage_id: str
    title: str
    text: str
    url: str = ""
    source: str = ""
    metadata: Metadata = ()


@dataclass(frozen=True, slots=True, order=True)
class SegmentId:
    """A segment's name: its table and its row, counted from 0."""

    table_id: str
    row: int

    def __str__(self) -> str:
        return f"{self.table_id}#{self.row}"


@dataclass(frozen=True, slots=True)
class Segment:
    """One row of a table with the table's header and titles (HELIOS 3.1)."""

    segment_id: SegmentId
    title: str
    section: str
    header: tuple[str, ...]
    cells: tuple[str, ...]
    kind: TableKind = TableKind.TABLE


@dataclass(frozen=True, slots=True)
class Link:
    """Where an edge comes from: characters [start, end) of the cell in `column`, and the linker's score."""

    column: int
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A pair of nodes by their numbers in one snapshot; None stands for 'no such node' in a lone-node edge.

    A node without any link is retrieved as an edge whose other side is None, so that tables without
    text, and text without tables, are searchable too. At least one side is present.
    """

    segment: int | None
    passage: int | None


@dataclass(frozen=True, slots=True)
class ScoredEdge:
    """An edge with its score for one question, the log-odds that it is evidence, and how it was found."""

    edge: Edge
    score: float
    origin: Origin = Origin.LINKED
    rejected: bool = False
    """Whether verification takes it for no evidence: it comes after all that is not rejected."""


@dataclass(frozen=True, slots=True)
class Star:
    """A segment and its passages, best first (HELIOS 4.3)."""

    segment: int
    passages: tuple[int, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """One query token and the document word that it matched best (an explanation of MaxSim)."""

    query_token: str
    word: str
    similarity: float
    where: str
    """`title`, `section`, `header:COLUMN`, `cell:COLUMN` for a segment, `title` or `sentence:N` for a passage."""


@dataclass(frozen=True, slots=True)
class ContextMatch:
    """An attribute of the question's context that speaks for an edge more than for the others that were found."""

    column: str
    """`table.column`, with the keys that lead there."""
    text: str
    word: str
    """The word of the edge that it matched best."""
    similarity: float
    gain: float
    """What it adds to the edge's log-odds above the mean of the edges."""


@dataclass(frozen=True, slots=True)
class ContextWeight:
    """A column of the question's context in a search."""

    column: str
    """`table.column`, with the keys that lead there."""
    attributes: int
    weight: float
    """Its share of the context, all columns together 1."""
    spread: float
    """By how much it moved the edges' log-odds: their standard deviation."""


@dataclass(frozen=True, slots=True)
class EvidenceEdge:
    """One ranked piece of evidence with everything a reader needs to check it."""

    rank: int
    score: float
    """What it is ranked by, in log-odds; the first ranks also avoid repeats, so scores need not fall with the rank."""
    probability: float
    """The chance that it is evidence for the question: what `score` means, whatever stages have run."""
    origin: Origin
    segment: Segment | None
    passage: Passage | None
    links: tuple[Link, ...] = ()
    matches: tuple[TokenMatch, ...] = ()
    rejected: bool = False
    """Whether verification takes it for no evidence."""
    context: tuple[ContextMatch, ...] = ()
    """The attributes of the question's context that speak for it most."""

    def __repr__(self) -> str:
        sides = [self.segment and str(self.segment.segment_id), self.passage and self.passage.passage_id]
        nodes = " + ".join(repr(side) for side in sides if side is not None)
        return f"EvidenceEdge({self.rank}, {nodes}, {self.origin.value}, probability={self.probability:.2f})"


@dataclass(frozen=True, slots=True)
class Computation:
    """The result of an aggregation over a whole table: the rows that it chose, and the cells that say why."""

    operation: str
    """In words: `largest number of "Score" in Open Championship`."""
    chance: float
    """Probability that this is what the question asks for."""
    rows: tuple[SegmentId, ...]
    """The chosen rows, best first."""
    cells: tuple[tuple[SegmentId, int, str], ...] = ()
    """Row, column and text of every cell that was compared, those of the chosen rows first."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The answer of a search: ranked edges for one question, best first."""

    question: str
    edges: tuple[EvidenceEdge, ...]
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What a stage did or could not do that a reader of the evidence should know, in words."""
    degraded: bool = False
    """Whether a language model failed in a stage, so that the local stage's result stands in its place."""
    computed: Computation | None = None
    """What refinement executed for the question, where it is sure enough of it."""
    present: float = 1.0
    """The chance that the corpus holds what the question asks for."""
    generation: int = 0
    """The snapshot of the index that was searched."""
    calls: int = 0
    """Calls of a language model."""
    tokens: int = 0
    """Tokens of their prompts and replies."""
    context: tuple[ContextWeight, ...] = ()
    """The columns of the question's context, those first that moved the edges most; empty where none was given."""
    filtered: bool = False
    """Whether a filter left out a part of the corpus; what is read beyond the edges may be of that part."""

    def __repr__(self) -> str:
        best = f", best={self.edges[0].probability:.2f}" if self.edges else ""
        return f"Evidence({self.question!r}, {len(self.edges)} edges{best}, present={self.present:.2f})"

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data, in the shape of `helios/schemas/evidence.json`."""
        from helios.evidence_json import evidence_dict

        return evidence_dict(self)

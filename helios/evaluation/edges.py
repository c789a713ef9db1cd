"""Edges as evaluation sees them: by the names that the corpus gives, not by numbers of one index."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from helios.types import Evidence, Passage, ScoredEdge, Segment, SegmentId


class Corpus(Protocol):
    """What evaluation reads of a corpus store."""

    @property
    def segment_count(self) -> int:
        """How many segments there are."""
        ...

    @property
    def passages(self) -> Sequence[Passage]:
        """Passages by number."""
        ...

    def segment(self, number: int, /) -> Segment:
        """One segment by number."""
        ...

    def segments(self) -> Iterable[Segment]:
        """All segments in order."""
        ...


@dataclass(frozen=True, slots=True)
class EdgeId:
    """The names of an edge's two nodes; None for a side that is not there.

    In gold, a missing side means "any": the gold edge (segment, None) is met by every edge of that segment.
    """

    segment_id: SegmentId | None
    passage_id: str | None

    def __post_init__(self) -> None:
        if self.segment_id is None and self.passage_id is None:
            raise ValueError("an edge needs a segment or a passage")

    def covers(self, other: "EdgeId") -> bool:
        """Whether finding this edge also finds `other`."""
        return other.segment_id in (None, self.segment_id) and other.passage_id in (None, self.passage_id)


@dataclass(frozen=True, slots=True)
class RankedEdge:
    """One entry of a ranked list, with the texts that the measures read."""

    segment: Segment | None
    passage: Passage | None
    score: float

    @property
    def edge_id(self) -> EdgeId:
        """The names of both nodes."""
        return EdgeId(
            None if self.segment is None else self.segment.segment_id,
            None if self.passage is None else self.passage.passage_id,
        )


def ranked_edges(evidence: Evidence) -> tuple[RankedEdge, ...]:
    """The ranked list of a search, best first."""
    return tuple(RankedEdge(edge.segment, edge.passage, edge.score) for edge in evidence.edges)


def with_texts(edges: Iterable[ScoredEdge], corpus: Corpus) -> tuple[RankedEdge, ...]:
    """Scored edges by their numbers, as ranked edges with their texts."""
    return tuple(
        RankedEdge(
            None if scored.edge.segment is None else corpus.segment(scored.edge.segment),
            None if scored.edge.passage is None else corpus.passages[scored.edge.passage],
            scored.score,
        )
        for scored in edges
    )


def table_order(edge_ids: Sequence[EdgeId]) -> tuple[str, ...]:
    """Tables in the order of their first edge, each once."""
    return tuple(dict.fromkeys(edge.segment_id.table_id for edge in edge_ids if edge.segment_id is not None))

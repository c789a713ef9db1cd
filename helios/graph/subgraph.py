"""The query's graph: edges with scores for one question, as an immutable value (HELIOS 4.1)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from helios.types import Edge, Origin, ScoredEdge, Star

if TYPE_CHECKING:
    import networkx

_ORIGINS = tuple(Origin)


class Nodes(NamedTuple):
    """Node numbers of a subgraph, each side ascending."""

    segments: tuple[int, ...]
    passages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Scored edges of one question in their order, each pair once. `from_edges` orders them by their scores."""

    edges: tuple[ScoredEdge, ...] = ()

    def __repr__(self) -> str:
        return f"Subgraph({len(self)} edges)"

    @classmethod
    def from_edges(cls, edges: Iterable[ScoredEdge]) -> "Subgraph":
        """Sort edges best first, rejected ones last; of equal pairs the better stays, with its origin.

        Ties between scores: the origin that comes first in `Origin`, then lower node numbers. Raises
        ValueError for a score that is not a number and for an edge without any side.
        """
        best: dict[Edge, ScoredEdge] = {}
        for scored in edges:
            if math.isnan(scored.score):
                raise ValueError(f"the score of {scored.edge} is not a number")
            if scored.edge.segment is None and scored.edge.passage is None:
                raise ValueError("an edge needs a segment or a passage")
            rival = best.get(scored.edge)
            if rival is None or _rank(scored) < _rank(rival):
                best[scored.edge] = scored
        return cls(tuple(sorted(best.values(), key=_rank)))

    def __len__(self) -> int:
        return len(self.edges)

    def merge(self, edges: "Iterable[ScoredEdge] | Subgraph") -> "Subgraph":
        """A subgraph with these edges too; merging the same edges again changes nothing."""
        added = edges.edges if isinstance(edges, Subgraph) else tuple(edges)
        return Subgraph.from_edges(self.edges + added)

    def top(self, k: int) -> "Subgraph":
        """The k best edges."""
        if k < 0:
            raise ValueError(f"k must be 0 or more, got {k}")
        return Subgraph(self.edges[:k])

    def nodes(self) -> Nodes:
        """Every node that an edge touches, lone ones included."""
        segments = {scored.edge.segment for scored in self.edges}
        passages = {scored.edge.passage for scored in self.edges}
        return Nodes(
            tuple(sorted(number for number in segments if number is not None)),
            tuple(sorted(number for number in passages if number is not None)),
        )

    def stars(self) -> tuple[Star, ...]:
        """Each segment with its passages best first; stars in the order of their best edge.

        A segment that was retrieved alone is a star without passages. See `lone_passages` for the rest.
        """
        spokes: dict[int, list[ScoredEdge]] = {}
        for scored in self.edges:
            if scored.edge.segment is not None:
                spokes.setdefault(scored.edge.segment, []).append(scored)
        return tuple(_star(segment, edges) for segment, edges in spokes.items())

    def lone_passages(self) -> tuple[ScoredEdge, ...]:
        """Edges without a segment, best first: they belong to no star."""
        return tuple(scored for scored in self.edges if scored.edge.segment is None)

    def to_networkx(self) -> "networkx.Graph":
        """A bipartite graph: nodes ("segment", n) have bipartite=0, ("passage", n) bipartite=1.

        Edges carry score and origin; a node retrieved alone carries them itself.
        """
        import networkx

        graph = networkx.Graph()
        for scored in self.edges:
            found = {"score": scored.score, "origin": scored.origin}
            segment = ("segment", scored.edge.segment)
            passage = ("passage", scored.edge.passage)
            lone = scored.edge.segment is None or scored.edge.passage is None
            if scored.edge.segment is not None:
                graph.add_node(segment, bipartite=0, **(found if lone else {}))
            if scored.edge.passage is not None:
                graph.add_node(passage, bipartite=1, **(found if lone else {}))
            if not lone:
                graph.add_edge(segment, passage, **found)
        return graph


def _rank(scored: ScoredEdge) -> tuple[bool, float, int, int, int]:
    """Sort key, best first; a missing side sorts before every node number."""
    edge = scored.edge
    return (
        scored.rejected,
        -scored.score,
        _ORIGINS.index(scored.origin),
        -1 if edge.segment is None else edge.segment,
        -1 if edge.passage is None else edge.passage,
    )


def _star(segment: int, edges: list[ScoredEdge]) -> Star:
    spokes = [(edge.edge.passage, edge.score) for edge in edges if edge.edge.passage is not None]
    return Star(
        segment=segment,
        passages=tuple(passage for passage, _ in spokes),
        scores=tuple(score for _, score in spokes),
    )

"""Spreading: the best edges should not say the same thing twice.

A row or a passage that a better edge has shown already did not hold the answer, or did: either way another edge with it
adds less than its own chance of being right. So the first ranks are filled one by one, and what repeats a row or a
passage of those before loses log-odds for it (maximal marginal relevance). How much was learned: see docs/ranking.md.
"""

from dataclasses import replace

from helios.config import SpreadSettings
from helios.graph import Subgraph
from helios.types import Edge, ScoredEdge

CANDIDATES = 4
"""So many times the ranks to be filled are the best edges that may fill them."""


def spread(subgraph: Subgraph, settings: SpreadSettings, *, kept: int | None = None) -> Subgraph:
    """Fill the first `settings.depth` ranks so; the best edge stays, and edges after them keep their order.

    Only the first `kept` edges may fill them, all by default: no edge that refinement removed comes back. Scores are
    lowered along with the order, so that they still fall from rank to rank.
    """
    count = min(CANDIDATES * settings.depth, len(subgraph) if kept is None else kept)
    left, rest = list(subgraph.edges[:count]), subgraph.edges[count:]
    chosen: list[ScoredEdge] = []
    rows: set[int | None] = {None}
    passages: set[int | None] = {None}
    while left and len(chosen) < settings.depth:
        lowered = [scored.score - _repeats(scored.edge, rows, passages, settings) for scored in left]
        at = max(range(len(left)), key=lambda i: lowered[i])  # the first of equals
        best = left.pop(at)
        chosen.append(replace(best, score=lowered[at]))
        rows.add(best.edge.segment)
        passages.add(best.edge.passage)
    return Subgraph((*chosen, *_below(chosen, (*left, *rest))))


def _repeats(
    edge: Edge, rows: set[int | None], passages: set[int | None], settings: SpreadSettings
) -> float:  # fmt: skip
    """What an edge loses; a side that it lacks repeats nothing."""
    lost = settings.row if edge.segment is not None and edge.segment in rows else 0.0
    return lost + (settings.passage if edge.passage is not None and edge.passage in passages else 0.0)


def _below(chosen: list[ScoredEdge], others: tuple[ScoredEdge, ...]) -> tuple[ScoredEdge, ...]:
    """The others at the distances that they had, none above the last chosen one, however a difference is rounded."""
    if not chosen or not others:
        return others
    last = chosen[-1].score
    excess = max(0.0, others[0].score - last)
    return tuple(replace(scored, score=min(scored.score - excess, last)) for scored in others) if excess else others

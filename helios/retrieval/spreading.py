"""Spreading: the best edges should not say the same thing twice.

A row or a passage that a better edge has shown already did not hold the answer, or did: either way another edge with it
adds less than its own chance of being right. So the first ranks are filled one by one, and what repeats a row or a
passage of those before is put back by log-odds (maximal marginal relevance). How much was learned: see docs/ranking.md.
The order changes and no score: an edge is as likely evidence as it was.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from helios.errors import ModelError
from helios.graph import Subgraph
from helios.models.card import read_card
from helios.retrieval.state import SearchState
from helios.types import Edge, ScoredEdge

CANDIDATES = 4
"""So many times the ranks to be filled are the best edges that may fill them."""
SHIPPED = Path(__file__).parent / "weights" / "spreading"
ROLE = "spreading"


@dataclass(frozen=True, slots=True)
class Prices:
    """What an edge loses, in log-odds, where a better one has its row, and where one has its passage."""

    row: float
    passage: float

    @classmethod
    def load(cls, folder: Path | None = None) -> "Prices":
        """The packaged ones, or those of a folder; ModelError if they are missing or damaged."""
        values = read_card(folder or SHIPPED, ROLE).values
        try:
            return cls(**values)
        except TypeError as error:
            raise ModelError(f"{folder or SHIPPED}: its card does not hold the prices of {ROLE} ({error})") from error


@dataclass(frozen=True, slots=True)
class Spreading:
    """The last stage: the order of the first `ranks` edges; the others keep theirs, after these."""

    prices: Prices
    ranks: int
    name: str = "spread"

    @property
    def depth(self) -> int:
        """Edges that may fill the ranks."""
        return CANDIDATES * self.ranks

    def run(self, state: SearchState) -> SearchState:
        """The state with its edges in the new order."""
        return replace(state, subgraph=spread(state.subgraph, self.prices, ranks=self.ranks))


def spread(subgraph: Subgraph, prices: Prices, *, ranks: int) -> Subgraph:
    """Fill the first ranks one by one; the best edge stays, and what verification rejected fills none."""
    kept = sum(not scored.rejected for scored in subgraph.edges)
    count = min(CANDIDATES * ranks, kept)
    left, rest = list(subgraph.edges[:count]), subgraph.edges[count:]
    chosen: list[ScoredEdge] = []
    rows: set[int | None] = {None}
    passages: set[int | None] = {None}
    while left and len(chosen) < ranks:
        worth = [scored.score - _repeats(scored.edge, rows, passages, prices) for scored in left]
        best = left.pop(max(range(len(left)), key=worth.__getitem__))  # the first of equals
        chosen.append(best)
        rows.add(best.edge.segment)
        passages.add(best.edge.passage)
    return Subgraph((*chosen, *left, *rest))


def _repeats(edge: Edge, rows: set[int | None], passages: set[int | None], prices: Prices) -> float:
    """What an edge loses; a side that it lacks repeats nothing."""
    lost = prices.row if edge.segment is not None and edge.segment in rows else 0.0
    return lost + (prices.passage if edge.passage is not None and edge.passage in passages else 0.0)

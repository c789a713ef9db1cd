"""Whether probabilities mean what they say: edges by the chance they were given, against how often they are gold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table as RichTable

from helios.errors import EvaluationError
from helios.evaluation.edges import ranked_edges
from helios.evaluation.questions import Question
from helios.types import Evidence, Origin

DECILES = 10
RANKS = (1, 2, 5, 10, 50)


@dataclass(frozen=True, slots=True)
class Bin:
    """Some edges: how many, their mean probability, and the share of them that is gold; both in percent."""

    name: str
    edges: int
    said: float
    gold: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """By decile of the probability, by rank and by origin; `error` is the expected calibration error in points."""

    error: float
    deciles: tuple[Bin, ...]
    ranks: tuple[Bin, ...]
    origins: tuple[Bin, ...]

    def table(self) -> RichTable:
        """For people."""
        shown = RichTable(title=f"probability against gold: expected calibration error {self.error:.1f} points")
        for name in ("edges of", "number", "said %", "gold %"):
            shown.add_column(name, justify="left" if name == "edges of" else "right")
        for group in (self.deciles, self.ranks, self.origins):
            for one in group:
                shown.add_row(one.name, f"{one.edges:,}", f"{one.said:.1f}", f"{one.gold:.1f}")
            shown.add_section()
        return shown


def measure_reliability(questions: Sequence[Question], found: Mapping[str, Evidence]) -> Reliability:
    """Over all edges of the questions that have gold edges; an edge is gold if it covers a gold edge.

    EvaluationError where there is no such edge.
    """
    said, gold, ranks, origins = [], [], [], []
    for question in questions:
        if not question.gold_edges or question.text not in found:
            continue
        evidence = found[question.text]
        for edge, ranked in zip(evidence.edges, ranked_edges(evidence), strict=True):
            said.append(edge.probability)
            gold.append(any(ranked.edge_id.covers(one) for one in question.gold_edges))
            ranks.append(edge.rank)
            origins.append(edge.origin)
    if not said:
        raise EvaluationError("no question has gold edges: there is nothing to hold probabilities against")
    return reliability_of(np.array(said), np.array(gold, bool), np.array(ranks), origins)


def reliability_of(
    said: "np.ndarray", gold: "np.ndarray", ranks: "np.ndarray", origins: Sequence[Origin]
) -> Reliability:
    """From probabilities, whether each edge is gold, its rank and its origin."""
    numbers = np.minimum((said * DECILES).astype(int), DECILES - 1)
    deciles = [_bin(f"{10 * n} to {10 * n + 10} %", numbers == n, said, gold) for n in range(DECILES)]
    error = sum(one.edges * abs(one.said - one.gold) for one in deciles) / max(1, len(said))
    bounds = zip((0, *RANKS), RANKS, strict=False)
    by_rank = [
        _bin(
            f"rank {last}" if last == first + 1 else f"ranks {first + 1} to {last}",
            (ranks > first) & (ranks <= last),
            said,
            gold,
        )
        for first, last in bounds
    ]
    by_origin = [
        _bin(origin.value, np.array([one is origin for one in origins], bool), said, gold) for origin in Origin
    ]
    return Reliability(error, *(tuple(one for one in group if one.edges) for group in (deciles, by_rank, by_origin)))


def _bin(name: str, chosen: "np.ndarray", said: "np.ndarray", gold: "np.ndarray") -> Bin:
    count = int(chosen.sum())
    if not count:
        return Bin(name, 0, 0.0, 0.0)
    return Bin(name, count, 100 * float(said[chosen].mean()), 100 * float(gold[chosen].mean()))

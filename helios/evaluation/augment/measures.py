"""Acc@k, Recall@k, MRR and MAP of one ranked list (DAQu 4.3)."""

from collections.abc import Collection, Sequence

from helios.errors import EvaluationError

DEPTH = 1000
"""Documents of a list that MRR and MAP look at."""


def measure(name: str, ranked: Sequence[str], relevant: Collection[str]) -> float:
    """One measure by its name; EvaluationError for a name that is none, ValueError where nothing is relevant."""
    if not relevant:
        raise ValueError(f"{name} needs at least one relevant document")
    kind, _, cut = name.partition("@")
    if kind in ("Acc", "Recall") and cut.isdigit() and int(cut) > 0:
        hits = len(set(ranked[: int(cut)]) & set(relevant))
        return float(hits > 0) if kind == "Acc" else hits / len(set(relevant))
    ranks = [rank for rank, document in enumerate(ranked[:DEPTH], start=1) if document in relevant]
    if name == "MRR":
        return 1 / ranks[0] if ranks else 0.0
    if name == "MAP":
        return sum(found / rank for found, rank in enumerate(ranks, start=1)) / len(set(relevant))
    raise EvaluationError(f"measure {name!r}: expected Acc@k, Recall@k, MRR or MAP")


def depth_of(names: Sequence[str]) -> int:
    """How deep a list must be for all of the measures."""
    for name in names:
        measure(name, (), ("",))
    return max(int(name.partition("@")[2] or DEPTH) for name in names)

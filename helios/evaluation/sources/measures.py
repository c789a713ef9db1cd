"""The measures over sources, as pure functions (OmniRetrieval 3.3)."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from helios.evaluation.evaluate import MeasureResult, bootstrap_interval


def selected_at(ranked: Sequence[str], gold: Collection[str], *, k: int) -> float:
    """1 where a gold source is among the first `k`, else 0."""
    return float(any(name in gold for name in ranked[:k]))


def ndcg(ranked: Sequence[str], qrels: Mapping[str, int], *, k: int = 10) -> float:
    """nDCG@k as trec_eval and ir_measures have it: gain is the relevance, discount log2(rank + 1).

    Documents without a judgement, and with a negative one, gain nothing; a document counts at its first rank alone.
    Raises ValueError where no document is relevant.
    """
    ideal = sorted((gain for gain in qrels.values() if gain > 0), reverse=True)[:k]
    if not ideal:
        raise ValueError("nDCG needs at least one relevant document")
    gains = [max(qrels.get(document, 0), 0) for document in list(dict.fromkeys(ranked))[:k]]
    return _discounted(gains) / _discounted(ideal)


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def diversity(ranked: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """Distinct paradigms and distinct sources among the candidates, given as (source, paradigm)."""
    return len({paradigm for _, paradigm in ranked}), len({source for source, _ in ranked})


def mean(name: str, values: Sequence[float], *, samples: int = 1000, seed: int = 0) -> MeasureResult:
    """The mean with its bootstrap interval of 95 %."""
    low, high = bootstrap_interval(values, samples=samples, seed=seed)
    return MeasureResult(name, float(np.mean(values)), low, high, len(values))


def macro(
    name: str, groups: Mapping[str, Sequence[float]], *, samples: int = 1000, seed: int = 0
) -> MeasureResult | None:
    """The mean of the groups' means, each group counting as much as another; None without any value.

    The interval resamples questions within their group.
    """
    arrays = [np.asarray(values, dtype=np.float64) for values in groups.values() if len(values)]
    if not arrays:
        return None
    rng = np.random.default_rng(seed)
    means = [
        np.mean([array[rng.integers(len(array), size=len(array))].mean() for array in arrays]) for _ in range(samples)
    ]
    low, high = np.quantile(means, (0.025, 0.975))
    centre = float(np.mean([array.mean() for array in arrays]))
    return MeasureResult(name, centre, float(low), float(high), sum(map(len, arrays)))

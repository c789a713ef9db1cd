"""How likely it is that the corpus holds what a question asks for: an answer is only looked for where it does."""

import numpy as np
from numpy.typing import NDArray

from helios.config import PresenceSettings
from helios.types import Evidence

FLOOR, CEILING = -6.0, 3.0
"""Log-odds of the best edge count between these; scores that are no log-odds (`search.ranker=none`) are above them."""


def presence_features(coverage: float, evidence: Evidence) -> NDArray[np.float64]:
    """Coverage of the question by the edge that covers it best, and the highest log-odds of an edge: (2)."""
    best = max((edge.score for edge in evidence.edges), default=FLOOR)
    return np.array([coverage, min(max(best, FLOOR), CEILING)])


def chance_of_presence(settings: PresenceSettings, features: NDArray[np.float64]) -> float:
    """The chance, 0 to 1, from `presence_features`."""
    odds = settings.intercept + settings.coverage * features[0] + settings.score * features[1]
    return float(1 / (1 + np.exp(-odds)))

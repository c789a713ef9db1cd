"""How sure a query is: the chance that it is right, from what can be seen of it (`features`).

Two logistic regressions, one for plans over tables (SQL, and SPARQL over graphs built like tables) and one for
property graphs. They learned (`helios train query-confidence`) from whole databases and graphs, from these with
names hidden, and from questions of other databases; docs/benchmarks.md says what they are worth on databases left out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from helios.errors import ModelError
from helios.models.card import read_card
from helios.routing.formulation.features import ASKED_FEATURES, GRAPH_FEATURES, TABLE_FEATURES

SHIPPED = Path(__file__).parent / "weights" / "confidence"
ROLE = "query-confidence"
LACKING = 0.5
"""Factor where the question says an operation that the plan lacks, or where what it asks for is not what the plan
gives; too rare in what was learned from to be learned."""


@dataclass(frozen=True, slots=True)
class Chance:
    """A logistic regression over named features."""

    weights: Mapping[str, float]
    intercept: float

    def of(self, features: Mapping[str, float]) -> float:
        """The chance, 0 to 1."""
        odds = self.intercept + sum(weight * features.get(name, 0.0) for name, weight in self.weights.items())
        chance = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))
        return LACKING * chance if lacks(features) else chance


def lacks(features: Mapping[str, float]) -> bool:
    """Whether a question says an operation that its plan over tables lacks, or that no plan has, or asks for something
    else than the plan gives."""
    seen = ("unmet", "beyond", *ASKED_FEATURES)
    return "unmet" in features and any(bool(features.get(name)) for name in seen)


@dataclass(frozen=True, slots=True)
class QueryConfidence:
    """The chances of queries over tables and over property graphs; threads may share it."""

    tables: Chance
    graphs: Chance

    @classmethod
    def load(cls, folder: Path = SHIPPED) -> "QueryConfidence":
        """Read what `helios train query-confidence` wrote; ModelError where it is no such folder."""
        card = read_card(folder, ROLE)
        return cls(
            _chance(folder, card.values, "tables", TABLE_FEATURES),
            _chance(folder, card.values, "graphs", GRAPH_FEATURES),
        )


@cache
def shipped() -> QueryConfidence:
    """The model of the package, read once."""
    return QueryConfidence.load()


def _chance(folder: Path, values: Mapping[str, Any], name: str, known: Sequence[str]) -> Chance:
    try:
        weights = {str(feature): float(weight) for feature, weight in values[name]["weights"].items()}
        chance = Chance(weights, float(values[name]["intercept"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{folder}: the card has no weights for {name} ({error})") from None
    if unknown := set(weights) - set(known):
        raise ModelError(f"{folder}: weights of features that this version does not have: {', '.join(sorted(unknown))}")
    return chance

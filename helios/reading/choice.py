"""Which reader's answer is given, and how sure it is.

A span, a program over a table and words of a passage are found by readers whose confidence was fitted to questions of
their own kind. What each is worth beside the others was learned from questions of many kinds of files: one logistic
regression a reader over its own log-odds, those of the others, whether they say the same, and the evidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from helios.errors import ModelError
from helios.index.languages import recognise
from helios.models.card import read_card
from helios.reading.base import Answer
from helios.reading.features import span_key
from helios.reading.passages import log_odds
from helios.types import Evidence

ROLE = "answer-choice"
WEIGHTS = Path(__file__).parent / "weights" / "choice"
SPOKEN = ("own", "first_other", "second_other", "third_other")
FEATURES = (
    *SPOKEN, "agrees_first", "agrees_second", "agrees_third", "paired", "link", "best", "present", "foreign",
    *(f"{name}_linked" for name in SPOKEN),
)  # fmt: skip
"""Log-odds of the reader and of the three others, whether these say the same, whether the best evidence is a row with a
text and how sure its link is, the log-odds of the best edge and of presence, whether the question is in another
language than English, and the first four times the link: where rows are linked to texts that are about them, most
answers stand in the text."""
SILENT = -5.0
"""Log-odds of a reader that says nothing."""


class Reading(StrEnum):
    """Who found an answer."""

    SPAN = "spans"
    TABLE = "tables"
    PASSAGE = "passages"
    QUERY = "queries"


@dataclass(frozen=True, slots=True)
class Choice:
    """Weights by reader; holds no state of a question, so threads may share it."""

    weights: Mapping[Reading, Mapping[str, float]]
    intercepts: Mapping[Reading, float]

    @classmethod
    def load(cls, folder: Path | None = None) -> "Choice":
        """The packaged weights, or those of a folder; ModelError for damaged or foreign files."""
        folder = folder or WEIGHTS
        values = read_card(folder, ROLE).values
        try:
            weights = {one: {name: float(values[one]["weights"][name]) for name in FEATURES} for one in Reading}
            return cls(weights, {one: float(values[one]["intercept"]) for one in Reading})
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: its card lacks a weight ({error}); train it again") from error

    def chances(self, question: str, evidence: Evidence, said: Mapping[Reading, Answer]) -> dict[Reading, float]:
        """How often the best answer of each reader, said with its own confidence, is right."""
        found = {}
        for one in said:
            features = choice_features(question, evidence, said, one)
            weights = [self.weights[one][name] for name in FEATURES]
            found[one] = float(1 / (1 + np.exp(-(self.intercepts[one] + np.dot(weights, features)))))
        return found


def choice_features(question: str, evidence: Evidence, said: Mapping[Reading, Answer], one: Reading) -> Sequence[float]:
    """What is known of one reader's answer (`FEATURES`); there is evidence."""
    others = [said.get(other) for other in Reading if other is not one]
    key, best = span_key(said[one].text), evidence.edges[0]
    link = max((link.score for link in best.links), default=0.0)
    spoken = [log_odds(said[one].confidence)]
    spoken += [SILENT if other is None else log_odds(other.confidence) for other in others]
    return (
        *spoken,
        *(float(other is not None and span_key(other.text) == key) for other in others),
        float(best.segment is not None and best.passage is not None),
        link, log_odds(best.probability), log_odds(evidence.present),
        float(recognise(question) not in ("en", "")),
        *(odds * link for odds in spoken),
    )  # fmt: skip

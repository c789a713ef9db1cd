"""What one system did with one question."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tried:
    """A query that ran, and how its rows compare with the gold rows (empty for documents)."""

    source: str
    language: str
    query: str
    confidence: float
    rows: int
    agreement: str
    shown: str
    """The first rows in words, for the judge and for error analysis."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question's figures and what they come from."""

    question_id: str
    digest: str
    values: Mapping[str, float]
    ranked: tuple[tuple[str, float], ...]
    tried: tuple[Tried, ...]
    problems: tuple[str, ...]
    milliseconds: float

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Outcome":
        """From a line of a file; TypeError, KeyError or ValueError for anything else."""
        return cls(
            question_id=str(document["question_id"]), digest=str(document["digest"]), values=dict(document["values"]),
            ranked=tuple((str(name), float(probability)) for name, probability in document["ranked"]),
            tried=tuple(Tried(**tried) for tried in document["tried"]), problems=tuple(document["problems"]),
            milliseconds=float(document["milliseconds"]),
        )  # fmt: skip

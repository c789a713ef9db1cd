"""What an ablation measures of one question."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from helios.evaluation.questions import Question


@dataclass(frozen=True, slots=True)
class Measured:
    """One question's figures for one method."""

    question_id: str
    digest: str
    """Of the question with its answers and gold."""
    values: Mapping[str, float]
    milliseconds: float
    edges: int
    problems: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Measured":
        """From a line of a file; TypeError or KeyError for anything else."""
        return cls(**{**document, "problems": tuple(document["problems"])})


def question_digest(question: Question) -> str:
    """Changes with anything that a figure of the question depends on."""
    return hashlib.sha256(repr(question).encode()).hexdigest()[:16]

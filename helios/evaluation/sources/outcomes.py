"""What one system did with one question, and the file that keeps it: one JSON line a question, on disk at once.

A killed run goes on with the question after the last whole line. A file begins with the key of all that its figures
depend on; a file with another key is refused, and the line of a question that has changed since is left out.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from os import fsync
from pathlib import Path
from typing import IO, Any

from helios.errors import EvaluationError
from helios.evaluation.sources.questions import SourceQuestion
from helios.index.durable import write_atomically


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


class OutcomeFile:
    """The outcomes of one system, in memory and, if there is a path, on the disk."""

    def __init__(self, path: Path | None, key: Mapping[str, Any]) -> None:
        self.path = path
        self._header = {"key": hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest(), **key}
        self._outcomes: dict[str, Outcome] = {}
        self._file: IO[str] | None = None
        if path is not None:
            self._outcomes = {outcome.question_id: outcome for outcome in self._kept(path)}
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [self._header, *map(asdict, self._outcomes.values())]
            write_atomically(path, "".join(map(_line, lines)).encode())

    def outcome(self, question: SourceQuestion) -> Outcome | None:
        """The question's outcome, None if it has to be asked."""
        outcome = self._outcomes.get(question.question_id)
        return outcome if outcome is not None and outcome.digest == question.digest() else None

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome for good."""
        self._outcomes[outcome.question_id] = outcome
        if self.path is None:
            return
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        self._file.write(_line(asdict(outcome)))
        self._file.flush()
        fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _kept(self, path: Path) -> Iterator[Outcome]:
        try:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise EvaluationError(f"{path}: cannot be read ({error}); give another --out folder") from None
        documents = [document for line in lines if line.endswith("\n") and (document := _parsed(line)) is not None]
        if not lines:
            return
        header = documents[0] if documents else {}
        if "key" not in header:
            raise EvaluationError(f"{path}: not a file of an evaluation; give another --out folder")
        if header["key"] != self._header["key"]:
            other = [name for name, value in self._header.items() if name != "key" and header.get(name) != value]
            raise EvaluationError(
                f"{path}: holds figures of another {' and '.join(other) or 'run'}; give another --out folder, or "
                "delete the file to measure again"
            )
        for document in documents[1:]:
            try:
                yield Outcome.from_json(document)
            except (TypeError, KeyError, ValueError):
                continue


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False) + "\n"


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None

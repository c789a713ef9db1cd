"""What an ablation has measured so far: one JSON line a question, in one file a method.

A line is on the disk before the next question is asked, so a killed run goes on where it stopped. A file begins with
the key of all that its figures depend on: a file with another key is refused, and a line of a question that has
changed since is left out.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from os import fsync
from pathlib import Path
from typing import IO, Any

from helios.errors import EvaluationError
from helios.evaluation.questions import Question
from helios.index.durable import write_atomically


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


def question_digest(question: Question) -> str:
    """Changes with anything that a figure of the question depends on."""
    return hashlib.sha256(repr(question).encode()).hexdigest()[:16]


class ResultFile:
    """The lines of one method, in memory and, if there is a path, on the disk."""

    def __init__(self, path: Path | None, key: Mapping[str, Any]) -> None:
        self.path = path
        self._header = {"key": hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest(), **key}
        self._rows: dict[str, Measured] = {}
        self._file: IO[str] | None = None
        if path is not None:
            self._rows = {row.question_id: row for row in self._kept(path)}
            lines = [self._header, *map(asdict, self._rows.values())]
            write_atomically(path, "".join(map(_line, lines)).encode())

    def row(self, question: Question) -> Measured | None:
        """The question's figures, None if it has to be asked."""
        row = self._rows.get(question.question_id)
        return row if row is not None and row.digest == question_digest(question) else None

    def add(self, row: Measured) -> None:
        """Keep a question's figures for good."""
        self._rows[row.question_id] = row
        if self.path is None:
            return
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        self._file.write(_line(asdict(row)))
        self._file.flush()
        fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _kept(self, path: Path) -> Iterable[Measured]:
        """The whole lines of an earlier run with the same key; a line that a kill cut off is left out."""
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
            raise EvaluationError(f"{path}: not a file of an ablation; give another --out folder")
        if header["key"] != self._header["key"]:
            other = [name for name, value in self._header.items() if name != "key" and header.get(name) != value]
            raise EvaluationError(
                f"{path}: holds figures of another {' and '.join(other) or 'run'}; give another --out folder, or "
                "delete the file to measure again"
            )
        for document in documents[1:]:
            try:
                yield Measured(**document | {"problems": tuple(document["problems"])})
            except (TypeError, KeyError):
                continue


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False) + "\n"


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None

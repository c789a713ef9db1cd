"""Questions with answers and gold edges, from JSON lines.

One record: {"id", "question", "answer": string or list, "table": id or null,
"gold": [{"cell": [row, column] or null, "passage": id or null, "table": id (default: the question's)}]}.
Other fields, such as answer_in, are ignored. Several gold cells of one row that point to the same
passage are one gold edge.
"""

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helios.errors import EvaluationError, RecordError
from helios.evaluation.edges import EdgeId
from helios.types import SegmentId


@dataclass(frozen=True, slots=True)
class Question:
    """A question, every string that counts as its answer, its gold table and its gold edges (unique)."""

    question_id: str
    text: str
    answers: tuple[str, ...]
    table_id: str | None = None
    gold_edges: tuple[EdgeId, ...] = ()


def read_questions(path: Path | str) -> tuple[Question, ...]:
    """All questions of a .jsonl or .jsonl.gz file.

    Raises RecordError with file, line and reason for a record that cannot be used and for a repeated id,
    EvaluationError for a file that is missing or has no questions.
    """
    path = Path(path)
    questions: dict[str, Question] = {}
    for line, record in read_records(path):
        question = _question(path, line, record)
        if question.question_id in questions:
            raise RecordError(path, line, f"question id {question.question_id!r} appears twice")
        questions[question.question_id] = question
    if not questions:
        raise EvaluationError(f"{path} holds no questions")
    return tuple(questions.values())


def read_records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Line number and object of every line that is not blank; raises as `read_questions` does."""
    line = 0
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream: Any = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            with io.TextIOWrapper(stream, encoding="utf-8-sig") as lines:
                for line, text in enumerate(lines, start=1):
                    if text.strip():
                        yield line, _object(path, line, text)
    except FileNotFoundError:
        raise EvaluationError(f"questions file {path} does not exist") from None
    except (IsADirectoryError, PermissionError) as error:
        raise EvaluationError(f"questions file {path} cannot be read: {error.strerror}") from None
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise RecordError(path, line + 1, f"cannot be read on: {error}") from error


def _object(path: Path, line: int, text: str) -> Mapping[str, Any]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise RecordError(path, line, f"not JSON: {error}") from error
    if not isinstance(record, dict):
        raise RecordError(path, line, f"expected an object, found {type(record).__name__}")
    return record


def _question(path: Path, line: int, record: Mapping[str, Any]) -> Question:
    for name in ("id", "question", "answer"):
        if name not in record:
            raise RecordError(path, line, f"field {name!r} is missing")
    for name in ("id", "question"):
        if not isinstance(record[name], str) or not record[name].strip():
            raise RecordError(path, line, f"field {name!r} must be text, found {record[name]!r}")
    answers = record["answer"] if isinstance(record["answer"], list) else [record["answer"]]
    if not answers or not all(isinstance(answer, str) for answer in answers):
        raise RecordError(path, line, "field 'answer' must be a string or a list of strings")
    table_id = record.get("table")
    if not (table_id is None or isinstance(table_id, str)):
        raise RecordError(path, line, f"field 'table' must be an id or null, found {table_id!r}")
    gold = record.get("gold") or []
    if not isinstance(gold, list):
        raise RecordError(path, line, "field 'gold' must be a list")
    edges = dict.fromkeys(_gold_edge(path, line, entry, table_id) for entry in gold)
    return Question(record["id"], record["question"], tuple(answers), table_id, tuple(edges))


def _gold_edge(path: Path, line: int, entry: Any, table_id: str | None) -> EdgeId:
    if not isinstance(entry, dict):
        raise RecordError(path, line, f"a gold entry must be an object, found {entry!r}")
    cell, passage_id = entry.get("cell"), entry.get("passage")
    table_id = entry.get("table", table_id)
    if not (passage_id is None or isinstance(passage_id, str)):
        raise RecordError(path, line, f"gold passage must be an id or null, found {passage_id!r}")
    if cell is None and passage_id is None:
        raise RecordError(path, line, "a gold entry needs a cell or a passage")
    if cell is None:
        return EdgeId(None, passage_id)
    is_cell = isinstance(cell, list) and len(cell) == 2 and all(type(n) is int and n >= 0 for n in cell)
    if not is_cell:
        raise RecordError(path, line, f"gold cell must be [row, column] counted from 0, found {cell!r}")
    if not isinstance(table_id, str):
        raise RecordError(path, line, "a gold cell needs the id of its table")
    return EdgeId(SegmentId(table_id, cell[0]), passage_id)

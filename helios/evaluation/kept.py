"""What a run has measured so far: one JSON line a question, in one file a method.

A line is on the disk before the next question is asked, so a killed run goes on where it stopped. A file begins with
the key of all that its figures depend on: a file with another key is refused, and a line of a question that has
changed since is left out.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from os import fsync
from pathlib import Path
from typing import IO, Any, ClassVar, Generic, Protocol, TypeVar

from helios.errors import EvaluationError
from helios.index.durable import write_atomically


class Row(Protocol):
    """A dataclass of what was measured for one question."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def question_id(self) -> str: ...
    @property
    def digest(self) -> str:
        """Of the question with everything that its figures depend on."""
        ...


R = TypeVar("R", bound=Row)


class KeptRows(Generic[R]):
    """The rows of one method, in memory and, if there is a path, on the disk."""

    def __init__(self, path: Path | None, key: Mapping[str, Any], read: Callable[[Mapping[str, Any]], R]) -> None:
        """`read` makes a row of a line; what it raises TypeError, KeyError or ValueError for is measured again."""
        self.path = path
        self._header = {"key": hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest(), **key}
        self._rows: dict[str, R] = {}
        self._file: IO[str] | None = None
        if path is not None:
            self._rows = {row.question_id: row for row in self._kept(path, read)}
            lines = [self._header, *map(asdict, self._rows.values())]
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, "".join(map(_line, lines)).encode())
            except OSError as error:
                raise EvaluationError(f"{path}: cannot be written ({error}); give another --out folder") from None

    def row(self, question_id: str, digest: str) -> R | None:
        """The question's row, None if it has to be asked."""
        row = self._rows.get(question_id)
        return row if row is not None and row.digest == digest else None

    def add(self, row: R) -> None:
        """Keep a question's row for good."""
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

    def _kept(self, path: Path, read: Callable[[Mapping[str, Any]], R]) -> Iterator[R]:
        """The whole lines of an earlier run with the same key; a line that a kill cut off is left out."""
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise EvaluationError(f"{path}: cannot be read ({error}); give another --out folder") from None
        if not text:
            return
        documents = [document for line in text.split("\n")[:-1] if (document := _parsed(line)) is not None]
        header = documents[0] if documents else {}
        if "key" not in header:
            raise EvaluationError(f"{path}: not a file of figures by question; give another --out folder")
        if header["key"] != self._header["key"]:
            other = [name for name, value in self._header.items() if name != "key" and header.get(name) != value]
            raise EvaluationError(
                f"{path}: holds figures of another {' and '.join(other) or 'run'}; give another --out folder, or "
                "delete the file to measure again"
            )
        for document in documents[1:]:
            try:
                yield read(document)
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

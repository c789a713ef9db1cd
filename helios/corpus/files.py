"""What became of every file of a corpus: read, rejected or passed over, why, and what it gave.

Files within an archive or a message are listed on their own, as `archive.zip/inner.csv`.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath

from helios.types import Passage, Table

NOTHING_FOUND = "holds no table and no text"
WITHIN = "its files are listed on their own"


class Outcome(StrEnum):
    """What became of a file."""

    READ = "read"
    REJECTED = "rejected"
    PASSED_OVER = "passed over"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file by its name within the corpus; `format` is empty where none was recognised.

    `reason` is that of the first reject for a file that was read but for some `rejected` records.
    """

    file: str
    format: str
    outcome: Outcome
    reason: str = ""
    tables: int = 0
    passages: int = 0
    rows: int = 0
    rejected: int = 0


class FileList:
    """Entries in the order in which the files were met; the one that `begin` named last is being counted."""

    def __init__(self, entries: Iterable[FileEntry] = ()) -> None:
        self._entries = {entry.file: entry for entry in entries}
        self._current = ""

    def begin(self, name: str, format_name: str) -> None:
        """What is counted from now on is of this file, begun before or not."""
        self._current = name
        entry = self._entries.get(name, FileEntry(name, format_name, Outcome.PASSED_OVER))
        is_new = entry.outcome is Outcome.PASSED_OVER and not entry.reason
        self._entries[name] = replace(entry, format=format_name) if is_new else entry

    def pass_over(self, name: str, reason: str) -> None:
        """A file that is not read."""
        self._entries[name] = FileEntry(name, "", Outcome.PASSED_OVER, reason)

    def add(self, record: Table | Passage, *, rows: int | None = None) -> None:
        """A record of the file in hand; `rows` where it is only the last piece of a table."""
        entry = replace(self._entries[self._current], outcome=Outcome.READ)
        if isinstance(record, Table):
            entry = replace(
                entry, tables=entry.tables + 1, rows=entry.rows + (len(record.rows) if rows is None else rows)
            )
        else:
            entry = replace(entry, passages=entry.passages + 1)
        self._entries[self._current] = entry

    def reject(self, reason: str) -> None:
        """A reject of the file in hand: the file itself, or a record of it."""
        entry = self._entries[self._current]
        outcome = entry.outcome if entry.outcome is Outcome.READ else Outcome.REJECTED
        self._entries[self._current] = replace(
            entry, outcome=outcome, reason=entry.reason or reason, rejected=entry.rejected + 1
        )

    def __iter__(self) -> Iterator[FileEntry]:
        """Entries with their reasons, a container being read where its files are listed."""
        containers = {str(parent) for name in self._entries for parent in PurePosixPath(name).parents}
        for entry in self._entries.values():
            if entry.outcome is Outcome.PASSED_OVER and not entry.reason:
                within = entry.file in containers
                outcome = Outcome.READ if within else Outcome.PASSED_OVER
                entry = replace(entry, outcome=outcome, reason=WITHIN if within else NOTHING_FOUND)
            yield entry

    def counts(self) -> dict[Outcome, int]:
        """How many files had each outcome."""
        outcomes = [entry.outcome for entry in self]
        return {outcome: outcomes.count(outcome) for outcome in Outcome}

    def write(self, path: Path) -> None:
        """One JSON object a line, in order."""
        lines = (json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in self)
        path.write_text("".join(lines), encoding="utf-8", errors="backslashreplace", newline="\n")

    @classmethod
    def load(cls, path: Path) -> "FileList":
        """A list that was written."""
        lines = map(json.loads, path.read_bytes().splitlines())  # of a text they would end at U+2028 too
        return cls(FileEntry(**{**line, "outcome": Outcome(line["outcome"])}) for line in lines)


def first_reason(files: FileList) -> str:
    """What was wrong with one of the files, to be said where nothing could be read."""
    return next((f"; {entry.file}: {entry.reason}" for entry in files if entry.reason), "")

"""What happens to a record that cannot be used: stop with an error, or write it aside and go on."""

import json
import logging
from pathlib import Path
from types import TracebackType
from typing import Literal, TextIO

from helios.corpus.files import FileList
from helios.errors import ConfigError, RecordError
from helios.types import Passage, Table

log = logging.getLogger(__name__)

OnError = Literal["stop", "skip", "auto"]
"""`auto`: "stop" for a corpus of one file and for a line of JSON lines, "skip" for all else in a folder."""
SAID = 20
"""Rejects of one file that are logged; all are in the rejects file."""
HOPELESS, TIMES = 10_000, 10
"""Rejects of one file after which the rest of it is not read, where they are so many times those that were kept."""


class TooManyRejectsError(Exception):
    """A file has next to nothing but rejects; whoever reads it goes on to the next one."""


class RejectsWriter:
    """A JSON-lines file of rejected records: {file, line, id, reason, record}; empty when all went well."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.count = 0
        self._file: TextIO = self.path.open("w", encoding="utf-8", newline="\n")

    def __enter__(self) -> "RejectsWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, error: RecordError, record: str) -> None:
        """Append one reject with its reason and the raw record."""
        reject = {
            "file": str(error.path),
            "line": error.line,
            "id": error.record_id,
            "reason": error.reason,
            "record": record,
        }
        self._file.write(json.dumps(reject) + "\n")
        self.count += 1

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()


class Rejection:
    """The policy of one read: `reject` raises under "stop", and records and returns under "skip".

    It is also told what becomes of every file, and which one is being read.
    """

    def __init__(
        self, on_error: OnError = "stop", writer: RejectsWriter | None = None, files: FileList | None = None
    ) -> None:
        if on_error not in ("stop", "skip", "auto"):
            raise ConfigError(f"on_error is {on_error!r}, expected 'stop' or 'skip', or 'auto' (see docs)")
        self.current = ""
        """Name of the file that is being read, or of the file within it."""
        self._on_error = on_error
        self._stops_at_lines = False
        self._writer = writer
        self._files = files or FileList()
        self._kept_here = self._rejected_here = 0

    def begin(self, name: str, format_name: str, *, prepared: bool = False) -> None:
        """A file is read from here on; in a `prepared` one every line was meant to be a record."""
        if name != self.current:
            self._kept_here = self._rejected_here = 0
        self.current = name
        self._stops_at_lines = prepared
        self._files.begin(name, format_name)

    def has_read(self, format_name: str) -> bool:
        """Whether a file was read, or rejected, as this format."""
        return any(entry.format == format_name for entry in self._files)

    def pass_over(self, name: str, reason: str) -> None:
        """A file is not read."""
        log.info("%s: passed over (%s)", name, reason)
        self._files.pass_over(name, reason)

    def add(self, record: Table | Passage, *, rows: int | None = None) -> None:
        """A record of the current file is kept; of a table in pieces the last one, and its `rows` in all."""
        self._kept_here += 1
        self._files.add(record, rows=rows)

    def reject(self, error: RecordError, record: str = "") -> None:
        """Raise the error, or write it with the raw record to the rejects file.

        TooManyRejectsError where a file has HOPELESS of them and hardly anything else.
        """
        at_line = self._stops_at_lines and error.line is not None
        if self._on_error == "stop" or (self._on_error == "auto" and at_line):
            raise error
        self._rejected_here += 1
        if self._rejected_here <= SAID:
            log.warning("rejected: %s", error)
        elif self._rejected_here == SAID + 1:
            log.warning("%s: more records are rejected; the rejects file has them", self.current)
        self._files.reject(error.reason)
        if self._writer is not None:
            self._writer.write(error, record)
        if self._rejected_here == HOPELESS and self._rejected_here > TIMES * self._kept_here:
            raise TooManyRejectsError

"""What happens to a record that cannot be used: stop with an error, or write it aside and go on."""

import json
import logging
from pathlib import Path
from types import TracebackType
from typing import Literal, TextIO

from helios.errors import ConfigError, RecordError

log = logging.getLogger(__name__)

OnError = Literal["stop", "skip"]


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
    """The policy of one read: `reject` raises under "stop", and records and returns under "skip"."""

    def __init__(self, on_error: OnError = "stop", writer: RejectsWriter | None = None) -> None:
        if on_error not in ("stop", "skip"):
            raise ConfigError(f"on_error is {on_error!r}, expected 'stop' or 'skip'")
        self._on_error = on_error
        self._writer = writer

    def reject(self, error: RecordError, record: str = "") -> None:
        """Raise the error, or write it with the raw record to the rejects file."""
        if self._on_error == "stop":
            raise error
        log.warning("rejected: %s", error)
        if self._writer is not None:
            self._writer.write(error, record)

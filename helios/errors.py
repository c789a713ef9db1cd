"""Every error HELIOS raises on purpose.

HeliosError
├── ConfigError           a setting is unknown or has a wrong value
├── WhereError            a filter cannot be read, or asks for a field that no record has
├── CorpusError           input that cannot be read
│   └── RecordError       one record of an input: names file, line and reason
├── IndexFormatError      an index directory that is foreign, damaged or newer than this code
│   └── ChecksumError     a file of an index differs from its checksum
├── IndexLockedError      another process is writing to the same index
├── ModelError            a model cannot be found, loaded or verified
├── EvaluationError       questions, qrels or runs that do not fit the index
├── ContextError          a row, or what leads away from it, that no context can be gathered from
├── ServerError           a query server refused a request, or cannot be reached: its code and what to do
└── SourceError           a registered source did not answer a query
    ├── QueryRejected     the guard refused the query; it never reached the engine
    ├── QueryTimeout      the query was stopped at its deadline
    ├── QueryFailed       the engine refused the query or gave up on it
    └── SourceUnavailable the source cannot be reached or opened

A message says what happened, where, what was expected and what to do next.
"""

from pathlib import Path


class HeliosError(Exception):
    """Base of all errors that a user can cause or mend; the command line prints it without a traceback."""


class ConfigError(HeliosError):
    """A setting is unknown or has a wrong value."""


class WhereError(HeliosError):
    """A filter cannot be read, or asks for a field that no record has."""


class CorpusError(HeliosError):
    """Input that cannot be read as a corpus."""


class RecordError(CorpusError):
    """One record of an input cannot be used; `line` counts from 1, None where lines mean nothing."""

    def __init__(self, path: Path | str, line: int | None, reason: str, *, record_id: str | None = None) -> None:
        self.path = Path(path)
        self.line = line
        self.reason = reason
        self.record_id = record_id
        where = f"{self.path}:{line}" if line is not None else str(self.path)
        super().__init__(f"{where}: {reason}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_record_error, (self.path, self.line, self.reason, self.record_id))


def _record_error(path: Path, line: int | None, reason: str, record_id: str | None) -> RecordError:
    return RecordError(path, line, reason, record_id=record_id)


class IndexFormatError(HeliosError):
    """An index directory that is foreign, damaged or newer than this code."""


class ChecksumError(IndexFormatError):
    """A file of an index differs from the checksum in its manifest."""


class IndexLockedError(HeliosError):
    """Another process is writing to the same index."""


class ModelError(HeliosError):
    """A model cannot be found, loaded or verified."""


class EvaluationError(HeliosError):
    """Questions, qrels or runs that do not fit the index."""


class ContextError(HeliosError):
    """A row, a value or a key that no context can be gathered from."""


class ServerError(HeliosError):
    """A query server refused a request (`code` of its problem), or there is none: `unreachable`, `timeout`.

    `retry_after` is how many seconds it asks to wait; `request_id` finds the request in its log.
    """

    def __init__(
        self, code: str, detail: str, *, todo: str = "", status: int = 0, request_id: str = "",
        retry_after: float | None = None,
    ) -> None:  # fmt: skip
        self.code = code
        self.detail = detail
        self.todo = todo
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        super().__init__(f"{code}: {detail}" + (f"; {todo}" if todo else ""))


class SourceError(HeliosError):
    """A registered source did not answer a query."""


class QueryRejected(SourceError):
    """The guard refused a query before the engine saw it: `reason`, and `part`, what offended (may be empty)."""

    def __init__(self, reason: str, part: str = "") -> None:
        self.reason = reason
        self.part = part
        super().__init__(f"{reason}: {part}" if part else reason)

    def __reduce__(self) -> tuple[object, ...]:
        return (QueryRejected, (self.reason, self.part))


class QueryTimeout(SourceError):
    """A query was stopped at its deadline; `seconds` is what it was given, `note` what else is to be known."""

    def __init__(self, seconds: float, note: str = "") -> None:
        self.seconds = seconds
        self.note = note
        more = f" ({note})" if note else ""
        super().__init__(f"stopped after {seconds:g} s{more}; ask for less, or raise the source's timeout")

    def __reduce__(self) -> tuple[object, ...]:
        return (QueryTimeout, (self.seconds, self.note))


class QueryFailed(SourceError):
    """The engine refused a query or gave up on it; the message is the engine's, or names the cap that it met."""


class SourceUnavailable(SourceError):
    """A source cannot be reached or opened."""

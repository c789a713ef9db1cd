"""Records of data sets with the line that each begins on: JSON lines, JSON arrays, tab-separated text, CSV, Parquet.

A file may be gzipped. A record that cannot be used is a RecordError with file, line and reason.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from helios.errors import EvaluationError, RecordError

Record = dict[str, Any]
Numbered = tuple[int, Record]
_SPACE = " \t\r\n"


def read_text(path: Path) -> str:
    """The text of a file, gzipped or not; EvaluationError where it cannot be opened, RecordError if it is damaged."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise EvaluationError(f"{path} does not exist") from None
    except (IsADirectoryError, PermissionError) as error:
        raise EvaluationError(f"{path} cannot be read: {error.strerror}") from None
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise RecordError(path, None, f"cannot be read: {error}") from None


def json_lines(path: Path) -> Iterator[Numbered | RecordError]:
    """Line number and object of every line that is not blank; an error in place of a line that holds none."""
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if text.strip():
            try:
                yield line, _object(path, line, json.loads(text))
            except json.JSONDecodeError as error:
                yield RecordError(path, line, f"not JSON: {error}")
            except RecordError as error:
                yield error


def json_array(path: Path, *, member: str | None = None) -> Iterator[Numbered | RecordError]:
    """Line number and object of every element of an array, or of the array in a member of the top-level object.

    RecordError ends it where the text is not JSON: what follows cannot be told apart.
    """
    text = read_text(path)
    scan = _Scan(path, text)
    scan.blanks()
    if member is not None and scan.peek() == "{":
        scan.enter(member)
    scan.expect("[")
    while scan.peek() != "]":
        start = scan.at
        value = scan.value()
        line = text.count("\n", 0, start) + 1
        try:
            yield line, _object(path, line, value)
        except RecordError as error:
            yield error
        if scan.peek() != "]":
            scan.expect(",")


def separated(path: Path, names: tuple[str, ...] | None = None) -> Iterator[Numbered | RecordError]:
    """Rows of a CSV file with a header, or of a file with tabs between the named fields and no quoting."""
    text = read_text(path)
    if names is None:
        rows = csv.reader(io.StringIO(text, newline=""))
        header = next(rows, [])
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                yield RecordError(path, rows.line_num, f"expected {len(header)} fields, found {len(row)}")
            else:
                yield rows.line_num, dict(zip(header, row, strict=True))
        return
    for line, row_text in enumerate(text.split("\n"), start=1):
        fields = row_text.rstrip("\r").split("\t")
        if len(fields) == len(names):
            yield line, dict(zip(names, fields, strict=True))
        elif row_text.strip():
            yield RecordError(path, line, f"expected {len(names)} fields with tabs between, found {len(fields)}")


def parquet_rows(path: Path) -> Iterator[Numbered | RecordError]:
    """Rows of a Parquet file; their number stands for the line."""
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except FileNotFoundError:
        raise EvaluationError(f"{path} does not exist") from None
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise RecordError(path, None, f"cannot be read as Parquet: {error}") from None
    yield from enumerate(table.to_pylist(), start=1)


READERS: dict[str, Callable[[Path], Iterator[Numbered | RecordError]]] = {
    ".jsonl": json_lines, ".ndjson": json_lines, ".json": json_array, ".parquet": parquet_rows, ".csv": separated,
}  # fmt: skip


def any_records(path: Path) -> Iterator[Numbered | RecordError]:
    """Records of a file, read as its name ends; EvaluationError for no file, or an ending that is none of `READERS`."""
    if not path.exists():
        raise EvaluationError(f"{path} does not exist; expected a file of questions or records")
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in READERS:
        raise EvaluationError(f"{path}: expected a file that ends in {', '.join(READERS)} (or with .gz after it)")
    return READERS[ending](path)


def text_field(path: Path, line: int, record: Record, *names: str) -> str:
    """The first of some fields that holds text; RecordError where none does, or where it cannot be written as UTF-8."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str) and value.strip():
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise RecordError(path, line, f"field {name!r} holds half of a pair of surrogates: no text")
            return value
    wanted = " or ".join(repr(name) for name in names)
    raise RecordError(path, line, f"field {wanted} is missing or holds no text")


def id_field(path: Path, line: int, record: Record, name: str) -> str:
    """A field that holds text or a whole number, as text."""
    value = record.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_field(path, line, record, name)


def rows_field(path: Path, line: int, record: Record, name: str) -> list[list[Any]]:
    """A field that holds a list of rows of one length."""
    value = record.get(name)
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        raise RecordError(path, line, f"field {name!r} must be a list of rows")
    if len({len(row) for row in value}) > 1:
        raise RecordError(path, line, f"the rows of field {name!r} differ in length")
    return value


def _object(path: Path, line: int, value: Any) -> Record:
    if not isinstance(value, dict):
        raise RecordError(path, line, f"expected an object, found {type(value).__name__}")
    return value


class _Scan:
    """Steps through JSON text, value by value."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text, self.at = path, text, 0
        self._decoder = json.JSONDecoder()

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise self.error(f"expected {mark!r}, found {self.peek()!r}")
        self.at += 1
        self.blanks()

    def value(self) -> Any:
        try:
            value, self.at = self._decoder.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.at = error.pos
            raise self.error(f"not JSON: {error.msg}") from None
        self.blanks()
        return value

    def enter(self, member: str) -> None:
        """Stand before the value of a member of the object that begins here."""
        self.expect("{")
        while self.peek() != "}":
            name = self.value()
            self.expect(":")
            if name == member:
                return
            self.value()
            if self.peek() != "}":
                self.expect(",")
        raise self.error(f"no member {member!r}")

    def error(self, reason: str) -> RecordError:
        return RecordError(self.path, self.text.count("\n", 0, self.at) + 1, reason)

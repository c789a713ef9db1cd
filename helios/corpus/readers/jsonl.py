"""JSON lines: one table or passage a line (our schema, BEIR's and typed units, see helios.corpus.record)."""

import json
import sys
from collections.abc import Iterator

from helios.corpus.budget import RecordShapeError
from helios.corpus.record import Parsed, is_record, parse_record, record_id
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import RecordError
from helios.types import Passage, Table

_BOM = b"\xef\xbb\xbf"
_PROBED_LINES = 20
EMPTY = 1_000_000
"""Empty lines, half of all until there, after which a file is left."""


def detect(source: SourceFile) -> bool:
    """A .jsonl or .ndjson file with a table or passage, and its id, among its first lines.

    A file whose first lines are all broken counts as well, so that it is reported and not passed over.
    """
    if source.suffix not in (".jsonl", ".ndjson"):
        return False
    if source.is_damaged:
        return True
    parsed = broken = False
    for line in source.head.split(b"\n")[:_PROBED_LINES]:
        try:
            value = json.loads(line.removeprefix(_BOM))
        except (ValueError, RecursionError):
            broken = broken or bool(line.strip())
            continue
        parsed = True
        if is_record(value) and record_id(value) is not None:
            return True
    return broken and not parsed


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Records in file order; a line that is not one is rejected alone."""
    empty = 0
    for number, line in source.lines(rejection):
        if not line.strip():
            empty += 1
            if empty == EMPTY and number < 2 * EMPTY:
                why = f"{EMPTY:,} of its first {number:,} lines are empty: the rest of the file is not read"
                rejection.reject(RecordError(source.path, number, why))
                return
            continue
        try:
            yield Parsed(_parse_line(source, number, line), number)
        except RecordError as error:
            rejection.reject(error, line.decode("utf-8", "backslashreplace").rstrip("\r\n"))


def _parse_line(source: SourceFile, number: int, line: bytes) -> Table | Passage:
    value: object = None  # a NUL or a surrogate can stand in valid JSON only as an escape
    try:
        value = json.loads((line.removeprefix(_BOM) if number == 1 else line).decode("utf-8"))
        return parse_record(value, check_text=b"\\u" in line, budget=source.budget)
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 (byte {error.object[error.start]:#04x} at position {error.start})"
    except json.JSONDecodeError as error:
        nul = "; the line has NUL bytes" if b"\0" in line else ""
        reason = f"not valid JSON: {error.msg} at column {error.colno}{nul}"
    except RecordShapeError as error:
        reason = str(error)
    except RecursionError:
        reason = "nested too deeply"
    except ValueError:  # Python's own limit
        reason = f"a number of more than {sys.get_int_max_str_digits():,} digits"
    raise RecordError(source.path, number, reason, record_id=record_id(value))

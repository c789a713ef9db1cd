"""JSON files, streamed: OTT-QA's official tables and passages, and arrays of records.

- traindev_tables_tok/*.json: one table, cells as [text, [urls]]
- traindev_request_tok/*.json and all_passages.json: {passage id: text}
- all_plain_tables.json: {table id: table}
- [record, record, ...] in any schema of helios.corpus.record
"""

import io
import json
import sys
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, BinaryIO
from urllib.parse import unquote

import ijson

from helios.corpus.budget import Nesting, RecordShapeError, check, check_nesting
from helios.corpus.record import Parsed, first_object, is_record, parse_record, record_id
from helios.corpus.rejects import Rejection
from helios.corpus.source import DAMAGED, SourceFile
from helios.errors import RecordError
from helios.types import Passage, Table

_TABLE_FIELDS = frozenset(
    {"id", "uid", "url", "title", "header", "data", "rows", "section_title", "section_text", "intro", "links"}
)
_PAGE_PREFIX = "/wiki/"


class _Shape(Enum):
    TABLE = auto()
    TABLES = auto()
    PASSAGES = auto()
    ARRAY = auto()
    TOO_DEEP = auto()
    OTHER = auto()


def detect(source: SourceFile) -> bool:
    """A .json file in one of the layouts above, judged by its beginning."""
    return source.suffix == ".json" and (source.is_damaged or _shape(source) is not _Shape.OTHER)


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Records in file order; of a damaged file the records before the damage."""
    try:
        with source.stream() as file:
            bounded = Bounded(file, source)
            for key, value in _values(bounded, _shape(source), source):
                bounded.begin_record()
                try:
                    yield Parsed(_record(key, value, source))
                except RecordShapeError as error:
                    found = key or record_id(value)
                    rejection.reject(
                        RecordError(source.path, None, f"record {found!r}: {error}", record_id=found),
                        json.dumps(value),
                    )
    except ijson.JSONError as error:
        rejection.reject(RecordError(source.path, None, f"not valid JSON: {_one_line(error)}"))
    except UnicodeDecodeError as error:
        rejection.reject(RecordError(source.path, None, f"not UTF-8: {error.reason}"))
    except RecordShapeError as error:
        rejection.reject(source.error(error))
    except ValueError:  # Python's own limit
        reason = f"a number of more than {sys.get_int_max_str_digits():,} digits"
        rejection.reject(RecordError(source.path, None, reason))
    except DAMAGED as error:
        rejection.reject(source.damaged(error))


class Bounded:
    """What ijson reads: JSON whose records are not too long or nested too deeply."""

    def __init__(self, file: BinaryIO, source: SourceFile) -> None:
        self._file = file
        self._source = source
        self._nesting = Nesting()
        self._length = 0

    def begin_record(self) -> None:
        self._length = 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self._length += len(chunk)
        check(self._source.budget, "record_mb", self._length, "one record")
        check_nesting(self._source.budget, self._nesting.deepest(chunk))
        return chunk


def _values(file: Any, shape: _Shape, source: SourceFile) -> Iterator[tuple[str | None, object]]:
    """(id or None, JSON value) of every record of the file."""
    match shape:
        case _Shape.TABLE:
            table = dict(ijson.kvitems(file, "", use_float=True))
            yield record_id(table) or source.stem, table
        case _Shape.ARRAY:
            for value in ijson.items(file, "item", use_float=True):
                yield None, value
        case _:
            yield from ijson.kvitems(file, "", use_float=True)


def _record(key: str | None, value: object, source: SourceFile) -> Table | Passage:
    if key is not None and isinstance(value, str):
        return parse_passage(key, value)
    if isinstance(value, Mapping) and key is not None:
        value = {**value, "id": key}
    return parse_record(value, budget=source.budget)


def parse_passage(passage_id: str, text: str) -> Passage:
    """A passage of a {id: text} mapping; the title is read from the page address that the id is."""
    title = unquote(passage_id.removeprefix(_PAGE_PREFIX)).replace("_", " ")
    record = parse_record({"id": passage_id, "title": title, "text": text})
    assert isinstance(record, Passage)
    return record


def _shape(source: SourceFile) -> _Shape:
    """Judge by the first JSON events; a file that breaks later still has its shape."""
    if Nesting().deepest(source.head) > source.budget.depth:
        return _Shape.TOO_DEEP  # ijson keeps the whole path of every value
    events: list[tuple[str, Any]] = []
    try:
        for _, event, value in ijson.parse(io.BytesIO(source.head), use_float=True):
            events.append((event, value))
            if len(events) == 3 and events[0][0] == "start_map":
                break
    except (ijson.JSONError, UnicodeDecodeError):
        pass
    match events:
        case [("start_map", _), ("map_key", key), ("string" | "null" | "start_array", _)] if key in _TABLE_FIELDS:
            return _Shape.TABLE if b'"header"' in source.head else _Shape.OTHER
        case [("start_map", _), ("map_key", str(key)), ("string", _)] if key.startswith("/"):
            return _Shape.PASSAGES
        case [("start_map", _), ("map_key", _), ("start_map", _)]:
            return _Shape.TABLES if b'"header"' in source.head else _Shape.OTHER
        case [("start_array", _), ("start_map", _), *rest]:
            if (first := first_object(source.head)) is not None:
                return _Shape.ARRAY if is_record(first) and record_id(first) is not None else _Shape.OTHER
            keys = {value for event, value in rest if event == "map_key"}
            known = "text" in keys or {"content", "type"} <= keys or ("header" in keys and keys & {"rows", "data"})
            return _Shape.ARRAY if known and keys & {"id", "_id", "uid"} else _Shape.OTHER
    return _Shape.OTHER


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

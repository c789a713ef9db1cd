"""Values of PostgreSQL as `helios.executors.values` has them, from the text that the server sends.

Bytes are counted before anything is made of them; what Python's types cannot hold stays text.
"""

import json
import re
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from time import monotonic
from typing import Any
from uuid import UUID

from helios.errors import QueryTimeout
from helios.executors.base import Limits
from helios.executors.rows import SMALL, Row
from helios.executors.values import Value

MOST_LEVELS, MOST_PARTS = 100, 100_000
"""How deep JSON may nest, and how many lists and objects it may have; more than that stays text."""
FIRST, MOST = 2, 512
"""Rows asked for at first and at most at once; how many in between follows from their size."""
CURSOR = "helios"
_JSON = ("json", "jsonb")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def read_rows(connection: Any, limits: Limits, deadline: float) -> tuple[tuple[str, ...], list[Row], str | None]:
    """Columns and first rows of the open cursor CURSOR, and the cap that ended them: `rows`, `bytes` or None."""
    kept: list[Row] = []
    room, number = limits.max_bytes, FIRST
    while True:
        asked = min(number, limits.max_rows + 1 - len(kept))
        answer = connection.execute(f"FETCH {asked} FROM {CURSOR}")
        result, before = answer.pgresult, room
        columns = tuple(text_of(column.name) for column in answer.description)
        loaders = [_loader(answer, column) for column in range(result.nfields)]
        for row in range(result.ntuples):
            if len(kept) == limits.max_rows:
                return columns, kept, "rows"
            if monotonic() > deadline:
                raise QueryTimeout(limits.timeout)
            data = [result.get_value(row, column) for column in range(result.nfields)]
            room -= sum(max(SMALL, len(one or b"")) for one in data)
            if room < 0:
                return columns, kept, "bytes"
            kept.append(tuple(None if one is None else load(one) for one, load in zip(data, loaders, strict=True)))
        if result.ntuples < asked:
            return columns, kept, None
        usual = max(1, (before - room) // asked)
        number = max(1, min(2 * number, MOST, room // usual + 1))


def register_loaders(connection: Any) -> None:
    """Dates and times outside of Python's years, and `infinity`, as the server writes them; text of any bytes."""
    from psycopg.types.datetime import DateLoader, IntervalLoader, TimeLoader, TimestampLoader, TimestamptzLoader

    for name, base in {
        "date": DateLoader, "interval": IntervalLoader, "time": TimeLoader, "timestamp": TimestampLoader,
        "timestamptz": TimestamptzLoader,
    }.items():  # fmt: skip
        connection.adapters.register_loader(name, _lenient(base))
    for name in _JSON:
        connection.adapters.register_loader(name, _json_loader())
    if connection.info.encoding == "ascii":
        for name in ("text", "varchar", "bpchar", "name"):
            connection.adapters.register_loader(name, _text_loader())


def value_of(value: Any) -> Value:
    """A value that psycopg gave."""
    match value:
        case None | bool() | int() | float() | str() | date() | time() | timedelta() | Decimal() | UUID():
            return value
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case dict():
            return value
        case list() | tuple():
            return [value_of(item) for item in value]
    return str(value)


def text_of(value: str | bytes) -> str:
    """Text of a server; bytes where the database does not know its encoding."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def json_value(text: str) -> Value:
    """Parsed JSON; the text itself where it nests too deeply, has too many parts, or a number of too many digits."""
    if text.count("[") + text.count("{") > MOST_PARTS or _levels(text) > MOST_LEVELS:
        return text
    try:
        value: Value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _levels(text: str) -> int:
    """How deep brackets nest, outside of strings."""
    depth = deepest = 0
    for mark in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if mark in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _loader(answer: Any, column: int) -> Callable[[bytes], Value]:
    """How a column's values are read; what cannot be read stays text."""
    from psycopg import DataError
    from psycopg.adapt import Transformer

    loader = Transformer(answer).get_loader(answer.pgresult.ftype(column), answer.pgresult.fformat(column))

    def load(data: bytes) -> Value:
        try:
            return value_of(loader.load(data))
        except (DataError, ValueError, ArithmeticError, RecursionError):
            return bytes(data).decode(errors="replace")

    return load


def _lenient(base: Any) -> Any:
    from psycopg import DataError

    class Lenient(base):  # type: ignore[misc]
        def load(self, data: Any) -> Any:
            try:
                return super().load(data)
            except (DataError, ValueError, OverflowError):
                return bytes(data).decode(errors="replace")

    return Lenient


def _json_loader() -> Any:
    from psycopg.adapt import Loader

    class Json(Loader):
        def load(self, data: Any) -> Value:
            return json_value(bytes(data).decode(errors="replace"))

    return Json


def _text_loader() -> Any:
    """Of a database that does not know its encoding (SQL_ASCII), where psycopg gives bytes."""
    from psycopg.adapt import Loader

    class Text(Loader):
        def load(self, data: Any) -> str:
            return bytes(data).decode(errors="replace")

    return Text

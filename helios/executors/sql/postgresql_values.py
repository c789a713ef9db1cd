"""Values of PostgreSQL as `helios.executors.values` has them; what Python's types cannot hold comes as text."""

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from helios.executors.values import Value


def register_loaders(connection: Any) -> None:
    """Dates and times outside of Python's years, and `infinity`, as the server writes them."""
    from psycopg.types.datetime import DateLoader, IntervalLoader, TimeLoader, TimestampLoader, TimestamptzLoader

    for name, base in {
        "date": DateLoader, "interval": IntervalLoader, "time": TimeLoader, "timestamp": TimestampLoader,
        "timestamptz": TimestamptzLoader,
    }.items():  # fmt: skip
        connection.adapters.register_loader(name, _lenient(base))


def value_of(value: Any) -> Value:
    """A value that psycopg gave."""
    match value:
        case None | bool() | int() | float() | str() | date() | time() | timedelta() | Decimal() | UUID():
            return value
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case list() | tuple():
            return [value_of(item) for item in value]
        case dict():
            return {str(key): value_of(item) for key, item in value.items()}
    return str(value)


def text_of(value: str | bytes) -> str:
    """Text of a server; bytes where the database does not know its encoding."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _lenient(base: Any) -> Any:
    from psycopg import DataError

    class Lenient(base):  # type: ignore[misc]
        def load(self, data: Any) -> Any:
            try:
                return super().load(data)
            except (DataError, ValueError, OverflowError):
                return bytes(data).decode(errors="replace")

    return Lenient

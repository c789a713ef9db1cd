"""A memory of what was computed last, bounded in entries or in bytes; threads may share it."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Bounded(Generic[Key, Value]):
    """The values that were asked for last; `size` says what one costs, 1 by default, and they cost `limit` at most.

    What is kept never changes a result: a value depends on its key alone.
    """

    def __init__(self, limit: int, *, size: Callable[[Value], int] = lambda value: 1) -> None:
        self.limit = limit
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._held = 0
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """The value, if it is still there."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, and forget those that were not asked for the longest."""
        cost = self._size(value)
        if cost > self.limit:
            return
        with self._lock:
            old = self._values.pop(key, None)
            self._held += cost - (self._size(old) if old is not None else 0)
            self._values[key] = value
            while self._held > self.limit:
                _, gone = self._values.popitem(last=False)
                self._held -= self._size(gone)

    def of(self, key: Key, make: Callable[[], Value]) -> Value:
        """The kept value, or a new one; two threads may make it at the same moment."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def items(self) -> dict[Key, Value]:
        """What is kept now, the longest unasked first."""
        with self._lock:
            return dict(self._values)

    def __len__(self) -> int:
        return len(self._values)

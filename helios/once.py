"""An attribute that is made on first use, once, however many threads ask for it at the same moment."""

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class once(Generic[Value]):
    """Like functools.cached_property, which since Python 3.12 lets two threads make the value twice.

    The lock belongs to the class, so objects stay picklable and two of them wait for each other while one
    makes its value; later reads take no lock.
    """

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self.__doc__ = make.__doc__
        self._make = make
        self._name = make.__name__
        self._lock = RLock()

    @overload
    def __get__(self, instance: None, owner: type) -> "once[Value]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> "once[Value] | Value":
        if instance is None:
            return self
        with self._lock:
            made: dict[str, Value] = instance.__dict__
            if self._name not in made:
                made[self._name] = self._make(instance)
            return made[self._name]

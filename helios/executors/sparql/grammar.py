"""rdflib's grammar of SPARQL 1.1, as a copy of ours: it looks at the clock, and not for comments.

The guard has cut comments away, and looking for them before each token took half of the time.
"""

import copy
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from helios.errors import QueryRejected, QueryTimeout
from helios.executors.base import NEVER, Deadline


def parse(text: str, deadline: Deadline = NEVER) -> Any:
    """rdflib's tree of a query without comments; QueryRejected, or QueryTimeout past the deadline."""
    return _grammar().parse(text, deadline)


class _Grammar:
    """The copy; one query at a time, since its parts remember what they read last."""

    def __init__(self) -> None:
        from pyparsing import Opt, Regex
        from rdflib.plugins.sparql import parser

        absent = [part.defaultValue for part in _parts(parser.Query) if isinstance(part, Opt)]  # known by identity
        self._query: Any = copy.deepcopy(parser.Query, {id(value): value for value in absent})
        self._deadline = NEVER
        self._free = threading.Lock()
        for part in _parts(self._query):
            part.ignoreExprs = []
            if isinstance(part, Regex):  # a leaf: around others it would make the stack deeper
                vars(part)["_parse"] = self._timed(part._parse)

    def parse(self, text: str, deadline: Deadline) -> Any:
        from pyparsing import ParseBaseException

        if not self._free.acquire(timeout=min(deadline.left(), threading.TIMEOUT_MAX)):
            raise QueryTimeout(deadline.seconds)
        try:
            self._deadline = deadline
            return self._query.parse_string(text, parse_all=True)
        except ParseBaseException as error:
            raise QueryRejected("no SPARQL 1.1 query", text[error.loc : error.loc + 40] or text[-40:]) from None
        except RecursionError:
            raise QueryRejected("nested too deeply, or too many triples in one group", text[:40]) from None
        finally:
            self._free.release()

    def _timed(self, read: Any) -> Any:
        def timed(*args: Any, **options: Any) -> Any:
            self._deadline.left()
            return read(*args, **options)

        return timed


@lru_cache(1)
def _grammar() -> _Grammar:
    return _Grammar()


def _parts(grammar: Any) -> Iterator[Any]:
    """Every part of a grammar, once."""
    seen: set[int] = set()
    left = [grammar]
    while left:
        part = left.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            left.extend(part.recurse())

"""The guard of Cypher: one reading query, functions of the allow-list, every parameter given.

A query is parsed by a grammar that has reading clauses only and written anew from what was parsed: comments, spelling
and escapes of the writer never reach an engine.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

from helios.errors import QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.executors.cypher import syntax as s
from helios.executors.cypher.dialect_functions import NATIVE
from helios.executors.cypher.functions import FUNCTIONS
from helios.executors.cypher.parser import parse
from helios.executors.cypher.tokens import PLAIN_NAME

CACHED = 512
MAX_PARAMETER = 2**20
MAX_PARAMETER_DEPTH = 30
PARAMETER_TYPES = (
    bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta, UUID, list, tuple, Mapping, type(None),
)  # fmt: skip
CAST_TYPES = (
    "BOOL", "BOOLEAN", "DATE", "DOUBLE", "FLOAT", "INT16", "INT32", "INT64", "INTEGER", "STRING", "TIMESTAMP",
)  # fmt: skip
SERVERS_ALONE = {s.Group: "((a)-->(b)){1,2}", s.Path: "SHORTEST", s.CallProcedure: "CALL"}


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that may run: its syntax, and the parameters that it names."""

    query: s.Query
    parameters: frozenset[str]


def check(query: NativeQuery, *, native: bool = False) -> CheckedQuery:
    """Let a query pass, or QueryRejected with the reason; `native` allows ladybug's own functions and CAST too."""
    if query.language != Language.CYPHER:
        raise QueryRejected("this source is asked in Cypher", str(query.language))
    with nesting():
        checked = _checked(query.text, native)
    _check_parameters(checked, query.parameters)
    return checked


@contextmanager
def nesting() -> Iterator[None]:
    """QueryRejected where a query nests too deeply for this process to read or write."""
    try:
        yield
    except RecursionError:
        raise QueryRejected("the query nests too deeply") from None


def can_limit(checked: CheckedQuery) -> bool:
    """Whether the query's rows can be limited from outside."""
    end = checked.query.parts[0][-1]
    return len(checked.query.parts) == 1 and isinstance(end, s.Projection) and end.limit is None


@lru_cache(CACHED)
def _checked(text: str, native: bool) -> CheckedQuery:
    query = parse(text)
    end = [part[-1] for part in query.parts]
    if not all(isinstance(clause, s.Projection) and clause.last for clause in end):
        raise QueryRejected("the query returns nothing", "RETURN is missing")
    parameters: set[str] = set()
    allowed = {**FUNCTIONS, **NATIVE} if native else FUNCTIONS
    for value in s.walk(query):
        match value:
            case s.Call() if value.name not in allowed:
                raise QueryRejected("this function is not allowed", value.name)
            case s.Cast() if not native or value.type.rstrip("[]") not in CAST_TYPES:
                raise QueryRejected("this CAST is not allowed", value.type)
            case s.Group() | s.Path(search=str()) | s.CallProcedure() if native:
                raise QueryRejected("this source does not know this, only some servers do", SERVERS_ALONE[type(value)])
            case s.Parameter():
                if not PLAIN_NAME.fullmatch(value.name):
                    raise QueryRejected("a parameter needs a plain name", value.name)
                parameters.add(value.name)
    return CheckedQuery(query, frozenset(parameters))


def _check_parameters(checked: CheckedQuery, given: Mapping[str, object]) -> None:
    missing = sorted(checked.parameters - given.keys())
    if missing:
        raise QueryRejected("the query names a parameter that was not given", f"${missing[0]}")
    for name in sorted(checked.parameters):
        _check_size(given[name], name)


def _check_size(value: object, name: str) -> None:
    """QueryRejected for a parameter that is no value of Cypher, nests too deep, or has too many parts or digits."""
    level: list[object] = [value]
    parts = 0
    for _ in range(MAX_PARAMETER_DEPTH):
        parts += sum(len(part) if isinstance(part, str | bytes) else 1 for part in level)
        if parts > MAX_PARAMETER:
            raise QueryRejected(f"a parameter has more than {MAX_PARAMETER:,} values and characters", f"${name}")
        if odd := [type(part).__name__ for part in level if not isinstance(part, PARAMETER_TYPES)]:
            raise QueryRejected(f"a parameter of the type {odd[0]}, which Cypher does not have", f"${name}")
        if any(isinstance(part, int) and not -(2**63) <= part < 2**63 for part in level):
            raise QueryRejected("a parameter has a number of more than 64 bits", f"${name}")
        level = [inner for part in level for inner in _inside(part)]
        if not level:
            return
    raise QueryRejected(f"a parameter nests more than {MAX_PARAMETER_DEPTH} levels deep", f"${name}")


def _inside(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return list(value) if isinstance(value, list | tuple) else []

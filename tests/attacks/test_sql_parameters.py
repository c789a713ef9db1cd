"""Parameters that are short here and long where they are written out."""

from decimal import Decimal

import pytest

from helios.errors import QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.executors.sparql.guard import SparqlGuard
from helios.executors.sql.dialects import DIALECTS
from helios.executors.sql.embedded import checked_parameters, guarded
from helios.executors.sql.guard import SqlGuard

LONG = {
    "a decimal of 300 million digits": Decimal("1E+300000000"), "as many behind the point": Decimal("1E-300000000"),
    "an integer": 1 << 50_000, "a negative one": -(1 << 50_000), "text": "x" * 2**20, "bytes": b"x" * 2**20,
}  # fmt: skip
FINE = [Decimal("NaN"), Decimal("Infinity"), Decimal("1E+1000"), -(10**300), "x" * 100_000, 1e308, None, True]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sql_refuses_them(dialect):
    """The first, written out by a driver, took 23 GB."""
    guard = SqlGuard(dialect)
    text = "SELECT $a" if dialect == "duckdb" else "SELECT :a"
    for value in LONG.values():
        query = NativeQuery(Language.SQL, text, {"a": value})
        with pytest.raises(QueryRejected, match=r"more than [0-9,]+ (digits|bytes)"):
            checked_parameters(query, guarded(guard, query))
    for value in FINE:
        query = NativeQuery(Language.SQL, text, {"a": value})
        assert checked_parameters(query, guarded(guard, query))["a"] is value


def test_many_parameters_are_too_long_together():
    names = [f"p{number}" for number in range(200)]
    text = "SELECT " + ", ".join(f":{name}" for name in names)
    query = NativeQuery(Language.SQL, text, dict.fromkeys(names, "x" * 10_000))
    with pytest.raises(QueryRejected, match="1,048,576 bytes together"):
        checked_parameters(query, guarded(SqlGuard("sqlite"), query))


def test_sparql_refuses_them():
    for value in (value for value in LONG.values() if not isinstance(value, bytes)):
        with pytest.raises(QueryRejected, match=r"more than [0-9,]+ (digits|bytes)"):
            SparqlGuard().checked(NativeQuery(Language.SPARQL, "SELECT * WHERE { ?s ?p ?x }", {"x": value}))

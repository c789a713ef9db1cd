"""Values of results: what crosses the border to a worker comes out as it went in, and nothing else does."""

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.executors.rows import capped, size
from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Iri, Literal, dumps, loads, plain

NAMES = st.text(max_size=8)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**130), 2**130), st.floats(allow_nan=False), st.text(max_size=20),
    st.text(alphabet=st.characters(categories=("Cs",)), max_size=3), st.binary(max_size=20),
    st.decimals(allow_nan=False), st.dates(), st.times(), st.datetimes(), st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(), st.uuids(), st.builds(Iri, NAMES), st.builds(Literal, NAMES, NAMES, NAMES),
)  # fmt: skip
MAPS = st.dictionaries(NAMES | st.just("$"), SCALARS, max_size=3)
NODES = st.builds(GraphNode, NAMES, st.lists(NAMES, max_size=2).map(tuple), MAPS)
RELATIONSHIPS = st.builds(GraphRelationship, NAMES, NAMES, NAMES, MAPS)
PATHS = st.builds(
    GraphPath, st.lists(NODES, max_size=2).map(tuple), st.lists(RELATIONSHIPS, max_size=2).map(tuple)
)  # fmt: skip
VALUES = st.recursive(
    SCALARS | NODES | RELATIONSHIPS | PATHS,
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.dictionaries(NAMES | st.just("$"), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_a_value_comes_out_as_it_went_in(value):
    assert loads(dumps(value)) == value


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_every_value_can_be_shown_as_json(value):
    json.dumps(plain(value))
    assert size(value) >= 8  # nothing, an empty text and an empty list take memory too


@given(st.floats())
def test_numbers_that_json_lacks_are_text(value):
    shown = plain([value])
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert isinstance(shown[0], float) == math.isfinite(value)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]"$:,vmap0 ', max_size=40).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_damaged_bytes_are_a_value_error_or_a_value(data):
    try:
        loads(data)
    except ValueError:
        return


@pytest.mark.parametrize(
    "data",
    [b'{"$": "os.system", "v": "id"}', b'{"$": [], "v": 1}', b'{"$": "map"}', b'{"a": 1}', b'{"$": "date", "v": 5}',
     b'{"$": "Decimal", "v": "x"}', b'{"$": "node", "v": []}', b"[" * 100_000],
)  # fmt: skip
def test_what_was_not_written_by_dumps_is_refused(data):
    with pytest.raises(ValueError):  # noqa: PT011
        loads(data)


def test_what_is_no_value_is_not_written():
    with pytest.raises(TypeError, match="object is not a value"):
        dumps([object()])


def test_types_survive():
    row = (Decimal("1.50"), date(2024, 1, 2), time(3, 4), datetime(2024, 1, 2), timedelta(1), UUID(int=1), b"")
    assert [type(value) for value in loads(dumps(row))] == [type(value) for value in row]


def test_caps_end_rows_and_say_so():
    rows = [("ab", 1), ("cd", 2), ("ef", 3)]
    assert capped(rows, max_rows=3, max_bytes=100) == (rows, None)
    assert capped(rows, max_rows=2, max_bytes=100) == (rows[:2], "rows")
    assert capped(rows, max_rows=3, max_bytes=35) == (rows[:2], "bytes")
    assert capped(rows, max_rows=3, max_bytes=5) == ([], "bytes")

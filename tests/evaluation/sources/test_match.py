"""Execution match: the rules one by one, and what must hold for any rows."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.evaluation.sources.match import is_ordered, rows_match, value_key

VALUES = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, 2.25]),
    st.sampled_from(["", "a", "1", "NULL", "null"]),
    st.dates(date(2020, 1, 1), date(2020, 1, 3)),
)


@st.composite
def tables(draw):
    width = draw(st.integers(1, 4))
    return draw(st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=6))


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, True),
        (1, Decimal("1.00"), True),
        (1, "1", False),
        (None, None, True),
        (None, 0, False),
        (None, "", False),
        (None, "null", False),
        (1 / 3, 0.33333333333, True),
        (0.1 + 0.2, 0.3, True),
        (1.5, 1.51, False),
        (2**60, 2**60 + 1, False),
        (float("nan"), float("nan"), True),
        (date(2020, 1, 2), "2020-01-02", True),
        (datetime(2020, 1, 2, 3, 4), "2020-01-02T03:04:00", True),
        (datetime(2020, 1, 2, 3, 4), "2020-01-02 03:04:00", True),
        ("A", "a", False),
        ([1, 2], (1.0, 2.0), True),
    ],
)
def test_values(left, right, equal):
    assert (value_key(left) == value_key(right)) is equal


def test_no_rows_match_no_rows():
    assert rows_match([], [], ordered=False)
    assert not rows_match([], [(1,)], ordered=False)
    assert not rows_match([(1,)], [], ordered=True)


def test_the_number_of_columns_counts():
    assert not rows_match([(1, 1)], [(1,)], ordered=False)


def test_one_order_of_columns_must_fit_all_rows():
    assert rows_match([("a", 1), ("b", 2)], [(1, "a"), (2, "b")], ordered=False)
    assert not rows_match([(1, 2), (4, 3)], [(1, 2), (3, 4)], ordered=False)
    # every column alone agrees, the rows do not
    assert not rows_match([(1, 1), (2, 2)], [(1, 2), (2, 1)], ordered=False)


def test_order_of_rows_counts_only_where_the_gold_orders():
    assert rows_match([(1,), (2,)], [(2,), (1,)], ordered=False)
    assert not rows_match([(1,), (2,)], [(2,), (1,)], ordered=True)
    assert rows_match([(1, "a"), (2, "b")], [("a", 1), ("b", 2)], ordered=True)


def test_duplicates_count():
    assert not rows_match([(1,), (1,)], [(1,)], ordered=False)
    assert not rows_match([(1,), (1,), (2,)], [(1,), (2,), (2,)], ordered=False)
    assert rows_match([(1,), (1,)], [(1,)], ordered=False, duplicates=False)


def test_columns_in_the_golds_order():
    assert not rows_match([(1, 2)], [(2, 1)], ordered=False, columns="same")
    assert rows_match([(1, 2)], [(1, 2)], ordered=False, columns="same", duplicates=False)


def test_many_equal_columns_do_not_take_forever():
    rows = [tuple(range(12)), tuple(range(12))[::-1]] + [(0,) * 12] * 3
    assert rows_match(rows, [row[::-1] for row in rows], ordered=False)


def test_order_by_is_found_in_any_case():
    assert is_ordered("select a from t Order  By a")
    assert not is_ordered("select border_by from t")


@given(tables())
def test_any_rows_match_themselves(rows):
    assert rows_match(rows, rows, ordered=True)
    assert rows_match(rows, rows, ordered=False)


@given(tables(), st.randoms(use_true_random=False))
def test_shuffled_rows_and_columns_match(rows, random):
    columns = list(range(len(rows[0])))
    random.shuffle(columns)
    shuffled = [tuple(row[i] for i in columns) for row in rows]
    assert rows_match(shuffled, rows, ordered=True)
    random.shuffle(shuffled)
    assert rows_match(shuffled, rows, ordered=False)


@given(tables(), tables())
def test_match_is_symmetric(left, right):
    for ordered in (True, False):
        assert rows_match(left, right, ordered=ordered) == rows_match(right, left, ordered=ordered)


@given(tables())
def test_another_row_never_matches(rows):
    assert not rows_match([*rows, rows[0]], rows, ordered=False)

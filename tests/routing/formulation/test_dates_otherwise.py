"""Days that do not begin with the year: which columns hold them, and that they compare as days."""

import sqlite3
from contextlib import closing
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.executors.base import Language, NativeQuery
from helios.routing.formulation.dates import otherwise_written
from helios.routing.formulation.generator import SqlGenerator
from helios.sources.registry import Registry

FORMS = {"%Y-%m-%d": "TEXT", "%d/%m/%Y": "TEXT", "%m/%d/%Y": "TEXT", "%d.%m.%Y": "TEXT", "%Y%m%d": "INTEGER"}
DAYS = [date(2023, 1, 5) + timedelta(days=17 * number) for number in range(50)]
QUESTIONS = {
    "How many orders were placed in May 2024?": lambda day: (day.year, day.month) == (2024, 5),
    "How many orders were placed in 2023?": lambda day: day.year == 2023,
    "How many orders were placed after 3 May 2024?": lambda day: day > date(2024, 5, 3),
    "How many orders were placed on or before 3 May 2024?": lambda day: day <= date(2024, 5, 3),
    "How many orders were placed between 1 February and 10 June 2024?": lambda day: (
        date(2024, 2, 1) <= day <= date(2024, 6, 10)
    ),
    "How many orders were placed in the second half of 2023?": lambda day: day.year == 2023 and day.month > 6,
    "How many orders were placed in Q1 2024?": lambda day: day.year == 2024 and day.month < 4,
}


@pytest.fixture(params=FORMS)
def orders(request, tmp_path):
    with closing(sqlite3.connect(tmp_path / "orders.sqlite")) as database, database:
        database.execute(
            f"CREATE TABLE orders (order_id INTEGER PRIMARY KEY, placed_on {FORMS[request.param]}, cost REAL)"
        )
        rows = [(number, day.strftime(request.param), 7.5 * number) for number, day in enumerate(DAYS)]
        database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    database.close()
    (tmp_path / "sources.yaml").write_text("sources:\n  orders:\n    kind: sqlite\n    path: orders.sqlite\n")
    with Registry.open(tmp_path / "sources.yaml") as registry:
        yield registry.source("orders")


def test_all_forms_get_the_same_answers(orders):
    for question, holds in QUESTIONS.items():
        best = SqlGenerator().formulate(question, orders)[0]
        rows = orders.execute(NativeQuery(Language.SQL, best.query.text)).rows
        assert list(rows) == [(sum(map(holds, DAYS)),)], (question, best.query.text)


def test_a_year_that_no_date_holds_is_no_amount(tmp_path):
    with closing(sqlite3.connect(tmp_path / "stock.sqlite")) as database, database:
        database.execute("CREATE TABLE items (item_id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        database.executemany("INSERT INTO items VALUES (?, ?, ?)", [(1, "bolt", 2024.0), (2, "nut", 3.5)])
    database.close()
    (tmp_path / "sources.yaml").write_text("sources:\n  stock:\n    kind: sqlite\n    path: stock.sqlite\n")
    with Registry.open(tmp_path / "sources.yaml") as registry:
        assert SqlGenerator().formulate("How many items were sold in 2024?", registry.source("stock")) == []


@given(
    st.lists(st.dates(date(1950, 1, 1), date(2090, 12, 31)), min_size=2, max_size=9), st.sampled_from(list(FORMS)[1:])
)
def test_days_are_read_as_they_were_written(days, form):
    found = otherwise_written([day.strftime(form) for day in days])
    if found is None:
        assert "/" in form
        assert all(day.day <= 12 for day in days), "only a day that may be a month leaves it open"
    else:
        assert found[1] == tuple(day.isoformat() for day in days)


@pytest.mark.parametrize(
    "samples", [(), ("11/05/2024",), ("31/31/2024", "1/1/2024"), ("12345678", "20241399"), ("a", "b")]
)
def test_what_are_no_days(samples):
    assert otherwise_written(samples) is None

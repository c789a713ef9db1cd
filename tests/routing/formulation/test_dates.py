"""Dates of questions, and how columns of dates compare with them."""

import pytest

from helios.routing.formulation.dates import with_dates, within, written
from helios.routing.formulation.plan import Operator
from helios.routing.formulation.words import tokenise


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("sold on 5 September 2023?", ["2023-09-05"]), ("sold on September 5, 2023", ["2023-09-05"]),
        ("sold on the 5th of September, 2023", ["2023-09-05"]), ("in July 2023 and Aug 2024", ["2023-07", "2024-08"]),
        ("May 40, 2023", []), ("in May", []), ("February 30, 2023", []), ("in 2023", []),
    ],
)  # fmt: skip
def test_dates_in_words_become_one_token(question, found):
    assert [token.text for token in with_dates(tokenise(question)) if token.quoted] == found


def test_a_decade_is_a_span_of_years():
    assert [token.text for token in with_dates(tokenise("the 1990s"), whole=False)] == [
        "the", "between", "1990", "and", "1999"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "operator", "expected"),
    [
        ("2023", Operator.EQ, (Operator.BETWEEN, ("2023-01-01", "2023-12-31"))),
        ("2024-02", Operator.EQ, (Operator.BETWEEN, ("2024-02-01", "2024-02-29"))),
        ("2023-09-05", Operator.EQ, (Operator.EQ, ("2023-09-05",))),
        ("2023", Operator.GT, (Operator.GT, ("2023-12-31",))), ("2023", Operator.GE, (Operator.GE, ("2023-01-01",))),
        ("2023", Operator.LT, (Operator.LT, ("2023-01-01",))), ("2023", Operator.LE, (Operator.LE, ("2023-12-31",))),
    ],
)  # fmt: skip
def test_a_period_lies_between_its_first_and_its_last_day(text, operator, expected):
    assert within(text, operator, ["2020-01-31", "2021-02-28"]) == expected


def test_instants_reach_to_the_end_of_the_day():
    assert within("2023-09-05", Operator.EQ, ["2020-01-31 08:00:00"]) == (
        Operator.BETWEEN, ("2023-09-05", "2023-09-05 23:59:59")
    )  # fmt: skip
    assert within("2023", Operator.EQ, ["31.1.2020"]) is None
    assert not written(["2020"])
    assert not written([])

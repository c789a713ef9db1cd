"""Quarters, halves of years and years of accounts, as questions say them."""

from datetime import date

import numpy as np
import pytest

from helios.reading.tables.matching import matches_of, question_words
from helios.reading.tables.said_dates import spans_of, years_of_accounts
from helios.reading.tables.sheet import Sheet
from helios.reading.tables.wording import wording_of
from helios.types import Table

SALES = Sheet.of(
    Table(
        "sales", "Sales", ("Day", "Item", "Season"),
        (
            ("05/01/2026", "Tea", "2025-26"), ("31/03/2026", "Bun", "2025-26"), ("01/04/2026", "Tea", "2026-27"),
            ("30/06/2026", "Bun", "2026-27"), ("01/07/2026", "Tea", "2026-27"),
        ),
    )
)  # fmt: skip


def selected(question: str) -> list[list[int]]:
    found = matches_of(question, question_words(question), wording_of(question), SALES, ())
    return [np.flatnonzero(match.rows).tolist() for match in found if match.column == 0]


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("what was sold in Q1?", [0, 1]),
        ("sales of the second quarter", [2, 3]),
        ("sales in the third quarter of 2026", [4]),
        ("im ersten Quartal 2026", [0, 1]),
        ("Verkäufe im 2. Quartal", [2, 3]),
        ("ventes du premier trimestre", [0, 1]),
        ("ventas del segundo trimestre de 2026", [2, 3]),
        ("第二季度卖了多少", [2, 3]),
        ("上半年卖了多少", [0, 1, 2, 3]),
        ("in the first half of 2026", [0, 1, 2, 3]),
        ("im zweiten Halbjahr", [4]),
        ("sold after Q1", [2, 3, 4]),
    ],
)
def test_a_part_of_a_year_selects_its_days(question, rows):
    assert rows in selected(question)


@pytest.mark.parametrize("question", ["what was sold in 2025-26?", "sales 2025/26", "sales of 2025–26"])
def test_a_year_of_accounts_is_no_year_of_the_calendar(question):
    assert selected(question) == []
    assert [one[0] for one in years_of_accounts(question)] == [question[question.index("2025") :].rstrip("?")]
    found = matches_of(question, question_words(question), wording_of(question), SALES, ())
    assert [np.flatnonzero(match.rows).tolist() for match in found if match.column == 2] == [[0, 1]]


def test_what_is_no_part_of_a_year():
    assert spans_of("who scored in the first half of the match?") == []
    assert spans_of("a quarter of the members") == []
    assert spans_of("who owns the Q400, and in the f\u0131rst quarter?") == []
    assert selected("did FY2025 sell more than FY2026?") == []
    assert years_of_accounts("on 2026-03-01, in 2026-03 and room 2012/14") == []
    (days,) = spans_of("since 2024")
    assert days[2] == (date(2024, 1, 1).toordinal(), date(2024, 12, 31).toordinal())

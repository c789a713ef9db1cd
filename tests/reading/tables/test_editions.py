"""Editions of a table: the list of this year, or the one that it replaced."""

import pytest

from helios.reading.tables.editions import edition_features
from helios.reading.tables.sheet import Sheet
from helios.types import Table

ROWS = (("keg", "104"), ("cask", "82"))


def a_sheet(title: str, *, header: tuple[str, ...] = ("Item", "Price £"), section: str = "") -> Sheet:
    return Sheet.of(Table(title, title, header, ROWS, section=section))


OLD, NEW = a_sheet("Trade prices 2023 SUPERSEDED"), a_sheet("trade prices 2024")
STAFF = a_sheet("staff rota 2022", header=("Name", "Shifts"))


def fits(question: str, *sheets: Sheet) -> list[float]:
    return [float(one[0]) for one in edition_features(question, sheets)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What do we charge for a keg now?", [-1, 1]),
        ("price of a keg", [-1, 1]),  # who says nothing means what holds
        ("what was a keg in 2023", [1, -1]),
        ("what did a keg cost last year?", [1, -1]),
        ("how much was a keg on the old list", [1, -1]),
        ("was kostete ein Fass letztes Jahr", [1, -1]),
        ("combien coûtait un fût l'an dernier", [1, -1]),
        ("¿cuánto costaba un barril el año pasado?", [1, -1]),
        ("去年一桶多少钱", [1, -1]),
    ],
)
def test_the_edition_that_a_question_means(question, expected):
    assert fits(question, OLD, NEW) == expected


def test_a_table_without_another_edition_is_no_edition():
    assert fits("how many shifts does Ann have now", STAFF, NEW) == [0, 0]
    assert fits("how many shifts did Ann have in 2022", STAFF) == [1]


def test_three_editions_have_one_latest():
    first, second, third = (a_sheet(f"prices {year}") for year in (2022, 2023, 2024))
    assert fits("price of a keg", first, second, third) == [-1, -1, 1]


def test_editions_are_known_by_words_where_no_year_is_said():
    old, new = a_sheet("rates (old, do not use)"), a_sheet("rates")
    assert fits("rate for a keg", old, new) == [-1, 1]
    assert fits("rate for a keg", new) == [0]
    assert fits("rate for a keg", old) == [-1]  # a list that is not to be used is never what holds


def test_what_the_question_says_of_time_stands_beside():
    said = [
        float(edition_features(question, [NEW])[0][1]) for question in ("keg in 2023", "keg now", "the old keg", "keg")
    ]
    assert said == [2, 1, -1, 0]


def test_no_table_has_no_features():
    assert edition_features("keg", []) == []

"""Tables made ready for questions: numbers and dates as people write them, totals, values by their words."""

import numpy as np
import pytest

from helios.reading.tables.sheet import Kind, Sheet, read_numbers, words_of
from helios.types import Table, TableKind


def sheet(header: list[str], *rows: list[str], kind: TableKind = TableKind.TABLE) -> Sheet:
    return Sheet.of(Table("t", "Orders", tuple(header), tuple(map(tuple, rows)), kind=kind))


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,250", "12", "-3"], [1250, 12, -3]),
        (["1.250,50", "12,5", "3"], [1250.5, 12.5, 3]),
        (["£1,200", "€ 40.5", "$3 million"], [1200, 40.5, 3e6]),
        (["12 kg", "n/a", "1 180 g"], [12, np.nan, 1180]),
        (["12:30", "2020-21", "3/4"], [np.nan, np.nan, np.nan]),
    ],
)
def test_numbers(cells, values):
    assert read_numbers(cells) == pytest.approx(np.array(values, float), nan_ok=True)


def test_columns_have_the_kind_of_most_of_their_cells():
    made = sheet(
        ["Day", "Year", "Units", "Who"],
        ["03.02.2024", "1998", "1,5", "Ann"],
        ["14.11.2024", "2001", "2,25", "Bo"],
        ["", "", "", ""],
    )
    assert [column.kind for column in made.columns] == [Kind.DATE, Kind.NUMBER, Kind.NUMBER, Kind.TEXT]
    assert made.columns[0].values[1] - made.columns[0].values[0] == 285
    assert made.columns[2].values[:2].tolist() == [1.5, 2.25]


def test_totals_are_not_counted():
    made = sheet(["Item", "Sum"], ["Rope", "3"], ["Tent", "4"], ["TOTAL", "7"], ["Total recall", "1"], ["Summe", "7"])
    assert made.counted.tolist() == [True, True, False, False, False]


@pytest.mark.parametrize(("label", "counted"), [("All", False), ("3 locks", False), ("4 locks", True), ("3", True)])
def test_a_last_row_may_speak_of_all_rows(label, counted):
    """By its name, or by how many there are above it; a number alone is a row's own."""
    table = Table("t", "Locks", ("Lock", "Fall"), (("Mill", "2"), ("Kiln", "3"), ("Basin", "1"), (label, "6")))
    assert Sheet.of(table).counted.tolist() == [True, True, True, counted]


def test_an_infobox_lies_on_its_side():
    made = sheet(["attribute", "value"], ["Height", "12 m"], ["Built", "1890"], kind=TableKind.INFOBOX)
    assert [column.header for column in made.columns] == ["Height", "Built"]
    assert [(at.row, at.column) for at in made.places(0, 1)] == [(1, 1)]


@pytest.mark.parametrize("headers", [("First name", "Surname"), ("fnm", "snm"), ("forename", "last_nm")])
def test_people_in_two_columns_have_whole_names(headers):
    made = sheet(["id", *headers, "joined"], ["7", "Clara", "Dunmore", "2017-03-21"], ["8", "Bo", "Ek", "2020-01-02"])
    assert made.columns[-1].cells == ("Clara Dunmore", "Bo Ek")
    assert [(at.row, at.column) for at in made.places(0, made.own - 1)] == [(0, 1), (0, 2)]


def test_values_are_found_by_their_words():
    made = sheet(["Name", "Note"], ["Ann Lee", "x " * 30], ["Bo Lee", "short"])
    assert {made.values[number].words for number in made.postings["lee"]} == {("ann", "lee"), ("bo", "lee")}
    assert "x" not in made.postings  # too long to be named


def test_each_chinese_character_is_a_word():
    assert words_of("数学成绩 98") == ["数", "学", "成", "绩", "98"]


@pytest.mark.parametrize(
    ("header", "cells", "amount"),
    [
        ("No.", ("1", "2", "3"), False),
        ("Invoice number", ("104", "105", "107"), False),
        ("joinedYear", ("2019", "2020", "2020"), False),
        ("Number", ("4", "4", "12"), True),
        ("No. of guests", ("1", "2", "3"), True),
        ("Price", ("£1", "£2", "£3"), True),
        ("Name", ("a", "b", "c"), False),
    ],
)
def test_what_can_be_added(header, cells, amount):
    sheet = Sheet.of(Table("t", "t", (header,), tuple((cell,) for cell in cells)))
    assert sheet.columns[0].is_amount is amount

"""What columns look like, and what questions ask for."""

import numpy as np
import pytest

from helios.reading.tables.shapes import COLUMN, asked_shapes, column_shapes, is_of_time, time_hint
from helios.reading.tables.sheet import column_of


def shape(header: str, *cells: str) -> dict[str, float]:
    (row,) = column_shapes([column_of(header, cells)])
    return dict(zip(COLUMN, row.tolist(), strict=True))


def test_shares_are_of_the_filled_cells():
    seen = shape("Contact", "Ann Hill", "", "Bo Dam", "07700 900203", "")
    assert seen["names"] == pytest.approx(2 / 3)
    assert seen["phones"] == pytest.approx(1 / 3)
    assert seen["digits"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("header", "cells", "name"),
    [
        ("Fee", ("£12.50", "£8"), "money"),
        ("Preis", ("12,50 €", "8 €"), "money"),
        ("unit_price", ("12.5", "8"), "money"),
        ("Ref", ("J3322", "BF-125"), "codes"),
        ("Verantwortlich", ("Jörg Müller", "Özlem Kaya"), "names"),
        ("姓名", ("罗小满", "贺雪梅"), "names"),
        ("Mobile", ("+44 1632 961209", "(01632) 960189"), "phones"),
    ],
)
def test_columns_are_known_by_their_cells(header, cells, name):
    assert shape(header, *cells)[name] == 1


def test_a_priced_word_is_not_money_without_numbers():
    assert shape("Price list", "spring", "autumn")["money"] == 0


def test_an_empty_column_and_no_column():
    assert set(shape("Fee").values()) == {0.0}
    assert column_shapes([]).shape == (0, len(COLUMN))


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("what does a keg cost", (1, 0, 0)),
        ("was kostet ein Fass", (1, 0, 0)),
        ("who do I ring about the drains", (0, 1, 0)),
        ("job numbers that are waiting for parts", (0, 0, 1)),
        ("where is the hall", (0, 0, 0)),
        ("会员价多少", (1, 0, 0)),
    ],
)
def test_what_is_asked_for(question, asked):
    assert asked_shapes(question) == asked


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        ("longest standing tenant", -1), ("our oldest boat", -1), ("the newest member", 1), ("the latest order", 1),
        ("le plus ancien membre", -1), ("el último pedido", 1), ("the dearest keg", 0),
        ("the first and the last visit", 0), ("年龄第二大的学员", -1), ("谁最年轻", 1), ("年纪最小的是谁", 1),
    ],
)  # fmt: skip
def test_words_of_time_say_which_end_comes_first(question, hint):
    assert time_hint(question) == hint


def test_dates_and_years_are_of_time_and_amounts_are_not():
    assert is_of_time(column_of("Joined", ("2020-01-05", "2021-03-01")))
    assert is_of_time(column_of("Year", ("1998", "2004")))
    assert not is_of_time(column_of("Price", ("1600", "1950")))
    assert not is_of_time(column_of("Count", ("3", "12")))
    assert not is_of_time(column_of("Empty", ("", "")))
    assert np.isnan(column_of("Empty", ("", "")).values).all()

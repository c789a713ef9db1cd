"""Days and times of day in cells and in questions."""

import time
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.reading.tables.dates import MONTHS, are_month_first, read_day, read_time, said_times

DAY = date(2024, 3, 7)


@pytest.mark.parametrize(
    "cell",
    [
        "2024-03-07", "2024-03-07 14:00", "07/03/24", "07.03.2024", "7.3.24", "7 Mar 24", "7-Mar-24", "7th March 2024",
        "Thu 7 Mar 2024", "March 7, 2024", "7 Mar '24", "7. März 2024", "Do., 07.03.2024", "7 mars 2024",
        "jeudi 7 mars 2024", "7 de marzo de 2024", "2024年3月7日",
    ],
)  # fmt: skip
def test_a_day(cell):
    assert date.fromordinal(int(read_day(cell))) == DAY


@pytest.mark.parametrize(
    "cell", ["Mar-24", "Mar '24", "03/2024", "March 2024", "mars 2024", "2024年3月", "marzo de 2024"]
)
def test_a_month(cell):
    assert date.fromordinal(int(read_day(cell))) == date(2024, 3, 1)


@pytest.mark.parametrize("cell", ["7 Mar", "22-Mar", "7.3.", "3月7日", "7 de marzo", "1er mars", "Mon 4 March"])
def test_a_day_without_a_year_lies_in_the_first(cell):
    found = date.fromordinal(int(read_day(cell)))
    assert (found.year, found.month) == (1, 3)
    assert str(found.day) in cell


@given(st.dates(date(1950, 1, 1), date(2049, 12, 31)))
def test_a_year_of_two_digits_is_of_the_nearer_century(day):
    for text in (f"{day:%d/%m/%y}", f"{day:%d.%m.%y}", f"{day.day} {day:%b} {day:%y}"):
        assert read_day(text) == day.toordinal()


@given(st.dates(date(1, 1, 1), date(1, 12, 31)))
def test_days_without_a_year_keep_their_day_of_the_month(day):
    assert read_day(f"{day.day} {day:%B}") == day.toordinal()


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "12",
        "1,250.50",
        "3.5",
        "A12",
        "10 Downing Street",
        "18:30",
        "n/a",
        "99/99/24",
        "9999-12-31",
        "10-01-10",
        "13月",
        "1640 m",
        "2210 m above the sea",
        "1280℃",
        "1200 W",
        "1500元",
        "1200 s",
    ],
)
def test_no_date(cell):
    assert np.isnan(read_day(cell))


@pytest.mark.parametrize(
    "cell", ["2021 May", "2021年", "2019 – 2024", "1950s", "1850 BC", "2019 until today", "2020 spring"]
)
def test_words_behind_a_year_may_leave_it_one(cell):
    assert not np.isnan(read_day(cell))


def test_all_months_are_known_by_their_names():
    assert set(MONTHS.values()) == set(range(1, 13))
    assert len(MONTHS) > 90


@pytest.mark.parametrize(
    ("cell", "minutes"),
    [
        ("09:10", 550), ("9:10", 550), ("9h30", 570), ("18.30 Uhr", 1110), ("6pm", 1080), ("6.45 p.m.", 1125),
        ("12:15:30", 735.5), ("09:00-10:30", 540), ("25:10", 1510), ("12 am", 0), ("12:30 pm", 750), ("c. 10:00", 600),
    ],
)  # fmt: skip
def test_a_time(cell, minutes):
    assert read_time(cell) == minutes


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "7",
        "7.30",
        "3 h",
        "14h",
        "2H",
        "13pm",
        "10:00 - 25 kg",
        "9:75",
        "3 hens",
        "1:1 ratio",
        "10:00 sharp, bring boots",
    ],
)
def test_no_time(cell):
    assert np.isnan(read_time(cell))


@given(st.integers(0, 1439))
def test_every_minute_of_the_day_is_read(minute):
    clock = timedelta(minutes=minute)
    assert read_time(str(clock)[:-3]) == minute


@pytest.mark.parametrize(
    ("question", "minutes"),
    [
        ("anything after 6.45 in the evening", [(1125,)]),
        ("who is here before six", [(360, 1080)]),
        ("who was booked in at ten past nine", [(550, 1270)]),
        ("what starts at a quarter to four", [(225, 945)]),
        ("before 9am", [(540,)]),
        ("before noon", [(720,)]),
        ("wer kommt nach 18 Uhr", [(1080,)]),
        ("qui arrive avant 14h30", [(870,)]),
        ("between 9 and 11", [(540, 1260), (660, 1380)]),
        ("between 9 and 10:30", [(540, 1260), (630, 1350)]),
        ("between noon and 3 pm", [(720,), (900,)]),
        ("from 9 to 5", [(540, 1260), (300, 1020)]),
        ("zwischen 9 und 17 Uhr", [(540, 1260), (1020,)]),
        ("de 9h à 17h30", [(540, 1260), (1050,)]),
        ("at 1 at night", [(60,)]),
        ("at ten at night", [(1320,)]),
        ("who scored 3.5 or better", []),
        ("after six weeks", []),
        ("by ten people", []),
        ("which cost more than 50", []),
    ],
)
def test_times_that_a_question_names(question, minutes):
    assert [said.minutes for said in said_times(question)] == minutes


def test_the_order_of_day_and_month_is_told_by_all_cells():
    american, european = ("01/15/24", "02/20/24", "04/02/24"), ("15/01/24", "20/02/24", "02/04/24")
    assert are_month_first(american)
    assert not are_month_first(european)
    assert [read_day(cell, month_first=True) for cell in american] == [read_day(cell) for cell in european]


def test_a_long_cell_is_no_time_and_is_told_at_once(within):
    with within(1, clock=time.process_time):
        assert np.isnan(read_time("10:30" + " " * 100_000 + "x"))
        assert np.isnan(read_time("10:30 - " * 10_000))


@given(st.text(max_size=60))
def test_any_text_is_read(text):
    read_day(text)
    read_time(text)
    list(said_times(text))

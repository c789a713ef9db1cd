"""What cells say: pairs of text and value, and properties over made-up cells."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.retrieval.refinement.dates import MONTHS, OPEN_END, read_date, year_of
from helios.retrieval.refinement.values import is_ordinal, read_cell


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", 1234.0),
        ("$ 1.5 million [2]", 1.5e6),
        ("US $ 4.5 billion", 4.5e9),
        ("95.5 %", 95.5),
        ("( $ 1,234 )", -1234.0),
        ("-3.5", -3.5),
        ("6 ft 1 in ( 1.85 m )", 1.8542),
        ("3 km", 3000.0),
        ("61.6 miles ( 99.1 km )", 99135.5904),
        ("12 sq mi", 31079857.32),
        ("4th place", 4.0),
        ("~ 1850 †", 1850.0),
        ("Berlin", None),
    ],
)
def test_numbers(text: str, number: float | None) -> None:
    found = read_cell(text).number
    assert found is None if number is None else found == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "-", "—", "N/A", "n / a", "TBA", "unknown", "?", "DNF"])
def test_missing_cells_have_no_reading(text: str) -> None:
    reading = read_cell(text)
    assert reading.missing
    assert reading.number is reading.date is reading.duration is reading.rank is None


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("12 May 1990", date(1990, 5, 12), date(1990, 5, 12)),
        ("May 12 , 1990 ( aged 32 )", date(1990, 5, 12), date(1990, 5, 12)),
        ("Monday , 12th May 1990", date(1990, 5, 12), date(1990, 5, 12)),
        ("1990-05-12", date(1990, 5, 12), date(1990, 5, 12)),
        ("13/05/1990", date(1990, 5, 13), date(1990, 5, 13)),
        ("May 1990", date(1990, 5, 1), date(1990, 5, 31)),
        ("December 1990", date(1990, 12, 1), date(1990, 12, 31)),
        ("1990", date(1990, 1, 1), date(1990, 12, 31)),
        ("1991-92", date(1991, 1, 1), date(1992, 12, 31)),
        ("1999-00", date(1999, 1, 1), date(2000, 12, 31)),
        ("1899 - 1901", date(1899, 1, 1), date(1901, 12, 31)),
        ("c. 1850", date(1850, 1, 1), date(1850, 12, 31)),
        ("2004 - present", date(2004, 1, 1), date.fromordinal(OPEN_END)),
    ],
)
def test_dates(text: str, start: date, end: date) -> None:
    found = read_date(text)
    assert found is not None
    assert (date.fromordinal(int(found.start)), date.fromordinal(int(found.end))) == (start, end)


@pytest.mark.parametrize("text", ["31 February 1990", "1990 metres up" * 0 + "12,345", "hello", "1.5", "99/99/1990"])
def test_what_is_no_date(text: str) -> None:
    assert read_date(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("1:07:35", 4055.0), ("3:45.12", 225.12), ("2 h 15 min", 8100.0), ("7:30 pm", None)]
)
def test_durations(text: str, seconds: float | None) -> None:
    found = read_cell(text).duration
    assert found is None if seconds is None else found == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "rank", "ordinal"),
    [("1st", 1, True), ("T-3", 3, True), ("=5", 5, True), ("2nd place", 2, True), ("Runner-up", 2, True),
     ("12", 12, False), ("202,290", None, False)],
)  # fmt: skip
def test_places(text: str, rank: float | None, ordinal: bool) -> None:
    assert read_cell(text).rank == rank
    assert is_ordinal(text) is ordinal


@given(st.integers(-(10**9), 10**9), st.sampled_from(["{:,}", "{}", "{:,} [1]", "{:,} ( 2010 )", "{:,} *"]))
def test_any_integer_is_read_back(number: int, shape: str) -> None:
    assert read_cell(shape.format(number)).number == number


@given(st.dates(date(1000, 1, 1), date(2099, 12, 31)), st.sampled_from(sorted(MONTHS)))
def test_any_date_is_read_back_in_every_shape(day: date, name: str) -> None:
    month = next(full for full, number in MONTHS.items() if number == day.month and len(full) > 3 or day.month == 5)
    month = "may" if day.month == 5 else month
    for text in (f"{day.day} {month} {day.year}", f"{month.title()} {day.day} , {day.year}", day.isoformat()):
        found = read_date(text)
        assert found is not None, text
        assert found.start == found.end == day.toordinal(), text
        assert year_of(found.start) == day.year


@given(st.integers(0, 59), st.integers(0, 59), st.integers(1, 99))
def test_any_clock_is_read_back(seconds: int, minutes: int, hours: int) -> None:
    assert read_cell(f"{hours}:{minutes:02}:{seconds:02}").duration == hours * 3600 + minutes * 60 + seconds


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    reading = read_cell(text)
    if reading.date is not None and reading.date_end is not None:
        assert reading.date <= reading.date_end
    is_ordinal(text)

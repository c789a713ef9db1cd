"""A question's unit and a column's."""

import numpy as np
import pytest

from helios.reading.tables.matching import matches_of, question_words
from helios.reading.tables.sheet import Sheet
from helios.reading.tables.units import scale_of, unit_behind
from helios.reading.tables.wording import wording_of
from helios.types import Table

JOBS = Sheet.of(
    Table(
        "jobs", "Jobs", ("Job", "Minutes", "Distance (m)"),
        (("A", "90", "800"), ("B", "125", "2500"), ("C", "3", "9")),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "text", "rows"),
    [
        ("jobs that took more than two hours", "Minutes > 120", [1]),
        ("jobs over 2 hours", "Minutes > 120", [1]),
        ("jobs over 100 minutes", "Minutes > 100", [1]),
        ("Aufträge über 2 Stunden", "Minutes > 120", [1]),
        ("jobs of at least 2 km", "Distance (m) >= 2000", [1]),
        ("jobs between 1 and 2 hours", "Minutes between 60", [0]),
    ],
)
def test_a_number_is_compared_in_the_column_s_unit(question, text, rows):
    found = matches_of(question, question_words(question), wording_of(question), JOBS, ())
    assert [np.flatnonzero(match.rows).tolist() for match in found if match.text == text] == [rows]


def test_units_that_say_nothing_of_each_other():
    assert unit_behind("over 20 minutes", 7) == "minutes"
    assert unit_behind("over 20 minibuses", 7) == ""
    assert scale_of("", ("minute",)) == 1.0
    assert scale_of("hours", ("price",)) == 1.0
    assert scale_of("kg", ("gram",)) == 1000.0
    assert scale_of("minutes", ("hour", "minute")) == 1.0

"""Days that a question sets as limits, and rows of a table that lie within them."""

import numpy as np
import pytest

from helios.reading.tables.candidates import match_sets
from helios.reading.tables.matching import matches_of
from helios.reading.tables.reader import table_question
from helios.reading.tables.sheet import Kind, Sheet, column_of
from helios.types import Table
from training.column_lessons import NO_VECTORS

CASKS = Sheet.of(Table(
    "casks", "", ("Cask", "Racked"),
    (("A", "2024-12-20"), ("B", "2025-01-05"), ("C", "2025-03-31"), ("D", "2025-03-08"), ("E", "2025-03-20"),
     ("F", "2025-03-12")),
))  # fmt: skip


def racked(question):
    """The casks that each limit of the question leaves."""
    asked = table_question(question, NO_VECTORS)
    found = matches_of(asked.asked.text, asked.words, asked.wording, CASKS, [])
    assert match_sets(found, asked, CASKS)
    return {"".join(CASKS.columns[0].cells[row] for row in np.flatnonzero(match.rows)) for match in found}


@pytest.mark.parametrize(
    ("question", "casks"),
    [
        ("which casks were racked before the end of March 2025", "ABCDEF"),
        ("which casks were racked after the end of January", "CDEF"),
        ("which casks were racked since the beginning of March", "CDEF"),
        ("what has not been moved since January 2025?", "A"),
        ("what wasn't racked by 8 March 2025", "CEF"),
        ("which casks were racked before Christmas", "A"),
        ("racked since the new year, which ones?", "BCDEF"),
        ("welche Fässer wurden nach Neujahr umgefüllt", "BCDEF"),
        ("哪些是元旦之后换的桶", "BCDEF"),
        ("which ones were done by the 12th?", "ABDF"),
        ("casks from the 12th onwards", "CEF"),
        ("which casks were moved on the 20th?", "AE"),
    ],
)
def test_limits_leave_rows(question, casks):
    assert casks in racked(question)


def test_a_day_of_no_usual_month_is_no_limit():
    spread = Sheet.of(Table("spread", "", ("X", "On"), (("a", "2024-01-05"), ("b", "2024-05-20"), ("c", "2025-11-02"))))
    asked = table_question("which were done by the 12th?", NO_VECTORS)
    assert not matches_of(asked.asked.text, asked.words, asked.wording, spread, [])


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (("1640 m", "1985 m", "1120 m"), Kind.NUMBER),
        (("1280℃", "1230℃", "1060℃"), Kind.NUMBER),
        (("Mar 2028", "n/a", "Oct 2026", "n/a", "", "tbc"), Kind.DATE),
        (("12", "–", "15", "unknown until May", "soon"), Kind.TEXT),
    ],
)
def test_what_columns_hold(cells, kind):
    assert column_of("X", cells).kind is kind

"""Columns that are compared with each other in every row, the rows chosen by hand here."""

import numpy as np
import pytest

from helios.reading.tables.candidates import TableFacts, asked_table, programs_of
from helios.reading.tables.compared import compared_matches
from helios.reading.tables.matching import question_words
from helios.reading.tables.programs import execute
from helios.reading.tables.reader import table_question
from helios.reading.tables.sheet import Sheet
from helios.reading.tables.wording import wording_of
from helios.types import Table

STOCK = Sheet.of(
    Table(
        "stock", "Stock", ("Item", "On hand", "Reorder level"),
        (("Inverter", "3", "5"), ("Battery", "9", "4"), ("Cable", "6", "6"), ("Fuse", "", "2")),
    )
)  # fmt: skip
ORDERS = Sheet.of(
    Table(
        "orders", "Orders", ("Order", "Ordered", "Promised", "Arrived"),
        (
            ("B1", "2024-01-02", "2024-01-20", "2024-01-24"),
            ("B2", "2024-02-01", "2024-02-20", "2024-02-11"),
            ("B3", "2024-03-05", "2024-03-20", "2024-03-20"),
            ("B4", "2024-04-05", "2024-04-30", ""),
        ),
    )
)  # fmt: skip
FEES = Sheet.of(
    Table(
        "fees", "Fees", ("Pupil", "Fee", "Paid", "Lessons"),
        (("Ann", "90", "90", "12"), ("Bo", "90", "40", "300"), ("Cy", "60", "0", "7"), ("Di", "60", "60", "9")),
    )
)  # fmt: skip
PLAN = Sheet.of(
    Table("plan", "Plan", ("Posten", "Budget", "Ausgegeben"), (("Miete", "500", "520"), ("Strom", "90", "70")))
)


def rows(question, sheet, **kwargs):
    found = compared_matches(question, question_words(question), wording_of(question), sheet, **kwargs)
    return {match.text: np.flatnonzero(match.rows).tolist() for match in found}


@pytest.mark.parametrize(
    ("question", "sheet", "wanted", "at"),
    [
        ("what is below its reorder level", STOCK, "On hand < Reorder level", [0]),
        ("items above the reorder level", STOCK, "On hand > Reorder level", [1]),
        ("at least the reorder level", STOCK, "On hand >= Reorder level", [1, 2]),
        ("what do we need to reorder", STOCK, "On hand < Reorder level", [0]),
        ("what came later than promised", ORDERS, "Arrived > Promised", [0]),
        ("which deliveries were late", ORDERS, "Arrived > Promised", [0]),
        ("welche Lieferungen kamen zu spät", ORDERS, "Arrived > Promised", [0]),
        ("which orders came early", ORDERS, "Arrived < Promised", [1]),
        ("pupils who have not paid in full", FEES, "Paid < Fee", [1, 2]),
        ("pupils who paid all of it", FEES, "Paid = Fee", [0, 3]),
        ("pupils of the lower school who paid all of it", FEES, "Paid = Fee", [0, 3]),
        ("whose fee is not all paid, who owes", FEES, "Paid < Fee", [1, 2]),
        ("Wo wurde das Budget überschritten?", PLAN, "Ausgegeben > Budget", [0]),
        ("wo haben wir mehr ausgegeben als das Budget", PLAN, "Ausgegeben > Budget", [0]),
        ("which orders came nach Promised", ORDERS, "Arrived > Promised", [0]),
        ("was kam später als Promised", ORDERS, "Arrived > Promised", [0]),
        ("qu'est-ce qui est arrivé plus tard que Promised", ORDERS, "Arrived > Promised", [0]),
        ("lo que llegó más pronto que Promised", ORDERS, "Arrived < Promised", [1]),
        ("哪些比Budget花得多", PLAN, "Ausgegeben > Budget", [0]),
    ],
)
def test_rows_by_two_columns(question, sheet, wanted, at):
    assert rows(question, sheet)[wanted] == at


def test_what_is_nowhere_more_tells_what_was_paid_in_part():
    found = rows("pupils who have not paid in full", FEES)
    assert set(found) == {"Paid < Fee"}  # the lessons of one are more than its fee


@pytest.mark.parametrize(
    "question", ["what do we have", "orders of January", "what is below 5", "is it later than that"]
)
def test_nothing_is_compared_where_nothing_is_said(question):
    assert not rows(question, ORDERS)
    assert not rows(question, FEES)


def test_a_preposition_alone_means_no_column_that_is_not_named():
    near = np.ones((4, 12), np.float32)
    assert not rows("which orders came by the office", ORDERS, similar=near)
    assert rows("which orders came later than the supplier said", ORDERS, similar=near)


def test_a_limit_is_named_by_its_meaning(engine):
    """No word of the question stands in a header; the nearest one is meant."""
    question = "which orders reached us later than the supplier had pledged"
    headers = [column.header for column in ORDERS.columns]
    vectors = list(engine.encoder.encode_documents([*headers, "Orders"]))
    asked = table_question(question, engine.encoder.encode_question(question))
    found = programs_of(asked_table(asked, ORDERS, TableFacts(0, 1.0, 0.9, 0.9, ()), vectors))
    compared = [m for chosen in found.sets for m in chosen if m.operator == ">" and m.column > 0]
    assert compared
    given = {result.text for n in range(len(found.parts)) if (result := execute(found.program(n)))}
    assert "B1" in given

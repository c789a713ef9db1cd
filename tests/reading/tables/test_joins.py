"""Columns of the tables that a table refers to stand beside its own."""

import numpy as np
import pytest

from helios.reading.tables.candidates import TableFacts, asked_table, programs_of
from helios.reading.tables.joins import Joins
from helios.reading.tables.programs import Op, Program, execute
from helios.reading.tables.reader import table_question
from helios.reading.tables.sheet import Sheet
from helios.types import Table, TableKind

ORDERS = Table(
    "orders", "Orders", ("Order", "Customer", "St", "Pieces"),
    (("A1", "1042", "X", "4"), ("A2", "1043", "S", "10"), ("A3", "1042", "P", "7"), ("A4", "", "X", "1")),
)  # fmt: skip
CUSTOMERS = Table(
    "customers", "Customers", ("Customer", "Name", "Town"), (("1042", "Otter", "Ashby"), ("1043", "Marsh", "Corby"))
)  # fmt: skip
STAFF = Table(
    "staff", "Who is who", ("Short", "Name"),
    (("KV", "Kasia Venn"), ("MB", "Marta Brand"), ("FH", "Farah Hobday")),
)  # fmt: skip
JOBS = Table(
    "jobs", "Jobs", ("Job", "By", "Done"),
    (("1", "KV", "yes"), ("2", "MB", "no"), ("3", "FH", "yes"), ("4", "KV", "no")),
)  # fmt: skip
CODES = Table(
    "codes", "St codes", ("attribute", "value"), (("X", "cancelled"), ("S", "sent"), ("P", "packed")),
    kind=TableKind.INFOBOX,
)  # fmt: skip


class Tables(dict):
    """Tables by their ids, as an index has them."""

    def ids(self):
        return iter(self)

    def get(self, record_id):
        return self[record_id]


class Corpus:
    """A corpus of nothing but these tables."""

    def __init__(self, *tables):
        self.tables = Tables({table.table_id: table for table in tables})
        self.segment_count = sum(len(table.rows) for table in tables)


def joined(corpus, name):
    joins = Joins(corpus, lambda table_id: Sheet.of(corpus.tables[table_id]))
    sheet = Sheet.of(corpus.tables[name])
    return sheet.joining(joins.of(sheet))


def column(sheet, header):
    return next(number for number, one in enumerate(sheet.columns) if one.header == header)


@pytest.fixture
def orders():
    return joined(Corpus(ORDERS, CUSTOMERS, CODES, STAFF), "orders")


def test_names_and_meanings_stand_beside_the_codes(orders):
    assert [one.header for one in orders.columns] == ["Order", "Customer", "St", "Pieces", "Name", "Town", "value"]
    assert orders.columns[column(orders, "Town")].cells == ("Ashby", "Corby", "Ashby", "")
    assert orders.columns[column(orders, "value")].cells == ("cancelled", "sent", "packed", "cancelled")
    assert (orders.own, orders.size) == (4, 4)


def test_an_answer_from_another_table_cites_both(orders):
    places = orders.places(1, column(orders, "Town"))
    assert [(at.table.table_id, at.row, at.column, at.text) for at in places] == [
        ("orders", 1, 1, "1043"), ("customers", 1, 2, "Corby"),
    ]  # fmt: skip
    assert [at.text for at in orders.places(3, column(orders, "Town"))] == [""]
    assert [at.table.table_id for at in orders.places(0, column(orders, "value"))] == ["orders", "codes"]


def test_what_a_code_means_selects_and_groups(orders):
    meaning = column(orders, "value")
    result = execute(Program(orders, Op.MODE, (), meaning, descending=True))
    assert result is not None
    assert result.items == ("cancelled",)
    assert np.flatnonzero(orders.columns[meaning].keys == 0).tolist() == [0, 3]


def test_letters_of_two_or_more_agree_without_names():
    sheet = joined(Corpus(JOBS, STAFF), "jobs")
    assert sheet.columns[column(sheet, "Name")].cells == ("Kasia Venn", "Marta Brand", "Farah Hobday", "Kasia Venn")


@pytest.mark.parametrize("others", [(), (CODES,)])
def test_nothing_is_joined_by_chance(others):
    """Single letters and numbers of columns that are called otherwise."""
    grades = Table("grades", "Grades", ("Pupil", "Mark"), (("Ann", "X"), ("Bob", "S"), ("Cem", "P")))
    assert joined(Corpus(grades, CUSTOMERS, *others), "grades").joined == ()


def test_a_list_of_people_explains_more_than_a_rota():
    rota = Table("rota", "Rota", ("Short", "Mon"), (("KV", "early"), ("MB", "late"), ("FH", "early")))
    sheet = joined(Corpus(JOBS, rota, STAFF), "jobs")
    assert [one.header for one in sheet.columns[sheet.own :]] == ["Name"]


def test_columns_called_alike_get_the_name_of_the_one_that_refers():
    lent = Table("lent", "Lent", ("Name", "To"), (("Drill", "KV"), ("Saw", "MB"), ("Axe", "FH")))
    sheet = joined(Corpus(lent, STAFF), "lent")
    assert [one.header for one in sheet.columns] == ["Name", "To", "To Name"]


def test_a_corpus_that_is_no_folder_is_not_looked_through():
    many = [Table(f"t{n}", "T", ("A", "B"), (("1", "2"), ("2", "3"))) for n in range(200)]
    assert joined(Corpus(JOBS, STAFF, *many), "jobs").joined == ()


def test_neither_is_one_of_very_many_rows_of_which_none_is_read():
    corpus = Corpus(JOBS, STAFF)
    corpus.segment_count = 1_200_000
    assert joined(corpus, "jobs").joined == ()


def test_a_code_is_told_from_what_it_stands_for():
    sheet = joined(Corpus(JOBS, STAFF), "jobs")
    referring, looked_up, own = (column(sheet, header) for header in ("By", "Name", "Done"))
    assert [Program(sheet, Op.LOOKUP, (), at).reference for at in (referring, looked_up, own, -1)] == [-1, 1, 0, 0]
    assert Program(Sheet.of(JOBS), Op.LOOKUP, (), referring).reference == 0


def test_a_price_is_compared_with_that_of_another_list(engine):
    """Lists with different headers and the same codes."""
    new = Table(
        "new",
        "Prices",
        ("Code", "Plan", "Per month", "Users"),
        (("P1", "Basic", "9.5", "1"), ("P2", "Team", "14", "5")),
    )
    old = Table("old", "Old list", ("Code", "gbp per month"), (("P1", "8"), ("P2", "13"), ("P3", "20")))
    sheet = joined(Corpus(new, old), "new")
    question = "how much dearer is Basic now than it was"
    vectors = list(engine.encoder.encode_documents([*(one.header for one in sheet.columns), "Prices"]))
    asked = table_question(question, engine.encoder.encode_question(question))
    found = programs_of(asked_table(asked, sheet, TableFacts(0, 1.0, 0.9, 0.9, ()), vectors))
    programs = [found.program(n) for n in range(len(found.parts))]
    across = [one for one in programs if one.op is Op.DIFFERENCE and one.order >= sheet.own]
    assert {execute(one).text for one in across} == {"1.5"}
    assert {sheet.columns[one.column].header for one in across} == {"Per month"}

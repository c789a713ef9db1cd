"""Tables of a folder that a question is about although no word of it stands in them."""

import pytest

from helios.models.base import find_base_model
from helios.reading.tables.columns import FILE, ColumnReader
from helios.reading.tables.others import OTHERS
from helios.reading.tables.reader import WEIGHTS, Sheets, table_question
from helios.types import Table

STAFF = Table(
    "staff", "Who is who", ("Short", "Name", "Does what"),
    (("KV", "Kasia Venn", "Mechanic"), ("MB", "Marta Brand", "Manager"), ("FH", "Farah Hobday", "Sales")),
)  # fmt: skip
JOBS = Table(
    "jobs", "Workshop job cards", ("Job", "Bike", "By", "Done"),
    (("1", "Tourer", "KV", "2024-05-02"), ("2", "Folder", "MB", "2024-05-03"), ("3", "Racer", "KV", "2024-05-09"),
     ("4", "Tandem", "FH", "2024-06-01")),
)  # fmt: skip
TEAS = Table("teas", "Teas", ("Tea", "Price"), (("Assam", "3.20"), ("Sencha", "4.10"), ("Rooibos", "2.80")))


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


@pytest.fixture(scope="module")
def reader():
    return ColumnReader(find_base_model(), WEIGHTS / FILE, runtime="torch")


@pytest.fixture
def others(encoder, reader):
    """Asks for other tables than those that were found."""

    def ask(question, found, *tables):
        sheets = Sheets(Corpus(*tables), encoder)
        return sheets.others.of(table_question(question, encoder.encode_question(question)), found, reader)

    return ask


def test_the_job_cards_are_found_through_the_staff(others):
    found = others("How many bikes did Kasia repair in May 2024?", {"staff"}, STAFF, JOBS, TEAS)
    assert found[0] == "jobs"
    assert "staff" not in found


def test_no_more_than_a_few_are_read(others):
    many = [Table(f"jobs{n}", JOBS.title, JOBS.header, JOBS.rows) for n in range(6)]
    assert len(others("How many bikes did Kasia repair in May 2024?", (), STAFF, *many)) == OTHERS


def test_nothing_is_looked_for_in_a_corpus_that_is_no_folder(others):
    many = [Table(f"t{n}", "T", ("A", "B"), (("1", "2"), ("2", "3"))) for n in range(200)]
    assert others("How many bikes did Kasia repair in May 2024?", (), STAFF, JOBS, *many) == []

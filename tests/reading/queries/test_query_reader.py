"""Tables of a folder asked as a database, in real SQLite: what is joined, counted and summed, and where it stands."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.errors import QueryFailed, QueryTimeout
from helios.executors.base import Language, NativeQuery
from helios.reading.queries.database import TableDatabase
from helios.reading.queries.reader import QueryReader
from helios.reading.tables.keys import Reference, key_columns, references
from helios.reading.tables.sheet import Sheet
from helios.routing.formulation.plan import ColumnRef
from helios.routing.formulation.sql import quoted
from helios.types import Evidence, EvidenceEdge, Origin, Segment, SegmentId, Table

DEPOTS = Table("depots", "depots", ("Depot ID", "City", "Opened"),
    (("D1", "Leeds", "3 May 2011"), ("D2", "Hull", "12 June 2015"), ("D3", "York", "1 March 2019")),
)  # fmt: skip
VANS = Table("vans", "vans", ("Plate", "Depot ID", "Make", "Mileage"),
    (
        ("AB12 CDE", "D1", "Transit", "41,200"), ("FG34 HIJ", "D1", "Vivaro", "18,050"),
        ("KL56 MNO", "D2", "Transit", "77,900"), ("PQ78 RST", "D2", "Master", "9,400"),
        ("UV90 WXY", "D2", "Vivaro", "30,000"), ("Total", "", "", "176,550"),
    ),
)  # fmt: skip

ORDERS = Table("orders", "orders", ("Order No", "Article", "Quantity", "Unit price", "Ordered on"),
    (
        ("17", "hinge", "4", "2.50", "3 May 2023"), ("18", "latch", "1", "12.00", "9 June 2023"),
        ("19", "hinge", "10", "2.40", "1 March 2024"),
    ),
)  # fmt: skip


class Files:
    """Tables by their ids, as an index would give them."""

    def __init__(self, *tables: Table) -> None:
        self.tables = {table.table_id: table for table in tables}

    def sheet(self, table_id: str) -> Sheet | None:
        table = self.tables.get(table_id)
        return None if table is None else Sheet.of(table)

    def evidence(self, question: str) -> Evidence:
        edges = [
            EvidenceEdge(
                rank, 1.0, 0.5, Origin.LINKED,
                Segment(SegmentId(table.table_id, 0), table.title, "", table.header, table.rows[0]), None,
            )
            for rank, table in enumerate(self.tables.values(), start=1)
        ]  # fmt: skip
        return Evidence(question, tuple(edges), present=0.8)


@pytest.fixture
def files() -> Files:
    return Files(VANS, DEPOTS)


def answers(files: Files, question: str):
    return QueryReader(files).read(question, files.evidence(question))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many vans are there?", "5"),
        ("How many vans does each depot have? Show the city and the count.", "Leeds 2, Hull 3"),
        ("What is the total mileage of the vans?", "176550"),
        ("How many depots opened after 2015?", "1"),
        ("What is the average mileage per van?", "35310"),
        ("What are the cities of the depots that have a Transit?", "Leeds, Hull"),
        ("What is the plate of the van with the highest mileage?", "KL56 MNO"),
        ("What is the mileage of the van with plate AB12 CDE?", "41,200"),
        ("List the plates of the vans of the depot in Leeds.", "AB12 CDE, FG34 HIJ"),
        ("Which depots have no vans? Give their city.", "York"),
    ],
)
def test_answers(files, question, text):
    """Totals of the file are not counted twice; cells are said as they stand."""
    assert answers(files, question)[0].text == text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the total revenue of the orders?", "46"),
        ("What is the revenue of order number 17?", "10"),
        ("How many orders were there in each year?", "2023 2, 2024 1"),
    ],
)
def test_what_stands_in_no_cell(question, text):
    """A price times how many, and the year of a date; cells that only go into it are not shown as the answer."""
    found = answers(Files(ORDERS), question)[0]
    assert found.text == text
    assert text not in {one.text for one in found.citations}


def test_cells_are_cited(files):
    best = answers(files, "List the plates of the vans of the depot in Leeds.")[0]
    assert [(one.segment_id, one.column, one.text) for one in best.citations] == [
        (SegmentId("vans", 0), 0, "AB12 CDE"), (SegmentId("vans", 1), 0, "FG34 HIJ"),
    ]  # fmt: skip
    assert "JOIN" in best.query
    assert 0 < best.confidence < 1


@pytest.mark.parametrize(
    "question", ["Vans are kept at depots.", "Why is the sea blue?", "", "How many", "'; DROP TABLE vans"]
)
def test_what_asks_nothing_of_the_tables(files, question):
    for found in answers(files, question):
        assert found.confidence < 0.35


@pytest.mark.parametrize("question", ["How many vans in 2031?", "How many vans for 17 people?"])
def test_doubts(files, question):
    """Nothing that is counted, and a number of the question that the query leaves out."""
    sure, unsure = answers(files, "How many vans are there?"), answers(files, question)
    assert not unsure or unsure[0].confidence < 0.6 * sure[0].confidence


def test_years_and_keys_are_not_added(files):
    database = QueryReader(files).database(files.evidence(""))
    assert database.is_amount(ColumnRef("vans", "Mileage"))
    assert not database.is_amount(ColumnRef("depots", "Depot ID"))
    assert not database.is_amount(ColumnRef("depots", "Opened"))


def test_the_cells_of_a_computation_are_cited(files):
    best = answers(files, "What is the total mileage of the Transit vans?")[0]
    assert best.text == "119100"
    assert {(one.segment_id.row, one.text) for one in best.citations} == {
        (0, "41,200"), (2, "77,900"), (0, "Transit"), (2, "Transit"),
    }  # fmt: skip
    counted = answers(files, "How many vans are there?")[0]
    assert [one.text for one in counted.citations] == [row[0] for row in VANS.rows[:5]]


def test_a_group_without_a_name():
    table = Table("c", "climbers", ("Name", "City"), (("Ana", "Graz"), ("Bo", ""), ("Cy", "Graz")))
    files = Files(table)
    best = answers(files, "How many climbers are from each city?")[0]
    assert best.text == "Graz 2", "who is from nowhere is from no city"


def test_no_tables():
    assert QueryReader(Files()).read("How many vans are there?", Evidence("", ())) == []


def found_references(sheets):
    columns = [key_columns(name, [(one.header, one.cells) for one in sheet.columns]) for name, sheet in sheets.items()]
    return references(chain.from_iterable(columns), {name: name for name in sheets})


def test_keys_are_read_from_names_and_values():
    sheets = {"vans": Sheet.of(VANS), "depots": Sheet.of(DEPOTS)}
    assert found_references(sheets) == [Reference("vans", 1, "depots", 0)]


def test_numbers_that_agree_by_chance_are_no_key():
    rooms = Table("rooms", "rooms", ("Number", "Floor"), (("1", "1"), ("2", "1"), ("3", "2")))
    guests = Table("guests", "guests", ("Guest", "Nights"), (("Ann", "2"), ("Bob", "1"), ("Cem", "3")))
    sheets = {"rooms": Sheet.of(rooms), "guests": Sheet.of(guests)}
    assert found_references(sheets) == []


def test_names_that_cannot_be_used_as_they_are():
    table = Table("t", 'a "b"', ("", "Qty", "qty", "rowid", "x;y"), (("1", "2", "3", "4", "5"),) * 2)
    twin = Table("u", 'a "b"', ("A",), (("1",), ("2",)))
    database = TableDatabase({"t": Sheet.of(table), "u": Sheet.of(twin)})
    assert len(database.sheets) == 2
    (names, _) = database.columns.values()
    assert len({name.casefold() for name in names}) == 5
    assert "rowid" not in names


CELLS = st.one_of(
    st.text(st.characters(), max_size=12),
    st.sampled_from(
        ["", "12", "1e400", "9" * 25, "-" + "9" * 30, "2020-02-30", "31 May 0001", "\x00", "\ud800", "NULL"]
    ),
)


@given(
    headers=st.lists(CELLS, min_size=1, max_size=4), rows=st.lists(st.lists(CELLS, min_size=4, max_size=4), max_size=6),
    title=CELLS,
)  # fmt: skip
def test_any_table_can_be_asked(headers, rows, title):
    table = Table(
        "t", title, tuple(headers), tuple(tuple(row[: len(headers)]) for row in rows) or (("x",) * len(headers),)
    )
    files = Files(table)
    for question in ("How many are there?", f"What is the largest {headers[0]}?", f"Which {title} has {rows}?"):
        for found in answers(files, question):
            assert 0 <= found.confidence <= 1
    database = TableDatabase({"t": Sheet.of(table)})
    (name,) = database.sheets
    assert len(database.execute(NativeQuery(Language.SQL, f"SELECT * FROM {quoted(name)}"))) <= len(table.rows)


def test_a_wide_table_is_asked_in_part():
    wide = Table("w", "wide", tuple(f"c{n}" for n in range(3000)), (("1",) * 3000,) * 2)
    assert len(TableDatabase({"w": Sheet.of(wide)}).columns["wide"]) == 200


def test_a_query_has_a_deadline_and_writes_nothing(files):
    database = QueryReader(files).database(files.evidence(""))
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    with pytest.raises(QueryTimeout, match="stopped after 1 s"):
        database.execute(NativeQuery(Language.SQL, endless))
    with pytest.raises(QueryFailed):
        database.execute(NativeQuery(Language.SQL, 'DELETE FROM "vans"'))
    assert len(database.execute(NativeQuery(Language.SQL, 'SELECT * FROM "vans"'))) == 5


NAMES = st.one_of(
    st.sampled_from(["日期", "Größe", "#", "", " ", "Дата", "№", "*", "_", "€", "x on", "at"]), st.text(max_size=8)
)
CELLS = st.sampled_from(["2024-05-01", "3 May 2011", "17", "yes", "no", "日本", "", "€ 4.50", "Ann"])


@given(
    header=st.lists(NAMES, min_size=1, max_size=4), title=NAMES,
    question=st.sampled_from(["when is it open", "how many are there", "welches Datum hat Ann", "日期是什么"]),
    cells=st.lists(CELLS, min_size=12, max_size=12),
)  # fmt: skip
def test_no_name_of_a_column_is_too_odd(header, title, question, cells):
    """Headers without a letter, in other scripts, or empty: an answer or none, and never a traceback."""
    rows = tuple(tuple(cells[(number * len(header) + at) % 12] for at in range(len(header))) for number in range(4))
    answers(Files(Table("t", title, tuple(header), rows)), question)


def test_a_fault_of_the_rules_costs_these_answers_alone(files, monkeypatch, caplog):
    def fails(*_):
        raise IndexError("list index out of range")

    monkeypatch.setattr("helios.reading.queries.reader.read_question", fails)
    assert QueryReader(files).read("How many vans are in Leeds?", files.evidence("")) == []
    assert "list index out of range" in caplog.text

"""Tables that lie across the page, read down the page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.reading.tables.matching import matches_of, question_words
from helios.reading.tables.programs import Op, Program, execute
from helios.reading.tables.series import down_the_page
from helios.reading.tables.sheet import Kind, Place, Sheet
from helios.reading.tables.wording import wording_of
from helios.types import Table

TAKINGS = Table(
    "takings", "Takings 2024, £", ("Department", "Q1 Jan", "Q1 Feb", "Q1 Mar", "Q2 Apr", "Total"),
    (("Bicycles", "100", "110", "120", "130", "460"), ("Camping", "20", "25", "", "40", "85"),
     ("Total", "120", "135", "120", "170", "545")),
)  # fmt: skip
ROTA = Table(
    "rota", "Rota", ("Name", "Mo", "Di", "Mi", "Do"),
    (("Anna", "früh", "früh", "frei", "spät"), ("Bernd", "spät", "frei", "früh", "früh")),
)  # fmt: skip


def down(table: Table) -> Sheet:
    (sheet,) = down_the_page(Sheet.of(table))
    return sheet


def matching(question: str, sheet: Sheet, text: str):
    found = matches_of(question, question_words(question), wording_of(question), sheet, [])
    return next(match for match in found if text in match.text)


def test_a_month_is_a_row():
    sheet = down(TAKINGS)
    assert [column.header for column in sheet.columns] == ["Department", "month", "Takings 2024, £"]
    assert [column.kind for column in sheet.columns] == [Kind.TEXT, Kind.DATE, Kind.NUMBER]
    assert sheet.columns[1].cells[:4] == ("Jan", "Feb", "Mar", "Apr")
    assert sheet.columns[2].cells[4:8] == ("20", "25", "", "40")
    assert sheet.counted.tolist() == [True] * 8 + [False] * 4
    assert sheet.places(6, 2) == (Place(TAKINGS, 1, 3),)
    assert sheet.places(6, 0) == (Place(TAKINGS, 1, 0),)


def test_sums_of_some_months_and_the_best_month():
    sheet = down(TAKINGS)
    question = "what did bicycles take from February to April 2024"
    chosen = (matching(question, sheet, "February to April"), matching(question, sheet, "bicycle"))
    result = execute(Program(sheet, Op.SUM, chosen, column=2))
    assert result.text == "360"
    assert [place.column for cell in result.cells for place in sheet.places(*cell)] == [2, 3, 4]
    camping = matching("which month was best for camping", sheet, "camping")
    assert execute(Program(sheet, Op.EXTREME, (camping,), column=1, order=2, descending=True)).text == "Apr"


def test_days_of_the_week_are_named_in_full():
    sheet = down(ROTA)
    question = "wer hat am Dienstag frei"
    chosen = (matching(question, sheet, "dienstag"), matching(question, sheet, "frei"))
    assert execute(Program(sheet, Op.LOOKUP, chosen, column=0)).text == "Bernd"


@pytest.mark.parametrize(
    ("header", "series"),
    [
        (("Site", "2021", "2022", "2023"), [("year", ("2021", "2022", "2023"))]),
        (("Site", "Q1", "Q2", "Q3", "Q4", "Year"), [("quarter", ("Q1", "Q2", "Q3", "Q4"))]),
        (("Mes", "enero", "febrero", "marzo"), [("month", ("enero", "febrero", "marzo"))]),
        (
            ("Item", "Jan sold", "Jan left", "Feb sold", "Feb left", "Mar sold", "Mar left"),
            [("month", ("Jan", "Feb", "Mar")), ("month", ("Jan", "Feb", "Mar"))],
        ),
        (("Name", "Start date", "Marta", "May contact", "Decision"), []),
        (("Name", "2023", "2024"), []),
        (("Name", "Mon", "Tues", "Wed", "Thurs"), [("day", ("Monday", "Tuesday", "Wednesday", "Thursday"))]),
        (("Nom", "Lun", "Mar", "Mer", "Sam"), [("day", ("Lundi", "Mardi", "Mercredi", "Samedi"))]),
        (("Nombre", "Lun", "Mar", "Mie", "Sab"), [("day", ("Lunes", "Martes", "Miércoles", "Sábado"))]),
        (("Site", "Q3 2023", "Q4 2023", "Q1 2024"), [("quarter", ("Q3 2023", "Q4 2023", "Q1 2024"))]),
        (("产品", "1月销量", "2月销量", "3月销量"), [("month", ("1月", "2月", "3月"))]),
        (("Who", "Q1", "Q2", "Q3", "Q4", "Q5"), []),
        (("Task", "April", "June", "Jan", "Sue"), []),
        (("A", "B", "C", "D"), []),
    ],
)
def test_what_is_a_series(header, series):
    rows = tuple(tuple(f"{row}{at}" for at in range(len(header))) for row in range(2))
    found = down_the_page(Sheet.of(Table("t", "", header, rows)))
    assert [(one.columns[-2].header, one.columns[-2].cells[: len(cells)]) for one, (_, cells) in
            zip(found, series, strict=True)] == series  # fmt: skip
    for one in found:
        assert not {"Jan", "Feb", "Mar"} & {word for column in one.columns[:-2] for word in column.header.split()}


@given(
    st.lists(st.sampled_from(["Jan", "Feb 2024", "Mo", "Tue", "2023", "Q1", "x", "", "3.4.", "May", "mai"]), max_size=9)
)
def test_any_header_can_be_looked_at(header):
    table = Table("t", "", tuple(header), (tuple(map(str, range(len(header)))),) * 2)
    for sheet in down_the_page(Sheet.of(table)):
        assert sheet.size % 2 == 0
        for row in range(sheet.size):
            for place in sheet.places(row, len(sheet.columns) - 1):
                assert place.text == sheet.columns[-1].cells[row]


def test_mar_among_months_is_march_though_it_is_a_day_elsewhere():
    months = ("Line", "Jan", "Feb", "Mar", "Apr", "May", "Jun")
    sheet = down(Table("income", "Income", months, (("Visits", "1", "2", "4", "8", "16", "32"),) * 2))
    assert sheet.columns[1].cells[:6] == months[1:]

"""Tables that go on in one another, one below the other."""

from dataclasses import replace
from datetime import date

from helios.reading.tables.matching import matches_of, question_words
from helios.reading.tables.programs import Op, Program, execute
from helios.reading.tables.sheet import Place, Sheet
from helios.reading.tables.stacks import Stacks
from helios.reading.tables.wording import wording_of
from helios.types import Table

OLD = Table(
    "old", "Prices 2023", ("Product", "Price 2023 (£)", "Remarks"),
    (("Dark rye", "4.40", ""), ("White tin", "3.10", ""), ("Spelt", "4.90", "new"), ("Total", "12.40", "")),
)  # fmt: skip
NEW = Table(
    "new", "Prices 2024", ("Loaf", "Weight g", "Shop price £"),
    (("Dark rye", "800", "4.80"), ("White tin", "800", "3.40"), ("Spelt", "700", "5.30"), ("Focaccia", "300", "3.00")),
)  # fmt: skip
STAFF = Table("staff", "Staff", ("Name", "Town"), (("Ann", "Leeds"), ("Bo", "York"), ("Cy", "Hull")))
MAY = Table("may", "May", ("Day", "Branch", "Sold"), (("1 May", "Quay", "12"), ("2 May", "Quay", "15")))
JUNE = Table("june", "June", ("Day", "Branch", "Sold"), (("1 June", "Hill", "7"), ("2 June", "Quay", "9")))
UNNAMED = [
    Table(f"u{n}", "", ("column 1", "column 2", "column 3"), ((f"a{n}", "1", "2"), ("b", "3", "4"))) for n in (1, 2)
]


def stacks(*tables: Table) -> tuple[Stacks, dict[str, Sheet]]:
    sheets = {table.table_id: Sheet.of(table) for table in tables}
    return Stacks(lambda: list(sheets), sheets.get), sheets


def stack(*tables: Table) -> Sheet:
    found, _ = stacks(*tables)
    (number,) = found.of(tables[0].table_id)
    return found.sheet(number)


def matching(question: str, sheet: Sheet, text: str):
    found = matches_of(question, question_words(question), wording_of(question), sheet, [])
    return next(match for match in found if match.text == text)


def test_two_lists_of_the_same_things():
    sheet = stack(NEW, STAFF, OLD)
    assert [column.header for column in sheet.columns] == ["list", "Loaf", "Shop price £"]
    assert sheet.columns[0].cells[3:5] == ("Prices 2024", "Prices 2023")
    assert sheet.counted.tolist() == [True] * 7 + [False]
    question = "how much dearer is dark rye than last year"
    result = execute(Program(sheet, Op.DIFFERENCE, (matching(question, sheet, "dark rye"),), column=2))
    assert result.text == "0.4"
    assert [place for cell in result.cells for place in sheet.places(*cell)] == [Place(NEW, 0, 2), Place(OLD, 0, 1)]
    assert sheet.places(4, 0) == (Place(OLD, 0, 0),)


def test_a_sheet_for_each_month():
    sheet = stack(MAY, JUNE)
    question = "how many did Quay sell in all"
    quay = matching(question, sheet, "quay")
    assert execute(Program(sheet, Op.SUM, (quay,), column=3)).text == "36"


def test_what_does_not_go_on():
    found, _ = stacks(OLD, STAFF, MAY, *UNNAMED)
    assert all(not found.of(table.table_id) for table in (OLD, STAFF, MAY, *UNNAMED))


def test_a_table_may_go_on_in_several():
    found, _ = stacks(MAY, JUNE, OLD, NEW)
    assert {number for table in (MAY, JUNE) for number in found.of(table.table_id)} == {0}
    assert {number for table in (OLD, NEW) for number in found.of(table.table_id)} == {1}


def test_columns_with_like_names_keep_apart():
    header = ("Item", "Price (net)", "Price (gross)")
    one = Table("one", "One", header, (("Nut", "1", "10"), ("Bolt", "3", "30")))
    other = Table("other", "Other", header, (("Cog", "2", "20"), ("Pin", "4", "40")))
    sheet = stack(one, other)
    assert sheet.columns[2].cells == ("1", "3", "2", "4")
    assert sheet.places(2, 2) == (Place(other, 0, 1),)


def test_each_table_writes_numbers_and_dates_in_its_own_way():
    comma = Table("de", "DE", ("Tag", "Preis", "Ort"), (("25/04/24", "1,50", "Ulm"), ("04/02/24", "3,25", "Hof")))
    point = Table("en", "EN", ("Tag", "Preis", "Ort"), (("04/25/24", "1.60", "York"), ("04/02/24", "3.35", "Hull")))
    sheet = stack(comma, point)
    assert sheet.columns[2].values.tolist() == [1.5, 3.25, 1.6, 3.35]
    assert [date.fromordinal(int(day)).month for day in sheet.columns[1].values] == [4, 2, 4, 4]


def test_copies_and_lists_of_other_things_are_left_apart():
    copy = replace(NEW, table_id="copy", title="Copy of prices")
    customers = Table("c", "C", ("Customer", "Phone", "Email"), (("Ann", "1", "a@x"), ("Bo", "2", "b@x")))
    suppliers = Table("s", "S", ("Supplier", "Phone", "Email"), (("Cy", "3", "c@x"), ("Di", "4", "d@x")))
    found, _ = stacks(NEW, copy, customers, suppliers)
    assert not any(found.of(table.table_id) for table in (NEW, copy, customers, suppliers))


def test_a_code_before_the_names_does_not_keep_lists_apart():
    coded = replace(NEW, header=("Code", *NEW.header), rows=tuple((f"B{n}", *row) for n, row in enumerate(NEW.rows)))
    sheet = stack(coded, OLD)
    assert [column.header for column in sheet.columns] == ["list", "Loaf", "Shop price £"]


def test_names_of_one_list_stand_beside_the_codes_of_all():
    """The old list has the names, both have the codes."""
    cells = (("SWB", "Small van", "50"), ("LUT", "Luton", "80"), ("LWB", "Long van", "60"), ("MIN", "Minibus", "90"))
    old = Table("o", "Rates 2023", ("Class", "Name", "Day rate"), cells)
    changed = (("LUT", "87", "yes"), ("SWB", "54", "no"), ("MIN", "90", "yes"), ("LWB", "66", "no"))
    new = Table("n", "Rates 2024", ("Class", "Day rate", "Signed"), changed)
    sheet = stack(new, old)
    headers = [column.header for column in sheet.columns]
    assert headers == ["list", "Class", "Day rate", "Name"]  # what was signed repeats
    assert sheet.columns[3].cells[3:6] == ("Long van", "Small van", "Luton")
    question = "how much dearer is a luton than last year"
    result = execute(Program(sheet, Op.DIFFERENCE, (matching(question, sheet, "luton"),), column=2))
    assert result.text == "7"
    assert [place.text for place in sheet.places(0, 3)] == ["LUT", "Luton"]

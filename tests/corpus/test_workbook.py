"""XLSX: sheets, merged cells, values, titles above the header."""

import datetime

import openpyxl
import pytest
from openpyxl.chart import BarChart

from helios.corpus import read_corpus
from helios.errors import RecordError
from helios.types import TableKind


@pytest.fixture
def book():
    book = openpyxl.Workbook()
    book.remove(book.active)
    return book


def saved(book, path):
    book.save(path)
    return list(read_corpus(path))


def test_every_sheet_is_a_table(book, tmp_path):
    for name in ("First", "Second", "Empty"):
        sheet = book.create_sheet(name)
        if name != "Empty":
            sheet.append(["key", "value"])
            sheet.append([name, 1])
    book.create_chartsheet("Chart").add_chart(BarChart())
    first, second = saved(book, tmp_path / "my_book.xlsx")
    assert (first.table_id, first.title, first.section) == ("my_book.xlsx#First", "my book", "First")
    assert second.rows == (("Second", "1"),)


def test_values_as_a_reader_sees_them(book, tmp_path):
    sheet = book.create_sheet("S")
    sheet.append(["date", "time", "share", "float", "bool", "error", "whole"])
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5)
    sheet.append([datetime.datetime(2020, 1, 2), moment, 0.255, 0.1 + 0.2, True, "#DIV/0!", 3.0])
    sheet["C2"].number_format = "0.0%"
    (table,) = saved(book, tmp_path / "b.xlsx")
    assert table.rows == (("2020-01-02", "2020-01-02 03:04:05", "25.5%", "0.3", "true", "#DIV/0!", "3"),)


def test_formulas_give_no_formula_text(book, tmp_path):
    sheet = book.create_sheet("S")
    sheet.append(["a", "sum"])
    sheet.append([1, "=A2+1"])
    (table,) = saved(book, tmp_path / "b.xlsx")
    assert table.rows == (("1", ""),)


def test_merged_cells_titles_and_header_of_two_rows(book, tmp_path):
    sheet = book.create_sheet("S")
    for row in [
        [None, "Sales by region"],
        [None, "in thousands"],
        [],
        [None, "Region", "2019", None, "Share"],
        [None, None, "Q1", "Q2", None],
        [None, "North", 1, 2, 3],
        [None, None, 4, 5, 6],
    ]:
        sheet.append(row)
    for area in ("B1:E1", "B4:B5", "C4:D4", "E4:E5", "B6:B7"):
        sheet.merge_cells(area)
    (table,) = saved(book, tmp_path / "b.xlsx")
    assert (table.title, table.intro) == ("Sales by region", "in thousands")
    assert table.header == ("Region", "2019 Q1", "2019 Q2", "Share")
    assert table.rows == (("North", "1", "2", "3"), ("North", "4", "5", "6"))


def test_blank_rows_and_inner_blank_columns(book, tmp_path):
    sheet = book.create_sheet("S")
    for row in [["a", None, "c"], [], [1, None, 3], [None, None, 4]]:
        sheet.append(row)
    (table,) = saved(book, tmp_path / "b.xlsx")
    assert table.header == ("a", "c")
    assert table.rows == (("1", "3"), ("", "4"))


def test_ten_thousand_columns(book, tmp_path):
    sheet = book.create_sheet("S")
    sheet.append([f"c{number}" for number in range(10_000)])
    sheet.append(list(range(10_000)))
    (table,) = saved(book, tmp_path / "b.xlsx")
    assert table.header[-1] == "c9999"
    assert table.rows == (tuple(map(str, range(10_000))),)


@pytest.mark.parametrize("keep", [1, 100, 0.5, 0.9])
def test_damaged_files(book, tmp_path, keep):
    book.create_sheet("S").append(["a"])
    path = tmp_path / "b.xlsx"
    book.save(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if keep < 1 else keep])
    with pytest.raises(RecordError, match="not a readable XLSX file"):
        list(read_corpus(path))


def test_several_tables_on_a_sheet_with_their_titles_totals_and_notes(book, tmp_path):
    sheet = book.create_sheet("S")
    for row in [
        ["Sales"], ["in thousands"], [], ["Region", "Q1", "Q2"], ["North", 1, 2], ["South", 3, 4], [], ["Total", 4, 6],
        [], ["Costs"], ["Region", "Q1", "Q2"], ["North", 5, 6], ["South", 7, 8], [], ["Source: the ledger"],
    ]:  # fmt: skip
        sheet.append([None, *row])
    sales, costs, note = saved(book, tmp_path / "b.xlsx")
    assert (note.title, note.text) == ("Costs", "S: Source: the ledger.")
    assert (sales.table_id, sales.title, sales.intro) == ("b.xlsx#S", "Sales", "in thousands")
    assert sales.rows == (("North", "1", "2"), ("South", "3", "4"), ("Total", "4", "6"))
    assert (costs.table_id, costs.title, costs.intro) == ("b.xlsx#S#table-2", "Costs", "Source: the ledger")
    assert costs.header == ("Region", "Q1", "Q2")


def test_tables_beside_each_other_and_a_blank_column_for_looks(book, tmp_path):
    sheet = book.create_sheet("Two")
    for row in [
        ["Name", "Age", None, "Name", "Town"],
        ["Ann", 3, None, "Bob", "Oslo"],
        ["Eve", 4, None, "Joe", "Rome"],
    ]:
        sheet.append(row)
    sheet = book.create_sheet("One")
    for row in [["Name", "Age", None, "Town", "Phone"], ["Ann", 3, None, "Oslo", 12], ["Eve", 4, None, "Rome", 13]]:
        sheet.append(row)
    sheet = book.create_sheet("Summed")
    for row in [
        ["Name", "Town", None, "Hours", "Ext."], ["Ann", "Oslo", None, 3, 21], ["Eve", "Rome", None, 4, 22],
        [], [None, None, None, 7],
    ]:  # fmt: skip
        sheet.append(row)
    ages, towns, whole, summed = saved(book, tmp_path / "b.xlsx")
    assert (ages.header, towns.header) == (("Name", "Age"), ("Name", "Town"))
    assert (whole.header, len(whole.rows)) == (("Name", "Age", "Town", "Phone"), 2)
    assert summed.header == ("Name", "Town", "Hours", "Ext.")


def test_a_form_and_a_sheet_of_notes(book, tmp_path):
    sheet = book.create_sheet("Form")
    for row in [
        ["Company", "Acme"], ["Founded", 1987], ["Staff", 120], ["Registered", "2001-02-03"], ["Fax"], ["City", "Oslo"],
    ]:  # fmt: skip
        sheet.append([None, *row])
    sheet = book.create_sheet("Notes")
    for line in ["Fill in every white cell.", "Leave the grey ones as they are!", "Ask Ann if you are in doubt"]:
        sheet.append([line])
    form, notes = saved(book, tmp_path / "b.xlsx")
    assert form.kind is TableKind.INFOBOX
    assert form.rows[:2] == (("Company", "Acme"), ("Founded", "1987"))
    assert notes.passage_id == "b.xlsx#Notes#passage-1"
    assert notes.text == (
        "Notes: Fill in every white cell. Leave the grey ones as they are! Ask Ann if you are in doubt."
    )

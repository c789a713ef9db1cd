"""PDF, DOCX, PPTX, plain text and old workbooks: headings, passages with their page, tables with their context."""

import sys

import docx
import pptx
import pytest
import xlsxwriter
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from helios.corpus import read_corpus
from helios.corpus.files import FileList
from helios.corpus.readers.text import join_lines
from helios.errors import RecordError
from helios.types import Passage, Table, TableKind

NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def read(path, content):
    path.write_bytes(content)
    return list(read_corpus(path))


def tables(records):
    return [record for record in records if isinstance(record, Table)]


def texts(records):
    return [record.text for record in records if isinstance(record, Passage)]


class TestPdf:
    def test_headings_paragraphs_and_a_ruled_table(self, pdf, tmp_path):
        pdf.page().text(50, 60, "Annual report", size=20).text(50, 100, "Sales", size=14)
        pdf.lines(50, 130, "The firm had a good year, with many new custo-", "mers in all regions where it is at work.")
        pdf.text(50, 180, "Table 1: sales by region").ruled(
            50, 200, [["Region", "2024"], ["North", "12"], ["South", "15"]]
        )
        pdf.text(50, 300, "Staff", bold=True).text(50, 330, "Nobody left the firm.")
        table, sales, staff = read(tmp_path / "r.pdf", pdf.save())
        assert (table.title, table.section, table.intro) == ("Annual report", "Sales", "Table 1: sales by region")
        assert (table.header, table.rows) == (("Region", "2024"), (("North", "12"), ("South", "15")))
        assert sales.text == (
            "Sales: The firm had a good year, with many new customers in all regions where it is at work. "
            "Table 1: sales by region"
        )
        assert staff.text == "Sales -- Staff: Nobody left the firm."
        assert {record.metadata for record in (table, sales, staff)} == {(("page", 1),)}

    def test_pages_and_what_they_repeat(self, pdf, tmp_path):
        for number in (1, 2, 3):
            pdf.page().text(50, 20, "Minutes of the club", size=8).text(280, 810, f"Page {number} of 3", size=8)
            pdf.text(50, 100, f"Item {number}", size=14).text(50, 130, f"On page {number} there is a sentence.")
        found = read(tmp_path / "m.pdf", pdf.save())
        assert [dict(passage.metadata)["page"] for passage in found] == [1, 2, 3]
        assert texts(found)[1] == "Item 2: On page 2 there is a sentence."

    def test_a_table_goes_on_over_the_page(self, pdf, tmp_path):
        pdf.page().ruled(50, 700, [["Name", "Age"], ["Ann", "3"]]).page().ruled(50, 50, [["Name", "Age"], ["Bob", "4"]])
        (table,) = read(tmp_path / "t.pdf", pdf.save())
        assert table.rows == (("Ann", "3"), ("Bob", "4"))
        assert dict(table.metadata) == {"page": 1}

    def test_a_table_without_lines(self, pdf, tmp_path):
        pdf.page()
        for number, row in enumerate([["Item", "Qty", "Price"], ["Chair", "3", "12.00"], ["Lamp", "", "7.50"]]):
            for cell in filter(None, row):
                pdf.text(50 + 120 * row.index(cell), 60 + 14 * number, cell)
        (table,) = read(tmp_path / "t.pdf", pdf.save())
        assert table.rows == (("Chair", "3", "12.00"), ("Lamp", "", "7.50"))

    def test_two_columns_are_read_one_after_the_other(self, pdf, tmp_path):
        left = [f"left {number} has enough words for text" for number in range(6)]
        right = [f"right {number} has enough words for text" for number in range(6)]
        pdf.page().lines(50, 80, *left).lines(300, 80, *right)
        (passage,) = read(tmp_path / "t.pdf", pdf.save())
        assert passage.text == " ".join((*left, *right))

    def test_a_page_without_text(self, pdf, tmp_path):
        with pytest.raises(RecordError, match="no text in it: a scan needs text recognition"):
            read(tmp_path / "scan.pdf", pdf.page().save())

    def test_a_scanned_page_among_others_is_listed(self, pdf, tmp_path):
        text = "The first page says something about rivers."
        last = "The last page is about lakes."
        pdf.page().text(50, 80, text).page().image().page().page().text(50, 80, last)
        path = tmp_path / "corpus" / "half.pdf"
        path.parent.mkdir()
        path.write_bytes(pdf.save())
        files = FileList()
        records = list(read_corpus(path.parent, on_error="auto", files=files))
        assert [record.text for record in records] == [f"{text} {last}"]
        (entry,) = files
        assert (entry.outcome, entry.rejected) == ("read", 1)
        assert entry.reason.startswith("page 2: no text in it: a scan")


class TestDocx:
    def test_footnotes_and_endnotes_follow_what_refers_to_them(self, tmp_path):
        document = docx.Document()
        for kind in ("footnote", "endnote"):
            body = f'<w:{kind} w:id="0" w:type="separator"><w:p/></w:{kind}>'
            body += f'<w:{kind} w:id="2"><w:p><w:r><w:t>Said in a {kind}</w:t></w:r></w:p></w:{kind}>'
            part = Part(
                PackURI(f"/word/{kind}s.xml"),
                f"application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}s+xml",
                f'<w:{kind}s xmlns:w="{NAMESPACE}">{body}</w:{kind}s>'.encode(),
                document.part.package,
            )
            document.part.relate_to(part, f"{RELATION}/{kind}s")
        first = document.add_paragraph("The bridge was opened late.")
        document.add_paragraph("It has one arch.")
        table = document.add_table(rows=2, cols=2)
        for row, column, text in [(0, 0, "Part"), (0, 1, "Length"), (1, 0, "Arch"), (1, 1, "48")]:
            table.cell(row, column).text = text
        for kind, run in (("footnote", first.runs[0]), ("endnote", table.cell(1, 1).paragraphs[0].runs[0])):
            mark = OxmlElement(f"w:{kind}Reference")
            mark.set(qn("w:id"), "2")
            run._r.append(mark)
        document.save(tmp_path / "h.docx")
        stored, text = read_corpus(tmp_path / "h.docx")
        assert stored.rows == (("Arch", "48"),)
        assert text.text == ("The bridge was opened late. Said in a footnote. It has one arch. Said in a endnote.")

    def test_headings_tables_and_merged_cells(self, tmp_path):
        document = docx.Document()
        document.add_heading("Handbook", 0)
        document.add_paragraph("Welcome.")
        document.add_heading("Holidays", 1)
        document.add_paragraph("Days by grade follow.")
        table = document.add_table(rows=3, cols=3)
        for row, column, text in [(0, 0, "Grade"), (0, 1, "Days"), (1, 1, "paid"), (1, 2, "unpaid"), (2, 0, "A")]:
            table.cell(row, column).text = text
        table.cell(0, 0).merge(table.cell(1, 0))
        table.cell(0, 1).merge(table.cell(0, 2))
        table.cell(2, 1).text, table.cell(2, 2).text = "25", "5"
        document.add_paragraph("Source: the office")
        document.add_paragraph().add_run("In short").bold = True
        document.add_paragraph("Ask first.")
        document.save(tmp_path / "h.docx")
        welcome, holidays, passage, last = read_corpus(tmp_path / "h.docx")
        assert (welcome.title, welcome.text) == ("Handbook", "Welcome.")
        assert (holidays.section, holidays.intro) == ("Holidays", "Days by grade follow.\nSource: the office")
        assert (holidays.header, holidays.rows) == (("Grade", "Days paid", "Days unpaid"), (("A", "25", "5"),))
        assert passage.text == "Holidays: Days by grade follow. Source: the office"
        assert last.text == "Holidays -- In short: Ask first."


class TestPptx:
    def test_slides(self, tmp_path):
        show = pptx.Presentation()
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = "Results", "Sales rose\nCosts fell"
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = "Regions"
        grid = slide.shapes.add_table(3, 2, Inches(1), Inches(1), Inches(4), Inches(2)).table
        for row, cells in enumerate([("Region", "Sales"), ("North", "12"), ("South", "15")]):
            for column, text in enumerate(cells):
                grid.cell(row, column).text = text
        data = CategoryChartData()
        data.categories = ["Q1", "Q2"]
        data.add_series("Profit", (1.5, None))
        slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(3), Inches(4), Inches(2), data)
        slide.notes_slide.notes_text_frame.text = "Mention the fair."
        show.save(tmp_path / "s.pptx")
        first, regions, chart, notes = read_corpus(tmp_path / "s.pptx")
        assert (first.title, first.text, first.metadata) == ("Results", "Sales rose. Costs fell.", (("page", 1),))
        assert (regions.section, regions.rows) == ("Regions", (("North", "12"), ("South", "15")))
        assert (chart.header, chart.rows) == (("column 1", "Profit"), (("Q1", "1.5"), ("Q2", "")))
        assert (notes.text, notes.metadata) == ("Regions: Mention the fair.", (("page", 2),))


class TestText:
    def test_title_headings_and_lines_that_stand_for_themselves(self, tmp_path):
        text = "Notes of May\n\nPresent: Ann, Bob\nPlace: Oslo\n\nWe talked about the shop, which is to be\nopened.\n"
        first, second = read(tmp_path / "n.txt", f"{text}\nACTIONS\n\n- Ann buys chairs\n- Bob writes\n".encode())
        assert first.title == "Notes of May"
        assert first.text == "Present: Ann, Bob; Place: Oslo. We talked about the shop, which is to be opened."
        assert second.text == "ACTIONS: - Ann buys chairs; - Bob writes."

    def test_a_name_for_a_title_and_other_encodings(self, tmp_path):
        (passage,) = read(tmp_path / "my_notes.txt", "Das Café schließt heute. Für immer.\n".encode("latin-1"))
        assert (passage.title, passage.text) == ("my notes", "Das Café schließt heute. Für immer.")

    def test_lines_of_cells(self, tmp_path):
        (table,) = read(tmp_path / "t.txt", b"name\tage\nAnn\t3\nBob\t4\n")
        assert table.header == ("name", "age")

    @pytest.mark.parametrize(
        ("lines", "text"),
        [
            (["the land-", "lord of the house"], "the landlord of the house"),
            (
                ["a line along the whole coast of the North-", "South kind"],
                "a line along the whole coast of the North- South kind",
            ),
            (["Ann Lee", "Bob Ray"], "Ann Lee; Bob Ray."),
        ],
    )
    def test_lines_are_joined(self, lines, text):
        assert join_lines(lines) == text

    @pytest.mark.parametrize(
        ("lines", "text"),
        [
            (["这批红茶发酵略", "过,退回12", "斤。"], "这批红茶发酵略过,退回12斤。"),
            (["紅茶を", "Leeds", "に送る"], "紅茶を Leeds に送る"),
            (["창고 열쇠는", "세 개"], "창고 열쇠는 세 개"),
        ],
    )
    def test_wrapped_lines_of_scripts_without_spaces(self, lines, text):
        assert join_lines(lines, wrapped=True) == text


def test_ods(ods, tmp_path):
    (table,) = read(tmp_path / "b.ods", ods(("River", "km"), ("Rhine", "1230"), ("Po", "652")))
    assert (table.table_id, table.section, table.rows) == ("b.ods#S", "S", (("Rhine", "1230"), ("Po", "652")))


def test_a_workbook_under_the_name_of_an_old_one(tmp_path):
    book = xlsxwriter.Workbook(tmp_path / "b.xlsx")
    sheet = book.add_worksheet("S")
    for number, row in enumerate([["a", "b"], ["x", 1], ["y", 2.5]]):
        sheet.write_row(number, 0, row)
    book.close()
    (table,) = read(tmp_path / "b.xls", (tmp_path / "b.xlsx").read_bytes())
    assert table.rows == (("x", "1"), ("y", "2.5"))
    assert table.kind is TableKind.TABLE


def test_without_the_library_the_reason_says_how_to_install_it(tmp_path, monkeypatch):
    from helios.corpus.budget import RecordShapeError
    from helios.corpus.readers.extra import library

    monkeypatch.setitem(sys.modules, "pdfplumber", None)
    with pytest.raises(RecordShapeError, match=r'pip install "helios-retrieval\[documents\]"'):
        library("pdfplumber", "PDF")

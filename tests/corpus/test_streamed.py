"""Large sheets that are read row by row: the same tables as a sheet that is read whole."""

import gzip
import zipfile
from pathlib import Path
from types import ModuleType

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helios.config import CorpusBudget
from helios.corpus import CorpusStore, CorpusWriter, read_corpus, read_pieces
from helios.corpus.readers import delimited, parquet, workbook
from helios.corpus.rejects import Rejection
from helios.corpus.shape import joined
from helios.corpus.source import SourceFile
from helios.errors import RecordError
from helios.types import Passage, Table

ORDERS = "".join(f"A{number},{number % 7},city {number % 3}\n" for number in range(300))
HEADER = "order,quantity,city\n"


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is a large one, and every piece has few rows."""
    monkeypatch.setattr("helios.corpus.readers.delimited._STREAMED_BYTES", 0)
    monkeypatch.setattr("helios.corpus.streamed.FIRST_ROWS", 60)
    monkeypatch.setattr("helios.corpus.streamed.PIECE_CELLS", 120)


def read(path: Path, text: str | bytes, **budget: int) -> list[Table]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tables_of(delimited, path, **budget)


def records_of(reader: ModuleType, path: Path, **budget: int) -> list[Table | Passage]:
    """The tables of a file, read in this process, and the lines around them."""
    source = SourceFile.open(path, path.name, CorpusBudget(**budget))
    pieces: list[Table] = []
    found: list[Table | Passage] = []
    for parsed in reader.read(source, Rejection("stop")):
        if isinstance(parsed.record, Passage):
            found.append(parsed.record)
            continue
        pieces.append(parsed.record)
        if not parsed.more:
            found.append(joined(pieces))
            pieces = []
    assert not pieces
    return found


def tables_of(reader: ModuleType, path: Path, **budget: int) -> list[Table]:
    """Its tables alone."""
    return [one for one in records_of(reader, path, **budget) if isinstance(one, Table)]


@pytest.mark.parametrize(
    "text",
    [
        HEADER + ORDERS,
        "Orders of a shop\n\n" + HEADER + ORDERS,
        HEADER + ORDERS + "\nSource: the shop\n",
        HEADER + ORDERS.replace("A200,", "\nA200,"),
        HEADER + ORDERS + "\nname,price,weight\n" + "".join(f"lamp {n},{n}.5,{n}\n" for n in range(100)),
        ORDERS.replace(",", ";").replace("city", "Zürich"),
        HEADER + ORDERS.replace("city 1", ""),
    ],
    ids=["plain", "title", "note", "blank row", "two tables", "no header", "short"],
)
def test_the_same_tables_as_of_a_whole_file(tmp_path: Path, streams: None, monkeypatch: pytest.MonkeyPatch, text: str):
    streamed = read(tmp_path / "orders.csv", text)
    monkeypatch.setattr("helios.corpus.readers.delimited._STREAMED_BYTES", 1 << 20)
    assert streamed == read(tmp_path / "orders.csv", text)


def test_columns_that_begin_half_way_are_kept(tmp_path: Path, streams: None):
    later = "".join(f"B{number},1,Oslo,express,{number}\n" for number in range(100))
    (table,) = read(tmp_path / "orders.csv", HEADER + ORDERS + later)
    assert table.header == ("order", "quantity", "city", "column 4", "column 5")
    assert table.rows[0] == ("A0", "0", "city 0", "", "")
    assert table.rows[-1] == ("B99", "1", "Oslo", "express", "99")
    assert {len(row) for row in table.rows} == {5}


def test_short_rows_and_one_wide_row_are_no_bomb(tmp_path: Path, streams: None):
    wide = ",".join("x" * 5000) + "\n"
    with pytest.raises(RecordError, match=r"advanced\.corpus\.cells"):
        read(tmp_path / "orders.csv", HEADER + ORDERS + wide, cells=10_000)


def test_western_letters_and_packed_files(tmp_path: Path, streams: None):
    text = (HEADER + ORDERS.replace("city", "Malmö")).encode("cp1252")
    (table,) = read(tmp_path / "orders.csv.gz", gzip.compress(text))
    assert table.rows[0] == ("A0", "0", "Malmö 0")
    with pytest.raises(RecordError, match="damaged gzip data"):
        read(tmp_path / "orders.csv.gz", gzip.compress(text)[:-9])


def test_a_workbook_is_read_row_by_row_as_it_is_whole(
    tmp_path: Path, streams: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Orders"
    for row in [["Orders of a shop"], [], ["order", "size", None, "city"], [None, "length", "width", None]]:
        sheet.append(row)
    for number in range(300):
        sheet.append([f"A{number}", number % 7, number / 400, f"city {number // 2}" if number % 2 == 0 else None])
    for row in (100, 200):
        sheet.cell(row, 3).number_format = "0.0%"
    for first in range(5, 305, 2):
        sheet.merge_cells(f"D{first}:D{first + 1}")
    for area in ("A1:D1", "A3:A4", "B3:C3", "D3:D4"):
        sheet.merge_cells(area)
    for row in [[], ["Source: the shop"]]:
        sheet.append(row)
    second = book.create_sheet("Lamps")
    for number in range(200):
        second.append(
            [f"lamp {number}", number, f"2024-05-{number % 28 + 1:02d}"] if number else ["name", "price", "day"]
        )
    path = tmp_path / "shop.xlsx"
    book.save(path)
    monkeypatch.setattr(workbook, "STREAMED_CELLS", 1 << 20)
    whole = tables_of(workbook, path)
    assert [table.section for table in whole] == ["Orders", "Lamps"]
    records = records_of(workbook, path)
    assert [one.text for one in records if isinstance(one, Passage)] == ["Orders: Source: the shop."]
    assert (whole[0].title, whole[0].intro) == ("Orders of a shop", "Source: the shop")
    assert whole[0].header == ("order", "size length", "size width", "city")
    assert whole[0].rows[95] == ("A95", "4", "23.75%", "city 47")
    monkeypatch.setattr(workbook, "STREAMED_CELLS", 0)
    assert records_of(workbook, path) == records


HEADERS = {
    "two rows": ([["Region", "Sales", None], [None, "2019", "2020"]], ["A1:A2", "B1:C1"]),
    "the same names below": ([["Region", "Length", "Width"], ["code", "cm", "cm"]], ["A1:A2"]),
    "downwards alone": ([["Region", "Length", "Width"], [None, "cm", "kg"]], ["A1:A2"]),
}


@pytest.mark.parametrize(("header", "merged"), HEADERS.values(), ids=HEADERS)
def test_headers_of_merged_cells_in_a_large_sheet(
    tmp_path: Path, streams: None, monkeypatch: pytest.MonkeyPatch, header: list[list[object]], merged: list[str]
) -> None:
    book = openpyxl.Workbook()
    for row in [*header, *([f"region {number}", number, number % 7] for number in range(200))]:
        book.active.append(row)
    for area in merged:
        book.active.merge_cells(area)
    book.save(tmp_path / "sales.xlsx")
    (whole,) = tables_of(workbook, tmp_path / "sales.xlsx")
    monkeypatch.setattr(workbook, "STREAMED_CELLS", 0)
    assert tables_of(workbook, tmp_path / "sales.xlsx") == [whole] and len(whole.rows) == 200


def test_another_table_and_notes_after_many_blank_rows(
    tmp_path: Path, streams: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for number in range(200):
        sheet.append([f"A{number}", number, number % 7] if number else ["order", "quantity", "size"])
    for number in range(200):
        for column, value in enumerate((f"lamp {number}", number / 2) if number else ("name", "price"), 5):
            sheet.cell(1700 + number, column, value)
    sheet.cell(2100, 1, "Source: the shop")
    sheet.cell(90_000, 9).number_format = "0.0%"
    book.save(tmp_path / "shop.xlsx")
    monkeypatch.setattr(workbook, "STREAMED_CELLS", 0)
    orders, lamps, note = records_of(workbook, tmp_path / "shop.xlsx")
    assert isinstance(orders, Table) and isinstance(lamps, Table) and isinstance(note, Passage)
    assert note.text == "Sheet: Source: the shop."
    assert (orders.header, len(orders.rows)) == (("order", "quantity", "size"), 199)
    assert (lamps.header, len(lamps.rows), lamps.intro) == (("name", "price"), 199, "Source: the shop")


OUT_OF_ORDER = {
    "rows": (b'<row r="2"', b'<row r="9"'), "no number": (b'<row r="2"', b"<row"), "cells": (b'r="B2"', b'r="D2"'),
    "no place": (b' r="B2"', b""),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), OUT_OF_ORDER.values(), ids=OUT_OF_ORDER)
def test_a_sheet_out_of_order_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bytes, new: bytes
) -> None:
    book = openpyxl.Workbook()
    for number in range(6):
        book.active.append([f"A{number}", number, f"city {number}"] if number else ["order", "quantity", "city"])
    book.save(tmp_path / "orders.xlsx")
    changed = tmp_path / "changed.xlsx"
    rewrite(tmp_path / "orders.xlsx", changed, old, new)
    whole = tables_of(workbook, changed)
    monkeypatch.setattr(workbook, "STREAMED_CELLS", 0)
    assert tables_of(workbook, changed) == whole and whole


def rewrite(path: Path, changed: Path, old: bytes, new: bytes) -> None:
    """Write a workbook with one part of its first sheet replaced."""
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(changed, "w") as after:
        for part in before.namelist():
            content = before.read(part)
            assert not part.endswith("sheet1.xml") or old in content
            after.writestr(part, content.replace(old, new, 1) if part.endswith("sheet1.xml") else content)


def test_the_place_in_a_large_sheet_rises(tmp_path: Path, streams: None, monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    for number in range(500):
        book.active.append([f"A{number}", number, number % 7] if number else ["order", "quantity", "size"])
    book.save(tmp_path / "orders.xlsx")
    monkeypatch.setattr(workbook, "STREAMED_CELLS", 0)
    source = SourceFile.open(tmp_path / "orders.xlsx", "orders.xlsx", CorpusBudget())
    places = [source.position.consumed for _ in workbook.read(source, Rejection("stop"))]
    assert len(places) > 3 and places == sorted(places) and 0 < places[0] < places[-1] <= source.size


def test_a_sheet_that_says_less_of_its_size_than_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    for number in range(30):
        book.active.append([f"A{number}", number, f"city {number}"] if number else ["order", "quantity", "city"])
    book.save(tmp_path / "orders.xlsx")
    small = tmp_path / "small.xlsx"
    rewrite(tmp_path / "orders.xlsx", small, b'<dimension ref="A1:C30"', b'<dimension ref="A1:B2"')
    (whole,) = tables_of(workbook, tmp_path / "orders.xlsx")
    monkeypatch.setattr(workbook, "STREAMED_CELLS", 0)
    (cut,) = tables_of(workbook, small)
    assert whole.rows == cut.rows and len(whole.rows) == 29


def test_a_parquet_file_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"order": [f"A{number}" for number in range(3000)], "city": [f"city {n % 3}" for n in range(3000)]}
    path = tmp_path / "orders.parquet"
    pq.write_table(pa.table(columns), path)
    (whole,) = tables_of(parquet, path)
    monkeypatch.setattr(parquet, "PIECE_CELLS", 500)
    source = SourceFile.open(path, path.name, CorpusBudget())
    pieces = list(parquet.read(source, Rejection("stop")))
    assert len(pieces) > 4 and [piece.more for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert joined([piece.record for piece in pieces]) == whole
    assert len(whole.rows) == 3000 and 0 < source.position.consumed <= source.size


@pytest.mark.slow
def test_a_large_workbook_needs_little_memory(tmp_path: Path) -> None:
    """A sheet of 1,200,000 cells in a reading process that may take 256 MB; read whole it took some 700."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("orders")
    sheet.append([f"column {place}" for place in range(8)])
    for number in range(150_000):  # more than STREAMED_CELLS
        sheet.append([f"A{number}", *(number % place for place in range(2, 9))])
    book.save(tmp_path / "orders.xlsx")
    pieces = list(read_pieces(tmp_path / "orders.xlsx", budget=CorpusBudget(memory_mb=256)))
    assert sum(len(piece.record.rows) for piece in pieces) == 150_000
    assert [piece.more for piece in pieces] == [True] * (len(pieces) - 1) + [False]


@pytest.mark.slow
def test_a_large_table_is_stored_as_one_that_comes_whole(tmp_path: Path):
    """In pieces from the reading process, of which the earlier ones are narrower: the same bytes, and less memory."""
    path = tmp_path / "corpus" / "orders.csv"
    path.parent.mkdir()
    rows = "".join(f"A{number},{number % 7},city number {number % 30} of the land\n" for number in range(120_000))
    path.write_text(HEADER + rows + "B1,1,Oslo,express\n", encoding="utf-8")
    with CorpusWriter(tmp_path / "pieces") as writer:
        pieces = list(read_pieces(path))
        for parsed in pieces:
            writer.add(parsed.record, more=parsed.more)
        assert writer.counts() == {"tables": 1, "segments": 120_001, "passages": 0}
    assert len(pieces) > 1
    (table,) = read_corpus(path)
    with CorpusWriter(tmp_path / "whole") as writer:
        writer.add(table)
    for file in (tmp_path / "whole").iterdir():
        assert file.read_bytes() == (tmp_path / "pieces" / file.name).read_bytes(), file.name
    assert CorpusStore.open(tmp_path / "pieces").segment(120_000).cells == ("B1", "1", "Oslo", "express")


def test_a_table_that_breaks_off_is_not_stored(tmp_path: Path):
    table = Table("t", "T", ("a",), (("1",),))
    with CorpusWriter(tmp_path) as writer:
        writer.add(table, more=True)
        writer.add(Table("u", "U", ("a",), (("2",),)))
    assert list(CorpusStore.open(tmp_path).tables.ids()) == ["u"]

"""Large sheets that are read row by row: the same tables as a sheet that is read whole."""

import gzip
from pathlib import Path

import pytest

from helios.config import CorpusBudget
from helios.corpus import CorpusStore, CorpusWriter, read_corpus, read_pieces
from helios.corpus.readers import delimited
from helios.corpus.rejects import Rejection
from helios.corpus.shape import joined
from helios.corpus.source import SourceFile
from helios.errors import RecordError
from helios.types import Table

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
    source = SourceFile.open(path, path.name, CorpusBudget(**budget))
    pieces: list[Table] = []
    tables = []
    for parsed in delimited.read(source, Rejection("stop")):
        pieces.append(parsed.record)
        if not parsed.more:
            tables.append(joined(pieces))
            pieces = []
    assert not pieces
    return tables


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

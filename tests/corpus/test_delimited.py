"""CSV and TSV: delimiter, encoding, titles and header are found; bad rows are named."""

import gzip
import json

import pytest

from helios.corpus import RejectsWriter, read_corpus
from helios.corpus.readers.delimited import sniff_delimiter
from helios.errors import CorpusError, RecordError
from helios.types import Passage, Table


def read_one(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    (table,) = read_corpus(path)
    return table


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["rivers_of_europe.csv", "rivers_of_europe.tsv"])
def test_delimiters(tmp_path, delimiter, name):
    rows = [["River", "Length"], ["Rhine", '"1230"'], ["Po", '"a ""long"" one"']]
    table = read_one(tmp_path / name, "\r\n".join(delimiter.join(row) for row in rows))
    assert (table.table_id, table.title) == (name, "rivers of europe")
    assert table.header == ("River", "Length")
    assert table.rows == (("Rhine", "1230"), ("Po", 'a "long" one'))


def test_decimal_commas_do_not_win_over_semicolons():
    assert sniff_delimiter("a;b\n1,5;2,5\n3,5;4,5\n", suffix=".csv") == ";"
    assert sniff_delimiter("one column\nof text, with comma\n", suffix=".csv") == ","


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Città,Größe\nMálaga,groß\nMünchen,señor\n", "latin-1"),
        ("Name,Price\nx,“quoted” – dash €5\nCafé,€6\n", "cp1252"),
        ("Имя,Город\nИван,Москва\nПётр,Казань\nМария,Тверь\n", "cp1251"),
        ("都市,人口\n東京,13960000\n大阪,8809000\n横浜市の人口,3\n", "shift_jis"),
        ("a,b\né,ü\n", "utf-16"),
        ("name,city\nanna,rome\npeter,oslo\n", "utf-16-le"),
        ("name,city\nanna,rome\npeter,oslo\n", "utf-16-be"),
        ("a,b\né,ü\n", "utf-32"),
        ("a,b\né,ü\n", "utf-8-sig"),
    ],
)
def test_encodings(tmp_path, text, encoding):
    table = read_one(tmp_path / "t.csv", text.encode(encoding))
    header, *rows = (tuple(line.split(",")) for line in text.splitlines())
    assert (table.header, table.rows) == (header, tuple(rows))


def test_title_rows_above_the_header(tmp_path):
    table = read_one(tmp_path / "t.csv", "Sales 2020,,\nin thousands,,\n,,\nRegion,Q1,Q2\nNorth,1,2\nSouth,3,4\n")
    assert (table.title, table.intro) == ("Sales 2020", "in thousands")
    assert table.header == ("Region", "Q1", "Q2")
    assert len(table.rows) == 2


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("1,2\n3,4\n5,6\n", ("column 1", "column 2")),
        ("Country,2019,2020\nFR,1,2\nES,3,4\n", ("Country", "2019", "2020")),
        (",2020,2019\nFR,1,2\nES,3,4\n", ("column 1", "2020", "2019")),
        ("Anna,34\nPeter,25\nMaria,41\n", ("column 1", "column 2")),
        ("name,city\nanna,rome\npeter,oslo\n", ("name", "city")),
        ("only header,here\n", ("only header", "here")),
        ("day,share\n2020-01-01,5%\n2020-01-02,$7\n", ("day", "share")),
    ],
)
def test_header_or_not(tmp_path, text, header):
    table = read_one(tmp_path / "t.csv", text)
    assert table.header == header
    assert len(table.rows) == text.count("\n") - (not header[-1].startswith("column"))


def test_ragged_rows_empty_headers_and_blank_lines(tmp_path):
    table = read_one(tmp_path / "t.csv", "a,,c\n1\n\n1,2,3,4\n,,\n")
    assert table.header == ("a", "column 2", "c", "column 4")
    assert table.rows == (("1", "", "", ""), ("1", "2", "3", "4"))


def test_quoted_line_breaks_and_long_fields(tmp_path):
    table = read_one(tmp_path / "t.csv", 'a,b\n"one\ntwo",' + "x" * 300_000 + "\n3,4\n")
    assert table.rows[0] == ("one\ntwo", "x" * 300_000)


def test_ten_thousand_columns(tmp_path):
    rows = [[f"c{number}" for number in range(10_000)], *[[str(number) for number in range(10_000)]] * 3]
    table = read_one(tmp_path / "t.csv", "\n".join(",".join(row) for row in rows))
    assert table.header == tuple(rows[0])
    assert table.rows == tuple(tuple(row) for row in rows[1:])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"bad\0row,1", "NUL bytes"),
        (b"caf\xe9,1", "not UTF-8 (byte 0xe9)"),
        (b'"open" quote,1', "not valid CSV"),
    ],
)
def test_bad_rows_are_named_or_skipped(tmp_path, line, reason):
    path = tmp_path / "t.csv"
    path.write_bytes("näme,count\nfirst,1\nzweïte,2\n".encode() + line + b"\nlast,3\n")
    with pytest.raises(RecordError) as caught:
        list(read_corpus(path))
    assert (caught.value.line, caught.value.path) == (4, path)
    assert reason in caught.value.reason
    with RejectsWriter(tmp_path / "rejects") as rejects:
        (table,) = read_corpus(path, on_error="skip", rejects=rejects)
    assert [row[0] for row in table.rows] == ["first", "zweïte", "last"]
    (reject,) = map(json.loads, (tmp_path / "rejects").read_text().splitlines())
    assert reject["line"] == 4
    assert reject["record"].encode("utf-8", "surrogateescape") == line


def test_a_quote_that_never_closes_keeps_what_came_before(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n"3,4\n5,6\n')
    with RejectsWriter(tmp_path / "rejects") as rejects:
        (table,) = read_corpus(path, on_error="skip", rejects=rejects)
    assert table.rows == (("1", "2"),)
    assert json.loads((tmp_path / "rejects").read_text())["record"] == '"3,4\n5,6'


def test_empty_and_truncated_files(tmp_path):
    (tmp_path / "empty.csv").write_text("\n \n")
    with pytest.raises(CorpusError, match="empty"):
        list(read_corpus(tmp_path / "empty.csv"))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5000)[:40])
    with pytest.raises(RecordError, match="damaged gzip data"):
        list(read_corpus(tmp_path / "cut.csv.gz"))


def test_packed_file_has_the_id_of_the_plain_one(tmp_path):
    table = read_one(tmp_path / "t.csv.gz", gzip.compress(b"a,b\n1,2\n"))
    assert (table.table_id, table.title) == ("t.csv", "t")


def test_ids_are_paths_within_the_folder(tmp_path):
    for name in ("b/x.csv", "a/x.csv", "x.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a,b\n1,2\n")
    assert [table.table_id for table in read_corpus(tmp_path)] == ["a/x.csv", "b/x.csv", "x.csv"]


@pytest.mark.parametrize(
    ("text", "title", "header", "rows"),
    [
        ("Export;;;\nfrom: 1 May;to: 2 May;;\n\nNr;Name;Preis;Ort\n1;Ann;1,5;Rom\n", "Export", "Nr Name Preis Ort", 1),
        ("Lab;by HNA;;;\nA;B;C;D;E\n1;2;3;4;5\n", "Lab by HNA", "A B C D E", 1),
        (";A;B\n;x;1,5\n;y;2,5\n;Summe;4,0\n", "t", "A B", 3),
        ("Team;2024\nNorth;12\nSouth;15\n", "t", "Team 2024", 2),
    ],
)
def test_what_people_put_above_beside_and_below_a_table(tmp_path, text, title, header, rows):
    (tmp_path / "t.csv").write_text(text)
    (table,) = (one for one in read_corpus(tmp_path / "t.csv") if isinstance(one, Table))
    assert (table.title, table.header, len(table.rows)) == (title, tuple(header.split()), rows)


def test_lines_above_and_below_a_table_are_texts_of_their_own(tmp_path):
    (tmp_path / "hire.csv").write_text(
        "Hire 2026\nA deposit is due: 50 pounds\nin pounds\n\nBoat,Price\nHeron,12\nSwift,9\n\n"
        "Dogs go on the Heron only\nBook with Maria on 960 411\n"
    )
    above, table, below = read_corpus(tmp_path / "hire.csv")
    assert isinstance(above, Passage) and isinstance(table, Table) and isinstance(below, Passage)
    assert (above.title, above.text) == ("Hire 2026", "A deposit is due: 50 pounds.")
    assert table.rows == (("Heron", "12"), ("Swift", "9"))
    assert (below.title, below.text) == ("Hire 2026", "Dogs go on the Heron only. Book with Maria on 960 411.")
    assert [one.passage_id for one in (above, below)] == ["hire.csv#passage-1", "hire.csv#passage-2"]


def test_tables_one_below_the_other(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\nx,1\ny,2\n\nc,d\nz,3\nw,4\n")
    first, second = read_corpus(tmp_path / "t.csv")
    assert (first.table_id, second.table_id) == ("t.csv", "t.csv#table-2")
    assert second.header == ("c", "d")


def test_a_few_signs_are_western(tmp_path):
    table = read_one(tmp_path / "t.csv", ("Job,Labour £\n" + "Harbour bike,72\n" * 200 + "Café,1\n").encode("latin-1"))
    assert (table.header[1], table.rows[-1][0]) == ("Labour £", "Café")

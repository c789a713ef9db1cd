"""Parquet: rows that are records, or the file as one table."""

import datetime
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helios.corpus import RejectsWriter, read_corpus
from helios.errors import RecordError
from helios.types import Passage


def test_a_file_is_a_table(tmp_path):
    columns = {
        "name": ["a", None],
        "": [1, 2],
        "share": [0.5, 1e20],
        "day": [datetime.date(2020, 1, 2), None],
        "price": [decimal.Decimal("1.50"), None],
        "tags": [["x", "ü"], []],
        "raw": [b"abc", b"\xff"],
        "yes": [True, False],
    }
    pq.write_table(pa.table(columns), tmp_path / "some_data.parquet")
    (table,) = read_corpus(tmp_path)
    assert (table.table_id, table.title) == ("some_data.parquet", "some data")
    assert table.header == ("name", "column 2", "share", "day", "price", "tags", "raw", "yes")
    assert table.rows == (
        ("a", "1", "0.5", "2020-01-02", "1.50", '["x", "ü"]', "abc", "true"),
        ("", "2", "1e+20", "", "", "[]", "ff", "false"),
    )


def test_rows_that_are_passages(tmp_path):
    columns = {"_id": ["1", "2", None], "title": ["A", "B", "C"], "text": ["x", "y", "z"]}
    pq.write_table(pa.table(columns), tmp_path / "corpus.parquet")
    with pytest.raises(RecordError, match="no id") as caught:
        list(read_corpus(tmp_path))
    assert caught.value.line == 3
    with RejectsWriter(tmp_path / "rejects") as rejects:
        records = list(read_corpus(tmp_path, on_error="skip", rejects=rejects))
    source = "corpus.parquet"
    assert records == [Passage("1", "A", "x", source=source), Passage("2", "B", "y", source=source)]
    assert rejects.count == 1


def test_rows_that_are_tables(tmp_path):
    columns = {"id": ["t"], "title": ["T"], "header": [["a", "b"]], "rows": [[["1"], ["2", "3"]]]}
    pq.write_table(pa.table(columns), tmp_path / "tables.parquet")
    (table,) = read_corpus(tmp_path)
    assert table.rows == (("1", ""), ("2", "3"))


def test_ten_thousand_columns(tmp_path):
    pq.write_table(pa.table({f"c{number}": [number] for number in range(10_000)}), tmp_path / "t.parquet")
    (table,) = read_corpus(tmp_path)
    assert table.rows == (tuple(map(str, range(10_000))),)


def test_damaged_files(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 but no more")
    with pytest.raises(RecordError, match="not a readable Parquet file"):
        list(read_corpus(path))
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}).select([]), path)
    with pytest.raises(RecordError, match="no columns"):
        list(read_corpus(path))

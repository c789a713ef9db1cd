"""Sidecar files: what values they hold, whose they are, and which lines are refused."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.corpus.sidecar import Sidecar
from helios.errors import CorpusError, RecordError
from helios.types import Passage, Table

PASSAGE = Passage("p1", "Rhine", "It flows.", source="notes/rivers.md")


def read(folder: Path, name: str, content: str | bytes) -> Sidecar:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Sidecar.read(path)


def fields(sidecar: Sidecar, record: Table | Passage = PASSAGE) -> dict:
    return dict(sidecar.completed(record).metadata)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("north", "north"), (" north ", "north"), ("1990", 1990), ("-5", -5), ("+5", 5), ("0", 0), ("0.50", 0.5),
        ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("007", "007"), ("00.5", "00.5"), ("1_000", "1_000"), ("1,5", "1,5"),
        ("true", True), ("FALSE", False), ("nan", "nan"), ("inf", "inf"), ("1e999", "1e999"), ("٣", "٣"),
        ("9007199254740993", 9007199254740993), ("1990-01-02", "1990-01-02"), ("0x10", "0x10"),
    ],
)  # fmt: skip
def test_what_a_cell_of_a_csv_file_says(tmp_path, cell, value):
    found = fields(read(tmp_path, "m.csv", f'id,field\np1,"{cell}"\n'))["field"]
    assert (found, type(found)) == (value, type(value))


def test_empty_cells_and_short_lines_say_nothing(tmp_path):
    sidecar = read(tmp_path, "m.csv", "id,a,b,c\np1,, ,3\np2,1\n")
    assert fields(sidecar) == {"c": 3}
    assert fields(sidecar, Passage("p2", "", "")) == {"a": 1}
    assert sidecar.completed(Passage("p3", "", "")) == Passage("p3", "", "")


@given(text=st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers().map(str))
@settings(max_examples=100, deadline=None)
def test_numbers_are_read_as_python_writes_them(tmp_path_factory, text):
    found = fields(read(tmp_path_factory.mktemp("sidecar"), "m.csv", f"id,n\np1,{text}\n"))["n"]
    value = float(text)
    assert found == (text if math.isinf(value) else int(text) if text.lstrip("-").isdecimal() else value)


def test_what_is_nearer_counts_more(tmp_path):
    """The record's own field, then a line about the record, then one about its file."""
    own = Passage("p1", "", "", source="notes/rivers.md", metadata=(("year", 1), ("own", "x")))
    sidecar = read(
        tmp_path, "m.csv", "id,year,region,owner\nnotes/rivers.md,3,of the file,me\np1,2,of the record,\nother,9,,\n"
    )
    assert sidecar.completed(own).metadata == (
        ("own", "x"), ("owner", "me"), ("region", "of the record"), ("year", 1),
    )  # fmt: skip
    assert fields(sidecar, Passage("p2", "", "", source="notes/rivers.md")) == {
        "year": 3, "region": "of the file", "owner": "me",
    }  # fmt: skip
    table = Table("p1", "", ("a",), (), source="elsewhere.csv")
    assert fields(sidecar, table) == {"year": 2, "region": "of the record"}


def test_tabs_other_encodings_and_columns_without_a_name(tmp_path):
    content = "\tid\tregion\n0\tp1\tMünchen\n".encode("latin-1")
    assert fields(read(tmp_path, "m.tsv", content)) == {"region": "München"}
    assert fields(read(tmp_path, "bom.csv", "\ufeffid,a\np1,1\n")) == {"a": 1}
    assert fields(read(tmp_path, "lines.csv", 'id,a\r\np1,"two\r\nlines"\r\n')) == {"a": "two\r\nlines"}


def test_json_lines(tmp_path):
    lines = [
        {"id": "p1", "year": 1990, "share": 0.5, "draft": False, "note": "", "none": None, "of": {"city": "Bern"}},
        {"id": 7, "year": 2000},
    ]
    sidecar = read(tmp_path, "m.jsonl", "\n\n".join(map(json.dumps, lines)))
    assert fields(sidecar) == {"year": 1990, "share": 0.5, "draft": False, "note": "", "of.city": "Bern"}
    assert fields(sidecar, Passage("7", "", "")) == {"year": 2000}


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("m.csv", "name,year\na,1\n", 1, "no column `id`"),
        ("m.csv", "", 1, "no column `id`"),
        ("m.csv", "id,year\np1,1\n\np2,1,2\n", 4, "more cells than the header has names"),
        ("m.csv", "id,year\np1,1\np1,2\n", 3, "'p1' has a line already"),
        ("m.csv", "id,year\n,1\n", 2, "no `id`"),
        ("m.csv", "year,id\n1\n", 2, "no `id`"),
        ("m.csv", "id,year,year\np1,1,2\n", 1, "two columns are called 'year'"),
        ("m.csv", 'id,year\np1,"1\n', 2, "not valid CSV: unexpected end of data"),
        ("m.jsonl", '{"id": "p1"}\n{"id": "p2", ', 2, "expected an object with an `id` and plain fields"),
        ("m.jsonl", '{"year": 1}', 1, "expected an object with an `id` and plain fields ('id')"),
        ("m.jsonl", "[1]", 1, "expected an object"),
        ("m.jsonl", '{"id": null}', 1, "`id` must be a text or a whole number"),
        ("m.jsonl", '{"id": true}', 1, "`id` must be a text or a whole number"),
        ("m.jsonl", '{"id": ""}', 1, "`id` must be a text or a whole number"),
        (
            "m.jsonl",
            '{"id": "p1", "tags": ["a"]}',
            1,
            "`metadata.tags` is list, expected text, a number, true or false",
        ),
        ("m.jsonl", '{"id": "p1", "year": NaN}', 1, "`metadata.year` is nan, expected a finite number"),
        ("m.jsonl", b'{"id": "p\xe9"}', 1, "expected an object"),
        ("m.jsonl", "[" * 100_000, 1, "expected an object"),
        ("m.ndjson", '{"id": "p1"}\n{"id": "p1"}', 2, "'p1' has a line already"),
    ],
)
def test_damaged_lines_are_named(tmp_path, name, content, line, reason):
    with pytest.raises(RecordError) as caught:
        read(tmp_path, name, content)
    assert (caught.value.path.name, caught.value.line) == (name, line)
    assert reason in caught.value.reason


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(CorpusError, match=r"none\.csv: cannot be read \(No such file"):
        Sidecar.read(tmp_path / "none.csv")

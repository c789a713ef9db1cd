"""`--map`: records of any shape as passages by their fields."""

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helios.corpus import FieldMap, RejectsWriter, read_corpus
from helios.corpus.files import FileList
from helios.errors import ConfigError, CorpusError, RecordError
from helios.types import Passage, Table

NEWS = [
    {
        "headline": "Bridge opens",
        "body": "The bridge opened.",
        "key": 7,
        "year": 1890,
        "by": {"name": "Moe", "is": True},
    },
    {
        "headline": "Bridge\ncloses",
        "body": ["It rained.", "It closed."],
        "key": "b8",
        "year": None,
        "by": {"name": "Ann"},
    },
]
FIELDS = FieldMap("headline", "body", "key")
FOUND = [
    ("7", "Bridge opens", "The bridge opened.", (("by.is", True), ("by.name", "Moe"), ("year", 1890))),
    ("b8", "Bridge closes", "It rained.\nIt closed.", (("by.name", "Ann"),)),
]


def told(passages: list[Passage]) -> list[tuple[object, ...]]:
    return [(one.passage_id, one.title, one.text, one.metadata) for one in passages]


def write_lines(path: Path, records: list[object]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("news.jsonl", "".join(json.dumps(record) + "\n" for record in NEWS)),
        ("news.json", json.dumps(NEWS)),
        ("news.json", json.dumps({"tags": ["a", "b", "c"], "data": {"items": NEWS}})),
    ],
    ids=["lines", "array", "wrapped"],
)
def test_json_of_any_shape(tmp_path: Path, name: str, content: str):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert told(list(read_corpus(tmp_path / name, mapping=FIELDS))) == FOUND


def test_csv_and_parquet(tmp_path: Path):
    (tmp_path / "a.csv").write_text("headline;body;year\nOne;Text one;1890\nTwo;Text, two;\n", encoding="utf-8")
    pq.write_table(pa.table({"headline": ["P"], "body": ["Text"], "by": [{"name": "Moe"}]}), tmp_path / "b.parquet")
    assert told(list(read_corpus(tmp_path, mapping=FieldMap("headline", "body")))) == [
        ("a.csv#passage-1", "One", "Text one", (("year", 1890),)),
        ("a.csv#passage-2", "Two", "Text, two", ()),
        ("b.parquet#passage-1", "P", "Text", (("by.name", "Moe"),)),
    ]


def test_a_field_of_an_object_within(tmp_path: Path):
    write_lines(tmp_path / "news.jsonl", NEWS)
    passages = list(read_corpus(tmp_path, mapping=FieldMap("by.name", "headline")))
    assert [(one.title, one.text) for one in passages] == [("Moe", "Bridge opens"), ("Ann", "Bridge\ncloses")]


def test_records_that_lack_a_field_are_rejected_alone(tmp_path: Path):
    odd = [{"headline": "no text", "key": 1}, {"headline": "empty", "body": " ", "key": 2}, "no object", *NEWS]
    path = write_lines(tmp_path / "news.jsonl", odd)
    with pytest.raises(RecordError, match="no field 'body', its text by --map") as caught:
        list(read_corpus(path, mapping=FIELDS))
    assert caught.value.line == 1
    with RejectsWriter(tmp_path / "rejects") as rejects:
        assert told(list(read_corpus(path, mapping=FIELDS, on_error="skip", rejects=rejects))) == FOUND
    written = [json.loads(line) for line in (tmp_path / "rejects").read_text(encoding="utf-8").splitlines()]
    assert [(one["line"], one["reason"].partition(",")[0]) for one in written] == [
        (1, "no field 'body'"), (2, "the field 'body'"), (3, "expected an object with fields"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["news.jsonl", "folder"])
def test_an_unknown_field_names_those_that_there_are(tmp_path: Path, name: str):
    place = tmp_path / name
    if name == "folder":
        place.mkdir()
    write_lines(place / "news.jsonl" if name == "folder" else place, NEWS)
    with pytest.raises(
        CorpusError, match=r"news\.jsonl.*'titel' \(title\).*headline, body, key, year, by\.name, by\.is"
    ):
        list(read_corpus(place, mapping=FieldMap("titel", "txt")))


def test_other_files_of_a_folder_are_read_as_ever(tmp_path: Path):
    (tmp_path / "prices.csv").write_text("item,price\nlamp,3\nshelf,4\n", encoding="utf-8")
    (tmp_path / "half.csv").write_text("headline,price\nlamp,3\n", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as archive:
        archive.writestr("news.jsonl", "".join(json.dumps(record) + "\n" for record in NEWS))
    files = FileList()
    *passages, table = read_corpus(tmp_path, mapping=FIELDS, on_error="auto", files=files)
    assert told(passages) == FOUND
    assert isinstance(table, Table) and table.header == ("item", "price")
    assert {entry.file: (entry.format, entry.outcome) for entry in files if entry.file != "old.zip"} == {
        "half.csv": ("mapped", "rejected"),
        "old.zip/news.jsonl": ("mapped", "read"),
        "prices.csv": ("csv", "read"),
    }


def test_damaged_files_are_rejected(tmp_path: Path):
    for name, content in {"a.json": '[{"headline": "A", "body": "B"}, {"head', "b.parquet": "PAR1 and no more"}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    files = FileList()
    found = list(read_corpus(tmp_path, mapping=FieldMap("headline", "body"), on_error="skip", files=files))
    assert [one.title for one in found] == ["A"]
    assert [entry.rejected for entry in files] == [1, 1]


@pytest.mark.parametrize(
    "written", ["", "title=a", "text=a", "title=a,text=b,text=c", "name=a,text=b", "title=,text=b"]
)
def test_a_map_that_says_too_little_or_too_much(written: str):
    with pytest.raises(ConfigError, match="--map"):
        FieldMap.parse(written)


def test_a_map_as_it_is_written():
    assert FieldMap.parse("title=a, text=b.c,url=d") == FieldMap("a", "b.c", "", "d")

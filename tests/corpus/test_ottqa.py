"""OTT-QA's official files, small ones of our own in the same layout."""

import gzip
import json

import pytest

from helios.corpus import RejectsWriter, read_corpus
from helios.errors import RecordError
from helios.types import Hyperlink, Passage

TOKENIZED = {
    "url": "https://example.org/wiki/Rivers",
    "title": "Rivers",
    "header": [["River", []], ["", []]],
    "data": [
        [["Rhine", ["/wiki/Rhine"]], ["1230", []]],
        [["Po , Rhone", ["/wiki/Po", "/wiki/Rhone"]], ["x", []]],
    ],
    "section_title": "List",
    "section_text": "",
    "uid": "Rivers_0",
    "intro": "Intro .",
}
PLAIN = {**TOKENIZED, "header": ["River", "km"], "data": [["Rhine", "1230"]]}


def test_traindev_folders(tmp_path):
    for folder, name, value in [
        ("traindev_tables_tok", "Rivers_0", TOKENIZED),
        ("traindev_tables_tok", "Rivers_1", {**TOKENIZED, "uid": "Rivers_1"}),
        (
            "traindev_request_tok",
            "Rivers_0",
            {"/wiki/Rhine": "It flows .", "/wiki/S%C3%A3o_Paulo": "A city ."},
        ),
        ("traindev_request_tok", "Rivers_1", {"/wiki/Rhine": "It flows .", "/wiki/Po": "Too ."}),
    ]:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.json").write_text(json.dumps(value))
    (tmp_path / "train.json").write_text(json.dumps([{"question_id": "q", "question": "?", "table_id": "t"}]))
    rhine, sao_paulo, po, table, other = read_corpus(tmp_path)
    source = "traindev_request_tok/Rivers_0.json"
    assert rhine == Passage("/wiki/Rhine", "Rhine", "It flows .", source=source)
    assert sao_paulo.title == "São Paulo"
    assert po.passage_id == "/wiki/Po"
    assert (table.table_id, other.table_id) == ("Rivers_0", "Rivers_1")
    assert table.header == ("River", "column 2")
    assert table.rows[1] == ("Po , Rhone", "x")
    assert table.section == "List"
    assert table.hyperlinks == (
        Hyperlink(0, 0, "/wiki/Rhine"),
        Hyperlink(1, 0, "/wiki/Po"),
        Hyperlink(1, 0, "/wiki/Rhone"),
    )


@pytest.mark.parametrize("packed", [False, True])
def test_whole_corpus_files(tmp_path, packed):
    tables, passages = {"Rivers_0": PLAIN, "Rivers_1": PLAIN}, {"/wiki/Rhine": "It flows ."}
    for name, value in {"all_plain_tables.json": tables, "all_passages.json": passages}.items():
        data = json.dumps(value).encode()
        (tmp_path / (name + ".gz" * packed)).write_bytes(gzip.compress(data) if packed else data)
    passage, *read = read_corpus(tmp_path)
    source = "all_passages.json" + ".gz" * packed
    assert passage == Passage("/wiki/Rhine", "Rhine", "It flows .", source=source)
    assert [table.table_id for table in read] == ["Rivers_0", "Rivers_1"]
    assert read[0].rows == (("Rhine", "1230"),)


def test_large_files_are_streamed(tmp_path):
    path = tmp_path / "all_passages.json"
    with path.open("w") as file:
        file.write("{" + ",".join(f'"/wiki/{number}": "text {number}"' for number in range(50_000)))
    first = next(iter(read_corpus(path)))
    assert first == Passage("/wiki/0", "0", "text 0", source="all_passages.json")


def test_an_array_of_records(tmp_path):
    path = tmp_path / "records.json"
    path.write_text(json.dumps([{"id": "p", "title": "P", "text": "x"}, {**PLAIN, "id": "t"}]))
    assert [type(record).__name__ for record in read_corpus(path)] == ["Passage", "Table"]


def test_damage_keeps_what_came_before(tmp_path):
    path = tmp_path / "all_plain_tables.json"
    path.write_text(json.dumps({"a": PLAIN, "b": {**PLAIN, "data": 3}, "c": PLAIN})[:-30])
    with pytest.raises(RecordError, match="record 'b': `data` is int, expected a list"):
        list(read_corpus(path))
    with RejectsWriter(tmp_path / "rejects") as rejects:
        records = list(read_corpus(path, on_error="skip", rejects=rejects))
    assert [table.table_id for table in records] == ["a"]
    reasons = [json.loads(line)["reason"] for line in (tmp_path / "rejects").read_text().splitlines()]
    assert len(reasons) == 2
    assert reasons[1].startswith("not valid JSON")


def test_truncated_gzip_and_wrong_encoding(tmp_path):
    data = json.dumps({f"/wiki/{number}": f"text {number * 7919}" for number in range(30_000)}).encode()
    packed = tmp_path / "all_passages.json.gz"
    packed.write_bytes(gzip.compress(data)[:60_000])
    with RejectsWriter(tmp_path / "rejects") as rejects:
        assert len(list(read_corpus(packed, on_error="skip", rejects=rejects))) > 1000
    assert rejects.count == 1
    latin = tmp_path / "latin.json"
    latin.write_bytes('{"/wiki/a": "good", "/wiki/b": "café"}'.encode("latin-1"))
    with pytest.raises(RecordError, match="not UTF-8|not valid JSON"):
        list(read_corpus(latin))
    single = tmp_path / "table.json"
    single.write_text('{"header": ["a"], "data": [["b"]')
    with pytest.raises(RecordError, match="not valid JSON"):
        list(read_corpus(single))

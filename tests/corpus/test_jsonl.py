"""JSON lines: our schema, BEIR and typed units; what is wrong with a line is said and the rest is kept."""

import gzip
import json

import pytest

from helios.corpus import RejectsWriter, read_corpus
from helios.errors import ConfigError, CorpusError, RecordError
from helios.types import Hyperlink, Passage, Table, TableKind

TABLE = {
    "id": "t",
    "title": "Rivers",
    "section_title": "By length",
    "section_text": "About the list.",
    "intro": "About the page.",
    "url": "https://example.org/rivers",
    "header": ["River", ""],
    "rows": [["Rhine", "1230"], ["Po", 652]],
    "links": [[0, 0, "rhine"]],
}
PASSAGE = {"id": "rhine", "title": "Rhine", "text": "It flows.", "url": "https://example.org/rhine"}


def write_lines(path, *values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def skip(path, tmp_path):
    """Read with on_error="skip": the records and the rejects."""
    with RejectsWriter(tmp_path / "rejects.out") as rejects:
        records = list(read_corpus(path, on_error="skip", rejects=rejects))
    lines = (tmp_path / "rejects.out").read_text("utf-8").splitlines()
    assert rejects.count == len(lines)
    return records, [json.loads(line) for line in lines]


def test_our_schema(tmp_path):
    table, passage = read_corpus(write_lines(tmp_path / "mixed.jsonl", TABLE, PASSAGE))
    assert table == Table(
        "t",
        "Rivers",
        ("River", "column 2"),
        (("Rhine", "1230"), ("Po", "652")),
        "By length",
        "About the page.\n\nAbout the list.",
        "https://example.org/rivers",
        TableKind.TABLE,
        (Hyperlink(0, 0, "rhine"),),
        "mixed.jsonl",
    )
    assert passage == Passage("rhine", "Rhine", "It flows.", "https://example.org/rhine", "mixed.jsonl")


def test_folder_of_packed_and_plain_files_passes_over_what_is_no_corpus(tmp_path):
    write_lines(tmp_path / "tables.jsonl", TABLE)
    (tmp_path / "passages.jsonl.gz").write_bytes(gzip.compress(json.dumps(PASSAGE).encode()))
    write_lines(tmp_path / "dev.jsonl", {"id": "q", "question": "?", "answer": "!", "table": "t", "text": ""})
    (tmp_path / "settings.json").write_text('{"train": ["t"], "dev": []}')
    (tmp_path / ".hidden.jsonl").write_text("{")
    (tmp_path / "notes.doc").write_text("notes")
    assert [type(record) for record in read_corpus(tmp_path)] == [Passage, Table]


def test_beir_folder(tmp_path):
    write_lines(tmp_path / "corpus.jsonl", {"_id": "1", "title": "T", "text": "x", "metadata": {}})
    write_lines(tmp_path / "queries.jsonl", {"_id": "2", "text": "a query"})
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n2\t1\t1\n")
    assert list(read_corpus(tmp_path)) == [Passage("1", "T", "x", source="corpus.jsonl")]


def test_typed_units(tmp_path):
    path = write_lines(
        tmp_path / "units.jsonl",
        {"id": "a", "type": "text", "title": "A", "url": "u", "content": "words"},
        {"id": "b", "type": "table", "title": "B", "content": {"columns": ["x", "y"], "rows": [["1"]]}},
        {
            "id": "c",
            "type": "infobox",
            "title": "C",
            "content": {"Plain": "1", "Group": {"In": "2", "List": ["3", "4"]}, "Empty": {}},
        },
    )
    text, table, infobox = read_corpus(path)
    assert text == Passage("a", "A", "words", "u", "units.jsonl")
    assert table == Table("b", "B", ("x", "y"), (("1", ""),), source="units.jsonl")
    assert infobox.kind is TableKind.INFOBOX
    assert infobox.header == ("attribute", "value")
    assert infobox.rows == (("Plain", "1"), ("Group / In", "2"), ("Group / List", "3 ; 4"), ("Empty", ""))


def test_ragged_rows_lose_nothing(tmp_path):
    ragged = {"id": "t", "header": ["a", "b"], "rows": [["1"], ["1", "2", "3"], []]}
    (table,) = read_corpus(write_lines(tmp_path / "t.jsonl", ragged))
    assert table.header == ("a", "b", "column 3")
    assert table.rows == (("1", "", ""), ("1", "2", "3"), ("", "", ""))


def test_cells_of_other_types(tmp_path):
    row = [None, True, 1, 1.0, 0.1 + 0.2, 1e30, "  text "]
    (table,) = read_corpus(write_lines(tmp_path / "t.jsonl", {"id": 7, "header": list("abcdefg"), "rows": [row]}))
    assert table.table_id == "7"
    assert table.rows == (("", "true", "1", "1", "0.3", "1e+30", "text"),)


def test_ten_thousand_columns(tmp_path):
    header = [f"c{number}" for number in range(10_000)]
    row = [str(number) for number in range(10_000)]
    (table,) = read_corpus(write_lines(tmp_path / "t.jsonl", {"id": "t", "header": header, "rows": [row] * 3}))
    assert table.header == tuple(header)
    assert table.rows == (tuple(row),) * 3


BAD_LINES = {
    b'{"id": "x", "text": "a"': "not valid JSON",
    b"[1]": "expected a JSON object, found list",
    b'{"id": "x"}': "neither a table (header and rows) nor a passage (text)",
    b'{"text": "a"}': "no id",
    b'{"id": "", "text": "a"}': "no id",
    b'{"id": "x", "text": 5}': "`text` is int, expected text",
    b'{"id": "x", "text": "caf\xe9"}': "not UTF-8 (byte 0xe9 at position 24)",
    b'{"id": "x", "text": "a\0b"}': "the line has NUL bytes",
    b'{"id": "x", "text": "a\\u0000b"}': "NUL character",
    b'{"id": "x", "text": "\\ud800"}': "half of a surrogate pair",
    b"[" * 200_000: "nested too deeply",
    b'{"id": "x", "header": "a", "rows": []}': "`header` is str, expected a list",
    b'{"id": "x", "header": [], "rows": []}': "a table without columns",
    b'{"id": "x", "header": ["a"], "rows": ["b"]}': "row 0 is str, expected a list of cells",
    b'{"id": "x", "header": ["a"], "rows": [[{}]]}': "a cell is an object",
    b'{"id": "x", "header": ["a"], "rows": [[["b"]]]}': "a cell is a list",
    b'{"id": "x", "header": ["a"], "rows": [], "kind": "map"}': "`kind` is 'map', expected one of",
    b'{"id": "x", "header": ["a"], "rows": [["b"]], "links": [[1, 0, "p"]]}': "link to cell (1, 0)",
    b'{"id": "x", "header": ["a"], "rows": [["b"]], "links": [["p"]]}': "is not [row, column, passage id]",
    b'{"id": "x", "header": ["a"], "rows": [["b"]], "links": 3}': "`links` is int, expected a list",
    b'{"id": "x", "type": "sound", "content": "a"}': "a unit of type 'sound' with str content",
    b'{"id": "p1", "text": "again"}': "duplicate passage id 'p1'",
}


@pytest.mark.parametrize(("line", "reason"), BAD_LINES.items(), ids=BAD_LINES.values())
def test_a_bad_line_is_named_or_skipped(tmp_path, line, reason):
    good = b'{"id": "p1", "text": "one"}\n', b'\r\n{"id": "p2", "text": "two"}'
    path = tmp_path / "passages.jsonl"
    path.write_bytes(good[0] + line + good[1])
    with pytest.raises(RecordError) as caught:
        list(read_corpus(path))
    assert caught.value.path == path
    assert caught.value.line == 2
    assert reason in caught.value.reason
    records, rejects = skip(path, tmp_path)
    assert [record.passage_id for record in records] == ["p1", "p2"]
    (reject,) = rejects
    assert reason in reject["reason"]
    assert (reject["file"], reject["line"]) == (str(path), 2)
    assert reject["record"]


def test_truncated_gzip_keeps_what_came_before(tmp_path):
    lines = b"".join(b'{"id": "p%d", "text": "%d"}\n' % (number, number * 7919) for number in range(20_000))
    packed = gzip.compress(lines)
    path = tmp_path / "passages.jsonl.gz"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(RecordError, match="damaged gzip data"):
        list(read_corpus(path))
    records, rejects = skip(path, tmp_path)
    assert len(records) > 5000
    assert [reject["line"] for reject in rejects] == [len(records) + 1]
    path.write_bytes(packed[:5000] + b"\0" * 500 + packed[5500:])
    records, rejects = skip(path, tmp_path)
    assert records
    assert rejects


def test_byte_order_mark_and_blank_lines(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "p", "text": "x"}\n\n  \n')
    assert list(read_corpus(path)) == [Passage("p", "", "x", source="p.jsonl")]


def test_duplicate_ids_across_files(tmp_path):
    write_lines(tmp_path / "a.jsonl", PASSAGE, TABLE)
    write_lines(tmp_path / "b.jsonl", PASSAGE, TABLE, {**TABLE, "id": "rhine"})
    records, rejects = skip(tmp_path, tmp_path)
    assert len(records) == 3
    assert [reject["reason"] for reject in rejects] == [
        "duplicate passage id 'rhine'",
        "duplicate table id 't'",
    ]
    assert [reject["line"] for reject in rejects] == [1, 2]
    assert json.loads(rejects[0]["record"])["text"] == "It flows."


def test_a_file_with_a_broken_start_is_reported(tmp_path):
    path = tmp_path / "broken.jsonl"
    path.write_text("not json\n")
    with pytest.raises(RecordError, match="not valid JSON"):
        list(read_corpus(path))


def test_nothing_to_read(tmp_path):
    with pytest.raises(CorpusError, match="no such file or folder"):
        list(read_corpus(tmp_path / "absent"))
    with pytest.raises(CorpusError, match="nothing here is a corpus; known formats: parquet"):
        list(read_corpus(tmp_path))
    with pytest.raises(ConfigError, match="expected 'stop' or 'skip'"):
        read_corpus(tmp_path, on_error="ignore")

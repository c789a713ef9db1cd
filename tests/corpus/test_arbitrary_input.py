"""Whatever a file holds, reading ends in records or in an error of ours, and twice the same."""

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helios.corpus import CorpusWriter, read_corpus
from helios.errors import CorpusError

SUFFIXES = ["jsonl", "json", "csv", "tsv", "parquet", "xlsx", "html", "md", "jsonl.gz", "csv.gz"]
PIECES = {
    "jsonl": [
        '{"id": "a", ',
        '"text": "b"}',
        '"header": ["x"], ',
        '"rows": [["y"]]}',
        "\n",
        "null",
        "[",
        "]",
        "\0",
        "é",
    ],
    "html": [
        "<table>",
        "<tr>",
        "<td rowspan=2>",
        "<th colspan=3>",
        "</table>",
        "<p>",
        "<h2>",
        "a",
        "&#0;",
        "&#xd800;",
    ],
    "csv": ["a", "1", ",", ";", '"', "\n", "\r", "\t", "é", "\0", "\u2028", ",,,"],
    "md": ["|", "a", "---", "\n", "# ", "> ", "- ", "\n\n", "<table><tr><td>", "```", "\\", "\u2028", "\x0b"],
}


def read_all(path):
    try:
        return list(read_corpus(path, on_error="skip"))
    except CorpusError as error:
        return str(error)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=200))
def test_any_bytes(tmp_path, suffix, data):
    path = tmp_path / f"file.{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    assert read_all(path) == read_all(path)


@pytest.mark.parametrize("suffix", PIECES)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_arrangement_of_markup_can_be_stored(tmp_path, suffix, data):
    path = tmp_path / f"file.{suffix}"
    pieces = data.draw(st.lists(st.sampled_from(PIECES[suffix]), max_size=40))
    path.write_text("".join(pieces), encoding="utf-8", newline="")
    records = read_all(path)
    if isinstance(records, list):
        with CorpusWriter(tmp_path / "store", replace=True) as writer:
            for record in records:
                writer.add(record)

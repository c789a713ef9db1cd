"""Links that leave the folder of a corpus are passed over; with `--follow-links` they are read."""

import json
import os

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus import read_corpus
from helios.corpus.source import corpus_files
from helios.errors import CorpusError
from indexing.inputs import input_files


@pytest.fixture
def corpus(tmp_path):
    """A folder with a file of its own, links within, links out of it, and a folder that leads back."""
    corpus, outside = tmp_path / "corpus", tmp_path / "outside"
    corpus.mkdir()
    outside.mkdir()
    (outside / "secret.csv").write_text("user,password\nroot,1234\n")
    (corpus / "own.jsonl").write_text('{"id": "p", "text": "x"}\n')
    (corpus / "within.md").symlink_to("page.md")
    (corpus / "page.md").write_text("Some text.\n")
    (corpus / "leaves.csv").symlink_to(outside / "secret.csv")
    (corpus / "relative.csv").symlink_to("../outside/secret.csv")
    (corpus / "folder").symlink_to(outside)
    (corpus / "back").symlink_to(corpus)
    (corpus / "gone.csv").symlink_to(outside / "absent.csv")
    return corpus


def test_links_that_leave_the_folder_are_passed_over(corpus, caplog):
    names = {record.source for record in read_corpus(corpus)}
    assert names == {"own.jsonl", "page.md", "within.md"} == {file.name for file in input_files(corpus)}
    assert "leaves.csv: a link that leaves the corpus, passed over" in caplog.text


def test_links_are_followed_where_that_is_asked_for(corpus):
    names = {record.source for record in read_corpus(corpus, follow_links=True)}
    linked = {"folder/secret.csv", "leaves.csv", "relative.csv"}
    assert names == {"own.jsonl", "page.md", "within.md"} | linked
    assert names == {file.name for file in input_files(corpus, follow_links=True)}


def test_a_file_or_folder_that_is_given_by_a_link_is_read(corpus, tmp_path):
    (tmp_path / "link").symlink_to(corpus)
    assert [name for name, _, passed_over in corpus_files(tmp_path / "link") if not passed_over] == [
        "own.jsonl",
        "page.md",
        "within.md",
    ]
    (table,) = read_corpus(corpus / "leaves.csv")
    assert table.rows == (("root", "1234"),)


def test_what_is_no_file_is_never_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(CorpusError, match="nothing here is a corpus"):
        list(read_corpus(tmp_path))


@pytest.mark.parametrize(("options", "tables"), [([], 0), (["--follow-links"], 3)])
def test_the_command_follows_links_only_where_asked(corpus, tmp_path, options, tables):
    command = ["index", "build", str(corpus), "linking.source=none", "encoder.runtime=torch"]
    result = CliRunner().invoke(build_app(), [*command, "--out", str(tmp_path / "index"), "--json", *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["counts"]["tables"] == tables

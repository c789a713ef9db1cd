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


def test_links_that_lead_in_a_circle_or_nowhere_are_passed_over(tmp_path):
    (tmp_path / "own.csv").write_text("name,year\nAda,1815\n")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "gone.md").symlink_to("absent.md")
    for follow_links in (False, True):
        found = {name: reason for name, _, reason in corpus_files(tmp_path, follow_links=follow_links)}
        assert found == dict.fromkeys(("a", "b", "gone.md"), "a link that leads nowhere") | {"own.csv": ""}


def test_a_file_whose_name_is_no_utf8_is_read_under_a_name_that_is_text(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "good.csv").write_text("name,year\nAda,1815\n")
    (corpus / os.fsdecode(b"caf\xe9.csv")).write_text("name,year\nBob,1816\n")
    names = {record.source for record in read_corpus(corpus)}
    assert names == {"good.csv", "caf\\xe9.csv"} == {file.name for file in input_files(corpus)}
    result = CliRunner().invoke(build_app(), ["index", "build", str(corpus), "--out", str(tmp_path / "i"), "--dry-run"])
    assert (result.exit_code, result.exception) == (0, None), result.output


def test_folders_in_each_other_by_the_hundred_are_read(tmp_path, within):
    (tmp_path / "good.csv").write_text("name,year\nAda,1815\n")
    home, depth = os.getcwd(), 1500
    try:
        os.chdir(tmp_path)
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
        with within(20):
            assert [file.name for file in corpus_files(tmp_path)] == ["good.csv"]
    finally:
        for _ in range(depth):  # what removes folders recursively gives up on so many
            os.chdir("..")
            os.rmdir("d")
        os.chdir(home)


def test_a_folder_that_cannot_be_read_is_said(tmp_path, monkeypatch):
    (tmp_path / "own.csv").write_text("name,year\nAda,1815\n")
    (tmp_path / "closed").mkdir()
    listdir = os.listdir

    def refuse(folder):
        if folder.name == "closed":  # whoever runs the tests as root may read any folder
            raise PermissionError(13, "Permission denied")
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", refuse)
    assert [(file.name, file.passed_over) for file in corpus_files(tmp_path)] == [
        ("closed", "cannot be read (Permission denied)"), ("own.csv", ""),
    ]  # fmt: skip

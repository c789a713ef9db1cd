"""`helios ask FOLDER QUESTION`: an index in the user's cache that follows the folder."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.index.manifest import read_manifest
from indexing.folder import cache_folder

FILES = {
    "staff.csv": "Name,Extension\nAnn Lee,41\nBo Hale,42\n",
    "notes/opening.txt": "Opening hours\n\nThe workshop is open from eight to five.\n",
    "empty.csv": "",
    "broken.json": '{"a": ',
}


def ask(*arguments: str):
    return CliRunner().invoke(build_app(), ["ask", *arguments, "--json"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, content in FILES.items():
        path = tmp_path / "my files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "my files"


@pytest.mark.slow
def test_a_folder_is_asked_and_followed(folder: Path):
    first = ask(str(folder), "What is the extension of Ann Lee?")
    assert first.exit_code == 0, first.output
    answer = json.loads(first.stdout)
    assert answer["text"] == "41"
    index = cache_folder(folder)
    lines = (index / "files.jsonl").read_text().splitlines()
    assert {json.loads(line)["file"] for line in lines} == set(FILES)
    generation = read_manifest(index).generation
    (folder / "staff.csv").write_text(FILES["staff.csv"].replace("41", "77"))
    assert json.loads(ask(str(folder), "What is the extension of Ann Lee?").stdout)["text"] == "77"
    assert read_manifest(index).generation > generation
    absent = json.loads(ask(str(folder), "Which insurance covers the ferry?").stdout)
    assert absent["abstained"]
    assert len(absent["evidence"]) >= 1
    assert ask(str(folder), "What is the extension of Ann Lee?").exit_code == 0


def test_what_is_asked_is_one_thing(folder: Path):
    result = ask(str(folder), "q?", "--index", str(folder))
    assert result.exit_code == 2
    assert "one of" in result.output
    assert ask("a", "b", "c").exit_code == 2


def test_a_folder_that_is_not_there_is_an_error(folder: Path):
    result = ask(str(folder / "nowhere"), "q?")
    assert result.exit_code == 2
    assert "no such file or" in result.output


def test_two_folders_of_one_name_have_two_indexes(tmp_path: Path):
    one, other = (tmp_path / name / "files" for name in "ab")
    assert cache_folder(one) != cache_folder(other)
    assert cache_folder(one).name.startswith("files-")

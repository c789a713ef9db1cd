"""An index follows a folder: what is new, changed and gone, file by file, and nothing else is touched."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.config import load_config
from helios.errors import CorpusError
from helios.index.fsck import check_index
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from indexing.cli import app
from indexing.living import Index
from indexing.pipeline import build_index

SETTINGS = ["encoder.runtime=torch", "linking.source=none"]
NOTE = {"id": "note", "title": "Note", "text": "Added by hand."}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder and an index of it."""
    place = tmp_path_factory.mktemp("built")
    folder = place / "folder"
    (folder / "notes").mkdir(parents=True)
    (folder / "bridges.csv").write_text("Bridge,Opened\nForth Bridge,1890\nGarabit Viaduct,1884\n")
    (folder / "notes" / "brunel.md").write_text("# Brunel\n\nHe was born in Portsmouth.\n")
    (folder / "notes" / "eiffel.md").write_text("# Eiffel\n\nHe was from Dijon.\n")
    build_index(folder, place / "index", config=load_config(overrides=SETTINGS))
    return place


@pytest.fixture
def place(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "place"))


@pytest.fixture
def index(place: Path) -> Index:
    return Index.open(place / "index", overrides=SETTINGS[:1])


def texts(index: Index) -> set[str]:
    """Ids of what is there, with the first cell or the text."""
    with Snapshot.open(index.directory) as snapshot:
        corpus = IndexReader.of(snapshot).corpus
        rows = {f"{table.table_id} {row[0]}" for table in corpus.tables for row in table.rows}
        return rows | {f"{passage.source} {passage.text}" for passage in corpus.passages}


def change_folder(folder: Path) -> None:
    (folder / "bridges.csv").write_text("Bridge,Opened\nForth Bridge,1890\n")
    (folder / "notes" / "eiffel.md").unlink()
    (folder / "notes" / "ito.md").write_text("# Ito\n\nShe built a dam.\n")


@pytest.mark.parametrize("compacted", [False, True])
def test_new_changed_and_vanished_files(place: Path, index: Index, compacted: bool):
    folder = place / "folder"
    index.add(passages=[NOTE])
    assert index.sync(folder).files.unchanged == 3
    if compacted:
        index.compact(whole=True)
    change_folder(folder)
    told = index.sync(folder, dry_run=True)
    before = texts(index)
    change = index.sync(folder)
    assert told.files == change.files
    plan = change.files
    assert (plan.new, plan.changed, plan.vanished, plan.unchanged) == (
        ("notes/ito.md",), ("bridges.csv",), ("notes/eiffel.md",), 1,
    )  # fmt: skip
    assert texts(index) - before == {"notes/ito.md She built a dam."}
    assert before - texts(index) == {"bridges.csv Garabit Viaduct", "notes/eiffel.md He was from Dijon."}
    again = index.sync(folder)
    assert (again.generation, again.files.unchanged) == (change.generation, 3)
    assert " Added by hand." in texts(index)
    assert check_index(index.directory) == []


def test_a_file_that_comes_back_is_read_again(place: Path, index: Index):
    file = place / "folder" / "notes" / "eiffel.md"
    content = file.read_text()
    file.unlink()
    index.sync(place / "folder")
    file.write_text(content)
    assert index.sync(place / "folder").files.new == ("notes/eiffel.md",)
    assert "notes/eiffel.md He was from Dijon." in texts(index)


def test_without_the_builds_list_files_are_read_again(place: Path, index: Index):
    shutil.rmtree(index.directory / ".build")
    before = texts(index)
    change = index.sync(place / "folder")
    assert len(change.files.changed) == 3
    assert texts(index) == before
    assert index.sync(place / "folder").files.unchanged == 3


def test_an_id_that_another_record_has_is_a_reject(place: Path, index: Index):
    (place / "folder" / "more.jsonl").write_text('{"id": "note", "title": "Other", "text": "Not by hand."}\n')
    index.add(passages=[NOTE])
    change = index.sync(place / "folder")
    assert [(reject.file, reject.id) for reject in change.rejected] == [("more.jsonl", "note")]
    assert " Added by hand." in texts(index)


def test_no_folder(index: Index, tmp_path: Path):
    with pytest.raises(CorpusError, match="no such folder"):
        index.sync(tmp_path / "nowhere")


def test_from_the_shell(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("indexing.living.commands.NICE", 0)
    change_folder(place / "folder")
    arguments = [str(place / "index"), "--set", "encoder.runtime=torch"]
    run = CliRunner().invoke(app, ["sync", arguments[0], str(place / "folder"), *arguments[1:], "--dry-run"])
    assert run.output.splitlines()[1:] == [
        "new        notes/ito.md",
        "changed    bridges.csv",
        "vanished   notes/eiffel.md",
        "files      1 new, 1 changed, 1 vanished, 1 unchanged",
    ]
    run = CliRunner().invoke(app, ["sync", arguments[0], str(place / "folder"), *arguments[1:]])
    assert "added      1 table with 1 row, 1 passage" in run.output
    line = '{"id": "x", "title": "X", "text": "Typed."}\n'
    run = CliRunner().invoke(app, ["add", arguments[0], "-", *arguments[1:], "--json"], input=line)
    assert '"passages": 1' in run.output
    run = CliRunner().invoke(app, ["update", arguments[0], "-", *arguments[1:]], input=line)
    assert "1 of them in place of others" in run.output
    run = CliRunner().invoke(app, ["delete", *arguments, "x", "y", "--no-compact"])
    assert "missing    y" in run.output
    assert "compacted" not in run.output
    run = CliRunner().invoke(app, ["add", arguments[0], "-", *arguments[1:]], input=line)
    assert "compacted  3 parts into 2; " in run.output
    run = CliRunner().invoke(app, ["compact", *arguments, "--auto"])
    assert run.output.startswith("snapshot   ")
    assert CliRunner().invoke(app, ["compact", *arguments, "--auto", "--all"]).exit_code == 2
    run = CliRunner().invoke(app, ["compact", *arguments])
    assert run.exit_code == 0
    assert CliRunner().invoke(app, ["delete", *arguments]).exit_code == 2

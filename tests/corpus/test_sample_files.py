"""`helios sample`: the files of the README's examples."""

import sqlite3
from contextlib import closing
from pathlib import Path

from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus import read_corpus
from helios.corpus.sample_files import write_sample_files
from helios.evaluation.questions import read_questions


def test_the_files_can_be_read(tmp_path: Path):
    written = write_sample_files(tmp_path / "new" / "folder")
    assert all(path.exists() for path in written)
    assert len(list(read_corpus(tmp_path / "new" / "folder" / "bridges"))) == 3
    assert len(list(read_corpus(tmp_path / "new" / "folder" / "observatory"))) >= 5
    assert read_questions(tmp_path / "new" / "folder" / "questions.jsonl")
    with closing(sqlite3.connect(tmp_path / "new" / "folder" / "shop.sqlite")) as shop:
        assert shop.execute("SELECT count(*) FROM invoice").fetchone() == (4,)


def test_nothing_is_overwritten(tmp_path: Path):
    (tmp_path / "bridges").mkdir()
    result = CliRunner().invoke(build_app(), ["sample", str(tmp_path)])
    assert result.exit_code == 1
    assert "is there already" in result.output
    assert not (tmp_path / "shop.sqlite").exists()

"""`helios eval`: wrong usage is 2, an error that a user can mend is 1 and a message."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app


def run_eval(*arguments: str | Path):
    return CliRunner().invoke(build_app(), ["eval", *map(str, arguments)])


@pytest.fixture
def questions(tmp_path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"id": "1", "question": "Where?", "answer": "Bern"}))
    return path


@pytest.mark.parametrize(
    "wrong",
    [
        ["--index", "i"],
        ["--index", "i", "--questions", "q", "--baseline", "bm24"],
        ["--index", "i", "--questions", "q", "--unit", "cell"],
        ["--index", "i", "--questions", "q", "--depth", "0"],
        ["--index", "i", "--questions", "q", "--baselines-only"],
    ],
)
def test_wrong_usage(wrong):
    result = run_eval(*wrong)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_questions_that_cannot_be_read(tmp_path, questions):
    questions.write_text("{")
    result = run_eval("--index", tmp_path, "--questions", questions)
    assert result.exit_code == 1
    assert f"{questions}:1: not JSON" in result.output
    assert "Traceback" not in result.output


def test_help_names_every_baseline():
    result = run_eval("--help")
    assert result.exit_code == 0
    assert "--baseline" in result.output

"""`helios eval`: wrong usage is 2, an error that a user can mend is 1 and a message."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.aggregation import is_aggregation_question
from helios.evaluation.expansion import missing_edges
from helios.evaluation.questions import read_questions

SAMPLE = sample_path() / "questions.jsonl"


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


def test_the_two_kinds_of_questions_share_them_out(sample_index):
    asked = [is_aggregation_question(question.text) for question in read_questions(SAMPLE)]
    counts = {}
    for kind in ("aggregation", "other"):
        result = run_eval("--index", sample_index, "--questions", SAMPLE, "--kind", kind, "--json")
        assert result.exit_code == 0, result.output
        counts[kind] = json.loads(result.stdout)["systems"][0]["measures"]["AR@2"]["questions"]
    assert counts == {"aggregation": sum(asked), "other": len(asked) - sum(asked)}
    assert min(counts.values()) > 0


def test_a_kind_without_questions_is_told(sample_index, questions):
    result = run_eval("--index", sample_index, "--questions", questions, "--kind", "aggregation")
    assert result.exit_code == 1
    assert "holds no question of kind aggregation" in result.output


def test_recovered_links_are_counted(sample_index):
    command = ["--index", sample_index, "--questions", SAMPLE, "--recovery"]
    refused = run_eval(*command, "--set", "expansion.enabled=false")
    assert refused.exit_code == 2
    assert "expansion.enabled=true" in refused.output
    result = run_eval(*command, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["recovery"]
    with Engine.open(sample_index, threads=1) as engine:
        missing = [missing_edges(question, engine.corpus, engine.graph) for question in read_questions(SAMPLE)]
    assert (found["questions"], found["missing"]) == (sum(map(bool, missing)), sum(map(len, missing)))
    assert found["missing"] == found["recovered"] + len(found["unfound"]) > 0

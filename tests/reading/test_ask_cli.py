"""`helios ask` and `helios eval --answers` on the sample index."""

import json

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus.sample import sample_path

QUESTION = "What is the name of the river ?"


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


@pytest.fixture
def reader(reader_folder) -> list[str]:
    """The options that choose a reader of twenty questions, and take what it says however unsure it is."""
    return ["--set", f"reading.model={reader_folder}", "--set", "reading.min_confidence=0", "--set",
            "reading.presence.least=0"]  # fmt: skip


def test_json_has_the_answer_and_where_it_stands(sample_index, reader):
    result = run("ask", QUESTION, "--index", sample_index, *reader, "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.output)
    assert shown["support"] == "checked"
    first = shown["citations"][0]
    assert first["source"][first["start"] : first["end"]] == shown["text"]
    assert first["place"]


def test_people_see_answer_and_source(sample_index, reader):
    result = run("ask", QUESTION, "--index", sample_index, *reader)
    assert result.exit_code == 0, result.output
    assert "%" in result.output


def test_abstaining_says_why(sample_index, reader):
    result = run("ask", QUESTION, "--index", sample_index, *reader, "--set", "reading.min_confidence=1.0")
    assert result.exit_code == 0, result.output
    assert "no answer: nothing in the evidence is likely enough" in result.output


def test_a_language_model_must_be_configured(sample_index, reader):
    result = run("ask", QUESTION, "--index", sample_index, *reader, "--set", "reading.reader=llm")
    assert result.exit_code == 1
    assert "llm.base_url" in result.output


def test_a_server_that_is_not_there_is_an_error_without_a_model_and_a_note_with_one(sample_index, reader):
    nowhere = "http://127.0.0.1:9/v1"
    result = run("ask", QUESTION, "--index", sample_index, *reader, "--llm", nowhere)
    assert result.exit_code == 1
    assert "which model?" in result.output
    result = run("ask", QUESTION, "--index", sample_index, *reader, "--llm", nowhere, "--model", "m", "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.output)
    assert shown["degraded"]
    assert [note for note in shown["notes"] if "unavailable" in note]


@pytest.mark.parametrize("arguments", [["  "], ["q", "-k", "0"], ["q", "--model", "m"], ["q", "--llm"]])
def test_wrong_usage(sample_index, arguments):
    assert run("ask", *arguments, "--index", sample_index).exit_code == 2


def test_eval_measures_answers(sample_index, reader):
    questions = sample_path() / "questions.jsonl"
    result = run(
        "eval", "--index", sample_index, *reader, "--questions", questions, "--answers", "--limit", "3", "--json"
    )
    assert result.exit_code == 0, result.output
    measures = json.loads(result.output)["systems"][0]["measures"]
    assert {"EM", "F1", "answered", "supported"} <= set(measures)
    assert measures["supported"]["mean"] == 1.0


def test_eval_measures_a_language_model(sample_index, reader, scripted_llm):
    scripted_llm.say(scripted_llm.completion("no JSON"))
    questions = sample_path() / "questions.jsonl"
    arguments = ["--index", sample_index, *reader, "--questions", questions, "--answers", "--limit", "2", "--json"]
    result = run("eval", *arguments, "--llm", scripted_llm.url, "--set", "llm.question_calls=4")
    assert result.exit_code == 0, result.output
    measures = json.loads(result.output)["systems"][0]["measures"]
    assert {"EM", "F1", "abstained", "degraded"} <= set(measures)
    assert measures["degraded"]["mean"] == 1.0
    assert {body["model"] for body in scripted_llm.requests} == {"scripted"}


def test_answers_need_the_whole_search(sample_index):
    result = run("eval", "--index", sample_index, "--questions", "q", "--answers", "--unit", "node")
    assert result.exit_code == 2

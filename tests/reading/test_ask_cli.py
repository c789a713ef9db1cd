"""`helios ask` and `helios eval answers` on the sample index."""

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
    return ["--set", f"advanced.reading.model={reader_folder}", "--set", "reading.least=0", "--set",
            "advanced.reading.present=0", "--set", "advanced.reading.least_read=0",
            "--set", "advanced.reading.queries=false"]  # fmt: skip


def test_json_has_the_answer_and_where_it_stands(sample_index, reader):
    result = run("ask", "When was Fundy established?", "--index", sample_index, *reader, "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.output)
    assert shown["support"] == "checked"
    assert "likely" not in shown
    first = shown["citations"][0]
    assert first["source"][first["start"] : first["end"]] == shown["text"]
    assert first["place"]
    assert first["file"] in {"passages.jsonl", "tables.jsonl"}
    assert shown["evidence"] and shown["evidence"][0]["rank"] == 1


def test_a_citation_names_its_file(sample_index, reader):
    result = run("ask", "When was Fundy established?", "--index", sample_index, *reader)
    assert ", in tables.jsonl: " in result.output or ", in passages.jsonl: " in result.output


def test_a_folder_that_is_an_index_is_asked_as_one(sample_index, reader):
    question = "When was Fundy established?"
    one, other = (
        json.loads(run("ask", *asked, *reader, "--json").output)
        for asked in ((sample_index, question), (question, "--index", sample_index))
    )
    assert one == other


def test_a_filter_says_where_an_answer_may_stand(sample_index, reader):
    arguments = ["ask", QUESTION, "--index", sample_index, *reader, "--json"]
    shown = json.loads(run(*arguments, "--where", "table.id = 'elements' and kind = 'table'").output)
    assert {citation["segment_id"]["table_id"] for citation in shown["citations"]} == {"elements"}
    nothing = json.loads(run(*arguments, "--where", "id = 'nowhere'").output)
    assert (nothing["text"], nothing["reason"]) == ("", "nothing passes the filter")


def test_a_wrong_filter_is_told_before_a_folder_is_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"")  # an index cannot be made of it, which would be told next
    result = run("ask", tmp_path, QUESTION, "--where", "kind ==== 3")
    assert result.exit_code == 1 and "error: filter, character" in result.output


def test_a_question_without_a_word_has_no_answer(sample_index, reader):
    assert "no answer: the question has no words" in run("ask", "???", "--index", sample_index, *reader).output


def test_people_see_answer_and_source(sample_index, reader):
    result = run("ask", QUESTION, "--index", sample_index, *reader)
    assert result.exit_code == 0, result.output
    assert "%" in result.output


def test_abstaining_says_why(sample_index, reader):
    result = run("ask", QUESTION, "--index", sample_index, *reader, "--set", "reading.least=1.0")
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
        "eval", "answers", "--index", sample_index, *reader, "--questions", questions, "--limit", "3", "--json"
    )
    assert result.exit_code == 0, result.output
    measures = json.loads(result.output)["systems"][0]["measures"]
    assert {"EM", "F1", "answered", "supported"} <= set(measures)
    assert measures["supported"]["mean"] == 1.0


def test_eval_measures_a_language_model(sample_index, reader, scripted_llm):
    scripted_llm.say(scripted_llm.completion("no JSON"))
    questions = sample_path() / "questions.jsonl"
    arguments = ["--index", sample_index, *reader, "--questions", questions, "--limit", "2", "--json"]
    result = run("eval", "answers", *arguments, "--llm", scripted_llm.url, "--set", "advanced.llm.question_calls=4")
    assert result.exit_code == 0, result.output
    (system,) = json.loads(result.output)["systems"]
    measures, spent = system["measures"], system["language_model"]
    assert {"EM", "F1", "abstained", "degraded"} <= set(measures)
    assert len(scripted_llm.requests) == 2 * spent["calls mean"]
    assert 1 <= spent["calls p50"] <= spent["calls max"] <= 4
    assert spent["tokens mean"] == 15 * spent["calls mean"]
    assert measures["degraded"]["mean"] == 1.0
    assert {body["model"] for body in scripted_llm.requests} == {"scripted"}

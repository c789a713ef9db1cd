"""Whether a language model answers, for the doctor and for `--llm` without a model's name."""

import json

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.config import LanguageModelSettings
from helios.errors import ConfigError
from helios.llm.probe import only_model, probe

pytest.importorskip("openai", reason="openai is not installed (extra llm)")


def test_a_model_that_answers(scripted_llm):
    scripted_llm.say(scripted_llm.as_json({"ready": True}))
    found = probe(LanguageModelSettings(base_url=scripted_llm.url))
    assert (found.model, found.models, found.problem) == ("scripted", ("scripted",), "")
    assert found.milliseconds > 0


@pytest.mark.parametrize(
    ("models", "words"), [([], "has none"), (["a", "b"], "has a, b"), (None, "unavailable: HTTP 404")]
)
def test_which_model_is_asked_where_there_is_not_one(scripted_llm, models, words):
    scripted_llm.models = models
    settings = LanguageModelSettings(base_url=scripted_llm.url)
    assert words in probe(settings).problem
    with pytest.raises(ConfigError, match="which model"):
        only_model(settings)
    assert not scripted_llm.requests


def test_the_doctor_says_what_is_wrong(scripted_llm, monkeypatch):
    monkeypatch.setenv("HELIOS_TEST_KEY", "sk-1")
    scripted_llm.say(scripted_llm.completion("no JSON"))
    arguments = ["doctor", "--llm", scripted_llm.url, "--model", "scripted", "--api-key-env", "HELIOS_TEST_KEY"]
    result = CliRunner().invoke(build_app(), [*arguments, "--json"])
    assert result.exit_code == 1, result.output
    assert "malformed" in json.loads(result.output)["language_model"]["problem"]
    assert scripted_llm.headers[0]["authorization"] == "Bearer sk-1"
    scripted_llm.say(scripted_llm.as_json({"ready": False}))
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 0, result.output
    assert "answers as its schema wants" in result.output


def test_a_real_server(tiny_llm):
    found = probe(LanguageModelSettings(base_url=tiny_llm))
    assert (found.models, found.problem) == (("tiny",), "")

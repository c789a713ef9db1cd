"""Many clients at once: the same results, and none lives on what another has read."""

import json

from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus.sample import QUESTIONS, sample_path


def test_clients_get_what_one_gets(sample_index):
    questions = sample_path() / QUESTIONS
    arguments = [
        "eval",
        "load",
        "--index",
        sample_index,
        "--questions",
        questions,
        "--limit",
        "4",
        "--clients",
        "1,3",
        "--json",
    ]
    result = CliRunner().invoke(build_app(), list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    first, second = json.loads(result.stdout)["rows"]
    assert (first["clients"], second["clients"]) == (1, 3)
    assert (first["questions"], second["questions"]) == (4, 4)
    assert (first["differing"], second["differing"]) == (0, 0)
    assert 0 < second["p50_ms"] <= second["p95_ms"]

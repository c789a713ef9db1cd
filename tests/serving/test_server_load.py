"""`helios serve load`, for a moment: a real server as a process beside the engine."""

import json

import pytest
from typer.testing import CliRunner

from helios.cli import build_app


@pytest.mark.slow
def test_a_server_under_load(sample_index):
    arguments = ["serve", "load", "--index", str(sample_index), "--times", "0.5", "--seconds", "1", "--permits", "2"]
    done = CliRunner().invoke(build_app(), [*arguments, "--set", "encoder.runtime=torch", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (step,) = found["steps"]
    assert len(found["engine"]) == 2 and step["engine"] == pytest.approx(sum(found["engine"]) / 2)
    assert (step["wrong"], step["cut"], step["late"], step["failed"], step["unsent"]) == (0, 0, 0, 0, 0)
    assert step["answered"] + step["refused"] == step["sent"] > 0
    assert step["memory_mb"] > 10


def test_rates_that_are_none(sample_index):
    for wrong in ("", "a", "0", "1,-2"):
        result = CliRunner().invoke(build_app(), ["serve", "load", "--index", str(sample_index), "--times", wrong])
        assert result.exit_code == 2

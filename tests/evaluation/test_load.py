"""Many clients at once: the same results, and none lives on what another has read."""

import json
from dataclasses import replace

import numpy as np
from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus.sample import QUESTIONS, sample_path
from helios.evaluation import load
from helios.evaluation.load import digest, measure_load


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


def test_memory_is_measured_early_too(sample_index, monkeypatch):
    from helios.engine import Engine

    monkeypatch.setattr(load, "EARLY", 2)
    plain = ("rerank.backend=none", "refinement.mode=off")
    (row,) = measure_load(lambda: Engine.open(sample_index, overrides=plain), ["Which?", "Who?", "What?"], [1]).rows
    assert row.early_mb is not None
    assert 0 < row.early_mb < 2 * row.memory_mb


def test_one_bit_of_a_score_is_another_digest(engine):
    evidence = engine.search("Who discovered gallium?", k=2)
    first, *others = evidence.edges
    moved = replace(first, score=float(np.nextafter(first.score, 1e9)))
    assert digest(evidence) == digest(engine.search("Who discovered gallium?", k=2))
    assert digest(evidence) != digest(replace(evidence, edges=(moved, *others)))

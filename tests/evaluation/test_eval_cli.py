"""`helios eval`: wrong usage is 2, an error that a user can mend is 1 and a message."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.aggregation import is_aggregation_question
from helios.evaluation.cli import Baseline
from helios.evaluation.expansion import missing_edges
from helios.evaluation.questions import read_questions

SAMPLE = sample_path() / "questions.jsonl"
QUICK = ("--set", "encoder.runtime=openvino")
PLAIN = (*QUICK, "--set", "rerank.backend=none", "--set", "expansion.enabled=false", "--set", "refinement.mode=off")
"""The settings of a quick search: the first stages alone."""


def run_eval(*arguments: str | Path):
    return CliRunner().invoke(build_app(), ["eval", *map(str, arguments)], env={"COLUMNS": "300"})


def reported(*arguments: str | Path) -> dict:
    """What `helios eval … --json` prints."""
    result = run_eval(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def questions(tmp_path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"id": "1", "question": "Where?", "answer": "Bern"}))
    return path


BASELINES_ALONE = ["retrieval", "--index", "i", "--questions", "q", "--baselines-only", "--baseline", "bm25-edge"]


@pytest.mark.parametrize(
    "wrong",
    [
        ["--index", "i", "--questions", "q"],
        ["retrieval", "--index", "i"],
        ["retrieval", "--index", "i", "--questions", "q", "--baseline", "bm24"],
        ["retrieval", "--index", "i", "--questions", "q", "--unit", "cell"],
        ["retrieval", "--index", "i", "--questions", "q", "--depth", "0"],
        ["retrieval", "--index", "i", "--questions", "q", "--baselines-only"],
        ["retrieval", "--index", "i", "--questions", "q", "--unit", "star", "--reliability"],
        [*BASELINES_ALONE, "--reliability"],
        ["retrieval", "--index", "i", "--questions", "q", "--answers"],
        ["answers", "--index", "i", "--questions", "q", "--unit", "node"],
        ["answers", "--index", "i", "--questions", "q", "--model", "m"],
        ["ablate", "cells", "--index", "i", "--questions", "q"],
        ["load", "--index", "i", "--questions", "QUESTIONS", "--clients", "0"],
        ["load", "--index", "i", "--questions", "QUESTIONS", "--clients", "one,two"],
    ],
)
def test_wrong_usage(wrong):
    result = run_eval(*wrong)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


def test_questions_that_cannot_be_read(tmp_path, questions):
    questions.write_text("{")
    result = run_eval("retrieval", "--index", tmp_path, "--questions", questions)
    assert result.exit_code == 1
    assert f"{questions}:1: not JSON" in result.output
    assert "Traceback" not in result.output


def test_help_names_every_baseline():
    result = run_eval("retrieval", "--help")
    assert result.exit_code == 0
    assert "--baseline" in result.output
    assert all(name in result.output for name in Baseline)


def test_help_names_every_command():
    result = run_eval("--help")
    assert result.exit_code == 0
    assert all(name in result.output for name in ("retrieval", "answers", "ablate", "load", "sources"))


def test_the_two_kinds_of_questions_share_them_out(sample_index):
    asked = [is_aggregation_question(question.text) for question in read_questions(SAMPLE)]
    counts = {}
    for kind in ("aggregation", "other"):
        found = reported("retrieval", "--index", sample_index, "--questions", SAMPLE, "--kind", kind, *PLAIN)
        counts[kind] = found["systems"][0]["measures"]["AR@2"]["questions"]
    assert counts == {"aggregation": sum(asked), "other": len(asked) - sum(asked)}
    assert min(counts.values()) > 0


def test_a_kind_without_questions_is_told(sample_index, questions):
    result = run_eval("retrieval", "--index", sample_index, "--questions", questions, "--kind", "aggregation")
    assert result.exit_code == 1
    assert "holds no question of kind aggregation" in result.output
    questions.write_text("")
    assert "holds no questions" in run_eval("retrieval", "--index", sample_index, "--questions", questions).output


def test_recovered_links_are_counted(sample_index):
    command = ["retrieval", "--index", sample_index, "--questions", SAMPLE, "--recovery", "--limit", "12", *QUICK]
    refused = run_eval(*command, "--set", "expansion.enabled=false")
    assert refused.exit_code == 2
    assert "expansion.enabled=true" in refused.output
    found = reported(*command)["recovery"]
    with Engine.open(sample_index, threads=1) as engine:
        missing = [missing_edges(question, engine.corpus, engine.graph) for question in read_questions(SAMPLE)[:12]]
    assert (found["questions"], found["missing"]) == (sum(map(bool, missing)), sum(map(len, missing)))
    assert found["missing"] == found["recovered"] + len(found["unfound"]) > 0


def test_a_kept_run_is_compared_question_by_question(sample_index, tmp_path):
    run, qrels = tmp_path / "kept" / "run.trec", tmp_path / "qrels"
    command = ("retrieval", "--index", sample_index, "--questions", SAMPLE, "--limit", "4", "-k", "10")
    before = reported(*command, *PLAIN, "--run", run, "--qrels", qrels)
    assert len(run.read_text().splitlines()) == 4 * 10
    assert len(qrels.read_text().splitlines()) >= 4
    same = reported(*command, *PLAIN, "--against", run)["differences"]
    assert {"nDCG@10", "AR@2", "HITS@4K", "table R@1"} <= {one["name"] for one in same}
    assert {(one["mean"], one["low"], one["high"]) for one in same} == {(0.0, 0.0, 0.0)}
    after = reported(*command, *PLAIN, "--set", "search.ranker=none", "--against", run)
    means = [document["systems"][0]["measures"]["nDCG@10"]["mean"] for document in (before, after)]
    (ndcg,) = [one for one in after["differences"] if one["name"] == "nDCG@10"]
    assert ndcg["mean"] == pytest.approx(means[1] - means[0], abs=1e-5)
    assert ndcg["low"] <= ndcg["mean"] <= ndcg["high"]
    told = run_eval(*command, *PLAIN, "--against", run)
    assert "nDCG@10  +0.0  (+0.0 to +0.0)" in told.output


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "has no list for question"),
        ("{id} Q0 nowhere#0|* 1 0.5 helios\n", "is of another corpus"),
        ("{id} Q0 nonsense 1 0.5 helios\n", "is not the id of an edge"),
    ],
)
def test_a_run_that_cannot_be_compared(sample_index, tmp_path, line, words):
    run = tmp_path / "run.trec"
    run.write_text(line.format(id=read_questions(SAMPLE)[0].question_id))
    command = ("retrieval", "--index", sample_index, "--questions", SAMPLE, "--limit", "1", *PLAIN)
    result = run_eval(*command, "--against", run)
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())
    assert "does not exist" in run_eval(*command, "--against", tmp_path / "absent").output


def test_probabilities_are_held_against_gold(sample_index, questions):
    command = ("retrieval", "--index", sample_index, "--limit", "3", "-k", "10", "--reliability", "--questions")
    found = reported(*command, SAMPLE, *QUICK)["reliability"]
    assert 0 <= found["error"] <= 100
    for group in ("deciles", "ranks", "origins"):
        assert sum(one["edges"] for one in found[group]) == 3 * 10
    assert found["ranks"][0]["name"] == "rank 1"
    assert all(0 <= one["said"] <= 100 and 0 <= one["gold"] <= 100 for one in found["deciles"])
    told = run_eval(*command, SAMPLE, *PLAIN)
    assert "expected calibration error" in " ".join(told.output.split())
    without = run_eval(*command, questions, *PLAIN)
    assert without.exit_code == 1
    assert "no question has gold edges" in without.output


def test_a_load_of_several_clients(sample_index):
    command = ("load", "--index", sample_index, "--questions", SAMPLE, "--limit", "4", "--clients", "1,3", *PLAIN)
    rows = reported(*command, "--repeat", "2")["rows"]
    assert [(row["clients"], row["questions"], row["differing"]) for row in rows] == [(1, 8, 0), (3, 8, 0)]
    assert all(0 < row["p50_ms"] <= row["p95_ms"] and row["memory_mb"] > 0 for row in rows)
    assert all(row["processor_ms"] > 0 and row["early_mb"] is None for row in rows)
    told = run_eval(*command)
    assert told.exit_code == 0
    assert "differing" in told.output


def test_settings_that_nobody_reads_are_told(sample_index):
    wrong = ("--set", "rerank.backend=none", "--set", "rerank.edges=3")
    result = run_eval("retrieval", "--index", sample_index, "--questions", SAMPLE, *wrong)
    assert result.exit_code == 1
    assert "rerank.backend=none ignores" in result.output

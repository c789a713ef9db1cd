"""Ablations: variants, what they share, differences, files, and going on after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.config import Config, load_config
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import HeliosError
from helios.evaluation.ablation import plot
from helios.evaluation.ablation.plot import require_matplotlib
from helios.evaluation.ablation.report import render, to_markdown
from helios.evaluation.ablation.results import Measured, question_digest
from helios.evaluation.ablation.run import run_ablation
from helios.evaluation.ablation.searches import Searches, Steps
from helios.evaluation.ablation.variants import FULL, Group, Pipeline, ablation_variants, parse_groups
from helios.evaluation.edges import ranked_edges
from helios.evaluation.evaluate import evaluate
from helios.evaluation.questions import Question, read_questions
from helios.index.snapshot import Snapshot

ALL_ON = ["advanced.expansion.beam=5", "encoder.runtime=openvino"]


@pytest.fixture(scope="module")
def questions() -> tuple[Question, ...]:
    return read_questions(sample_path() / QUESTIONS)[:3]


@pytest.fixture(scope="module")
def staged(sample_index: Path):
    """An engine with every stage that needs no other weights."""
    with Engine.open(sample_index, overrides=ALL_ON, threads=1) as engine:
        yield engine


def names(*groups: Group, overrides=()) -> dict[str, str]:
    """Names and notes of a group's variants."""
    return {v.name: v.note for v in ablation_variants(load_config(overrides=overrides), groups)}


def test_groups_are_read_from_the_command_line():
    assert parse_groups("all") == list(Group)
    assert parse_groups(" units,Edges ") == [Group.EDGES, Group.UNITS]
    for wrong in ("", ",", "stages,cells", "all,cells"):
        with pytest.raises(ValueError, match="expected all, or some of stages,edges,units,beam,prompts"):
            parse_groups(wrong)


def test_variants_of_every_group():
    assert list(names(Group.STAGES)) == [
        FULL, "no reranker", "no expansion", "no refinement", "no spread", "retrieval alone",
    ]  # fmt: skip
    assert len(names(Group.EDGES)) == 7
    assert list(names(Group.UNITS)) == [FULL, "node units", "star units", "edge units"]
    assert list(names(Group.BEAM)) == [FULL, "beam 0", "beam 5", "beam 10", "beam 20", "beam 50"]
    assert len(names(*Group)) == 1 + 5 + 6 + 3 + 5 + 2


def test_a_stage_that_is_off_is_said_to_be():
    notes = names(Group.STAGES, overrides=["expansion.enabled=true", "rerank.backend=none"])
    assert "the same as full" in notes["no reranker"]
    assert notes["no expansion"] == ""


def test_a_row_that_needs_a_language_model_says_so():
    assert all("llm.base_url" in note for name, note in names(Group.PROMPTS).items() if name != FULL)
    given = ["llm.base_url=http://localhost:1/v1", "llm.model=m"]
    variants = ablation_variants(load_config(overrides=given), [Group.PROMPTS])
    assert all(isinstance(variant.method, Pipeline) and not variant.note for variant in variants)


def test_searches_that_do_the_same_are_one():
    variants = {v.name: v.method for v in ablation_variants(load_config(overrides=ALL_ON), list(Group))}
    assert variants["beam 0"] == variants["no expansion"]
    assert variants["beam 5"] == variants[FULL]
    assert variants["no reranker"] != variants[FULL]
    assert variants["beam 10"] != variants[FULL]


def test_variants_find_what_an_engine_with_their_settings_finds(staged: Engine, sample_index: Path, questions):
    variants = ablation_variants(staged.config, [Group.STAGES, Group.BEAM])
    searches = Searches(staged, [v.method for v in variants if v.method], k=20)
    for variant in variants:
        assert isinstance(variant.method, Pipeline)
        with Engine(Snapshot.open(sample_index), variant.method.config, threads=1, models=staged.models) as own:
            for question in questions:
                expected = ranked_edges(own.search(question.text, k=20))
                assert searches.search(question.text, variant.method).edges == expected, variant.name


def test_the_full_row_is_the_evaluation(staged: Engine, questions):
    ablation = run_ablation(staged, ablation_variants(staged.config, [Group.UNITS]), questions, depth=20)
    report = evaluate(lambda text: ranked_edges(staged.search(text, k=20)), questions, depth=20)
    full = ablation.rows[0]
    assert {name: found.mean for name, found in full.measures.items()} == {m.name: m.mean for m in report.measures}
    assert full.differences == {}
    edge = ablation.rows[-1]
    assert edge.differences["AR@2"].mean == pytest.approx(edge.measures["AR@2"].mean - full.measures["AR@2"].mean)
    assert edge.differences["AR@2"].low <= edge.differences["AR@2"].mean <= edge.differences["AR@2"].high
    assert edge.versus == {}
    node = ablation.rows[1]
    assert node.versus["nDCG@20"].mean == pytest.approx(node.measures["nDCG@20"].mean - edge.measures["nDCG@20"].mean)
    assert all(0 < row.latency_ms["p50"] <= row.latency_ms["p95"] for row in ablation.rows)


def test_shared_steps_are_made_once_and_counted_in_full():
    steps, made = Steps(), []

    def step(name: str) -> str:
        made.append(name)
        time.sleep(0.02)
        return name

    for question, expected in ("one", ["first", "second"]), ("two", ["first", "second"] * 2):
        steps.begin(question)
        for _ in range(2):
            first, spent = steps.make("retrieve", lambda: step("first"))
            second, whole = steps.make("expand", lambda: step("second"), after=spent)
        assert (first, second, made) == ("first", "second", expected)
        assert 20 <= spent <= whole - 20


def test_every_variant_pays_for_retrieval(staged: Engine, questions):
    methods = [v.method for v in ablation_variants(staged.config, [Group.STAGES]) if v.method]
    searches = Searches(staged, methods, k=20)
    pipelines = searches.pipelines
    for method in methods:
        took = searches.search(questions[0].text, method).milliseconds
        key = (id(pipelines.stages[method.config][0]),)
        _, retrieval = pipelines.steps.make(key, lambda: pytest.fail("retrieved twice"))
        assert 0 < retrieval <= took


def test_a_variant_without_a_reranker_has_none_of_its_settings():
    given = ["rerank.backend=embedded", "rerank.edges=7", "advanced.rerank.weight=0.5"]
    variants = {v.name: v.method for v in ablation_variants(load_config(overrides=given), [Group.STAGES])}
    assert variants["no reranker"].config.rerank.backend == "none"
    assert variants["no expansion"].config.rerank.edges == 7
    assert variants["retrieval alone"].config.refinement.mode == "off"
    for variant in variants.values():
        assert Config.model_validate(variant.config.resolved()) == variant.config


def test_tables_and_documents(staged: Engine, questions):
    from rich.console import Console

    ablation = run_ablation(staged, ablation_variants(staged.config, [Group.UNITS, Group.PROMPTS]), questions)
    console = Console(width=80, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(render(ablation, facts=["a fact"], width=80))
    console.file.close()
    shown = console.export_text()
    assert "…" not in shown
    assert all(word in shown for word in ("node units", "star prompts", "not run", "a fact", "against edge units"))
    markdown = to_markdown(ablation, context={"index": "here"}, facts=["a fact"])
    assert "| node units |" in markdown
    assert "- index: here" in markdown
    assert "| graph prompt | – |" in markdown


def test_what_a_stage_could_not_do_is_told(sample_index: Path, questions):
    """No language model answers at that address: the local refiner does, and the rows say so."""
    overrides = ["llm.base_url=http://127.0.0.1:1/v1", "llm.model=none", "advanced.refinement.gate=1", *ALL_ON]
    with Engine.open(sample_index, overrides=overrides, threads=1) as engine:
        ablation = run_ablation(engine, ablation_variants(engine.config, [Group.PROMPTS]), questions[:1])
    full, star, graph = ablation.rows
    assert full.problems == {}
    assert star.problems
    assert graph.problems
    assert star.versus["AR@2"].mean == 0.0
    assert "(1 questions)" in to_markdown(ablation, context={})


def test_a_line_of_a_file_is_a_row_again(questions):
    row = Measured(questions[0].question_id, question_digest(questions[0]), {"AR@2": 1.0}, 3.0, 2, ("slow",))
    assert Measured.from_json(json.loads(json.dumps(asdict(row)))) == row
    with pytest.raises((TypeError, KeyError)):
        Measured.from_json({"question_id": "q"})


def test_a_changed_question_is_another(questions):
    changed = Question(questions[0].question_id, questions[0].text, ("another answer",))
    assert question_digest(changed) != question_digest(questions[0])


def ablate(index: Path, out: Path, *more: str) -> list[str]:
    questions = sample_path() / QUESTIONS
    return ["eval", "ablate", "units", "--index", str(index), "--questions", str(questions), "--out", str(out),
            "--set", "encoder.runtime=openvino", *more]  # fmt: skip


@pytest.mark.slow
def test_a_killed_run_goes_on(sample_index: Path, tmp_path: Path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "helios.cli", *ablate(sample_index, out)]
    kept = out / "questions" / "units-edge-units.jsonl"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 300
        while not kept.is_file() or len(kept.read_bytes().splitlines()) < 4:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    before = [line for line in kept.read_text().splitlines(keepends=True) if line.endswith("\n")]
    assert not (out / "ablation.json").exists()
    result = CliRunner().invoke(build_app(), ablate(sample_index, out, "--json"))
    assert result.exit_code == 0, result.output
    after = kept.read_text().splitlines(keepends=True)
    assert after[: len(before)] == before
    assert len(after) == 1 + 22
    document = json.loads(result.stdout)
    assert document["questions"] == 22
    assert document == json.loads((out / "ablation.json").read_text())
    assert (out / "ablation.png").read_bytes().startswith(b"\x89PNG")
    assert "| full |" in (out / "ablation.md").read_text()


def test_the_command(sample_index: Path, tmp_path: Path):
    arguments = ablate(sample_index, tmp_path, "--limit", "2", "-k", "10")
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 0, result.output
    assert "2 questions" in result.output
    assert "star units" in result.output
    again = CliRunner().invoke(build_app(), [*arguments, "--json"])
    assert json.loads(again.stdout)["depth"] == 10


def test_edges_and_how_many_vectors_they_would_need(sample_index: Path, tmp_path: Path):
    arguments = ["eval", "ablate", "edges", "--index", sample_index, "--questions", sample_path() / QUESTIONS,
                 "--limit", "1", "--json", "--set", "advanced.search.joint_depth=10"]  # fmt: skip
    result = CliRunner().invoke(build_app(), list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["token_vectors"]["joint"] > document["token_vectors"]["factored"]
    assert [row["name"] for row in document["variants"]][1:4] == ["stored MaxSim", "factored MaxSim", "joint MaxSim"]
    assert document["settings"]["advanced"]["search"]["joint_depth"] == 10


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["cells"], "unknown: cells"),
        (["units", "--unit", "node"], "No such option: --unit"),
        (["units", "--against", "run"], "No such option: --against"),
        (["units", "--model", "m"], "--model needs --llm"),
    ],
)
def test_wrong_usage(more, message, sample_index: Path):
    arguments = ["eval", "ablate", *more, "--index", str(sample_index), "--questions", "q.jsonl"]
    result = CliRunner().invoke(build_app(), arguments, env={"COLUMNS": "300", "TERMINAL_WIDTH": "300"})
    assert result.exit_code == 2
    assert message in result.output


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    with pytest.raises(HeliosError, match=r"helios-retrieval\[eval\]"):
        require_matplotlib()

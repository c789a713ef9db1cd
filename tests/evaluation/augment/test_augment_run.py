"""The comparison: measures by hand, every system on every question, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helios.augment.encoding import ColumnWeights
from helios.config import LanguageModelSettings, load_config
from helios.engine import Engine
from helios.errors import EvaluationError
from helios.evaluation.augment.command import read_task
from helios.evaluation.augment.expansions import Expansion, expanded, written
from helios.evaluation.augment.measures import depth_of, measure
from helios.evaluation.augment.options import TaskName
from helios.evaluation.augment.ranking import engine_lists
from helios.evaluation.augment.run import LATE, NOTHING, SET, SET_CHOSEN, Plan, measure_task
from helios.evaluation.augment.stackexchange import any_answer
from helios.evaluation.augment.tables import open_tables
from helios.evaluation.augment.tasks import SplitBy, folds, split
from helios.evaluation.baselines import Bm25Texts
from helios.evaluation.cli import app
from helios.llm.client import LlmClient
from indexing.pipeline import build_index


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Acc@1", 0.0),
        ("Acc@2", 1.0),
        ("Recall@2", 1 / 3),
        ("Recall@4", 2 / 3),
        ("MRR", 1 / 2),
        ("MAP", (1 / 2 + 2 / 4) / 3),
    ],
)
def test_measures_by_hand(name, value):
    assert measure(name, ["x", "a", "y", "b"], {"a", "b", "c"}) == pytest.approx(value)


def test_a_measure_that_is_none_is_refused():
    with pytest.raises(EvaluationError, match="expected Acc@k"):
        measure("nDCG@10", ["a"], {"a"})
    assert depth_of(("Acc@10", "Recall@50")) == 50 and depth_of(("MRR", "Acc@10")) == 1000


@pytest.fixture
def task(site_file: Path):
    with open_tables(site_file) as tables:
        return any_answer(tables)


def test_expansions_say_what_they_say(task):
    documents = Bm25Texts(list(task.documents.values()))
    one = next(question for question in task.questions if question.question_id == "200")
    texts = {each: expanded(task, one, each, documents) for each in (*Expansion,) if each not in ("llm", "lamer")}
    assert texts[Expansion.NONE] == one.text
    assert "I need violin strings" in texts[Expansion.ROW] and "user" not in texts[Expansion.ROW]
    assert "I am user 0." in texts[Expansion.USER] and "I need violin strings" not in texts[Expansion.USER]
    assert "I am user 0." in texts[Expansion.FULL] and "I need violin strings" in texts[Expansion.FULL]
    assert "violin strings" in texts[Expansion.TERMS].partition("\n")[2]
    assert documents.worth("violin strings", "violin strings") > documents.worth("violin strings", "violin") > 0


def test_all_systems_answer_all_questions(task, vectors):
    splits = folds(task.questions, 3, validation=0.3, seed=1)
    report = measure_task(task, splits, vectors, Plan(columns_left_out=True, counts=(1,), timed=True))
    assert len(report.question_ids) == 20
    names = [system.name for system in report.systems]
    assert names[0] == NOTHING and {SET, SET_CHOSEN, "BM25", "set, without body", "set, 1 a column"} <= set(names)
    for system in report.systems:
        assert all(len(values) == 20 for values in system.values.values())
    gain = report[SET].against_nothing[0]
    assert gain.mean == pytest.approx(report[SET].measures[0].mean - report[NOTHING].measures[0].mean)
    assert report[NOTHING].against_nothing[0].mean == 0.0
    assert set(report.milliseconds) == {"question alone", "context, cold", "context, warm"}
    with pytest.raises(EvaluationError, match="test parts of two"):
        measure_task(task, [splits[0], splits[0]], vectors)


def test_the_command_measures_and_keeps_vectors(tmp_path: Path, site_file: Path):
    options = [str(site_file), "--by", "time", "--shares", "0.5,0.25,0.25", "--vectors", str(tmp_path / "vectors.npz")]
    first = CliRunner().invoke(app, ["augment", *options, "--json"])
    assert first.exit_code == 0, first.output
    report = json.loads(first.stdout)
    assert report["task"] == "any-answer" and len(report["question_ids"]) == 5
    assert (tmp_path / "vectors.npz").is_file()
    shown = CliRunner().invoke(app, ["augment", *options])
    assert shown.exit_code == 0 and "BM25" in shown.stdout
    wrong = CliRunner().invoke(app, ["augment", *options, "--shares", "a,b"])
    assert wrong.exit_code == 2 and "expected 3 positive numbers" in wrong.output.replace("\n", " ")


@pytest.mark.slow
def test_late_interaction_is_asked_over_an_index_of_the_documents(tmp_path: Path, site_file: Path):
    """The command writes the documents; an index of them answers with the context and without it."""
    runner, files = CliRunner(), tmp_path / "documents.jsonl"
    command = [
        "augment",
        str(site_file),
        "--by",
        "time",
        "--shares",
        "0.5,0.25,0.25",
        "--json",
        "--documents",
        str(files),
    ]
    assert runner.invoke(app, command).exit_code == 0
    build_index(files, tmp_path / "index", config=load_config(overrides=["encoder.runtime=torch"]))
    result = runner.invoke(app, [*command, "--index", str(tmp_path / "index"), "--set", "encoder.runtime=torch"])
    assert result.exit_code == 0, result.output
    systems = {one["name"]: one for one in json.loads(result.stdout)["systems"]}
    recall = {name: np.mean(one["values"]["Recall@10"]) for name, one in systems.items()}
    assert recall[LATE] == recall[f"{LATE}, set"] == 1.0  # titles say which case it is
    task = read_task(site_file, TaskName.ANY_ANSWER)
    strange = replace(task, documents={"nowhere": "a text"})
    vague = [replace(one, text="Which one should I take?") for one in task.questions]
    with Engine.open(tmp_path / "index", overrides=["encoder.runtime=torch"]) as engine:
        with pytest.raises(EvaluationError, match="no passage 'nowhere'"):
            next(engine_lists(engine, strange, task.questions, depth=10, weights=None))
        found = [
            sum(bool(own.keys() & one.qrels.keys()) for own, one in zip(map(dict.fromkeys, lists), vague, strict=True))
            for lists in (
                engine_lists(engine, task, vague, depth=2, weights=weights)
                for weights in (None, ColumnWeights(share=0.5))
            )
        ]
        assert found[0] < 5 < found[1]


def test_by_time_the_test_is_later(task):
    parts = split(task.questions, SplitBy.TIME, shares=(0.5, 0.25, 0.25))
    assert len(parts.train) == 10 and len(parts.test) == 5


def test_a_language_model_expands_questions(task, tiny_llm):
    """A real server with a random model: what it writes is appended, what it fails on is counted and left as it was."""
    settings = LanguageModelSettings(base_url=tiny_llm, model="tiny")
    documents = Bm25Texts(list(task.documents.values()))
    asked = task.questions[:2]
    with LlmClient.open(settings) as client:
        for expansion in (Expansion.LLM, Expansion.LAMER):
            texts, failed = written(task, asked, expansion, documents, client)
            kept = [text == one.text for text, one in zip(texts, asked, strict=True)]
            assert sum(kept) == failed
            assert all(text.startswith(one.text) for text, one in zip(texts, asked, strict=True))

"""The recipe of spreading: it finds the prices that made the data, and runs from search to settings file."""

import json
from pathlib import Path

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.graph import Subgraph
from helios.models.card import read_card
from helios.retrieval.spreading import Prices
from helios.types import Edge, ScoredEdge
from training.errors import TrainingError
from training.recipes import RECIPES, find_role, load_recipe
from training.spread import SpreadLesson, SpreadRecipe, choices, cross_validate, fit

ROW, PASSAGE = 0.8, 1.6


def _lost(edge: Edge, shown: Edge, row: float, passage: float) -> float:
    return row * (edge.segment == shown.segment) + passage * (edge.passage == shown.passage)


def _lessons(count: int, *, row: float, passage: float) -> list[SpreadLesson]:
    """Questions whose best edge is wrong and whose right one is drawn as the prices say."""
    random = np.random.default_rng(5)
    made = []
    for number in range(count):
        pairs = {(int(random.integers(4)), int(random.integers(4))) for _ in range(8)}
        edges = [ScoredEdge(Edge(*pair), float(random.normal())) for pair in sorted(pairs)]
        subgraph = Subgraph.from_edges(edges)
        first, *others = subgraph.edges
        worth = np.array([one.score - _lost(one.edge, first.edge, row, passage) for one in others])
        answers = np.zeros(len(subgraph), bool)
        answers[1 + random.choice(len(others), p=np.exp(worth) / np.exp(worth).sum())] = True
        made.append(SpreadLesson(f"table {number}", subgraph, answers))
    return made


def test_the_prices_behind_the_data_are_found():
    found = fit(_lessons(3000, row=ROW, passage=PASSAGE), depth=2)
    assert (found.row, found.passage) == (pytest.approx(ROW, abs=0.2), pytest.approx(PASSAGE, abs=0.2))


def test_repeats_that_are_better_cost_nothing_rather_than_less_than_nothing():
    found = fit(_lessons(1000, row=-1.0, passage=-1.0), depth=2)
    assert (found.row, found.passage) == (0.0, 0.0)


def test_choices_end_where_the_answer_is_found():
    (lesson, *_) = _lessons(1, row=ROW, passage=PASSAGE)
    answer = int(np.flatnonzero(lesson.answers)[0])
    made = choices(lesson, depth=10)
    assert [len(choice.right) for choice in made] == [len(lesson.subgraph) - rank for rank in range(1, answer + 1)]
    assert made[-1].right[0]
    assert choices(SpreadLesson("t", lesson.subgraph, np.ones(len(lesson.subgraph), bool)), depth=10) == []


def test_spreading_helps_the_questions_that_it_was_made_for():
    scores = cross_validate(_lessons(800, row=3.0, passage=3.0), SpreadRecipe(depth=3))
    assert scores["spread AR@2"] > scores["as ranked AR@2"] + 0.02


def test_nothing_to_learn_from_is_said():
    with pytest.raises(TrainingError, match="nothing to learn from"):
        fit([], depth=10)
    with pytest.raises(TrainingError, match=r"data\.index"):
        role = find_role("spread")
        role.train(
            load_recipe(role.settings, RECIPES / "spread.yaml"), Path("out"), device="cpu", on_log=lambda row: None
        )


def test_the_role_searches_and_writes_prices_that_search_reads(sample_index: Path, tmp_path: Path):
    """With the answers of other questions on the same table: what is asked for stands below the best edge then."""
    records = [json.loads(line) for line in (sample_path() / "questions.jsonl").read_text("utf-8").splitlines()]
    asked = [
        {**one, "id": f"{one['id']} {other['id']}", "answer": other["answer"]}
        for one in records for other in records if one["table"] == other["table"]
    ]  # fmt: skip
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(f"{json.dumps(one)}\n" for one in asked), "utf-8")
    role = find_role("spread")
    given = [f"data.index={sample_index}", f"data.questions=[{questions}]", "folds=2"]
    scores = role.train(load_recipe(role.settings, None, given), tmp_path, device="cpu", on_log=lambda row: None)
    assert Prices.load(tmp_path) == Prices(row=scores["row"], passage=scores["passage"])
    assert scores["questions"] == len(asked)
    assert read_card(tmp_path, "spreading").scores["questions"] == len(asked)

"""The recipe of the fused score: it finds the scale behind the data, and search takes what it writes."""

from pathlib import Path

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.models.card import read_card
from helios.retrieval.ranking.fused import FusedModel, FusedScale
from training.crossfit import rank_edges
from training.errors import TrainingError
from training.fused import FusedLesson, FusedSettings, fit_scale, log_loss, measure, mine_lessons
from training.recipes import RECIPES, find_role, load_recipe

RECIPE = RECIPES / "fused.yaml"
QUESTIONS = sample_path() / "questions.jsonl"
TRUE = FusedScale(intercept=0.3, gap=-2.0, rank=-0.6)


def _lessons(count: int) -> list[FusedLesson]:
    """Questions whose edges are gold as often as the scale says."""
    random = np.random.default_rng(4)
    made = []
    for number in range(count):
        fused = np.sort(random.uniform(5, 25, size=20)).astype(np.float32)[::-1]
        likely = 1 / (1 + np.exp(-TRUE.log_odds(fused, np.arange(20), best=float(fused[0]))))
        made.append(FusedLesson(fused, random.random(20) < likely, held_out=number % 4 == 0))
    return made


def test_the_scale_behind_the_data_is_found():
    lessons = _lessons(2000)
    found = fit_scale(lessons, decay=1e-6)
    np.testing.assert_allclose(
        [found.intercept, found.gap, found.rank], [TRUE.intercept, TRUE.gap, TRUE.rank], atol=0.15
    )
    scores = measure(lessons, decay=1e-6)
    assert scores["questions"] == 2000
    assert scores["held-out log loss"] < 0.9 * scores["held-out log loss of the mean"]
    assert scores["held-out gold edges said"] == pytest.approx(scores["held-out gold edges"], rel=0.1)


def test_log_loss_by_hand():
    said, gold = np.array([0.5, 0.25]), np.array([True, False])
    assert log_loss(said, gold) == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)


def test_lessons_are_what_search_finds_without_a_ranking(sample_index: Path):
    question = read_questions(QUESTIONS)[0]
    with Engine.open(sample_index, overrides=["search.ranker=none"], threads=1) as engine:
        (lesson,) = mine_lessons(engine, [question], FusedSettings(depth=30))
        state = rank_edges(engine, question.text, k=30)
        scale = engine.pipeline.fused.scale
        (other,) = mine_lessons(engine, [question], FusedSettings(depth=30, fusion={"segment": 0.0, "star": 0.0}))
    scores = scale.log_odds(lesson.fused, np.arange(30), best=float(lesson.fused[0]))
    assert [scored.score for scored in state.subgraph.edges] == pytest.approx(scores.tolist(), abs=1e-5)
    assert lesson.gold.any() and not lesson.gold.all()
    assert other.fused[0] < lesson.fused[0]


def test_the_role_writes_a_folder_that_search_takes(sample_index: Path, tmp_path: Path):
    role, rows = find_role("fused"), []
    given = [f"data.index={sample_index}", f"data.questions=[{QUESTIONS}]", "depth=30", "fusion.lexical=0.1"]
    scores = role.train(load_recipe(role.settings, RECIPE, given), tmp_path, device=None, on_log=rows.append)
    card = read_card(tmp_path, "fused score")
    assert card.scores == scores
    assert scores["questions"] == len(read_questions(QUESTIONS))
    model = FusedModel.load(tmp_path)
    assert model.name == {"segment": 0.4, "star": 0.4, "lexical": 0.1, "k1": 0.9, "b": 0.4}
    assert model.scale.gap < 0
    settings = [f"advanced.search.fused={tmp_path}", "search.ranker=none", "expansion.enabled=false"]
    with Engine.open(sample_index, overrides=settings, threads=1) as engine:
        assert engine.pipeline.fused == model
        evidence = engine.search("Which river is the longest ?", k=3)
        assert len(evidence.edges) == 3


def test_nothing_to_learn_from_is_said(tmp_path: Path):
    with pytest.raises(TrainingError, match=r"data\.index"):
        find_role("fused").train(FusedSettings(), tmp_path, device=None, on_log=lambda row: None)
    for lessons in ([], [FusedLesson(np.ones(3, np.float32), np.zeros(3, bool), held_out=False)]):
        with pytest.raises(TrainingError, match="best edges are gold"):
            fit_scale(lessons, decay=1e-6)

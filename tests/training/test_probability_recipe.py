"""The recipe of probabilities: it finds the weights that made the data, and runs from searches to a model."""

from pathlib import Path

import numpy as np
import pytest

from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.retrieval.probability import EDGE_FEATURES, QUESTION_FEATURES, EvidenceModel, Logistic
from helios.retrieval.state import run_stages
from training.errors import TrainingError
from training.probability import (
    Lesson,
    ProbabilityRecipe,
    calibration_error,
    fit,
    gold_nodes,
    mine,
    train_probability,
    variants,
)
from training.recipes import RECIPES, find_role, load_recipe

TRUE = Logistic({"score": 0.8, "rank": -0.5, "expanded": 1.5}, intercept=-0.5)
THERE = Logistic({"best": 1.0, "terms_of_best": 4.0}, intercept=-2.0)


@pytest.fixture(scope="module")
def questions():
    return [question for question in read_questions(sample_path() / QUESTIONS) if question.gold_edges]


def _lessons(count: int) -> list[Lesson]:
    random = np.random.default_rng(2)
    made = []
    for number in range(count):
        edges = random.uniform(-1, 1, (20, len(EDGE_FEATURES)))
        about = random.uniform(0, 1, len(QUESTION_FEATURES))
        gold = random.uniform(size=20) < TRUE.chances(edges, EDGE_FEATURES)
        (there,) = THERE.chances(about[None], QUESTION_FEATURES)
        made.append(Lesson("all", edges, about, gold, bool(random.uniform() < there), f"table {number}"))
    return made


def test_the_weights_behind_the_data_are_found():
    model, scores = fit(_lessons(3000), ProbabilityRecipe(absent=1.0))
    found = [model.edge.weights[name] for name in ("score", "rank", "expanded", "aggregated")]
    np.testing.assert_allclose(found, [0.8, -0.5, 1.5, 0.0], atol=0.1)
    assert model.presence.weights["terms_of_best"] == pytest.approx(4.0, abs=0.5)
    assert scores["held-out calibration error, all"] < 0.02
    assert scores["held-out AUC of presence"] > 0.6


def test_one_kind_alone_teaches_nothing():
    with pytest.raises(TrainingError, match="two tables or more"):
        fit([lesson for lesson in _lessons(50) if lesson.present], ProbabilityRecipe())


def test_the_calibration_error_is_what_is_said_too_much():
    said, gold = np.array([0.9, 0.9, 0.1, 0.1]), np.array([True, False, False, False])
    assert calibration_error(said, gold) == pytest.approx((2 * 0.4 + 2 * 0.1) / 4)


def test_every_stage_is_left_out_once_and_each_prefix_is_seen(engine: Engine):
    usual = engine.pipeline.stages
    begun = engine.begin("Who designed Pascal?", k=10)
    found = dict(variants(begun, usual))
    names = [stage.name for stage in usual]
    assert set(found) == {f"up to {n}" for n in names[1:]} | {"all"} | {f"no {n}" for n in names[1:-1]}
    assert found["all"].subgraph == run_stages(begun, usual).subgraph
    without = [stage for stage in usual if stage.name != "expand"]
    assert found["no expand"].subgraph == run_stages(begun, without).subgraph


def test_gold_nodes_are_not_found_where_they_are_deleted(engine: Engine, questions):
    question = questions[0]
    assert len(gold_nodes(engine, question))
    before = engine.search(question.text, k=50)
    lessons = list(mine(engine, question, k=50))
    assert any(lesson.gold.any() for lesson in lessons if lesson.present)
    (without,) = [lesson for lesson in lessons if not lesson.present]
    assert not without.gold.any()
    assert engine.search(question.text, k=50).edges == before.edges


@pytest.mark.slow
def test_the_recipe_runs_from_searches_to_a_model(sample_index: Path, tmp_path: Path):
    overrides = [f"data.index={sample_index}", f"data.questions=[{sample_path() / QUESTIONS}]", "searched=1.0", "k=10"]
    role = find_role("probability")
    settings = load_recipe(role.settings, RECIPES / "probability.yaml", overrides)
    scores = train_probability(settings, tmp_path / "out")
    assert 0 <= scores["held-out calibration error, all"] < 0.5
    model = EvidenceModel.load(tmp_path / "out")
    with Engine.open(sample_index, overrides=[f"advanced.search.probability={tmp_path / 'out'}"]) as engine:
        found = engine.search("Who designed Pascal?")
        state = run_stages(engine.begin("Who designed Pascal?"), engine.pipeline.stages)
    assert tuple(edge.probability for edge in found.edges) == model.judge(state).probabilities


def test_without_data_nothing_is_learned(tmp_path: Path):
    with pytest.raises(TrainingError, match=r"data\.index"):
        train_probability(ProbabilityRecipe(), tmp_path)

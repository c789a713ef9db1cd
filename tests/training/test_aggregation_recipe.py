"""The recipes of the refiner's models, on a made-up league whose tallest player is always asked for."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus.sample import sample_path
from helios.errors import EvaluationError
from helios.graph import Subgraph
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.models.card import read_card
from helios.retrieval.refinement.bonus import BONUS_FEATURES, RowBonus
from helios.retrieval.refinement.detector import Detector
from helios.retrieval.refinement.execution import Executor
from helios.retrieval.refinement.scorer import VERIFIER_FEATURES, PlanScorer, Verifier
from helios.types import Edge, ScoredEdge
from indexing.pipeline import build_index
from training.aggregation import AggregationSettings, Lesson, area_under_curve, detector_label, fit_aggregation
from training.errors import TrainingError
from training.recipes import RECIPES, find_role, load_recipe
from training.row_bonus import BonusLesson, train_row_bonus
from training.verifier import VerifierLesson, calibration_error, measure_verifier, train_verifier

SETTINGS = AggregationSettings(trees=20, least_examples=5, detector_steps=100)


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexReader]:
    """An index of thirty teams of eight players each."""
    folder = tmp_path_factory.mktemp("heights")
    random = np.random.default_rng(3)
    tables = []
    for number in range(30):
        heights, goals = random.permutation(np.arange(160, 200))[:8], random.permutation(40)[:8]
        rows = [[f"Player {number}-{n}", f"{heights[n]} cm", str(goals[n])] for n in range(8)]
        header = ["Player", "Height", "Goals"]
        tables.append({"id": f"t{number}", "title": f"Team {number}", "header": header, "rows": rows})
    (folder / "tables.jsonl").write_text("".join(f"{json.dumps(table)}\n" for table in tables), "utf-8")
    build_index(folder / "tables.jsonl", folder / "index", config=load_config(overrides=["linking.source=none"]))
    with Snapshot.open(folder / "index") as snapshot:
        yield IndexReader.of(snapshot)


def lessons(index: IndexReader) -> list[Lesson]:
    found = []
    for number in range(30):
        heights = [int(row[1].split()[0]) for row in index.corpus.tables[number].rows]
        gold = frozenset([8 * number + int(np.argmax(heights))])
        subgraph = Subgraph.from_edges(ScoredEdge(Edge(8 * number + row, None), -row / 10) for row in range(8))
        is_gold = np.array([scored.edge.segment in gold for scored in subgraph.edges])
        questions = ("Who is the tallest player of team {} ?", "Which team won the first ever match in town {} ?")
        found += [Lesson(q.format(number), f"t{number}", subgraph, gold, is_gold, is_gold) for q in questions]
    return found


@pytest.mark.slow
def test_the_recipe_learns_which_column_is_meant(league: IndexReader, tmp_path: Path) -> None:
    scores = fit_aggregation(lessons(league), league, tmp_path / "a", SETTINGS)
    assert (scores["questions that compare"], scores["of them aggregations"]) == (60, 30)
    assert scores["held-out detector AUC"] > 0.95
    assert scores["cross-validated AR@2 after"] > scores["cross-validated AR@2 before"]
    detector = Detector.load(tmp_path / "a" / "detector.npz")
    assert detector.probability("Who is the tallest player of team 99 ?") > 0.5
    assert detector.probability("Who plays for team 99 ?") == 0.0
    assert len(PlanScorer.load(tmp_path / "a" / "plans.txt").trees) == SETTINGS.trees
    assert RowBonus.load(tmp_path / "a" / "rows.json").weights[0] > 0
    fit_aggregation(lessons(league), league, tmp_path / "b", SETTINGS)
    for name in ("detector.npz", "plans.txt", "rows.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_weak_labels(league: IndexReader) -> None:
    asked, other = lessons(league)[:2]
    assert detector_label(asked, league, Executor()) is True
    assert detector_label(other, league, Executor()) is False
    assert detector_label(replace(asked, question="Who plays ?"), league, Executor()) is None


def test_questions_that_compare_nothing_are_refused(league: IndexReader, tmp_path: Path) -> None:
    idle = Lesson("Who plays ?", "t", Subgraph(), frozenset([0]), np.zeros(0, bool), np.zeros(0, bool))
    with pytest.raises(TrainingError, match="compares"):
        fit_aggregation([idle], league, tmp_path, SETTINGS)


def test_a_row_bonus_is_in_log_odds_of_the_ranking() -> None:
    random = np.random.default_rng(1)
    found = []
    for _ in range(300):
        scores, features = random.normal(size=8), np.zeros((8, len(BONUS_FEATURES)))
        features[random.integers(8), 0] = 1.0
        likely = np.exp(2 * scores + 3 * features[:, 0])
        found.append(BonusLesson(scores, features, np.arange(8) == random.choice(8, p=likely / likely.sum())))
    assert train_row_bonus(found, decay=1e-4).weights[0] == pytest.approx(1.5, abs=0.3)
    with pytest.raises(TrainingError):
        train_row_bonus(found[:0], decay=0.1)


@pytest.mark.parametrize("name", ["aggregation", "verifier"])
def test_the_roles_have_recipes(name: str, tmp_path: Path) -> None:
    role = find_role(name)
    settings = load_recipe(role.settings, RECIPES / f"{name}.yaml")
    with pytest.raises(TrainingError, match=r"data\.index"):
        role.train(settings, tmp_path, device="cpu", on_log=lambda row: None)


def test_the_verifier_role_searches_and_writes_a_card(sample_index: Path, tmp_path: Path) -> None:
    role = find_role("verifier")
    given = [f"data.index={sample_index}", f"data.questions=[{sample_path() / 'questions.jsonl'}]", "every=1"]
    scores = role.train(load_recipe(role.settings, None, given), tmp_path, device="cpu", on_log=lambda row: None)
    assert scores["questions"] > 1
    assert Verifier.load(tmp_path / "verifier.json").weights.shape == (len(VERIFIER_FEATURES),)
    assert set(read_card(tmp_path, "verifier").files) == {"verifier.json"}


def test_the_aggregation_role_searches_and_writes_a_card(sample_index: Path, tmp_path: Path) -> None:
    role = find_role("aggregation")
    given = [f"data.index={sample_index}", f"data.questions=[{sample_path() / 'questions.jsonl'}]", "trees=2"]
    scores = role.train(load_recipe(role.settings, None, given), tmp_path, device="cpu", on_log=lambda row: None)
    assert scores["questions that compare"] > 1
    assert set(read_card(tmp_path, "aggregation").files) == {"detector.npz", "plans.txt", "rows.json"}


def test_the_verifier_is_calibrated(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    found = []
    for number in range(40):
        features = random.normal(size=(50, len(VERIFIER_FEATURES)))
        chance = 1 / (1 + np.exp(-(2 * features[:, 0] - features[:, 3] - 1)))
        found.append(VerifierLesson(features, random.random(50) < chance, features[:, 0], held_out=number % 4 == 0))
    verifier = train_verifier(found)
    assert verifier.weights[0] == pytest.approx(2, abs=0.3)
    assert calibration_error(verifier, found) < 0.05
    scores = measure_verifier(found, decay=1e-3)
    assert scores["held-out AUC"] > scores["held-out AUC of the ranking's score"] > 0.6
    verifier.save(tmp_path / "verifier.json", trained_on="noise")
    loaded = type(verifier).load(tmp_path / "verifier.json")
    assert loaded.weights == pytest.approx(verifier.weights, abs=1e-5)
    with pytest.raises(EvaluationError):
        train_verifier([])


def test_area_under_curve() -> None:
    assert area_under_curve([0.9, 0.5, 0.1], [True, False, False]) == 1.0
    assert area_under_curve([0.5, 0.5], [True, False]) == 0.5
    assert np.isnan(area_under_curve([0.5], [True]))

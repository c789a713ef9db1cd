"""The recipes of the refiner's models, on a made-up league whose tallest player is always asked for."""

from pathlib import Path

import numpy as np
import pytest

from helios.corpus import CorpusStore, CorpusWriter
from helios.errors import EvaluationError
from helios.graph import DataGraph, Subgraph
from helios.retrieval.refinement.detector import Detector
from helios.retrieval.refinement.execution import Executor
from helios.retrieval.refinement.scorer import VERIFIER_FEATURES, PlanScorer
from helios.types import Edge, ScoredEdge, Table
from training.aggregation import AggregationRecipe, Lesson, area_under_curve, detector_label, train_aggregation
from training.verifier import VerifierLesson, calibration_error, train_verifier

RECIPE = AggregationRecipe(rounds=20, least_in_leaf=5, detector_steps=100)


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> tuple[CorpusStore, DataGraph]:
    folder = tmp_path_factory.mktemp("heights")
    random = np.random.default_rng(3)
    with CorpusWriter(folder / "corpus") as writer:
        for number in range(30):
            heights, goals = random.permutation(np.arange(160, 200))[:8], random.permutation(40)[:8]
            rows = tuple((f"Player {number}-{n}", f"{heights[n]} cm", str(goals[n])) for n in range(8))
            writer.add(Table(f"t{number}", f"Team {number}", ("Player", "Height", "Goals"), rows))
    graph = DataGraph.write(folder / "graph", [], [], [], [], [], [], segment_count=240, passage_count=0)
    return CorpusStore.open(folder / "corpus"), graph


def lessons(store: CorpusStore) -> list[Lesson]:
    found = []
    for number in range(30):
        heights = [int(row[1].split()[0]) for row in store.tables[number].rows]
        gold = frozenset([8 * number + int(np.argmax(heights))])
        edges = [ScoredEdge(Edge(8 * number + row, None), 10.0 - row) for row in range(8)]
        found.append(Lesson(f"Who is the tallest player of team {number} ?", Subgraph.from_edges(edges), gold))
        found.append(
            Lesson(f"Which team won the first ever match in town {number} ?", Subgraph.from_edges(edges), gold)
        )
    return found


def test_the_recipe_learns_which_column_is_meant(league: tuple[CorpusStore, DataGraph], tmp_path: Path) -> None:
    store, graph = league
    scores = train_aggregation(lessons(store), store, graph, tmp_path / "a", recipe=RECIPE)
    assert (scores.questions, scores.positives) == (60, 30)
    assert scores.detector_auc > 0.95
    detector = Detector.load(tmp_path / "a" / "detector.npz")
    assert detector.probability("Who is the tallest player of team 99 ?") > 0.5
    assert detector.probability("Who plays for team 99 ?") == 0.0
    assert PlanScorer.load(tmp_path / "a" / "plans.txt").model.startswith("tree")
    train_aggregation(lessons(store), store, graph, tmp_path / "b", recipe=RECIPE)
    for name in ("detector.npz", "plans.txt"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_weak_labels(league: tuple[CorpusStore, DataGraph]) -> None:
    store, graph = league
    asked, other = lessons(store)[:2]
    assert detector_label(asked, store, graph, Executor()) is True
    assert detector_label(other, store, graph, Executor()) is False
    assert detector_label(Lesson("Who plays ?", asked.subgraph, asked.gold), store, graph, Executor()) is None


def test_questions_that_compare_nothing_are_refused(league: tuple[CorpusStore, DataGraph], tmp_path: Path) -> None:
    store, graph = league
    with pytest.raises(EvaluationError, match="compares"):
        train_aggregation([Lesson("Who plays ?", Subgraph(), frozenset([0]))], store, graph, tmp_path)


def test_the_verifier_is_calibrated(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    found = []
    for _ in range(40):
        features = random.normal(size=(50, len(VERIFIER_FEATURES)))
        chance = 1 / (1 + np.exp(-(2 * features[:, 0] - features[:, 3] - 1)))
        found.append(VerifierLesson(features, random.random(50) < chance))
    verifier = train_verifier(found)
    assert verifier.weights[0] == pytest.approx(2, abs=0.3)
    assert calibration_error(verifier, found) < 0.05
    verifier.save(tmp_path / "verifier.json", trained_on="noise")
    loaded = type(verifier).load(tmp_path / "verifier.json")
    assert loaded.weights == pytest.approx(verifier.weights, abs=1e-5)
    with pytest.raises(EvaluationError):
        train_verifier([])


def test_area_under_curve() -> None:
    assert area_under_curve([0.9, 0.5, 0.1], [True, False, False]) == 1.0
    assert area_under_curve([0.5, 0.5], [True, False]) == 0.5
    assert np.isnan(area_under_curve([0.5], [True]))

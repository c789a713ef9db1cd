"""The recipe for aggregation: a detector of such questions, and a scorer of plans.

Labels are weak and come from train questions alone. For the plan scorer: the share of a plan's rows that are gold.
For the detector: whether some plan over the whole gold table, without or with a filter, computes exactly one row and
that row is gold, while the question compares; a question without a cue is negative and not learned from.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import lightgbm
import numpy as np
from numpy.typing import NDArray

from helios.corpus import CorpusStore
from helios.errors import EvaluationError
from helios.evaluation.questions import Question
from helios.graph import DataGraph, Subgraph
from helios.retrieval.refinement.detector import SIZE, Detector, detector_features
from helios.retrieval.refinement.execution import Executor
from helios.retrieval.refinement.planning import FEATURES, HEAD, Plan, lay_plans
from helios.retrieval.refinement.restoring import RestoredTable, restore
from helios.retrieval.refinement.scorer import PlanScorer
from helios.retrieval.refinement.wording import read_cues

log = logging.getLogger(__name__)

Array = NDArray[Any]
FOLDS = 5


@dataclass(frozen=True, slots=True)
class AggregationRecipe:
    """How to train; the same seed gives the same files."""

    seed: int = 1
    tables: int = 3
    rounds: int = 150
    leaves: int = 8
    least_in_leaf: int = 40
    detector_steps: int = 400
    detector_rate: float = 0.05
    detector_decay: float = 2e-3


@dataclass(frozen=True, slots=True)
class Lesson:
    """A train question with what retrieval found for it and its gold rows by segment number."""

    question: str
    subgraph: Subgraph
    gold: frozenset[int]


@dataclass(frozen=True, slots=True)
class AggregationScores:
    """What held-out questions say of the detector: areas and counts."""

    questions: int
    positives: int
    detector_auc: float


def gold_segments(question: Question, corpus: CorpusStore) -> frozenset[int]:
    """The numbers of a question's gold rows."""
    return frozenset(corpus.segment_number(e.segment_id) for e in question.gold_edges if e.segment_id is not None)


def held_out(table: int, corpus: CorpusStore) -> bool:
    """Whether questions of this table are in the held-out fifth, on which thresholds are chosen."""
    return crc32(corpus.tables.id(table).encode()) % FOLDS == 0


def train_plan_scorer(
    lessons: Iterable[Lesson],
    corpus: CorpusStore,
    graph: DataGraph,
    *,
    recipe: AggregationRecipe | None = None,
    advance: Callable[[str, int], None] = lambda stage, done: None,
) -> PlanScorer:
    """A boosted forest on all plans of all lessons that compare; EvaluationError if there are none."""
    recipe = recipe or AggregationRecipe()
    executor = Executor()
    features: list[Sequence[float]] = []
    labels: list[float] = []
    sizes: list[int] = []
    for lesson in lessons:
        plans = _plans(lesson, corpus, graph, executor, recipe.tables)
        features += [plan.features for plan in plans]
        labels += [_gold_share(plan, lesson.gold) for plan in plans]
        sizes.append(len(plans))
        advance("plans", 1)
    if not features:
        raise EvaluationError("no train question compares anything over a table that retrieval found")
    log.info("fitting on %d plans of %d questions, %.3f gold", len(labels), np.count_nonzero(sizes), np.mean(labels))
    weights = np.repeat([1 / np.sqrt(size) if size else 0.0 for size in sizes], sizes)
    parameters = {
        "objective": "cross_entropy", "num_leaves": recipe.leaves, "min_data_in_leaf": recipe.least_in_leaf,
        "lambda_l2": 10.0, "learning_rate": 0.05, "feature_fraction": 0.5, "bagging_fraction": 0.7, "bagging_freq": 1,
        "seed": recipe.seed, "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbose": -1,
    }  # fmt: skip
    rows = np.asarray(features, np.float32)
    data = lightgbm.Dataset(rows, np.asarray(labels), weight=weights, feature_name=list(FEATURES))
    return PlanScorer(str(lightgbm.train(parameters, data, recipe.rounds).model_to_string()))


def detector_label(lesson: Lesson, corpus: CorpusStore, graph: DataGraph, executor: Executor) -> bool | None:
    """The weak label of a question; None for one that compares nothing or has no gold row."""
    cues = read_cues(lesson.question)
    if not cues or not lesson.gold:
        return None
    number = corpus.table_of(min(lesson.gold))
    size = int(corpus.segment_offsets[number + 1] - corpus.segment_offsets[number])
    table = RestoredTable(corpus, graph, number, 0, np.zeros(size))
    plans = lay_plans(lesson.question, cues, [table], executor, head=[])
    exact = [plan for plan in plans if len(plan.rows) == 1 and _gold_share(plan, lesson.gold) == 1.0]
    shown = FEATURES.index("hint"), FEATURES.index("after_share"), FEATURES.index("born")
    return any(plan.features[place] > 0 for plan in exact for place in shown)


def train_detector(
    texts: Sequence[str], labels: Sequence[bool], *, recipe: AggregationRecipe | None = None
) -> Detector:
    """A logistic regression by full-batch Adam with weight decay; the same input gives the same weights."""
    recipe = recipe or AggregationRecipe()
    rows = np.stack([detector_features(text) for text in texts]).astype(np.float64)
    wanted = np.asarray(labels, np.float64)
    weights = np.zeros(SIZE + 1)
    mean, square = np.zeros(SIZE + 1), np.zeros(SIZE + 1)
    for step in range(1, recipe.detector_steps + 1):
        error = 1 / (1 + np.exp(-(rows @ weights[:-1] + weights[-1]))) - wanted
        gradient = np.append(rows.T @ error, error.sum()) / len(wanted)
        gradient[:-1] += recipe.detector_decay * weights[:-1]
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = recipe.detector_rate / (1 + step / 200)
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return Detector(weights[:-1].astype(np.float16).astype(np.float32), float(np.float32(weights[-1])))


def area_under_curve(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """The chance that a positive scores above a negative, ties half; NaN without both."""
    positive = np.array([s for s, label in zip(scores, labels, strict=True) if label])
    negative = np.array([s for s, label in zip(scores, labels, strict=True) if not label])
    if not len(positive) or not len(negative):
        return float("nan")
    above = (positive[:, None] > negative[None]).mean() + 0.5 * (positive[:, None] == negative[None]).mean()
    return float(above)


def train_aggregation(
    lessons: Sequence[Lesson],
    corpus: CorpusStore,
    graph: DataGraph,
    out: Path,
    *,
    recipe: AggregationRecipe | None = None,
    advance: Callable[[str, int], None] = lambda stage, done: None,
) -> AggregationScores:
    """Write detector.npz and plans.txt into `out`; scores are of a detector that did not see the held-out fifth."""
    recipe = recipe or AggregationRecipe()
    executor = Executor()
    marked: list[tuple[str, bool, bool]] = []
    for lesson in lessons:
        label = detector_label(lesson, corpus, graph, executor)
        if label is not None:
            marked.append((lesson.question, label, held_out(corpus.table_of(min(lesson.gold)), corpus)))
        advance("detector", 1)
    if not marked:
        raise EvaluationError("no train question compares anything")
    train = [item for item in marked if not item[2]] or marked
    rest = [item for item in marked if item[2]]
    draft = train_detector([text for text, _, _ in train], [label for _, label, _ in train], recipe=recipe)
    area = area_under_curve([draft.probability(text) for text, _, _ in rest], [label for _, label, _ in rest])
    detector = train_detector([text for text, _, _ in marked], [label for _, label, _ in marked], recipe=recipe)
    detector.save(out / "detector.npz")
    scorer = train_plan_scorer(lessons, corpus, graph, recipe=recipe, advance=advance)
    (out / "plans.txt").write_text(scorer.model, encoding="utf-8")
    return AggregationScores(len(marked), sum(label for _, label, _ in marked), area)


def _plans(lesson: Lesson, corpus: CorpusStore, graph: DataGraph, executor: Executor, tables: int) -> list[Plan]:
    cues = read_cues(lesson.question)
    if not cues:
        return []
    restored = list(restore(corpus, graph, lesson.subgraph, count=tables))
    head = [scored.score for scored in lesson.subgraph.edges[:HEAD]]
    return lay_plans(lesson.question, cues, restored, executor, head=head)


def _gold_share(plan: Plan, gold: frozenset[int]) -> float:
    return sum(plan.table.first_segment + row in gold for row in plan.rows) / len(plan.rows)

"""The recipe for aggregation: a detector of such questions, a scorer of plans, and what plans are worth to their rows.

    helios train aggregation --recipe aggregation --out DIR data.index=INDEX ranking=RANKING ...

Labels are weak and come from train questions alone. For the plan scorer: the share of a plan's rows that are gold.
For the detector: whether some plan over the whole gold table, without or with a filter, computes exactly one row and
that row is gold, while the question compares; a question without a cue is negative and not learned from. For the row
bonus: the gold edges, with the probabilities of scorers that never saw the question's table.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.evaluation.measures import contains_answer
from helios.evaluation.questions import Question, read_questions
from helios.graph import Subgraph
from helios.index.reader import IndexReader
from helios.models.card import ModelCard, data_file, write_card
from helios.models.trees import Trees
from helios.retrieval.expansion.stage import READ
from helios.retrieval.refinement.bonus import bonus_features
from helios.retrieval.refinement.execution import Executor
from helios.retrieval.refinement.planning import FEATURES, HEAD, Plan, lay_plans
from helios.retrieval.refinement.restoring import RestoredTable, restore
from helios.retrieval.refinement.scorer import PlanScorer
from helios.retrieval.refinement.wording import read_cues
from training.crossfit import RANKING_ALONE, CrossFitted, table_fold
from training.detector import train_detector
from training.errors import TrainingError
from training.examples import covers, edge_text, gold_pairs, pair_of
from training.log import LogRow
from training.recipes import DataSettings, Role
from training.row_bonus import BonusLesson, bonus_lesson, train_row_bonus

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
DETECTOR, PLANS, ROWS = "detector.npz", "plans.txt", "rows.json"


class AggregationSettings(Section):
    """Everything that the result depends on beside the data; the same seed gives the same files."""

    data: DataSettings = DataSettings()
    ranking: Path | None = None
    """Folder that `helios train ranker` wrote: each question is searched with trees that never saw its table."""
    reranking: Path | None = None
    """Folder that `helios train late-reranker` wrote: the lists are reranked as search does it."""
    tables: int = Field(default=3, ge=1)
    trees: int = Field(default=150, ge=1)
    leaves: int = Field(default=4, ge=2)
    least_examples: int = Field(default=60, ge=1)
    """Plans in a leaf."""
    feature_share: float = Field(default=0.3, gt=0.0, le=1.0)
    bonus_decay: float = Field(default=0.01, gt=0.0)
    detector_steps: int = Field(default=400, ge=1)
    folds: int = Field(default=5, ge=2)
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Lesson:
    """A train question with what retrieval found for it."""

    question: str
    table: str
    subgraph: Subgraph
    rows: frozenset[int]
    """Gold rows by segment number."""
    gold: NDArray[np.bool_]
    """Which edges of the subgraph are gold (edges)."""
    answers: NDArray[np.bool_]
    """Which edges hold the answer (edges); measured, not learned from."""


@dataclass(frozen=True, slots=True)
class PlannedLesson:
    """A lesson with its plans and the share of their rows that is gold (plans)."""

    lesson: Lesson
    plans: tuple[Plan, ...]
    shares: Floats


def train_aggregation(
    settings: AggregationSettings, out: Path, *, device: Any = None, on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Search the train questions that compare, fit, and write the three models with a card to `out`.

    Nothing here uses `device`. Raises TrainingError for settings without data and for questions that compare nothing.
    """
    if settings.data.index is None or not settings.data.questions:
        raise TrainingError("aggregation learns from what an index finds: set data.index and data.questions")
    questions = [question for path in settings.data.questions for question in read_questions(path)]
    started = time.monotonic()

    def advance(done: int) -> None:
        if done % 20 == 0:
            on_log(LogRow(done, 0, time.monotonic() - started, {"questions mined": done}))

    with CrossFitted(
        settings.data.index, settings.ranking, settings.reranking, overrides=RANKING_ALONE
    ) as crossfitted:  # fmt: skip
        lessons = list(mine_lessons(crossfitted, questions, advance=advance))
        if not lessons:
            raise TrainingError("no train question compares anything")
        scores = fit_aggregation(lessons, crossfitted.engine(questions[0]).index, out, settings)
    write_card(out, _card(settings, scores, time.monotonic() - started), weights=(DETECTOR, PLANS, ROWS))
    return scores


def mine_lessons(
    crossfitted: CrossFitted, questions: Sequence[Question], *, advance: Callable[[int], None] = lambda done: None
) -> Iterator[Lesson]:
    """One lesson for every question that compares anything, as the engine searches a new question."""
    done = 0
    for question in questions:
        if not read_cues(question.text):
            continue
        engine, subgraph = crossfitted.engine(question), crossfitted.ranked(question, k=READ).subgraph
        pairs = [pair_of(scored.edge) for scored in subgraph.edges]
        gold = gold_pairs(engine.corpus, question)
        is_gold = np.array([any(covers(one, pair) for one in gold) for pair in pairs], bool)
        answers = np.array([contains_answer(edge_text(engine.corpus, p), question.answers) for p in pairs], bool)
        rows = frozenset(segment for segment, _ in gold if segment >= 0)
        done += 1
        advance(done)
        yield Lesson(question.text, question.table_id or question.question_id, subgraph, rows, is_gold, answers)


def fit_aggregation(
    lessons: Sequence[Lesson], index: IndexReader, out: Path, settings: AggregationSettings
) -> dict[str, float]:
    """Write the three models; the scores are of models that did not see the question's table."""
    executor = Executor()
    planned = [plan_lesson(lesson, index, executor, tables=settings.tables) for lesson in lessons]
    labels = [detector_label(lesson, index, executor) for lesson in lessons]
    marked = [(one, label) for one, label in zip(lessons, labels, strict=True) if label is not None]
    if not any(len(one.plans) for one in planned) or not marked:
        raise TrainingError("no train question compares anything over a table that retrieval found")
    folds = [table_fold(lesson.table, seed=settings.seed, folds=settings.folds) for lesson in lessons]
    chances = held_out_chances(planned, folds, settings)
    bonuses = [_bonus_lesson(one, chance) for one, chance in zip(planned, chances, strict=True)]
    scores = _detector_scores(marked, settings) | _bonus_scores(planned, bonuses, chances, folds, settings)
    texts, wanted = [one.question for one, _ in marked], [label for _, label in marked]
    out.mkdir(parents=True, exist_ok=True)
    train_detector(texts, wanted, steps=settings.detector_steps).save(out / DETECTOR)
    train_plan_scorer(planned, settings).trees.save(out / PLANS)
    train_row_bonus(bonuses, decay=settings.bonus_decay).save(out / ROWS)
    return scores


def plan_lesson(lesson: Lesson, index: IndexReader, executor: Executor, *, tables: int) -> PlannedLesson:
    """All plans over the best tables of a lesson."""
    restored = list(restore(index, lesson.subgraph, count=tables))
    head = [scored.score for scored in lesson.subgraph.edges[:HEAD]]
    plans = lay_plans(lesson.question, read_cues(lesson.question), restored, executor, head=head)
    return PlannedLesson(lesson, tuple(plans), np.array([_gold_share(plan, lesson.rows) for plan in plans]))


def train_plan_scorer(planned: Sequence[PlannedLesson], settings: AggregationSettings) -> PlanScorer:
    """A boosted forest on all plans; a question counts by the root of how many plans it has."""
    found = [one for one in planned if one.plans]
    rows = np.asarray([plan.features for one in found for plan in one.plans], np.float32)
    sizes = [len(one.plans) for one in found]
    parameters = {
        "objective": "cross_entropy", "num_leaves": settings.leaves, "min_data_in_leaf": settings.least_examples,
        "lambda_l2": 10.0, "learning_rate": 0.05, "feature_fraction": settings.feature_share, "bagging_fraction": 0.7,
        "bagging_freq": 1, "seed": settings.seed, "deterministic": True, "force_row_wise": True, "num_threads": 1,
        "verbose": -1,
    }  # fmt: skip
    data = lightgbm.Dataset(
        rows,
        np.concatenate([one.shares for one in found]),
        weight=np.repeat([1 / np.sqrt(size) for size in sizes], sizes),
        feature_name=list(FEATURES),
    )
    return PlanScorer(Trees.of(lightgbm.train(parameters, data, settings.trees)))


def held_out_chances(
    planned: Sequence[PlannedLesson], folds: Sequence[int], settings: AggregationSettings
) -> list[Floats]:
    """Every lesson's plan probabilities (plans), from a scorer that did not see its table."""
    chances = [np.zeros(len(one.plans)) for one in planned]
    for fold in sorted(set(folds)):
        learned = [one for one, at in zip(planned, folds, strict=True) if at != fold]
        scorer = train_plan_scorer(learned, settings) if any(one.plans for one in learned) else None
        for number, (one, at) in enumerate(zip(planned, folds, strict=True)):
            if at == fold and scorer is not None:
                chances[number] = scorer.scores([plan.features for plan in one.plans])
    return chances


def detector_label(lesson: Lesson, index: IndexReader, executor: Executor) -> bool | None:
    """The weak label of a question; None for one that compares nothing or has no gold row."""
    cues = read_cues(lesson.question)
    if not cues or not lesson.rows:
        return None
    number = index.corpus.table_of(min(lesson.rows))
    size = int(index.corpus.segment_offsets[number + 1] - index.corpus.segment_offsets[number])
    table = RestoredTable(index, number, 0, np.zeros(size))
    plans = lay_plans(lesson.question, cues, [table], executor, head=[])
    exact = [plan for plan in plans if len(plan.rows) == 1 and _gold_share(plan, lesson.rows) == 1.0]
    shown = FEATURES.index("hint"), FEATURES.index("after_share"), FEATURES.index("born")
    return any(plan.features[place] > 0 for plan in exact for place in shown)


def area_under_curve(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """The chance that a positive scores above a negative, ties half; NaN without both."""
    positive = np.array([s for s, label in zip(scores, labels, strict=True) if label])
    negative = np.array([s for s, label in zip(scores, labels, strict=True) if not label])
    if not len(positive) or not len(negative):
        return float("nan")
    above = (positive[:, None] > negative[None]).mean() + 0.5 * (positive[:, None] == negative[None]).mean()
    return float(above)


def _bonus_lesson(one: PlannedLesson, chances: Floats) -> BonusLesson:
    return bonus_lesson(one.lesson.subgraph, bonus_features(one.plans, chances), one.lesson.gold)


def _detector_scores(marked: Sequence[tuple[Lesson, bool]], settings: AggregationSettings) -> dict[str, float]:
    """The detector's area under the curve on the first fold, learned on the others."""
    folds = [table_fold(lesson.table, seed=settings.seed, folds=settings.folds) for lesson, _ in marked]
    learned = [item for item, fold in zip(marked, folds, strict=True) if fold] or list(marked)
    rest = [item for item, fold in zip(marked, folds, strict=True) if not fold]
    draft = train_detector(
        [lesson.question for lesson, _ in learned], [label for _, label in learned], steps=settings.detector_steps
    )
    area = area_under_curve([draft.probability(one.question) for one, _ in rest], [label for _, label in rest])
    return {
        "questions that compare": float(len(marked)),
        "of them aggregations": float(sum(label for _, label in marked)),
        "held-out detector AUC": area,
    }


def _bonus_scores(
    planned: Sequence[PlannedLesson],
    bonuses: Sequence[BonusLesson],
    chances: Sequence[Floats],
    folds: Sequence[int],
    settings: AggregationSettings,
) -> dict[str, float]:
    """AR@k of the questions that compare before and after, cross-validated by table."""
    before, after = [], []
    for fold in sorted(set(folds)):
        learned = [one for one, at in zip(bonuses, folds, strict=True) if at != fold]
        useful = any(one.gold.any() and not one.gold.all() for one in learned)
        bonus = train_row_bonus(learned, decay=settings.bonus_decay) if useful else None
        for one, chance, at in zip(planned, chances, folds, strict=True):
            if at == fold:
                gains = {} if bonus is None else bonus.of(one.plans, chance)
                before.append(_answer_rank(one.lesson, one.lesson.subgraph))
                after.append(_answer_rank(one.lesson, raised(one.lesson.subgraph, gains)))
    return {
        f"cross-validated AR@{k} {name}": float(np.mean(np.array(ranks) < k))
        for k in (2, 5, 10)
        for name, ranks in (("before", before), ("after", after))
    }


def raised(subgraph: Subgraph, gains: Mapping[int | None, float]) -> Subgraph:
    """A subgraph whose rows got their bonus; no row enters."""
    return Subgraph.from_edges(
        replace(one, score=one.score + gains.get(one.edge.segment, 0.0)) for one in subgraph.edges
    )


def _answer_rank(lesson: Lesson, subgraph: Subgraph) -> int:
    """Rank, from 0, of the first edge with the answer; larger than any where there is none."""
    hits = {one.edge for one, holds in zip(lesson.subgraph.edges, lesson.answers, strict=True) if holds}
    return next((rank for rank, one in enumerate(subgraph.edges) if one.edge in hits), len(subgraph))


def _gold_share(plan: Plan, gold: frozenset[int]) -> float:
    return sum(segment in gold for segment in plan.segments) / len(plan.segments)


def _card(settings: AggregationSettings, scores: Mapping[str, float], seconds: float) -> ModelCard:
    return ModelCard(
        name="aggregation",
        role="aggregation",
        summary="Which questions aggregate over a column (detector.npz), which plan a question means (plans.txt), and "
        "what plans are worth to the rows that they choose, in the log-odds of the ranking (rows.json).",
        base="none",
        data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data", "ranking", "reranking"}),
        scores=dict(scores),
        limits="English. Superlatives, ordinals and places; no counts and no sums. Train it again when the ranking "
        "changes: the bonus is in its log-odds.",
        seconds=seconds,
    )


ROLE = Role(AggregationSettings, train_aggregation)

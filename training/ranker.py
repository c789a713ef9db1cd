"""The recipe of the learned ranking: LambdaMART over what the engine itself finds for train questions.

Every train question is searched with the fused score; its best edges become one group of examples, graded by what
they are worth to a reader: a gold edge, another edge that holds the answer, or nothing.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

from helios.config import Section
from helios.engine import Engine
from helios.evaluation.measures import contains_answer
from helios.evaluation.questions import Question, read_questions
from helios.index.reader import Corpus
from helios.models.card import ModelCard, data_file, write_card
from helios.models.trees import Trees
from helios.retrieval.ranking.features import FEATURES
from helios.retrieval.ranking.model import TREES, Calibration
from helios.retrieval.ranking.stage import ROLE as CARD_ROLE
from helios.retrieval.ranking.stage import pair_features
from helios.retrieval.state import edges_of, run_stages
from training.crossfit import FOLDS, RANKING_ALONE, table_fold
from training.errors import TrainingError
from training.examples import Pair, covers, edge_text, gold_pairs, pair_of
from training.log import LogRow
from training.recipes import DataSettings, Role

GOLD, ANSWER = 2, 1


class RankerSettings(Section):
    """Everything that the result depends on beside the data."""

    data: DataSettings = DataSettings()
    trees: int = 250
    leaves: int = 15
    learning_rate: float = 0.05
    least_examples: int = 50
    """Examples in a leaf."""
    feature_share: float = 0.6
    question_share: float = 0.8
    truncation: int = 10
    """Ranks whose order counts."""
    gains: tuple[int, int, int] = (0, 1, 5)
    """Worth of an edge without the answer, with it, and of a gold edge."""
    folds: int = 5
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Group:
    """The best edges of one question, best first: features (C, F), grades (C), and which hold the answer."""

    table: str
    features: NDArray[np.float32]
    grades: NDArray[np.int8]
    answers: NDArray[np.bool_]


def mine_groups(engine: Engine, questions: Sequence[Question]) -> Iterator[Group]:
    """One group a question, from edge retrieval alone."""
    depth, retrieval = engine.config.advanced.search.rank_depth, engine.pipeline.stages[:1]
    for question in questions:
        state = run_stages(engine.begin(question.text, k=depth), retrieval)
        head = np.arange(min(depth, len(state.found)))
        pairs = state.found.pairs.take(head)
        _, features, _ = pair_features(state, pairs, state.found.scores.take(head))
        yield graded(engine.corpus, question, [pair_of(edge) for edge in edges_of(state.index, pairs)], features)


def graded(corpus: Corpus, question: Question, pairs: Sequence[Pair], features: NDArray[np.float32]) -> Group:
    """A question's edges with what each is worth."""
    gold = gold_pairs(corpus, question)
    answers = np.array([contains_answer(edge_text(corpus, pair), question.answers) for pair in pairs], bool)
    is_gold = np.array([any(covers(one, pair) for one in gold) for pair in pairs], bool)
    grades = np.where(is_gold, GOLD, np.where(answers, ANSWER, 0)).astype(np.int8)
    return Group(question.table_id or question.question_id, features, grades, answers)


def train_ranker(
    settings: RankerSettings, out: Path, *, device: Any = None, on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Search the train questions, fit, and write the ranking to `out`; returns cross-validated measures.

    Trees are grown on the processor, so `device` changes nothing. Raises TrainingError for settings without data.
    """
    if settings.data.index is None or not settings.data.questions:
        raise TrainingError("a ranking learns from what an index finds: set data.index and data.questions")
    questions = [question for path in settings.data.questions for question in read_questions(path)]
    started = time.monotonic()
    groups = []
    with Engine.open(settings.data.index, overrides=["search.ranker=none", *RANKING_ALONE]) as engine:
        for group in mine_groups(engine, questions):
            groups.append(group)
            if len(groups) % 100 == 0 or len(groups) == len(questions):
                on_log(LogRow(len(groups), 0, time.monotonic() - started, {"of": len(questions)}))
        needs = {
            "features": FEATURES, "encoder": engine.index.encoder["fingerprint"], "fused": engine.pipeline.fused.name,
            "bits": engine.index.bits,
        }  # fmt: skip
    measures, calibration, folds = cross_validate(groups, settings)
    card = ModelCard(
        name="helios-ranker", role=CARD_ROLE, summary="Puts the best hundred edges of a question in order.",
        base="none (trees)", data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data"}), scores=measures, needs=needs,
        seconds=time.monotonic() - started,
    )  # fmt: skip
    write_rankings(out, fit(groups, settings), folds, calibration, card)
    return measures


def write_rankings(
    out: Path, trees: lightgbm.Booster, folds: Sequence[lightgbm.Booster], calibration: Calibration, card: ModelCard,
    *, beside: Sequence[str] = (),
) -> None:  # fmt: skip
    """The ranking of all groups and one a fold, each a folder that `EdgeRanker.load` reads.

    `beside` names files that lie in `out` already and belong to the model.
    """
    card = replace(card, values={"calibration": asdict(calibration)})
    for number, grown in enumerate(folds):
        folder = out / FOLDS / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        Trees.of(grown).save(folder / TREES)
        write_card(folder, replace(card, settings={**card.settings, "without_fold": number}), weights=[TREES])
    out.mkdir(parents=True, exist_ok=True)
    Trees.of(trees).save(out / TREES)
    write_card(out, card, weights=[TREES, *beside])


def cross_validate(
    groups: Sequence[Group], settings: RankerSettings, *, features: tuple[str, ...] = FEATURES, before: str = "fused"
) -> tuple[dict[str, float], Calibration, list[lightgbm.Booster]]:
    """AR@k of the order `before` and of the learned one, what makes its scores log-odds, and the trees of every fold.

    The trees of a question saw no question on its table.
    """
    folds = np.array([table_fold(group.table, seed=settings.seed, folds=settings.folds) for group in groups])
    grown = []
    scores: list[NDArray[np.float32]] = [group.features[:, 0] for group in groups]
    for fold in range(settings.folds):
        trees = fit([group for group, at in zip(groups, folds, strict=True) if at != fold], settings, features)
        grown.append(trees)
        for i in np.flatnonzero(folds == fold):
            scores[i] = np.asarray(trees.predict(groups[i].features, num_threads=1), np.float32)
    given = [_answer_rank(group, np.arange(len(group.grades))) for group in groups]
    learned = [_answer_rank(group, np.argsort(-own, kind="stable")) for group, own in zip(groups, scores, strict=True)]
    gold = np.concatenate([group.grades == GOLD for group in groups])
    depth = max(len(group.grades) for group in groups)
    measures = _answer_recall(before, given, depth) | _answer_recall("learned", learned, depth)
    return measures, log_odds(np.concatenate(scores), gold), grown


def log_odds(scores: NDArray[np.float32], gold: NDArray[np.bool_], *, steps: int = 50) -> Calibration:
    """Slope and intercept of a logistic regression on one score, by Newton's method."""
    design = np.column_stack([scores, np.ones(len(scores))]).astype(np.float64)
    weights = np.zeros(2)
    for _ in range(steps):
        likely = 1.0 / (1.0 + np.exp(-design @ weights))
        curvature = (design * (likely * (1 - likely) + 1e-9)[:, None]).T @ design
        weights += np.linalg.solve(curvature, design.T @ (gold - likely))
    return Calibration(slope=float(weights[0]), intercept=float(weights[1]))


def fit(
    groups: Sequence[Group], settings: RankerSettings, features: tuple[str, ...] = FEATURES
) -> lightgbm.Booster:  # fmt: skip
    """Trees for all groups that hold anything of worth."""
    useful = [group for group in groups if group.grades.any()]
    data = lightgbm.Dataset(
        np.concatenate([group.features for group in useful]),
        np.concatenate([group.grades for group in useful]),
        group=[len(group.grades) for group in useful],
        feature_name=list(features),
    )
    parameters = {
        "objective": "lambdarank", "num_leaves": settings.leaves, "learning_rate": settings.learning_rate,
        "min_data_in_leaf": settings.least_examples, "feature_fraction": settings.feature_share,
        "bagging_fraction": settings.question_share, "bagging_freq": 1, "bagging_by_query": True,
        "lambdarank_truncation_level": settings.truncation, "label_gain": list(settings.gains),
        "seed": settings.seed, "deterministic": True, "num_threads": 1, "verbose": -1,
    }  # fmt: skip
    return lightgbm.train(parameters, data, num_boost_round=settings.trees)


def _answer_rank(group: Group, order: NDArray[np.int64]) -> int:
    """Rank, from 0, of the first edge with the answer; larger than any where there is none."""
    hits = np.flatnonzero(group.answers[order])
    return int(hits[0]) if len(hits) else sys.maxsize


def _answer_recall(name: str, ranks: Sequence[int], depth: int) -> dict[str, float]:
    """AR@k for every k that the lists are long enough for."""
    return {
        f"{name} AR@{k}": round(float(np.mean(np.array(ranks) < k)), 4) for k in (2, 5, 10, 50) if k <= max(depth, 2)
    }


ROLE = Role(RankerSettings, train_ranker)

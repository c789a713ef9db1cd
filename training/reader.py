"""The recipe of the extractive reader: LambdaMART over the candidate answers of what the engine itself finds.

    helios train reader --recipe extractive-reader --out DIR data.index=INDEX ...

A fifth of the train questions, by table, is held out: it chooses the number of trees, the temperature and the
calibration. The trees that are written are then fitted to all questions.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.engine import Engine
from helios.evaluation.questions import Question, read_questions
from helios.models.card import ModelCard, data_file, write_card
from helios.models.trees import Trees
from helios.reading.features import FEATURES, READ_FEATURES
from helios.reading.passages import PassageReader
from helios.reading.ranker import ROLE as CARD_ROLE
from helios.reading.ranker import TREES, AnswerRanker, Calibration, shares_of
from training.crossfit import CrossFitted
from training.errors import TrainingError
from training.log import LogRow
from training.reader_examples import Example, mine_examples
from training.recipes import DataSettings, Role
from training.regression import fit_logistic

EXACT, NEAR = 3, 1
"""Grades of a candidate that is an answer, and of one that shares at least half of its words."""
TEMPERATURES = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
STEP = 50
"""Trees between two measurements."""
FloatArray = NDArray[np.float32]


class ReaderSettings(Section):
    """Everything that the result depends on beside the code."""

    data: DataSettings = DataSettings()
    passages: tuple[Path, ...] = ()
    """Folders that `helios train passages` wrote, each without the lessons of its equal share of the tables
    (`passage_lessons ottqa --without`); trees that learn beside none do without what a reader of passages says."""
    ranking: Path | None = None
    """Folder that `helios train ranker` wrote: each question is searched with trees that never saw its table."""
    edges: int = Field(default=10, ge=1)
    """Best edges whose candidates are read."""
    k: int = Field(default=50, ge=1)
    """Edges searched for: scores are taken relative to them."""
    trees: int = Field(default=600, ge=1)
    """At most."""
    leaves: int = Field(default=15, ge=2)
    learning_rate: float = Field(default=0.05, gt=0.0)
    least_examples: int = Field(default=40, ge=1)
    feature_share: float = Field(default=0.5, gt=0.0, le=1.0)
    truncation: int = Field(default=30, ge=1)
    negatives: int = Field(default=200, ge=1)
    """Wrong candidates of a question that are learned from, drawn at random."""
    seed: int = 13


def train_reader(
    settings: ReaderSettings, out: Path, *, device: Any = "cpu", on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Mine, fit, choose on the held-out questions, fit again to all; returns the held-out measures."""
    started = time.monotonic()
    index, questions = settings.data.index, _questions(settings.data)
    if index is None:
        raise TrainingError("data.index is not set: the folder of the index to search")

    def log(name: str, step: int, value: float) -> None:
        on_log(LogRow(step, 0, time.monotonic() - started, {name: value}))

    def advance(done: int) -> None:
        if done % 20 == 0:
            log("questions mined", done, done)

    with Engine.open(index) as engine, CrossFitted(index, settings.ranking) as crossfitted:
        needs = {"encoder": engine.index.encoder["fingerprint"]}
        threads = os.cpu_count() or 1
        examples = mine_examples(
            engine, questions, out / "examples", edges=settings.edges, k=settings.k, seed=settings.seed,
            passages=[PassageReader.load(one, threads=threads) for one in settings.passages],
            search=crossfitted.search if settings.ranking else None, advance=advance,
        )  # fmt: skip
    ranker, scores = fit_reader(examples, settings, log=log)
    ranker.trees.save(out / TREES)
    values = {"calibration": asdict(ranker.calibration)}
    card = _card(settings, scores, time.monotonic() - started)
    write_card(out, replace(card, needs=needs, values=values), weights=[TREES])
    return scores


def fit_reader(
    examples: Sequence[Example], settings: ReaderSettings, *,
    log: Callable[[str, int, float], None] = lambda name, step, value: None,
) -> tuple[AnswerRanker, dict[str, float]]:  # fmt: skip
    """Trees for all examples, with what the held-out ones chose and measured."""
    held_out = [example for example in examples if example.fold < settings.data.held_out and len(example.f1)]
    learned = [example for example in examples if example.fold >= settings.data.held_out]
    if not any(example.exact.any() for example in learned) or not held_out:
        raise TrainingError("too few questions whose answer was found: widen the questions or data.held_out")
    trees = fit_trees(learned, settings, settings.trees)
    rounds, measured = _choose_rounds(trees, held_out, settings, log)
    scored = [predict(trees, example, rounds) for example in held_out]
    calibration = calibrate(scored, held_out)
    pairs = list(zip(held_out, scored, strict=True))
    chosen = [(e, best_answer(e, shares_of(values, calibration.temperature))[0]) for e, values in pairs]
    scores = {
        "held-out EM": float(np.mean([example.exact[at] for example, at in chosen])),
        "held-out F1": float(np.mean([example.f1[at] for example, at in chosen])),
        "held-out EM of the best single candidate": measured,
        "held-out share with the answer among the candidates": float(np.mean([e.exact.any() for e in held_out])),
        "held-out questions": float(len(held_out)),
        "trees": float(rounds),
    }
    return AnswerRanker(Trees.of(fit_trees(examples, settings, rounds)), calibration), scores


def _questions(data: DataSettings) -> list[Question]:
    if not data.questions:
        raise TrainingError("data.questions is not set: files of train questions")
    return [question for path in data.questions for question in read_questions(path)]


def fit_trees(examples: Sequence[Example], settings: ReaderSettings, rounds: int) -> lightgbm.Booster:
    """LambdaMART over the questions whose answer is among their candidates."""
    chance = np.random.default_rng(settings.seed)
    features, grades, groups = [], [], []
    for example in examples:
        if not example.exact.any():
            continue
        right = np.flatnonzero(example.f1 >= 0.5)
        wrong = np.flatnonzero(example.f1 < 0.5)
        wrong = chance.choice(wrong, min(settings.negatives, len(wrong)), replace=False)
        kept = np.concatenate([right, wrong])
        features.append(example.features[kept, : _width(settings)].astype(np.float32))
        grades.append(np.where(example.exact[kept], EXACT, np.where(example.f1[kept] >= 0.5, NEAR, 0)))
        groups.append(len(kept))
    names = list(FEATURES[: _width(settings)])
    data = lightgbm.Dataset(np.concatenate(features), np.concatenate(grades), group=groups, feature_name=names)
    parameters = {
        "objective": "lambdarank", "num_leaves": settings.leaves, "learning_rate": settings.learning_rate,
        "min_data_in_leaf": settings.least_examples, "feature_fraction": settings.feature_share,
        "bagging_fraction": 0.8, "bagging_freq": 1, "lambda_l2": 1.0, "max_bin": 63,
        "lambdarank_truncation_level": settings.truncation, "seed": settings.seed, "deterministic": True,
        "force_row_wise": True, "num_threads": 1, "verbose": -1,
    }  # fmt: skip
    return lightgbm.train(parameters, data, rounds)


def _choose_rounds(
    trees: lightgbm.Booster, held_out: Sequence[Example], settings: ReaderSettings,
    log: Callable[[str, int, float], None],
) -> tuple[int, float]:  # fmt: skip
    """The number of trees with the best sum of EM and F1 of the best candidates; it and its EM."""
    best = (-1.0, 0, 0.0)
    counts = list(range(STEP, settings.trees + 1, STEP)) or [settings.trees]
    totals = [np.zeros(len(example.f1)) for example in held_out]
    before = 0
    for count in counts:
        hits = []
        for example, total in zip(held_out, totals, strict=True):
            features = example.features[:, : trees.num_feature()].astype(np.float32)
            more = {"start_iteration": before, "num_iteration": count - before}
            total += trees.predict(features, num_threads=1, **more)
            at = int(total.argmax())
            hits.append((float(example.exact[at]), float(example.f1[at])))
        exact, overlap = np.mean(hits, axis=0)
        log("held-out EM", count, float(exact))
        if exact + overlap > best[0]:
            best = (float(exact + overlap), count, float(exact))
        before = count
    return best[1], best[2]


def _width(settings: ReaderSettings) -> int:
    """How many of the features are learned from: the last ones need a reader of passages."""
    return len(FEATURES) if settings.passages else len(FEATURES) - len(READ_FEATURES)


def predict(trees: lightgbm.Booster, example: Example, rounds: int) -> FloatArray:
    features = example.features[:, : trees.num_feature()].astype(np.float32)
    values = trees.predict(features, num_iteration=rounds, num_threads=1)
    return np.asarray(values, np.float32)


def best_answer(example: Example, shares: FloatArray) -> tuple[int, float]:
    """The best candidate of the answer with the largest sum of shares, and that sum."""
    sums = np.bincount(example.answers, weights=shares)
    answer = int(sums.argmax())
    candidates = np.flatnonzero(example.answers == answer)
    return int(candidates[shares[candidates].argmax()]), float(sums[answer])


def calibrate(scored: Sequence[FloatArray], examples: Sequence[Example]) -> Calibration:
    """The temperature with the best EM and F1, then a logistic curve from share to chance."""
    pairs = list(zip(examples, scored, strict=True))

    def quality(temperature: float) -> float:
        at = [(e, best_answer(e, shares_of(values, temperature))[0]) for e, values in pairs]
        return float(np.mean([e.exact[i] + e.f1[i] for e, i in at]))

    temperature = max(TEMPERATURES, key=quality)
    chosen = [(e, *best_answer(e, shares_of(values, temperature))) for e, values in pairs]
    shares = np.clip([share for _, _, share in chosen], 1e-6, 1 - 1e-6)
    right = np.array([float(e.exact[at]) for e, at, _ in chosen])
    odds = np.log(shares / (1 - shares))
    (slope,), intercept = fit_logistic(odds[:, None], right, decay=1e-2 / len(right))
    return Calibration(temperature, slope=float(slope), intercept=intercept)


def _card(settings: ReaderSettings, scores: Mapping[str, float], seconds: float) -> ModelCard:
    return ModelCard(
        name="extractive-reader",
        role=CARD_ROLE,
        summary="Gradient-boosted trees that choose an answer among the candidate spans of the best edges.",
        base="none; similarities come from the token encoder of the index",
        data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data", "passages", "ranking"})
        | {"passages": len(settings.passages)},
        scores=dict(scores),
        limits="English. Answers are words of the evidence: nothing is computed or rephrased. Train it again when the "
        "token encoder of the index changes.",
        seconds=seconds,
    )


ROLE = Role(ReaderSettings, train_reader)

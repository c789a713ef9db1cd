"""The recipe of the fused score's scale: what a fused score is worth as log-odds, before any learned ranking.

    helios train fused --recipe fused --out DIR data.index=INDEX "data.questions=[train.jsonl.gz]"

Every train question is searched by the fused score alone. Whether an edge is gold is then a logistic regression on its
distance to the question's best edge and on its rank. The weights of the score itself are settings: they are written
beside the scale, and every ranking above learned from them (`helios.retrieval.ranking.fused`).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.engine import Engine
from helios.evaluation.questions import Question, read_questions
from helios.index.search import EdgeSearch, Fusion
from helios.models.card import ModelCard, data_file, write_card
from helios.retrieval.ranking.fused import ROLE as CARD_ROLE
from helios.retrieval.ranking.fused import FusedScale
from helios.retrieval.state import edges_of
from training.crossfit import RANKING_ALONE
from training.errors import TrainingError
from training.examples import covers, gold_pairs, pair_of
from training.holdout import is_held_out
from training.log import LogRow
from training.recipes import DataSettings, Role
from training.regression import fit_logistic

FloatArray = NDArray[np.float32]


class FusionSettings(Section):
    """The fused score: how much what counts beside the edge's own MaxSim, and BM25's parameters."""

    segment: float = Field(default=0.4, ge=0.0)
    """MaxSim of the row alone."""
    star: float = Field(default=0.4, ge=0.0)
    """MaxSim of the row with all its passages."""
    lexical: float = Field(default=0.05, ge=0.0)
    """BM25 of the edge."""
    k1: float = Field(default=0.9, ge=0.0)
    b: float = Field(default=0.4, ge=0.0, le=1.0)


class FusedSettings(Section):
    """Everything that the result depends on beside the data."""

    data: DataSettings = DataSettings()
    fusion: FusionSettings = FusionSettings()
    depth: int = Field(default=200, ge=1)
    """Best edges of a question that are learned from."""
    decay: float = Field(default=1e-6, gt=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class FusedLesson:
    """The best edges of one question, best first: their fused scores (E) and which are gold (E)."""

    fused: FloatArray
    gold: NDArray[np.bool_]
    held_out: bool
    """Whether its table measures and is not learned from, until the last fit."""


def train_fused(
    settings: FusedSettings, out: Path, *, device: Any = None, on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Search the train questions, measure on held-out tables, fit to all, and write a folder for `FusedModel.load`.

    Nothing here uses `device`. Raises TrainingError for settings without data, and where nothing can be learned.
    """
    if settings.data.index is None or not settings.data.questions:
        raise TrainingError("the scale is learned from what an index finds: set data.index and data.questions")
    questions = [question for path in settings.data.questions for question in read_questions(path)]
    started = time.monotonic()
    lessons = []
    with Engine.open(settings.data.index, overrides=["search.ranker=none", *RANKING_ALONE]) as engine:
        for lesson in mine_lessons(engine, questions, settings):
            lessons.append(lesson)
            if len(lessons) % 100 == 0:
                on_log(LogRow(len(lessons), 0, time.monotonic() - started, {"questions mined": len(lessons)}))
        needs = {"encoder": engine.index.encoder["fingerprint"], "bits": engine.index.bits}
    scores = measure(lessons, decay=settings.decay)
    scale = fit_scale(lessons, decay=settings.decay)
    card = ModelCard(
        name="helios-fused-score", role=CARD_ROLE, summary="Weights of the fused score and its scale in log-odds.",
        base="none", data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data", "fusion"}), scores=scores, needs=needs,
        seconds=time.monotonic() - started,
        values={"fusion": settings.fusion.model_dump(mode="json"), "scale": asdict(scale)},
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    write_card(out, card)
    return scores


def mine_lessons(engine: Engine, questions: Sequence[Question], settings: FusedSettings) -> Iterator[FusedLesson]:
    """One lesson for every question with gold edges in the corpus."""
    search = EdgeSearch(engine.index, Fusion(**settings.fusion.model_dump()), engine.threads)
    usual = engine.config.advanced.search
    count, exact = max(settings.depth, usual.candidates), max(settings.depth, usual.exact)
    for question in questions:
        gold = gold_pairs(engine.corpus, question)
        if not gold:
            continue
        found = search.candidates(engine.query(question.text), count=count, exact=exact)
        head = np.arange(min(settings.depth, len(found)))
        pairs = [pair_of(edge) for edge in edges_of(engine.index, found.pairs.take(head))]
        yield FusedLesson(
            found.scores.fused[head],
            np.array([any(covers(one, pair) for one in gold) for pair in pairs], bool),
            is_held_out(question.table_id or question.question_id, share=settings.data.held_out),
        )


def fit_scale(lessons: Sequence[FusedLesson], *, decay: float) -> FusedScale:
    """The scale by logistic regression; TrainingError where no edge is gold, or every one."""
    gold = np.concatenate([lesson.gold for lesson in lessons]) if lessons else np.zeros(0, bool)
    if not 0 < gold.sum() < len(gold):
        raise TrainingError("the scale needs questions whose best edges are gold, and edges that are not")
    rows = np.concatenate([scale_features(lesson.fused) for lesson in lessons])
    (gap, rank), intercept = fit_logistic(rows, gold.astype(np.float64), decay=decay)
    return FusedScale(round(intercept, 4), round(float(gap), 4), round(float(rank), 4))


def scale_features(fused: FloatArray) -> NDArray[np.float64]:
    """What `FusedScale` weighs of a question's best edges, best first: distance to the best and rank (E, 2)."""
    ranks = np.arange(len(fused))
    best = float(fused[0]) if len(fused) else 0.0
    columns = [FusedScale(0.0, 1.0, 0.0), FusedScale(0.0, 0.0, 1.0)]
    return np.column_stack([one.log_odds(fused, ranks, best=best) for one in columns]).astype(np.float64)


def measure(lessons: Sequence[FusedLesson], *, decay: float) -> dict[str, float]:
    """How well a scale from the other tables holds on held-out ones, beside saying the same of every edge."""
    learned, rest = ([one for one in lessons if one.held_out is side] for side in (False, True))
    scores = {"questions": float(len(lessons))}
    if not learned or not rest:
        return scores
    scale = fit_scale(learned, decay=decay)
    gold = np.concatenate([lesson.gold for lesson in rest])
    log_odds = [scale.log_odds(one.fused, np.arange(len(one.fused)), best=float(one.fused[0])) for one in rest]
    said = 1 / (1 + np.exp(-np.concatenate(log_odds).astype(np.float64)))
    plain = np.full(len(gold), np.concatenate([lesson.gold for lesson in learned]).mean())
    return scores | {
        "held-out log loss": log_loss(said, gold),
        "held-out log loss of the mean": log_loss(plain, gold),
        "held-out gold edges said": float(said.sum()),
        "held-out gold edges": float(gold.sum()),
    }


def log_loss(said: NDArray[np.float64], gold: NDArray[np.bool_]) -> float:
    """The mean negative logarithm of what was said of what is so."""
    return float(-np.log(np.clip(np.where(gold, said, 1 - said), 1e-12, None)).mean())


ROLE = Role(FusedSettings, train_fused)

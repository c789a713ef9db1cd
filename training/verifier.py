"""The recipe for the verifier: a calibrated regression that tells evidence from noise among retrieved edges.

    helios train verifier --recipe verifier --out DIR data.index=INDEX ranking=RANKING ...

An edge is evidence when it is gold, or when it names a gold row whose passage is not asked for. Only train
questions are learned from; the same lessons give the same weights.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.errors import EvaluationError
from helios.evaluation.questions import Question, read_questions
from helios.models.card import ModelCard, data_file, write_card
from helios.retrieval.refinement.scorer import Verifier
from helios.retrieval.refinement.verification import edge_features
from training.aggregation import area_under_curve
from training.crossfit import RANKING_ALONE, CrossFitted
from training.errors import TrainingError
from training.examples import covers, gold_pairs, pair_of
from training.holdout import is_held_out
from training.log import LogRow
from training.recipes import DataSettings, Role
from training.regression import fit_logistic

WEIGHTS = "verifier.json"


class VerifierSettings(Section):
    """Everything that the result depends on beside the data."""

    data: DataSettings = DataSettings()
    ranking: Path | None = None
    """Folder that `helios train ranker` wrote: each question is searched with trees that never saw its table."""
    every: int = Field(default=6, ge=1)
    """One question of so many is learned from."""
    edges: int = Field(default=100, ge=2)
    """Best edges of a question."""
    decay: float = Field(default=1e-3, gt=0.0)


@dataclass(frozen=True, slots=True)
class VerifierLesson:
    """Features (edges, VERIFIER_FEATURES) of one question's edges and which of them are evidence (edges)."""

    features: NDArray[np.float64]
    evidence: NDArray[np.bool_]
    scores: NDArray[np.float64]
    """What the ranking gave the edges (edges)."""
    held_out: bool = False
    """Whether its table measures the weights and is not learned from, until the last fit."""


def train_verifier_role(
    settings: VerifierSettings, out: Path, *, device: Any = None, on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Search, fit, measure on held-out tables beside the ranking's own score, fit to all, and write to `out`.

    Nothing here uses `device`. Raises TrainingError for settings without data.
    """
    if settings.data.index is None or not settings.data.questions:
        raise TrainingError("the verifier learns from what an index finds: set data.index and data.questions")
    questions = [question for path in settings.data.questions for question in read_questions(path)][:: settings.every]
    started = time.monotonic()
    lessons = []
    with CrossFitted(settings.data.index, settings.ranking, overrides=RANKING_ALONE) as crossfitted:
        for lesson in mine_verifier_lessons(crossfitted, questions, settings):
            lessons.append(lesson)
            if len(lessons) % 20 == 0:
                on_log(LogRow(len(lessons), 0, time.monotonic() - started, {"questions mined": len(lessons)}))
    scores = measure_verifier(lessons, decay=settings.decay)
    train_verifier(lessons, decay=settings.decay).save(out / WEIGHTS)
    write_card(out, _card(settings, scores, time.monotonic() - started), weights=(WEIGHTS,))
    return scores


def mine_verifier_lessons(
    crossfitted: CrossFitted, questions: Sequence[Question], settings: VerifierSettings
) -> Iterator[VerifierLesson]:
    """One lesson for every question with gold edges, as the engine searches a new question."""
    for question in questions:
        gold = gold_pairs(crossfitted.engine(question).corpus, question)
        state = crossfitted.ranked(question, k=settings.edges)
        if not gold or not len(state.subgraph):
            continue
        _, features = edge_features(state, state.subgraph.edges)
        pairs = [pair_of(scored.edge) for scored in state.subgraph.edges]
        yield VerifierLesson(
            features,
            np.array([any(covers(one, pair) for one in gold) for pair in pairs], bool),
            np.array([scored.score for scored in state.subgraph.edges]),
            is_held_out(question.table_id or question.question_id, share=settings.data.held_out),
        )


def measure_verifier(lessons: Sequence[VerifierLesson], *, decay: float) -> dict[str, float]:
    """How well weights from the other tables tell evidence on the held-out ones, beside the ranking's own scores."""
    rest = [lesson for lesson in lessons if lesson.held_out]
    draft = train_verifier([lesson for lesson in lessons if not lesson.held_out], decay=decay)
    if not any(lesson.evidence.any() for lesson in rest):
        return {"questions": float(len(lessons))}
    evidence = np.concatenate([lesson.evidence for lesson in rest]).tolist()
    chances = np.concatenate([draft.probabilities(lesson.features) for lesson in rest])
    ranking = np.concatenate([lesson.scores for lesson in rest])
    return {
        "questions": float(len(lessons)),
        "held-out AUC": area_under_curve(chances.tolist(), evidence),
        "held-out AUC of the ranking's score": area_under_curve(ranking.tolist(), evidence),
        "held-out calibration error": calibration_error(draft, rest),
    }


def train_verifier(lessons: Iterable[VerifierLesson], *, decay: float = 1e-3, steps: int = 30) -> Verifier:
    """Fit by Newton steps on all edges, which leaves the probabilities calibrated in the mean.

    Raises EvaluationError if there is no evidence, or nothing else.
    """
    found = list(lessons)
    if not found:
        raise EvaluationError("the verifier needs questions with edges")
    rows = np.concatenate([lesson.features for lesson in found])
    wanted = np.concatenate([lesson.evidence for lesson in found]).astype(np.float64)
    if not 0 < wanted.mean() < 1:
        raise EvaluationError("the verifier needs edges that are evidence and edges that are not")
    return Verifier(*fit_logistic(rows, wanted, decay=decay, steps=steps))


def calibration_error(verifier: Verifier, lessons: Iterable[VerifierLesson], *, bins: int = 10) -> float:
    """The mean distance between predicted and observed shares of evidence, over bins of equal count."""
    found = list(lessons)
    chances = np.concatenate([verifier.probabilities(lesson.features) for lesson in found])
    wanted = np.concatenate([lesson.evidence for lesson in found])
    order = np.argsort(chances)
    gaps = [abs(chances[part].mean() - wanted[part].mean()) for part in np.array_split(order, bins) if len(part)]
    return float(np.mean(gaps))


def _card(settings: VerifierSettings, scores: Mapping[str, float], seconds: float) -> ModelCard:
    return ModelCard(
        name="verifier",
        role="verifier",
        summary="A calibrated regression on an edge's place in its star and on what its passage adds: is it evidence?",
        base="none",
        data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data", "ranking"}),
        scores=dict(scores),
        limits="English. It knows little that the learned ranking does not: compare the two areas above.",
        seconds=seconds,
    )


ROLE = Role(VerifierSettings, train_verifier_role)

"""The recipe of presence: how likely is it that a corpus holds what a question asks for?

    helios train presence --recipe configs/train/presence.yaml --out DIR data.index=INDEX "data.questions=[...]"

Every question is searched twice: in the index as it is, and as if its table and the passages of its gold edges had
been deleted. What the best edge covers of the question, and how likely the best edge is, tell the two apart. The
ranking is the packaged one though it has seen these tables: its best log-odds are those of questions that it has not
seen (quartiles of the first edge 0.13, 0.39, 0.67 on train, median 0.38 on dev).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import Field

from helios.config import PresenceSettings, Section
from helios.engine import Engine
from helios.evaluation.questions import Question, read_questions
from helios.index.durable import write_atomically
from helios.reading.extractive import candidates_of
from helios.reading.presence import chance_of_presence, presence_features
from helios.reading.vectors import NodeVectors, StoredVectors
from helios.retrieval.edges import FactoredEdges
from helios.retrieval.stages import Stages
from helios.types import Evidence
from training.aggregation import area_under_curve
from training.cards import ModelCard, data_file, write_card
from training.errors import TrainingError
from training.examples import ABSENT, gold_pairs
from training.holdout import is_held_out
from training.log import LogRow
from training.recipes import DataSettings, Role
from training.regression import fit_logistic

WEIGHTS = "presence.yaml"


class PresenceRecipe(Section):
    """Everything that the result depends on beside the code."""

    data: DataSettings = DataSettings(held_out=0.5)
    every: int = Field(default=12, ge=1)
    """One question of so many is learned from."""
    edges: int = Field(default=10, ge=1)
    """Best edges that the reader reads."""
    lost: float = Field(default=0.02, ge=0.0, lt=1.0)
    """Share of the questions whose answer is there that the reader may refuse."""
    decay: float = Field(default=1e-5, gt=0.0)


@dataclass(frozen=True, slots=True)
class PresenceLesson:
    """What a search found for a question, whether its nodes were there, and whether its table measures."""

    features: NDArray[np.float64]
    present: bool
    held_out: bool


def train_presence(
    settings: PresenceRecipe, out: Path, *, device: Any = None, on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Search, fit, choose the least chance on held-out tables, and write settings for `--config` to `out`.

    Nothing here uses `device`. Raises TrainingError for settings without data, and where nothing can be learned.
    """
    if settings.data.index is None or not settings.data.questions:
        raise TrainingError("presence learns from what an index finds: set data.index and data.questions")
    questions = [question for path in settings.data.questions for question in read_questions(path)][:: settings.every]
    started = time.monotonic()
    lessons: list[PresenceLesson] = []
    with Engine.open(settings.data.index) as engine:
        for lesson in mine_presence(engine, questions, settings):
            lessons.append(lesson)
            if len(lessons) % 40 == 0:
                on_log(LogRow(len(lessons), 0, time.monotonic() - started, {"searches": len(lessons)}))
    fitted, scores = fit_presence(lessons, settings)
    out.mkdir(parents=True, exist_ok=True)
    written = {"reading": {"presence": fitted.model_dump(mode="json")}}
    write_atomically(out / WEIGHTS, yaml.safe_dump(written, sort_keys=False).encode())
    write_card(out, _card(settings, scores, time.monotonic() - started), weights=(WEIGHTS,))
    return {**scores, **fitted.model_dump()}


def mine_presence(engine: Engine, questions: Sequence[Question], settings: PresenceRecipe) -> Iterator[PresenceLesson]:
    """Two lessons for every question with gold edges in the corpus."""
    vectors = StoredVectors(engine.part, engine.encoder)
    for question in questions:
        nodes = gold_nodes(engine, question)
        if not len(nodes):
            continue
        held_out = is_held_out(question.table_id or question.question_id, share=settings.data.held_out)
        for present in (True, False):
            evidence = engine.search(question.text) if present else search_without(engine, question.text, nodes)
            features = features_of_evidence(question.text, evidence, vectors, edges=settings.edges)
            if features is not None:
                yield PresenceLesson(features, present, held_out)


def features_of_evidence(
    question: str, evidence: Evidence, vectors: NodeVectors, *, edges: int
) -> NDArray[np.float64] | None:
    """What the reader sees, None where there is nothing to read."""
    if not evidence.edges:
        return None
    return presence_features(candidates_of(question, evidence, vectors, edges=edges).coverage, evidence)


def gold_nodes(engine: Engine, question: Question) -> NDArray[np.int64]:
    """All rows of the question's gold tables and the passages of its gold edges, ascending."""
    offsets, segments = engine.corpus.segment_offsets, engine.graph.segment_count
    nodes: set[int] = set()
    for segment, passage in gold_pairs(engine.corpus, question):
        if segment != ABSENT:
            table = engine.corpus.table_of(segment)
            nodes.update(range(int(offsets[table]), int(offsets[table + 1])))
        if passage != ABSENT:
            nodes.add(passage + segments)
    return np.array(sorted(nodes), np.int64)


def search_without(engine: Engine, question: str, nodes: NDArray[np.int64]) -> Evidence:
    """What the engine would find if the nodes were deleted."""
    part = copy(engine.part)
    part.deleted = np.union1d(part.deleted, nodes)
    part.__dict__.pop("search", None)  # the units of the whole part
    edges = FactoredEdges([part], engine.encoder, engine.config.search, engine.edge_index.ranker)
    other = copy(engine)
    other.parts = [part]
    stages = Stages(part, engine.encoder, edges, engine.config, like=engine.stages)
    stages.expander.__dict__["model"] = engine.stages.expander.model
    other.__dict__.update(edge_index=edges, stages=stages)
    try:
        return other.search(question)
    finally:
        part.close()


def fit_presence(
    lessons: Sequence[PresenceLesson], settings: PresenceRecipe
) -> tuple[PresenceSettings, dict[str, float]]:
    """Weights from all lessons, the least chance from those of held-out tables under weights from the others.

    TrainingError where a side has no lesson of each kind.
    """
    learned = [lesson for lesson in lessons if not lesson.held_out]
    rest = [lesson for lesson in lessons if lesson.held_out]
    if any(len({lesson.present for lesson in side}) < 2 for side in (learned, rest)):
        raise TrainingError("presence needs questions of two tables or more, with gold edges in the index")
    draft = _fit(learned, settings.decay)
    chances = np.array([chance_of_presence(draft, lesson.features) for lesson in rest])
    there = np.array([lesson.present for lesson in rest])
    least = float(np.floor(100 * np.quantile(chances[there], settings.lost)) / 100)
    scores = {
        "searches": float(len(lessons)),
        "held-out AUC": area_under_curve(chances.tolist(), there.tolist()),
        "held-out AUC of coverage": area_under_curve([one.features[0] for one in rest], there.tolist()),
        "held-out AUC of the best edge": area_under_curve([one.features[1] for one in rest], there.tolist()),
        "held-out share refused, answer there": float((chances[there] < least).mean()),
        "held-out share refused, answer deleted": float((chances[~there] < least).mean()),
    }
    return _fit(lessons, settings.decay).model_copy(update={"least": least}), scores


def _fit(lessons: Sequence[PresenceLesson], decay: float) -> PresenceSettings:
    rows = np.stack([lesson.features for lesson in lessons])
    weights, intercept = fit_logistic(rows, np.array([lesson.present for lesson in lessons], float), decay=decay)
    coverage, score = (round(float(weight), 3) for weight in weights)
    return PresenceSettings(coverage=coverage, score=score, intercept=round(intercept, 3), least=0.0)


def _card(settings: PresenceRecipe, scores: Mapping[str, float], seconds: float) -> ModelCard:
    return ModelCard(
        name="presence",
        role="presence",
        summary="The chance that a corpus holds what a question asks for, from its coverage and the best edge.",
        base="none",
        data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data"}),
        scores=dict(scores),
        limits="English. Half of the questions it learned from had no answer in the corpus.",
        seconds=seconds,
    )


ROLE = Role(PresenceRecipe, train_presence)

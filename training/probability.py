"""The recipe of probabilities: what the scores of a search mean (`helios.retrieval.probability`).

    helios train probability --recipe probability --out DIR data.index=INDEX "data.questions=[...]"

Every question is searched in the corpus as it is, and as if its table and the passages of its gold edges were not
there. A lesson is taken after every stage and with each of the stages left out, so that one calibration holds for all
of them. Only questions of held-out tables are searched where the rerankers were trained on the others: what a model
has learned by heart it is too sure of.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.engine import Engine
from helios.evaluation.edges import EdgeId
from helios.evaluation.questions import Question, read_questions
from helios.index.reader import IndexReader
from helios.index.search import EdgeSearch
from helios.index.visible import query_of
from helios.models.card import ModelCard, data_file, write_card
from helios.retrieval.probability import EDGE_FEATURES, QUESTION_FEATURES, EvidenceModel, Logistic, features_of
from helios.retrieval.probability import ROLE as CARD_ROLE
from helios.retrieval.state import SearchState, Stage, run_stages
from training.aggregation import area_under_curve
from training.errors import TrainingError
from training.examples import ABSENT, gold_pairs
from training.holdout import is_held_out
from training.log import LogRow
from training.recipes import DataSettings, Role
from training.regression import fit_logistic

FloatArray = NDArray[np.float64]


class ProbabilityRecipe(Section):
    """Everything that the result depends on beside the code."""

    data: DataSettings = DataSettings(held_out=0.5)
    """Questions of the first half of these tables choose nothing: they measure what the others have taught."""
    searched: float = Field(default=1.0, gt=0.0, le=1.0)
    """Share of the tables whose questions are searched: those that the rerankers held out."""
    k: int = Field(default=50, ge=1)
    absent: float = Field(default=0.1, ge=0.0, le=1.0)
    """What an edge counts that was found where the answer had been deleted; the others count 1."""
    lost: float = Field(default=0.02, ge=0.0, lt=1.0)
    """Share of the questions whose answer is there that a reader may refuse."""
    decay: float = Field(default=1e-5, gt=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What a search with some stages found for a question: features, and which edges are evidence."""

    stages: str
    edges: FloatArray
    question: FloatArray
    gold: NDArray[np.bool_]
    present: bool
    table: str


def train_probability(
    settings: ProbabilityRecipe, out: Path, *, device: Any = None, on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Search, fit, measure on tables that were left out, and write a folder for `EvidenceModel.load`.

    Nothing here uses `device`. Raises TrainingError for settings without data, and where nothing can be learned.
    """
    if settings.data.index is None or not settings.data.questions:
        raise TrainingError("probabilities are learned from what an index finds: set data.index and data.questions")
    questions = [question for path in settings.data.questions for question in read_questions(path)]
    questions = [one for one in questions if is_held_out(_table(one), share=settings.searched)]
    started = time.monotonic()
    lessons: list[Lesson] = []
    with Engine.open(settings.data.index) as engine:
        for number, question in enumerate(questions, start=1):
            lessons += mine(engine, question, k=settings.k)
            if number % 20 == 0:
                on_log(LogRow(number, 0, time.monotonic() - started, {"lessons": len(lessons)}))
    model, scores = fit(lessons, settings)
    out.mkdir(parents=True, exist_ok=True)
    write_card(out, _card(settings, model, scores, time.monotonic() - started))
    return scores


def mine(engine: Engine, question: Question, *, k: int) -> Iterator[Lesson]:
    """Lessons after every stage and without each, and one without the gold nodes; none if no gold edge is here."""
    nodes = gold_nodes(engine, question)
    if not len(nodes):
        return
    stages = engine.pipeline.stages
    for name, state in variants(engine.begin(question.text, k=k), stages):
        yield lesson_of(name, state, question, present=True)
    shown = np.ones(engine.index.node_count, bool)
    shown[nodes] = False
    without = run_stages(begin_in(engine, question.text, engine.index.narrowed(shown), k=k), stages)
    yield lesson_of("all", without, question, present=False)


def variants(state: SearchState, stages: Sequence[Stage]) -> Iterator[tuple[str, SearchState]]:
    """The state after every stage, and at the end without each but the first; what they share is computed once."""
    first = run_stages(state, stages[:1])
    passed = first
    for stage in stages[1:]:
        yield f"up to {stage.name}", passed
        passed = run_stages(passed, [stage])
    yield "all", passed
    for left_out in range(1, len(stages) - 1):
        yield f"no {stages[left_out].name}", run_stages(first, [*stages[1:left_out], *stages[left_out + 1 :]])


def begin_in(engine: Engine, question: str, index: IndexReader, *, k: int) -> SearchState:
    """What a search in a part of the index starts from."""
    state = engine.begin(question, k=k)
    tokens = engine.encoder.encode_question(question)
    query = query_of(question, tokens, index.tokens, index.postings)
    return replace(state, query=query, search=EdgeSearch(index, engine.pipeline.fused.fusion, engine.threads))


def lesson_of(stages: str, state: SearchState, question: Question, *, present: bool) -> Lesson:
    """What the model sees of a search, and what is true."""
    edges, about = features_of(state)
    corpus = state.index.corpus
    gold = []
    for scored in state.subgraph.edges[: state.k]:
        segment = None if scored.edge.segment is None else corpus.segment(scored.edge.segment).segment_id
        passage = None if scored.edge.passage is None else corpus.passages[scored.edge.passage].passage_id
        found = EdgeId(segment, passage)
        gold.append(any(found.covers(one) for one in question.gold_edges))
    return Lesson(stages, edges[: len(gold)], about, np.array(gold, bool), present, _table(question))


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


def fit(lessons: Sequence[Lesson], settings: ProbabilityRecipe) -> tuple[EvidenceModel, dict[str, float]]:
    """The model from all lessons, and how well one from half of the tables does on the other half.

    TrainingError where a half has no lesson of each kind.
    """
    rest = [lesson for lesson in lessons if is_held_out(lesson.table, share=settings.data.held_out, seed=29)]
    learned = [lesson for lesson in lessons if not is_held_out(lesson.table, share=settings.data.held_out, seed=29)]
    if any(len({lesson.present for lesson in side}) < 2 for side in (learned, rest)):
        raise TrainingError("probabilities need questions of two tables or more, with gold edges in the index")
    scores = _scores(_fit(learned, settings), rest, settings.lost)
    return _fit(lessons, settings), {"lessons": float(len(lessons)), **scores}


def _fit(lessons: Sequence[Lesson], settings: ProbabilityRecipe) -> EvidenceModel:
    rows = np.concatenate([lesson.edges for lesson in lessons])
    gold = np.concatenate([lesson.gold for lesson in lessons]).astype(float)
    counts = np.concatenate([np.full(len(one.gold), 1.0 if one.present else settings.absent) for one in lessons])
    edge = _logistic(rows, gold, counts, EDGE_FEATURES, settings.decay)
    whole = [lesson for lesson in lessons if lesson.stages == "all"]
    about = np.stack([lesson.question for lesson in whole])
    present = np.array([lesson.present for lesson in whole], float)
    return EvidenceModel(edge, _logistic(about, present, np.ones(len(whole)), QUESTION_FEATURES, settings.decay))


def _logistic(rows: FloatArray, wanted: FloatArray, counts: FloatArray, names: Sequence[str], decay: float) -> Logistic:
    weights, intercept = fit_logistic(rows, wanted, decay=decay, counts=counts)
    return Logistic({name: round(float(w), 4) for name, w in zip(names, weights, strict=True)}, round(intercept, 4))


def _scores(model: EvidenceModel, lessons: Sequence[Lesson], lost: float) -> dict[str, float]:
    scores = {}
    for stages in dict.fromkeys(lesson.stages for lesson in lessons):
        own = [lesson for lesson in lessons if lesson.stages == stages and lesson.present]
        said = np.concatenate([model.edge.chances(one.edges, EDGE_FEATURES) for one in own])
        scores[f"held-out calibration error, {stages}"] = calibration_error(said, np.concatenate([o.gold for o in own]))
    whole = [lesson for lesson in lessons if lesson.stages == "all"]
    chances = model.presence.chances(np.stack([lesson.question for lesson in whole]), QUESTION_FEATURES)
    there = np.array([lesson.present for lesson in whole])
    least = float(np.floor(100 * np.quantile(chances[there], lost)) / 100)
    return scores | {
        "held-out AUC of presence": area_under_curve(chances.tolist(), there.tolist()),
        "least chance of presence": least,
        "held-out share refused, answer there": float((chances[there] < least).mean()),
        "held-out share refused, answer deleted": float((chances[~there] < least).mean()),
    }


def calibration_error(said: FloatArray, gold: NDArray[np.bool_], *, bins: int = 10) -> float:
    """The expected calibration error, 0 to 1, over bins of equal width."""
    numbers = np.minimum((said * bins).astype(int), bins - 1)
    sums = [abs(said[numbers == n].sum() - gold[numbers == n].sum()) for n in range(bins)]
    return float(sum(sums) / max(1, len(said)))


def _table(question: Question) -> str:
    return question.table_id or question.question_id


def _card(settings: ProbabilityRecipe, model: EvidenceModel, scores: Mapping[str, float], seconds: float) -> ModelCard:
    def values(logistic: Logistic) -> dict[str, Any]:
        return {"weights": dict(logistic.weights), "intercept": logistic.intercept}

    return ModelCard(
        name="helios-probability",
        role=CARD_ROLE,
        summary="The chance that an edge is evidence, and that a corpus holds any, from what a search found.",
        base="none",
        data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data"}),
        scores=dict(scores),
        limits="English questions. Presence: half of the questions that it learned from had no answer in the corpus.",
        seconds=seconds,
        values={"edge": values(model.edge), "presence": values(model.presence)},
    )


ROLE = Role(ProbabilityRecipe, train_probability)

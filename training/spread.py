"""The recipe of spreading: what an edge should lose for a row or a passage that a better edge has shown.

    helios train spread --recipe spread --out DIR data.index=INDEX ranking=RANKING ...

Ranks are filled as search fills them. As long as no chosen edge holds the answer, the next one should: a conditional
logit over the edges that are left, with the ranking's log-odds and the repeats as its only features. What is written
is the folder that `helios.retrieval.spreading.Prices` loads.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.evaluation.measures import contains_answer
from helios.evaluation.questions import Question, read_questions
from helios.graph import Subgraph
from helios.models.card import ModelCard, data_file, write_card
from helios.retrieval.spreading import CANDIDATES, Prices, spread
from helios.retrieval.spreading import ROLE as CARD_ROLE
from helios.retrieval.state import run_stages
from helios.types import Edge
from training.crossfit import CrossFitted, table_fold
from training.errors import TrainingError
from training.examples import edge_text, pair_of
from training.log import LogRow
from training.recipes import DataSettings, Role

RANKS = (2, 5, 10)


class SpreadRecipe(Section):
    """Everything that the result depends on beside the data."""

    data: DataSettings = DataSettings()
    ranking: Path | None = None
    """Folder that `helios train ranker` wrote: each question is searched with trees that never saw its table."""
    reranking: Path | None = None
    """Folder that `helios train late-reranker` wrote: the lists are reranked as search does it."""
    depth: int = Field(default=10, ge=2)
    """Ranks to fill."""
    folds: int = Field(default=5, ge=2)
    seed: int = 13


@dataclass(frozen=True, slots=True)
class SpreadLesson:
    """The best edges of one question as refinement leaves them, and which of them hold the answer."""

    table: str
    subgraph: Subgraph
    answers: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Choice:
    """A rank to be filled: log-odds, repeated row and repeated passage (left, 3), and which edges hold the answer."""

    features: NDArray[np.float64]
    right: NDArray[np.bool_]


def train_spread(
    settings: SpreadRecipe, out: Path, *, device: Any = None, on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Search the train questions, fit, measure by cross-validation, and write the prices to `out`.

    Nothing here uses `device`. Raises TrainingError for settings without data, and where no choice can be learned.
    """
    if settings.data.index is None or not settings.data.questions:
        raise TrainingError("spreading learns from what an index finds: set data.index and data.questions")
    questions = [question for path in settings.data.questions for question in read_questions(path)]
    started = time.monotonic()
    lessons = []
    overrides = ["advanced.search.spread=0"]
    with CrossFitted(settings.data.index, settings.ranking, settings.reranking, overrides=overrides) as fitted:
        for question in questions:
            lessons.append(mine_lesson(fitted, question, depth=settings.depth))
            if len(lessons) % 100 == 0 or len(lessons) == len(questions):
                on_log(LogRow(len(lessons), 0, time.monotonic() - started, {"of": len(questions)}))
    scores = cross_validate(lessons, settings)
    prices = fit(lessons, depth=settings.depth)
    out.mkdir(parents=True, exist_ok=True)
    write_card(out, _card(settings, scores, prices, time.monotonic() - started))
    return {**scores, "row": prices.row, "passage": prices.passage}


def mine_lesson(fitted: CrossFitted, question: Question, *, depth: int) -> SpreadLesson:
    """What search has for a question before it spreads."""
    engine = fitted.engine(question)
    state = run_stages(engine.begin(question.text, k=CANDIDATES * depth), fitted.stages(question))
    best = state.subgraph.top(CANDIDATES * depth)
    texts = (edge_text(engine.corpus, pair_of(scored.edge)) for scored in best.edges)
    answers = np.array([contains_answer(text, question.answers) for text in texts], bool)
    return SpreadLesson(question.table_id or question.question_id, best, answers)


def fit(lessons: Sequence[SpreadLesson], *, depth: int, steps: int = 50) -> Prices:
    """The prices, in log-odds of the ranking, by Newton's method; TrainingError where no choice has a right edge."""
    made = [choice for lesson in lessons for choice in choices(lesson, depth=depth) if choice.right.any()]
    if not made:
        raise TrainingError("no question has its answer below the best edge: there is nothing to learn from")
    weights = np.array([1.0, 0.0, 0.0])
    for _ in range(steps):
        gradient, curvature = np.zeros(3), 1e-6 * np.eye(3)
        for choice in made:
            values = choice.features @ weights
            taken, wanted = _softmax(values), _softmax(np.where(choice.right, values, -np.inf))
            mean = taken @ choice.features
            gradient += wanted @ choice.features - mean
            centred = choice.features - mean
            curvature += (centred * taken[:, None]).T @ centred
        move = np.linalg.solve(curvature, gradient)
        weights += move
        if np.abs(move).max() < 1e-6:
            break
    row, passage = (max(0.0, round(float(-weight / weights[0]), 2)) for weight in weights[1:])
    return Prices(row=row, passage=passage)


def choices(lesson: SpreadLesson, *, depth: int) -> list[Choice]:
    """The ranks after the first one, up to the edge that holds the answer, filled in the ranking's own order."""
    edges = [scored.edge for scored in lesson.subgraph.edges]
    scores = np.array([scored.score for scored in lesson.subgraph.edges])
    made = []
    for rank in range(1, min(depth, len(edges))):
        if lesson.answers[:rank].any():
            break
        features = np.column_stack([scores[rank:], *repeats(edges, rank)])
        made.append(Choice(features, lesson.answers[rank:]))
    return made


def repeats(edges: Sequence[Edge], rank: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of the edges from a rank on, which repeat a row and which a passage of those before it (0 or 1)."""
    rows = {edge.segment for edge in edges[:rank]} - {None}
    passages = {edge.passage for edge in edges[:rank]} - {None}
    return (
        np.array([edge.segment in rows for edge in edges[rank:]], np.float64),
        np.array([edge.passage in passages for edge in edges[rank:]], np.float64),
    )


def cross_validate(lessons: Sequence[SpreadLesson], settings: SpreadRecipe) -> dict[str, float]:
    """AR@k before, and with prices that were learned from the other folds' tables."""
    folds = np.array([table_fold(lesson.table, seed=settings.seed, folds=settings.folds) for lesson in lessons])
    before, after = [], []
    for fold in range(settings.folds):
        prices = fit([lesson for lesson, at in zip(lessons, folds, strict=True) if at != fold], depth=settings.depth)
        for place in np.flatnonzero(folds == fold):
            lesson = lessons[place]
            holds = dict(zip((scored.edge for scored in lesson.subgraph.edges), lesson.answers, strict=True))
            before.append(list(holds.values()))
            after.append([holds[scored.edge] for scored in spread(lesson.subgraph, prices, ranks=settings.depth).edges])
    measures = {"questions": float(len(lessons))}
    for name, orders in (("as ranked", before), ("spread", after)):
        measures |= {f"{name} AR@{k}": float(np.mean([any(order[:k]) for order in orders])) for k in RANKS}
    return measures


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    raised: NDArray[np.float64] = np.exp(values - values.max())
    return raised / raised.sum()


def _card(settings: SpreadRecipe, scores: Mapping[str, float], prices: Prices, seconds: float) -> ModelCard:
    return ModelCard(
        name="helios-spreading",
        role=CARD_ROLE,
        summary=f"Log-odds that an edge loses: {prices.row} for a repeated row, {prices.passage} for a passage.",
        base="none",
        data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data", "ranking", "reranking"}),
        scores=dict(scores),
        limits="In log-odds of the ranking that the lists came from: another ranking wants its own.",
        seconds=seconds,
        values=asdict(prices),
    )


ROLE = Role(SpreadRecipe, train_spread)

"""The recipe of the late-interaction reranker: in which order the edges stand that a trained encoder has read.

    helios train late-reranker --recipe late-reranker --out DIR data.index=INDEX ranking=RANKING \\
        encoder=ENCODER "shares=[FIRST,SECOND]" ...

The best edges of every train question, by a ranking that never saw its table, are read by an encoder that never saw it
either; LambdaMART learns their order. What search gets is the encoder that learned from all of them.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from helios.engine import Engine
from helios.evaluation.questions import Question, read_questions
from helios.models.base import NAME, WEIGHTS_SHA256
from helios.models.card import README, ModelCard, data_file
from helios.retrieval.reranking.late import ENCODER, LATE_FEATURES, NodeReading, late_encoder, late_features
from helios.retrieval.reranking.late import ROLE as CARD_ROLE
from training.crossfit import KEPT_MB, RANKING_ALONE, SHARES, CrossFitted, rank_edges
from training.errors import TrainingError
from training.examples import pair_of
from training.holdout import share_of
from training.log import LogRow
from training.ranker import Group, RankerSettings, cross_validate, fit, graded, write_rankings
from training.recipes import Role

ENCODER_CARD = "token-encoder.md"


class LateRerankerSettings(RankerSettings):
    """Everything that the result depends on beside the data."""

    ranking: Path | None = None
    """Folder that `helios train ranker` wrote: each question is searched with trees that never saw its table."""
    encoder: Path | None = None
    """The trained encoder that search will use, an adapter of `helios train encoder`."""
    shares: tuple[Path, ...] = ()
    """Encoders, the i-th of which held the i-th of as many shares of the tables out (data.held_out=1/n
    data.held_from=i/n); none lets `encoder` read what it learned from, and the trees trust it too much."""
    k1: int = 10
    """Edges that are read."""


def train_late_reranker(
    settings: LateRerankerSettings, out: Path, *, device: Any = None,
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> Mapping[str, float]:  # fmt: skip
    """Search and read the train questions, fit, and write trees and encoder to `out`; cross-validated measures.

    Nothing here uses `device`. Raises TrainingError for settings without data or without an encoder.
    """
    data = settings.data
    if data.index is None or not data.questions:
        raise TrainingError("a reranker learns from what an index finds: set data.index and data.questions")
    if settings.encoder is None:
        raise TrainingError("a late-interaction reranker needs a trained encoder: set encoder")
    for path in (settings.encoder, *settings.shares):
        if not path.is_file():
            raise TrainingError(f"{path}: no such file; expected an adapter that `helios train encoder` wrote")
    questions = [question for path in data.questions for question in read_questions(path)]
    paths = settings.shares or (settings.encoder,)
    readings = [NodeReading(late_encoder(path), megabytes=KEPT_MB) for path in paths]
    started = time.monotonic()
    groups = []
    with CrossFitted(data.index, settings.ranking, overrides=RANKING_ALONE) as fitted:
        for question in questions:
            groups.append(mine_group(fitted.engine(question), question, readings, depth=settings.k1))
            if len(groups) % 100 == 0 or len(groups) == len(questions):
                on_log(LogRow(len(groups), 0, time.monotonic() - started, {"of": len(questions)}))
    return write_late_reranker(groups, settings, out, seconds=time.monotonic() - started)


def mine_group(engine: Engine, question: Question, readings: Sequence[NodeReading], *, depth: int) -> Group:
    """The best edges of a question with what the encoder reads in them that never saw the question's table."""
    state = rank_edges(engine, question.text, k=depth)
    if state.ranked is None:
        raise TrainingError("late-interaction reranking orders what a learned ranking found: leave search.ranker alone")
    reading = readings[share_of(question.table_id or question.question_id, len(readings))]
    seen = set(state.ranked.edges)
    head = [scored for scored in state.subgraph.edges if scored.edge in seen]
    features = late_features(state, reading, head)
    return graded(engine.corpus, question, [pair_of(scored.edge) for scored in head], features)


def write_late_reranker(
    groups: Sequence[Group], settings: LateRerankerSettings, out: Path, *, seconds: float | None = None
) -> Mapping[str, float]:
    """Trees for all groups, the encoder with its card, what `CrossFitted` takes; returns cross-validated measures."""
    measures, calibration, folds = cross_validate(groups, settings, features=LATE_FEATURES, before="ranked")
    for number, path in enumerate(settings.shares):
        _copy(path, out / SHARES / str(number) / ENCODER)
    if settings.encoder is not None:
        _copy(settings.encoder, out / ENCODER)
        cards = (settings.encoder.parent / name for name in (ENCODER_CARD, README))  # of a reranker, or its own
        if card_file := next((path for path in cards if path.is_file()), None):
            _copy(card_file, out / ENCODER_CARD)
    trees, card = fit(groups, settings, LATE_FEATURES), _card(settings, measures, len(groups), seconds)
    write_rankings(out, trees, folds, calibration, card, beside=[ENCODER])
    return measures


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def _card(
    settings: LateRerankerSettings, measures: Mapping[str, float], groups: int, seconds: float | None
) -> ModelCard:  # fmt: skip
    recipe = settings.model_dump(mode="json", exclude={"data", "ranking", "encoder", "shares"})
    return ModelCard(
        name="helios-late-reranker",
        role=CARD_ROLE,
        summary="Orders the best edges that a trained token encoder has read: the encoder, and trees over what it "
        "finds, what the learned ranking saw of an edge, and its score.",
        base=f"{NAME} {WEIGHTS_SHA256}",
        data=tuple(data_file(path, records=groups) for path in settings.data.questions),
        settings={**recipe, "shares": len(settings.shares)},
        scores=measures,
        limits="For indexes of that base encoder and the ranking that the lists came from.",
        seconds=seconds,
        needs={"features": LATE_FEATURES, "base": WEIGHTS_SHA256},
    )


ROLE = Role(LateRerankerSettings, train_late_reranker)

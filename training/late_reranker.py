"""The recipe of the late-interaction reranker: in which order the edges stand that a trained encoder has read.

    helios train late-reranker --recipe configs/train/late-reranker.yaml --out DIR data.index=INDEX ranking=RANKING \\
        encoder=ENCODER "shares=[FIRST,SECOND]" ...

The best edges of every train question, by a ranking that never saw its table, are read by an encoder that never saw it
either; LambdaMART learns their order. What search gets is the encoder that learned from all of them.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from helios.config import RerankSettings
from helios.engine import Engine
from helios.evaluation.questions import Question, read_questions
from helios.index.durable import write_atomically
from helios.models.base import NAME, WEIGHTS_SHA256
from helios.models.encoder import TokenEncoder
from helios.models.ranker import EdgeRanker
from helios.retrieval.edges import FactoredEdges
from helios.retrieval.late_reranker import ENCODER, LATE_FEATURES, late_encoder, late_features
from training.cards import README, DataFile, ModelCard, completed, data_file, readme
from training.crossfit import FOLDS, SHARES, CrossFitted
from training.errors import TrainingError
from training.examples import pair_of
from training.holdout import share_of
from training.log import LogRow
from training.ranker import Group, RankerSettings, cross_validate, fit, graded
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
    encoders = [late_encoder(path, RerankSettings()) for path in settings.shares or (settings.encoder,)]
    started = time.monotonic()
    groups = []
    with CrossFitted(data.index, settings.ranking) as fitted:
        for question in questions:
            groups.append(mine_group(fitted.engine(question), question, encoders, depth=settings.k1))
            if len(groups) % 100 == 0 or len(groups) == len(questions):
                on_log(LogRow(len(groups), 0, time.monotonic() - started, {"of": len(questions)}))
    return write_late_reranker(groups, settings, out, seconds=time.monotonic() - started)


def mine_group(engine: Engine, question: Question, encoders: Sequence[TokenEncoder], *, depth: int) -> Group:
    """The best edges of a question with what the encoder reads in them that never saw the question's table."""
    edges = engine.edge_index
    if not isinstance(edges, FactoredEdges) or edges.ranker is None:
        raise TrainingError("late-interaction reranking orders what a learned ranking found: leave search.ranker alone")
    subgraph = engine.retrieve_edges(question.text, k=depth)
    encoder = encoders[share_of(question.table_id or question.question_id, len(encoders))]
    features = late_features(engine.part, edges, encoder, question.text, subgraph)
    return graded(engine.corpus, question, [pair_of(scored.edge) for scored in subgraph.edges], features)


def write_late_reranker(
    groups: Sequence[Group], settings: LateRerankerSettings, out: Path, *, seconds: float | None = None
) -> Mapping[str, float]:
    """Trees for all groups, the encoder with its card, what `CrossFitted` takes; returns cross-validated measures."""
    measures, calibration, folds = cross_validate(groups, settings, features=LATE_FEATURES, before="ranked")
    recipe = settings.model_dump(mode="json", exclude={"data", "ranking", "encoder", "shares"})
    recipe["shares"] = len(settings.shares)
    data = tuple(data_file(path, records=len(groups)) for path in settings.data.questions)
    card: dict[str, object] = {
        "recipe": recipe, "questions": {file.name: file.sha256 for file in data}, "groups": len(groups),
        "cross_validated": measures,
    }  # fmt: skip
    for number, trees in enumerate(folds):
        ranker = EdgeRanker(trees, LATE_FEATURES, calibration)
        ranker.save(out / FOLDS / str(number), card=card | {"without_fold": number})
    EdgeRanker(fit(groups, settings, LATE_FEATURES), LATE_FEATURES, calibration).save(out, card=card)
    for number, path in enumerate(settings.shares):
        share = out / SHARES / str(number) / ENCODER
        share.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, share)
    if settings.encoder is not None:
        shutil.copyfile(settings.encoder, out / ENCODER)
        cards = (settings.encoder.parent / name for name in (ENCODER_CARD, README))  # of a reranker, or its own
        if card_file := next((path for path in cards if path.is_file()), None):
            shutil.copyfile(card_file, out / ENCODER_CARD)
    complete = completed(out, _card(data, recipe, measures, seconds), weights=("trees.txt", ENCODER))
    write_atomically(out / README, readme(complete).encode())
    return measures


def _card(
    data: tuple[DataFile, ...], recipe: Mapping[str, Any], measures: Mapping[str, float], seconds: float | None
) -> ModelCard:  # fmt: skip
    return ModelCard(
        name="late-reranker",
        role="late-interaction reranker",
        summary="Orders the best edges that a trained token encoder has read: the encoder, and trees over what it "
        "finds, what the learned ranking saw of an edge, and its score.",
        base=f"{NAME} {WEIGHTS_SHA256}",
        data=data,
        settings=recipe,
        scores={f"cross-validated {name}": value for name, value in measures.items()},
        limits="For indexes of that base encoder and the ranking that the lists came from.",
        seconds=seconds,
    )


ROLE = Role(LateRerankerSettings, train_late_reranker)

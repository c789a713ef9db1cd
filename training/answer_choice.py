"""The recipe of the choice between readers (`helios.reading.choice`): one logistic regression a reader.

    helios train answer-choice --recipe answer-choice --out DIR \\
        "indexes=[OTTQA-INDEX,FOLDER-INDEX]" "questions=[train.jsonl,questions.jsonl]"

Each index is asked its questions, and every reader says its best answer with its own confidence. The readers must not
have learned from these tables and texts, or they are believed too much. Each source counts the same, or as `shares`
says. What was said is kept beside the card, and a recipe that is run again into the same folder does not ask again.

With `beside=FOLDER` the weights of an earlier choice stay: what the last reader says (the one of queries) is learned on
top of them, and where it is silent nothing changes.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.engine import Engine
from helios.evaluation.folders import is_right
from helios.evaluation.questions import read_records
from helios.index.durable import write_atomically
from helios.models.card import ModelCard, data_file, read_card, write_card
from helios.reading.choice import FEATURES, SILENT, Reading, choice_features
from helios.reading.choice import ROLE as CARD_ROLE
from helios.reading.extractive import ExtractiveReader
from training.errors import TrainingError
from training.log import LogRow
from training.recipes import Role
from training.regression import fit_logistic

SURE = 0.5
EXAMPLES = "examples.jsonl"


class AnswerChoiceSettings(Section):
    """Everything that the result depends on beside the code."""

    indexes: tuple[Path, ...] = ()
    """Indexes whose tables and texts no reader has learned from."""
    questions: tuple[Path, ...] = ()
    """Questions about each of them; the answer a string, or items in their accepted forms."""
    limit: int = Field(default=500, ge=1)
    """Questions of a file, drawn at random."""
    decay: float = Field(default=3e-3, gt=0.0)
    shares: tuple[float, ...] = ()
    """How much each index counts, whatever its number of questions; all the same by default."""
    beside: Path | None = None
    """Folder of an earlier choice that knew no queries, whose weights stay."""
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Example:
    """The best answers to a question: what is known of each (`FEATURES`), and whether it is right, by reader."""

    source: str
    said: Mapping[Reading, tuple[tuple[float, ...], bool]]


def train_answer_choice(
    settings: AnswerChoiceSettings, out: Path, *, device: Any = None,
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> Mapping[str, float]:  # fmt: skip
    """Ask, fit, and write a card with the weights; returns measures of sources that were left out.

    Raises TrainingError without two indexes with questions.
    """
    started = time.monotonic()
    if len(settings.indexes) < 2 or len(settings.indexes) != len(settings.questions):
        raise TrainingError("set indexes and questions, a file each; two or more, so that one can be left out")
    if settings.shares and len(settings.shares) != len(settings.indexes):
        raise TrainingError(f"shares has {len(settings.shares)} numbers, expected one for each of the indexes")
    names = [_source(index, questions) for index, questions in zip(settings.indexes, settings.questions, strict=True)]
    if len(set(names)) < len(names):
        raise TrainingError(f"two sources are called alike ({', '.join(names)}); name the folders of the indexes apart")
    kept_file = out / EXAMPLES
    if not kept_file.is_file():
        examples: list[Example] = []
        for index, questions in zip(settings.indexes, settings.questions, strict=True):
            for example in answers_of(index, questions, settings):
                examples.append(example)
                if len(examples) % 50 == 0:
                    on_log(LogRow(len(examples), 0, time.monotonic() - started, {"questions asked": len(examples)}))
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(kept_file, "".join(json.dumps(_record(one)) + "\n" for one in examples).encode())
    examples = [_example(json.loads(line)) for line in kept_file.read_text(encoding="utf-8").splitlines()]
    shares = dict(zip(names, settings.shares or [1.0] * len(names), strict=True))
    kept = None if settings.beside is None else kept_weights(settings.beside)
    values = fit_choice(examples, decay=settings.decay, kept=kept, shares=shares)
    scores = left_out(examples, decay=settings.decay, kept=kept, shares=shares)
    card = ModelCard(
        name=CARD_ROLE, role=CARD_ROLE, base="none", values=values, scores=scores, seconds=time.monotonic() - started,
        summary="How often the best answer of each reader is right, from what all readers say and from the evidence.",
        data=tuple(data_file(path) for path in settings.questions),
        settings=settings.model_dump(mode="json", exclude={"indexes", "questions", "beside"}),
        limits="Learned from some hundred questions of a kind; mostly English.",
    )  # fmt: skip
    write_card(out, card)
    return scores


def answers_of(index: Path, questions: Path, settings: AnswerChoiceSettings) -> Iterator[Example]:
    """What the readers say in answer to questions of a file; none for a question without evidence."""
    asked = [record for _, record in read_records(questions)]
    random.Random(settings.seed).shuffle(asked)
    with Engine.open(index, overrides=["advanced.reading.choice=none", "reading.reader=extractive"]) as engine:
        assert isinstance(engine.reader, ExtractiveReader)
        for record in asked[: settings.limit]:
            question, answer = record["question"], record["answer"]
            items = ((answer,),) if isinstance(answer, str) else tuple(tuple(forms) for forms in answer)
            evidence = engine.search(question)
            if evidence.edges:
                best = {one: answers[0] for one, answers in engine.reader.readings(question, evidence).items()}
                said = {
                    one: (
                        tuple(choice_features(question, evidence, best, one)),
                        bool(items) and is_right(answer.text, items),
                    )
                    for one, answer in best.items()
                }
                yield Example(_source(index, questions), said)


Weights = Mapping[Reading, Mapping[str, Any]]
"""`weights` by feature and `intercept`, by reader."""


def kept_weights(folder: Path) -> Weights:
    """Those of an earlier choice; features that it did not know weigh nothing."""
    values = read_card(folder, CARD_ROLE).values
    return {
        one: {
            "weights": {name: float(values[one]["weights"].get(name, 0.0)) for name in FEATURES},
            "intercept": float(values[one]["intercept"]),
        }
        for one in Reading
        if one in values and one is not Reading.QUERY
    }


def fit_choice(
    examples: Sequence[Example], *, decay: float, kept: Weights | None = None, shares: Mapping[str, float] | None = None
) -> dict[Reading, dict[str, Any]]:
    """Weights and intercept of each reader; those of `kept` change by what the reader of queries says alone.

    Every source counts as much as `shares` says, or all the same.
    """
    sources = [one.source for one in examples]
    found = {}
    for reading in Reading:
        said = [one for one in examples if reading in one.said]
        if not said and reading is Reading.QUERY:  # it is not asked where rows are linked to texts for sure
            found[reading] = {"weights": dict.fromkeys(FEATURES, 0.0), "intercept": SILENT}
            continue
        rows = np.array([one.said[reading][0] for one in said], np.float64)
        right = np.array([one.said[reading][1] for one in said], np.float64)
        if not len(said):
            raise TrainingError(f"{reading}: this reader said nothing to any question; is it left out by the settings?")
        counts = np.array([(shares or {}).get(one.source, 1.0) / sources.count(one.source) for one in said])
        counts *= len(counts) / counts.sum()
        if kept is not None and reading in kept:
            found[reading] = _beside(kept[reading], rows, right, counts, decay=decay)
            continue
        weights, intercept = fit_logistic(rows, right, decay=decay, counts=counts)
        named = dict(zip(FEATURES, map(float, weights), strict=True))
        found[reading] = {"weights": named, "intercept": float(intercept)}
    return found


def _beside(
    known: Mapping[str, Any], rows: NDArray[np.float64], right: NDArray[np.float64], counts: NDArray[np.float64],
    *, decay: float,
) -> dict[str, Any]:  # fmt: skip
    """Known weights, changed by how sure the reader of queries is, and by whether it says the same."""
    odds = known["intercept"] + rows @ np.array([known["weights"][name] for name in FEATURES])
    more = rows[:, [FEATURES.index("third_other"), FEATURES.index("agrees_third")]] - [SILENT, 0.0]
    (surer, agrees), _ = fit_logistic(more, right, decay=decay, counts=counts, known=odds)
    weights = dict(known["weights"])
    weights["third_other"] += float(surer)
    weights["agrees_third"] += float(agrees)
    return {"weights": weights, "intercept": known["intercept"] - float(surer) * SILENT}


def left_out(
    examples: Sequence[Example], *, decay: float, kept: Weights | None = None, shares: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Measures of each source by weights of the others: right, said, and where 50 % is said."""
    scores: dict[str, float] = {}
    chosen: list[tuple[str, float, bool]] = []
    for source in sorted({one.source for one in examples}):
        others = [one for one in examples if one.source != source]
        values = fit_choice(others, decay=decay, kept=kept, shares=shares)
        chosen += [(source, *_best(one, values)) for one in examples if one.source == source]
    for source in sorted({source for source, _, _ in chosen}):
        said = np.array([chance for name, chance, _ in chosen if name == source])
        right = np.array([correct for name, _, correct in chosen if name == source], bool)
        scores[f"{source}: right"], scores[f"{source}: said"] = float(right.mean()), float(said.mean())
        sure = said >= SURE
        scores[f"{source}: right where at least 50 % is said"] = float(right[sure].mean()) if sure.any() else 0.0
        scores[f"{source}: share where at least 50 % is said"] = float(sure.mean())
    return scores


def _best(example: Example, values: Weights) -> tuple[float, bool]:
    """The likeliest answer's chance, and whether it is right."""

    def chance(reading: Reading, features: Sequence[float]) -> float:
        weights: NDArray[np.float64] = np.array([values[reading]["weights"][name] for name in FEATURES])
        return float(1 / (1 + np.exp(-(values[reading]["intercept"] + weights @ np.array(features)))))

    return max((chance(reading, features), right) for reading, (features, right) in example.said.items())


def _source(index: Path, questions: Path) -> str:
    return f"{index.name}: {questions.name}"


def _record(example: Example) -> dict[str, Any]:
    return {"source": example.source, "said": {one: [list(f), right] for one, (f, right) in example.said.items()}}


def _example(record: Mapping[str, Any]) -> Example:
    said = {Reading(one): (tuple(features), bool(right)) for one, (features, right) in record["said"].items()}
    return Example(record["source"], said)


ROLE = Role(AnswerChoiceSettings, train_answer_choice)

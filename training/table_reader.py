"""The recipe of the reader of tables: LambdaMART over programs, and a confidence from questions of kinds left out.

    helios train table-reader --recipe table-reader --out DIR \\
        "indexes=[OTTQA-INDEX,SPIDER-INDEX]" "questions=[train.jsonl.gz,spider/questions.jsonl]"

What a question asks of a table's columns comes from a model that is trained before (`training.table_columns`). Each
index is asked its questions and others that are made from its tables (`training.table_questions`). Trees order a
question's programs; they learn from the programs whose result is the answer. The confidence is fitted to answers of
trees that have seen nothing of the same source: real questions of each index, and made ones, are a source each.
"""

import os
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.engine import Engine
from helios.evaluation.folders import is_right
from helios.evaluation.questions import read_records
from helios.models.base import find_base_model
from helios.models.card import ModelCard, data_file, write_card
from helios.models.trees import Trees
from helios.reading.tables.columns import FILE as COLUMNS
from helios.reading.tables.columns import ColumnReader
from helios.reading.tables.programs import OPS
from helios.reading.tables.reader import (
    DOUBTS,
    EXECUTED,
    FEATURES,
    TREES,
    WEIGHTS,
    Confidence,
    Sheets,
    all_programs,
    answer_text,
    best_executed,
    doubts_of,
    log_odds,
    table_question,
)
from helios.reading.tables.reader import ROLE as CARD_ROLE
from helios.reading.tables.sheet import Sheet
from training.errors import TrainingError
from training.log import LogRow
from training.recipes import Role
from training.regression import fit_logistic
from training.table_questions import made_questions

FloatArray = NDArray[np.float32]
LIGHT = ("rerank.backend=none", "refinement.mode=off", "expansion.enabled=false")
"""Tables are found as well without the later stages."""


class TableReaderSettings(Section):
    """Everything that the result depends on beside the code."""

    indexes: tuple[Path, ...] = ()
    """Indexes whose tables are asked about; train tables only."""
    questions: tuple[Path | None, ...] = ()
    """Questions about each of the indexes, in their order; the answer a string, or items in their accepted forms."""
    columns: Path | None = None
    """Folder that `helios train table-columns` wrote, from other questions than these; None is the packaged model."""
    limit: int = Field(default=1200, ge=0)
    """Questions of a file, drawn at random."""
    made: int = Field(default=1500, ge=0)
    """Questions that are made about the tables of each index, at most."""
    per_table: int = Field(default=6, ge=1)
    largest: int = Field(default=400, ge=2)
    """Rows of the largest table that questions are made about."""
    kept: int = Field(default=250, ge=EXECUTED)
    """Programs of a question that are learned from: the best by the packaged trees, which are hard to tell apart."""
    parts: int = Field(default=6, ge=2)
    """Parts that the sources are dealt out to, each left out of the trees that its answers are weighed by."""
    trees: int = Field(default=600, ge=1)
    leaves: int = Field(default=31, ge=2)
    learning_rate: float = Field(default=0.03, gt=0.0)
    first: int = Field(default=3, ge=1)
    """Places of an order that the trees care for; the later ones are never read."""
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question, its answer's items, and the source that it is of."""

    question: str
    items: tuple[tuple[str, ...], ...]
    """What the answer names, each in its accepted forms; none where there is no answer."""
    source: str
    column: str = ""
    """Header of the column that the answer is read from, where the question's file says so."""
    table: str = ""
    """Its table, as a part of the id."""
    files: tuple[str, ...] = ()
    """The files whose tables the answer is read from, where the question's file says so (`evidence`)."""

    def is_about(self, sheet: Sheet, cells: Sequence[tuple[int, int]]) -> bool:
        """Whether an answer that rests on these cells is read from where the question says: all else is by chance."""
        if self.table.removesuffix(".csv") not in sheet.table.table_id:
            return False
        sources = {sheet.table.source, *(place.table.source for cell in cells for place in sheet.places(*cell))}
        return not self.files or any(
            one == file or one.startswith(f"{file}/") for one in sources for file in self.files
        )

    def may_be_about(self, sheet: Sheet) -> bool:
        """Whether any cell of a sheet stands in a file that the question names."""
        cells = [*((row, 0) for row in range(sheet.size)), *((0, column) for column in range(len(sheet.columns)))]
        return bool(self.files) and sheet.size > 0 and self.is_about(sheet, cells)


@dataclass(frozen=True, slots=True)
class Example:
    """The best programs of a question that have a result: features (N, F), which are right, which give the same."""

    source: str
    features: FloatArray
    right: NDArray[np.bool_]
    answers: NDArray[np.int32]


def train_table_reader(
    settings: TableReaderSettings,
    out: Path,
    *,
    device: Any = "cpu",
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> Mapping[str, float]:
    """Mine, fit with each source left out, fit to all; returns the measures on the sources left out."""
    started = time.monotonic()
    if not settings.indexes:
        raise TrainingError("indexes is not set: the folders of the indexes to ask")

    def log(name: str, step: int, value: float) -> None:
        on_log(LogRow(step, 0, time.monotonic() - started, {name: value}))

    examples: list[Example] = []
    encoder = ""
    base, threads = find_base_model(), os.cpu_count() or 1
    columns = (settings.columns or WEIGHTS) / COLUMNS
    files = [*settings.questions, *[None] * len(settings.indexes)]
    for index, questions in zip(settings.indexes, files, strict=False):
        with Engine.open(index, overrides=LIGHT) as engine:
            encoder = engine.index.encoder["fingerprint"]
            kept = out / "examples" / f"{index.name}.npz"
            if not kept.is_file():
                reader = ColumnReader(base, columns, threads=threads)
                mined = []
                for example in mine(engine, lessons(engine, questions, settings), settings, reader):
                    mined.append(example)
                    if len(mined) % 100 == 0:
                        log("questions mined", len(mined), len(mined))
                write_examples(kept, mined)
            examples += read_examples(kept)
    left_out = predict_left_out(examples, settings)
    confidence, scores = fit_confidence(answers_of(examples, left_out))
    trees = Trees.of(fit_trees(examples, settings))
    out.mkdir(parents=True, exist_ok=True)
    trees.save(out / TREES)
    shutil.copyfile(columns, out / COLUMNS)
    card = ModelCard(
        name=CARD_ROLE,
        role=CARD_ROLE,
        base="none; similarities come from the token encoder of the index",
        summary="Gradient-boosted trees that choose a program over a table: rows, column, and what is computed.",
        data=tuple(data_file(path) for path in settings.questions if path is not None),
        settings=_named(settings),
        scores=scores,
        seconds=time.monotonic() - started,
        limits="Learned from English questions; in German, French, Spanish and Chinese it knows words of operations.",
        needs={"encoder": encoder},
        values={"confidence": asdict(confidence)},
    )
    write_card(out, card, weights=[TREES, COLUMNS])
    return scores


def _named(settings: TableReaderSettings) -> dict[str, Any]:
    """Settings as a card has them: names of files, never where they lay."""
    questions = [None if path is None else path.name for path in settings.questions]
    return settings.model_dump(mode="json") | {
        "indexes": [path.name for path in settings.indexes],
        "questions": questions,
        "columns": settings.columns and settings.columns.name,
    }


def lessons(engine: Engine, questions: Path | None, settings: TableReaderSettings) -> list[Lesson]:
    """The questions of a file, and questions made about the tables of the index."""
    chance = random.Random(settings.seed)
    index_name = engine.snapshot.directory.name
    found: list[Lesson] = []
    if questions is not None:
        for _, record in read_records(questions):
            answer = record["answer"]
            items = ((answer,),) if isinstance(answer, str) else tuple(tuple(forms) for forms in answer)
            said = {name: record.get(name) or "" for name in ("column", "table")}
            files = tuple(one["file"] for one in record.get("evidence") or ())
            found.append(Lesson(record["question"], items, f"{index_name}: {questions.name}", **said, files=files))
        chance.shuffle(found)
        del found[settings.limit :]
    ids = list(engine.corpus.tables.ids())
    chance.shuffle(ids)
    made: list[Lesson] = []
    for table_id in ids:
        table = engine.corpus.tables.get(table_id)
        if len(made) < settings.made and 3 <= len(table.rows) <= settings.largest:
            about = made_questions(Sheet.of(table), chance, count=settings.per_table)
            made += [Lesson(one.question, tuple((item,) for item in one.items), "made") for one in about]
    return [*found, *made[: settings.made]]


def mine(
    engine: Engine, asked: Sequence[Lesson], settings: TableReaderSettings, reader: ColumnReader
) -> Iterator[Example]:
    """Every question's programs over the tables that the engine finds."""
    sheets = Sheets(engine.corpus, engine.encoder)
    trees = Trees.read(WEIGHTS / TREES)
    used = [FEATURES.index(name) for name in trees.features]
    for lesson in asked:
        evidence = engine.search(lesson.question, k=50)
        question = table_question(lesson.question, engine.encoder.encode_question(lesson.question))
        found = all_programs(question, evidence, sheets, reader)
        best = best_executed(found, [trees.sums(one.features[:, used]) for one in found], most=settings.kept)
        known: dict[str, int] = {}
        answers = [known.setdefault(result.key, len(known)) for result in best.results]
        items = [one.items if one.yes is None else (answer_text(lesson.question, one),) for one in best.results]
        yield Example(
            lesson.source,
            best.features,
            np.array([bool(lesson.items) and same_items(one, lesson.items) for one in items], bool),
            np.array(answers, np.int32),
        )


def write_examples(path: Path, examples: Sequence[Example]) -> None:
    """Keep what was mined: a recipe that is run again does not search again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".tmp.npz")
    np.savez(
        whole,
        sources=[e.source for e in examples],
        sizes=[len(e.right) for e in examples],
        features=np.concatenate([e.features for e in examples]),
        right=np.concatenate([e.right for e in examples]),
        answers=np.concatenate([e.answers for e in examples]),
    )
    whole.replace(path)


def read_examples(path: Path) -> list[Example]:
    """What `write_examples` kept."""
    with np.load(path) as file:
        bounds = np.cumsum(file["sizes"])[:-1]
        parts = [np.split(file[name], bounds) for name in ("features", "right", "answers")]
        return [Example(str(source), *arrays) for source, *arrays in zip(file["sources"], *parts, strict=True)]


def same_items(items: Sequence[str], gold: Sequence[Sequence[str]]) -> bool:
    """Whether an answer names the same things, in any of their forms; numbers are compared as numbers."""
    if all(len(forms) == 1 for forms in gold):
        same = bool(gold) and {_folded(item) for item in items} == {_folded(forms[0]) for forms in gold}
        number = len(gold) == len(items) == 1 and gold[0][0].replace(".", "", 1).isdigit()
        return same or (number and is_right(items[0], gold))  # "12" is "12 days" where days were asked for
    return is_right(", ".join(items), gold)


def _folded(item: str) -> str:
    text = " ".join(item.split()).casefold().strip(" .")
    try:
        return f"{float(text.replace(',', '')):.6g}"
    except ValueError:
        return text


def fit_trees(examples: Sequence[Example], settings: TableReaderSettings) -> lightgbm.Booster:
    """LambdaMART over the questions whose answer some program gives."""
    kept = [example for example in examples if example.right.any()]
    if not kept:
        raise TrainingError("no program gives the answer of any question: nothing to learn from")
    data = lightgbm.Dataset(
        np.concatenate([example.features for example in kept]),
        np.concatenate([example.right for example in kept]).astype(int),
        group=[len(example.right) for example in kept],
        feature_name=list(FEATURES),
    )
    parameters = {
        "objective": "lambdarank",
        "num_leaves": settings.leaves,
        "learning_rate": settings.learning_rate,
        "min_data_in_leaf": 20,
        "feature_fraction": 0.6,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "lambda_l2": 1.0,
        "lambdarank_truncation_level": settings.first,
        "max_bin": 127,
        "seed": settings.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbose": -1,
    }
    return lightgbm.train(parameters, data, settings.trees)


def parts_of(sources: Iterable[str], parts: int) -> list[set[str]]:
    """The different sources, dealt out in turn; TrainingError for fewer than two."""
    known = sorted(set(sources))
    if len(known) < 2:
        raise TrainingError("questions of one source only: the confidence needs sources to leave out")
    return [set(known[number::parts]) for number in range(min(parts, len(known)))]


def predict_left_out(examples: Sequence[Example], settings: TableReaderSettings) -> list[FloatArray]:
    """The scores of every example's programs by trees that have not seen its source."""
    found: dict[int, FloatArray] = {}
    for part in parts_of((example.source for example in examples), settings.parts):
        trees = fit_trees([example for example in examples if example.source not in part], settings)
        for number, example in enumerate(examples):
            if example.source in part:
                known = len(example.features) > 0
                scores = trees.predict(example.features, num_threads=1) if known else ()
                found[number] = np.asarray(scores, np.float32)
    return [found[number] for number in range(len(examples))]


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a question as the trees see them."""

    example: Example
    best: tuple[int, ...]
    """Numbers of their best programs."""
    scores: FloatArray
    """Of the best programs, EXECUTED at most."""
    places: NDArray[np.int64]
    """The place of each one's answer in `best`."""

    def shares(self, temperature: float) -> FloatArray:
        """Of each answer (A)."""
        found = np.exp((self.scores - self.scores.max()) / temperature)
        return np.bincount(self.places, weights=found / found.sum(), minlength=len(self.best)).astype(np.float32)


def answers_of(examples: Sequence[Example], scores: Sequence[FloatArray]) -> list[Answers]:
    """The answers of every example that has any."""
    found = []
    for example, values in zip(examples, scores, strict=True):
        if len(values):
            order = np.argsort(-values, kind="stable")[:EXECUTED]
            given, places = np.unique(example.answers[order], return_inverse=True)
            best = tuple(int(order[np.flatnonzero(places == at)[0]]) for at in range(len(given)))
            found.append(Answers(example, best, values[order], places))
    return found


TEMPERATURES = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0)


def fit_confidence(read: Sequence[Answers]) -> tuple[Confidence, dict[str, float]]:
    """The temperature with most right answers, each source counting the same, then a logistic curve; and the measures
    of sources left out."""
    sources = [one.example.source for one in read]
    counts = np.array([1.0 / sources.count(source) for source in sources])

    def chosen(temperature: float) -> tuple[list[int], FloatArray]:
        """Best program and share of the likeliest answer to each question."""
        shares = [one.shares(temperature) for one in read]
        best = [one.best[int(np.argmax(of))] for one, of in zip(read, shares, strict=True)]
        return best, np.array([of.max() for of in shares])

    def right(best: Sequence[int]) -> NDArray[np.bool_]:
        return np.array([one.example.right[at] for one, at in zip(read, best, strict=True)])

    temperature = max(TEMPERATURES, key=lambda one: float(counts @ right(chosen(one)[0])))
    best, shares = chosen(temperature)
    wanted = right(best).astype(np.float64)
    features = [one.example.features[at] for one, at in zip(read, best, strict=True)]
    rows = np.array([[log_odds(float(share)), *doubts_of(own)] for share, own in zip(shares, features, strict=True)])
    weights, said = _weights(rows, wanted, sources, decay=DECAY)
    first, *middle, last = map(float, weights)
    doubts, ops = dict(zip(DOUBTS, middle, strict=False)), dict(zip(OPS, middle[len(DOUBTS) :], strict=True))
    confidence = Confidence(temperature, last, first, doubts, ops)
    measured = {"questions": float(len(read))}
    for source in sorted(set(sources)):
        here = np.array([name == source for name in sources])
        measured[f"{source}: right, left out"] = float(wanted[here].mean())
        measured[f"{source}: said, left out"] = float(said[here].mean())
        sure = here & (said >= 0.5)
        measured[f"{source}: right where at least 50 % is said"] = float(wanted[sure].mean()) if sure.any() else 0.0
        measured[f"{source}: share where at least 50 % is said"] = float(sure.sum() / here.sum())
    return confidence, measured


DECAY = 1e-2
"""Holds the weights of the confidence small: some hundred questions of each source must not be learned by heart."""


def _weights(
    rows: NDArray[np.float64], wanted: NDArray[np.float64], sources: Sequence[str], *, decay: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights with the intercept last, each source counting the same; and what is said of each row by others that have
    not seen its source."""

    def fit(kept: NDArray[np.bool_]) -> NDArray[np.float64]:
        names = [source for source, keep in zip(sources, kept, strict=True) if keep]
        counts = np.array([1.0 / names.count(name) for name in names])
        found, intercept = fit_logistic(
            rows[kept], wanted[kept], decay=decay, counts=counts * len(counts) / counts.sum()
        )
        return np.append(found, intercept)

    said = np.zeros(len(wanted))
    for source in set(sources):
        here = np.array([name == source for name in sources])
        weights = fit(~here)
        said[here] = 1 / (1 + np.exp(-(rows[here] @ weights[:-1] + weights[-1])))
    return fit(np.ones(len(wanted), bool)), said


ROLE = Role(TableReaderSettings, train_table_reader)

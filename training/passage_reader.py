"""The recipe of the reader of passages (`helios.reading.passages`), a low-rank adapter of the shared encoder.

    helios train passages --recipe passages --out DIR "before=[ottqa.jsonl]" "lessons=[written.jsonl]" \\
        "indexes=[INDEX]" "questions=[questions.jsonl]"

A lesson is a question with texts that answer it, each with the characters of the answer, and texts that do not
(`training.passage_lessons` makes them). Whether a text answers is one loss, where the answer begins and ends another.
The confidence is fitted to what the model answers in indexes whose texts it did not learn from.
"""

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from helios.config import Section
from helios.engine import Engine
from helios.evaluation.folders import is_right, read_folder_questions
from helios.models.card import ModelCard, data_file, write_card
from helios.reading.passages import (
    FEATURES,
    FILE,
    HEADS,
    PassageReader,
    SpanFinder,
    TokenisedWindow,
    WindowTokeniser,
)
from helios.reading.passages import ROLE as CARD_ROLE
from training.adapted import AdaptedRecipe, batches_of_like
from training.distributed import world
from training.errors import TrainingError
from training.log import LogRow
from training.recipes import Role
from training.regression import fit_logistic
from training.settings import TrainSettings
from training.trainer import train

SURE = 0.5
OUTSIDE = -1e4
"""Logit of what is no token of the text."""
LEAST_CHANCE = 1e-30


class PassageReaderSettings(Section):
    """Everything that the result depends on beside the code."""

    lessons: tuple[Path, ...] = ()
    before: tuple[Path, ...] = ()
    """Many lessons of other kinds, which are learned first, as `first` says."""
    first: TrainSettings = TrainSettings(
        epochs=1, learning_rate=1e-3, schedule="linear", evaluate_first=False, warmup=0.03
    )
    first_batch: int = Field(default=256, ge=1)
    start: Path | None = None
    """Weights of an earlier run to go on from, of the same rank and scale."""
    indexes: tuple[Path, ...] = ()
    """Indexes that the confidence is fitted on; none of their texts is in a lesson."""
    questions: tuple[Path, ...] = ()
    """Questions about each of them, in the layout of the bench of folders."""
    decay: float = Field(default=1e-3, gt=0.0)
    """Holds the weights of the confidence small."""
    negatives: int = Field(default=1, ge=0)
    rank: int = Field(default=32, ge=1)
    scale: float = 2.0
    batch: int = Field(default=16, ge=1)
    head_scale: float = Field(default=2.0, gt=0.0)
    """The heads learn so many times faster than the adapter."""
    train: TrainSettings = TrainSettings(
        epochs=3, learning_rate=3e-4, schedule="linear", evaluate_first=False, warmup=0.05
    )


@dataclass(frozen=True, slots=True)
class PassageLesson:
    """A question, (text, answers' characters) that answer it, and texts that do not."""

    question: str
    right: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    wrong: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> list["PassageLesson"]:
        """Those of a file of JSON lines."""
        found = []
        for line in path.read_bytes().splitlines():
            record = json.loads(line)
            right = tuple((text, tuple((start, end) for start, end in spans)) for text, spans in record["right"])
            found.append(cls(record["question"], right, tuple(record["wrong"])))
        return found


@dataclass(frozen=True, slots=True)
class Said:
    """What the model says in answer to a question: features, whether it is right, and of which source."""

    source: str
    features: tuple[float, ...]
    right: bool


def train_passage_reader(
    settings: PassageReaderSettings, out: Path, *, device: Any = "cpu",
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> Mapping[str, float]:  # fmt: skip
    """Train, fit the confidence, and write adapter and card; returns measures of sources that the confidence left out.

    Raises TrainingError without lessons or without questions for the confidence.
    """
    started = time.monotonic()
    if not settings.lessons or not settings.indexes or len(settings.indexes) != len(settings.questions):
        raise TrainingError("set lessons, and indexes with a file of questions each: what to learn and to fit on")
    recipe = PassageRecipe(settings, device=device)
    if settings.start is not None:
        recipe.begin_from(settings.start)
    with world(torch.device(device)) as here:  # one for both runs: processes that have parted do not meet again
        for name, paths, how, batch in (
            ("before", settings.before, settings.first, settings.first_batch),
            ("run", settings.lessons, settings.train, settings.batch),
        ):
            if paths:
                recipe.learn([lesson for path in paths for lesson in PassageLesson.read(path)], batch=batch)
                train(recipe, how, out / name, device=device, on_log=on_log)
        if not here.leads:
            return {}
    recipe.save(out / FILE)
    reader = PassageReader(SpanFinder(recipe.base, out / FILE, threads=os.cpu_count() or 1), {}, 0.0)
    pairs = zip(settings.indexes, settings.questions, strict=True)
    said = [one for index, questions in pairs for one in answers_of(reader, index, questions)]
    weights, intercept, scores = fit_confidence(said, decay=settings.decay)
    card = ModelCard(
        name=CARD_ROLE, role=CARD_ROLE, base=f"all-MiniLM-L6-v2 ({recipe.base.sha256[:12]})",
        summary="Reads a question beside a passage: does it answer, and from which word to which.",
        data=tuple(data_file(path) for path in (*settings.before, *settings.lessons, *settings.questions)),
        settings=settings.model_dump(mode="json", exclude={"start", "before", "lessons", "indexes", "questions"}),
        scores=scores, seconds=time.monotonic() - started, values={"weights": weights, "intercept": intercept},
        limits="Mostly English; some questions in German, French, Spanish and Chinese.",
    )  # fmt: skip
    write_card(out, card, weights=[FILE])
    return scores


def answers_of(reader: PassageReader, index: Path, questions: Path) -> Iterator[Said]:
    """The likeliest answer from the passages to each question of a file."""
    with Engine.open(index) as engine:
        for question in read_folder_questions(questions):
            evidence = engine.search(question.question)
            read = reader.passages(question.question, evidence, edges=engine.config.advanced.reading.edges)
            found = reader.answers(question.question, evidence, read)
            if found:
                best = max(found, key=lambda one: one.features[0])
                right = bool(question.items) and is_right(best.text, question.items)
                yield Said(f"{index.name}: {questions.name}", best.features, right)


def fit_confidence(said: Sequence[Said], *, decay: float) -> tuple[dict[str, float], float, dict[str, float]]:
    """Weights by feature and the intercept, with measures of each source by a fit without it."""
    sources = sorted({one.source for one in said})
    if len(sources) < 2:
        raise TrainingError("questions of one source only: the measures need sources to leave out")
    rows, right = np.array([one.features for one in said]), np.array([one.right for one in said], np.float64)
    names = [one.source for one in said]
    counts = np.array([len(said) / len(sources) / names.count(name) for name in names])  # each source counts the same
    scores = {}
    for source in sources:
        here = np.array([name == source for name in names])
        weights, intercept = fit_logistic(rows[~here], right[~here], decay=decay, counts=counts[~here])
        chance = 1 / (1 + np.exp(-(rows[here] @ weights + intercept)))
        sure = chance >= SURE
        scores[f"{source}: right, left out"] = float(right[here].mean())
        scores[f"{source}: said, left out"] = float(chance.mean())
        scores[f"{source}: share where at least 50 % is said"] = float(sure.mean())
        scores[f"{source}: right where at least 50 % is said"] = float(right[here][sure].mean()) if sure.any() else 0.0
    weights, intercept = fit_logistic(rows, right, decay=decay, counts=counts)
    return dict(zip(FEATURES, map(float, weights), strict=True)), float(intercept), scores


@dataclass(frozen=True, slots=True)
class Windows:
    """Texts beside their questions as token numbers, and where the right ones answer: (row, first, last) (n, 3)."""

    ids: list[list[int]]
    bounds: NDArray[np.int64]
    """First token of each text, and the first after it (B, 2)."""
    answers: NDArray[np.int64]


class PassageRecipe(AdaptedRecipe):
    """The model under training (a recipe of `training.trainer`)."""

    def __init__(self, settings: PassageReaderSettings, *, device: torch.device | str = "cpu") -> None:
        super().__init__(
            HEADS, role=CARD_ROLE, rank=settings.rank, scale=settings.scale, head_scale=settings.head_scale,
            seed=settings.train.seed, device=device,
        )  # fmt: skip
        self.settings = settings
        self.tokeniser = WindowTokeniser(self.base)
        self.learn([])

    def learn(self, lessons: Sequence[PassageLesson], *, batch: int = 16) -> None:
        """Take these lessons from now on, so many at a time."""
        self.lessons, self.batch = list(lessons), batch
        texts = [[*one.wrong, *(text for text, _ in one.right)] for one in self.lessons]
        self.lengths = [max(map(len, of_one), default=0) for of_one in texts]

    def batches(self, epoch: int, *, seed: int) -> Sequence[tuple[tuple[int, int], ...]]:
        """Questions with texts of like length together, in a new order, each with a seed for its texts."""
        chance = random.Random(f"{seed} {epoch}")
        batches = batches_of_like(self.lengths, self.batch, chance)
        found = [tuple((at, chance.randrange(2**31)) for at in batch) for batch in batches]
        self._ahead = Ahead(self.windows, found)
        return found

    def size(self, batch: tuple[tuple[int, int], ...]) -> int:
        return len(batch)

    def windows(self, batch: tuple[tuple[int, int], ...]) -> Windows:
        """A text that answers each question and some that do not, the former first."""
        right: list[tuple[str, str, tuple[tuple[int, int], ...]]] = []
        wrong: list[tuple[str, str]] = []
        for number, seed in batch:
            lesson, chance = self.lessons[number], random.Random(seed)
            if lesson.right:
                right.append((lesson.question, *chance.choice(lesson.right)))
            count = self.settings.negatives + (not lesson.right)
            drawn = chance.sample(lesson.wrong, min(count, len(lesson.wrong)))
            wrong += [(lesson.question, text) for text in drawn]
        tokenised = self.tokeniser.pairs([*(one[:2] for one in right), *wrong])
        answers = [
            (row, *pair)
            for row, ((_, _, spans), one) in enumerate(zip(right, tokenised, strict=False))
            for pair in token_pairs(one, spans)
        ]
        bounds = np.array([(one.first, one.first + len(one.spans)) for one in tokenised], np.int64).reshape(-1, 2)
        return Windows([one.ids for one in tokenised], bounds, np.array(answers, np.int64).reshape(-1, 3))

    def step(self, batch: tuple[tuple[int, int], ...]) -> Tensor:
        """Which texts answer, and where the answer begins and ends in those that do."""
        self.model.train()
        windows = self._ahead.take(batch)
        vectors_BLD = self.model.vectors(windows.ids)
        device, count = vectors_BLD.device, len(windows.ids)
        answers_B = self.model.heads["answers"](vectors_BLD[:, 0])[:, 0]
        wanted_B = torch.zeros(count)
        wanted_B[windows.answers[:, 0]] = 1.0
        loss = F.binary_cross_entropy_with_logits(answers_B, wanted_B.to(device), reduction="sum")
        if not len(windows.answers):
            return loss / len(batch)
        places = np.arange(vectors_BLD.shape[1])
        inside_BL = (places >= windows.bounds[:, :1]) & (places < windows.bounds[:, 1:])
        logits_BL2 = self.model.heads["span"](vectors_BLD).float()
        outside_BL1 = torch.from_numpy(~inside_BL)[..., None].to(device)
        chances_BL2 = F.log_softmax(logits_BL2.masked_fill(outside_BL1, OUTSIDE), dim=1)
        rows, starts, ends = torch.from_numpy(windows.answers.T.copy()).to(device)
        each = chances_BL2[rows, starts, 0] + chances_BL2[rows, ends, 1]
        sums_B = torch.zeros(count, device=device).index_add(0, rows, each.exp())
        said_B = sums_B.clamp_min(LEAST_CHANCE).log()
        return (loss - said_B[wanted_B.bool().to(device)].sum()) / len(batch)


class Ahead:
    """What batches need, made by threads a few batches ahead: an accelerator does not wait for the tokeniser."""

    BATCHES = 6

    def __init__(self, make: Callable[[Any], Windows], batches: Sequence[Any]) -> None:
        self._make, self._batches = make, list(batches)
        self._numbers = {batch: at for at, batch in enumerate(self._batches)}
        self._pool = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="windows")
        self._begun: dict[int, Future[Windows]] = {}

    def take(self, batch: Any) -> Windows:
        """Those of a batch; the next ones are begun."""
        here = self._numbers[batch]
        for at in range(here, min(here + self.BATCHES, len(self._batches))):
            if at not in self._begun:
                self._begun[at] = self._pool.submit(self._make, self._batches[at])
        return self._begun.pop(here).result()


def token_pairs(window: TokenisedWindow, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """First and last token in the sequence of characters [start, end); those that were cut off are left out."""
    found = []
    for start, end in spans:
        first = int(np.searchsorted(window.spans[:, 1], start, side="right"))
        last = int(np.searchsorted(window.spans[:, 0], end, side="left")) - 1
        if first <= last < len(window.spans) and window.spans[last, 1] >= end:
            found.append((window.first + first, window.first + last))
    return found


ROLE = Role(PassageReaderSettings, train_passage_reader)

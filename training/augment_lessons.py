"""What the recipe of augmented questions learns from: tasks of public data sets, split, with wrong documents mined."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.augment.encoding import AttributeVectors
from helios.config import Section
from helios.evaluation.augment.command import read_task, splits_of
from helios.evaluation.augment.expansions import Expansion, expanded
from helios.evaluation.augment.options import TaskName
from helios.evaluation.augment.ranking import encode_all, warm
from helios.evaluation.augment.tasks import RowQuestion, Split, SplitBy, Task
from helios.evaluation.baselines import Bm25Texts
from training.errors import TrainingError

FloatArray = NDArray[np.float32]
QUESTION = "question"
"""The first of the parts that are weighted: the question itself."""


class AugmentData(Section):
    """Which questions are learned from; those of the test part never are."""

    tables: tuple[Path, ...] = ()
    """Data sets of one layout, such as several sites; their questions are learned from together."""
    task: TaskName = TaskName.ANY_ANSWER
    by: SplitBy = SplitBy.USER
    folds: int | None = Field(default=None, ge=2)
    """With `by: user`: one model for each fold, in folders `fold-0`, `fold-1` and so on."""
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    later: bool = False
    """Also columns that are later than the question, as in the paper's Any Answer."""
    cap: int = Field(default=200, ge=1)
    seed: int = 0
    """Of the split; `helios eval augment` must be given the same."""


@dataclass(frozen=True, slots=True)
class Site:
    """One data set as vectors. N questions, P parts (the question first, then columns), M documents, D dimension."""

    name: str
    questions: tuple[RowQuestion, ...]
    parts_NPD: FloatArray
    """The question's vector, and the mean of every column; zero where a column is empty."""
    texts: tuple[str, ...]
    """The documents."""
    documents_MD: FloatArray
    gold: tuple[tuple[int, ...], ...]
    wrong: tuple[tuple[int, ...], ...]
    """For each question the best documents that are not relevant, best first, by the untrained encoder."""
    train: tuple[int, ...]
    validation: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A task with its splits and its questions as they are asked."""

    name: str
    task: Task
    splits: tuple[Split, ...]


def read_tasks(data: AugmentData, expansion: Expansion | None) -> list[ReadTask]:
    """Every data set with its splits; TrainingError for no data, or a task that the folds do not fit.

    With an `expansion` a question is its text with words of the context appended, and has no context.
    """
    if not data.tables:
        raise TrainingError("an augmenter learns from questions that are rows of a database: set data.tables")
    found = []
    for path in data.tables:
        task = read_task(path, data.task, later=data.later, cap=data.cap, seed=data.seed)
        splits = splits_of(task, data.by, folds_count=data.folds, shares=data.shares, seed=data.seed)
        found.append(ReadTask(path.name.partition(".")[0], as_asked(task, expansion), tuple(splits)))
    return found


def as_asked(task: Task, expansion: Expansion | None) -> Task:
    """A task whose questions are expanded in words instead of by their context."""
    if expansion is None:
        return task
    documents = Bm25Texts(list(task.documents.values()))
    questions = tuple(
        RowQuestion(
            one.question_id, expanded(task, one, expansion, documents), one.user_id, one.time, {}, one.qrels, one.part
        )
        for one in task.questions
    )
    return Task(task.name, (), questions, task.documents, task.measures)


def make_site(
    read: ReadTask, fold: int, vectors: AttributeVectors, columns: Sequence[str], *, pool: int,
    advance: Callable[[str], None] = lambda text: None,
) -> Site:  # fmt: skip
    """Encode a data set and mine its wrong documents."""
    task, split = read.task, read.splits[fold]
    advance(read.name)
    documents_MD = encode_all(vectors, list(task.documents.values()))
    warm(task, vectors)
    parts_NPD = np.stack([question_parts(one, columns, vectors) for one in task.questions])
    place = {document: number for number, document in enumerate(task.documents)}
    gold = tuple(tuple(sorted(place[one] for one in q.qrels if one in place)) for q in task.questions)
    number = {one.question_id: at for at, one in enumerate(task.questions)}
    scores_NM = parts_NPD[:, 0] @ documents_MD.T
    wrong = tuple(
        tuple(int(at) for at in np.argsort(-own, kind="stable")[: pool + len(right)] if int(at) not in right)[:pool]
        for own, right in zip(scores_NM, gold, strict=True)
    )
    return Site(
        read.name, task.questions, parts_NPD, tuple(task.documents.values()), documents_MD, gold, wrong,
        tuple(number[one.question_id] for one in split.train if gold[number[one.question_id]]),
        tuple(number[one.question_id] for one in split.validation if gold[number[one.question_id]]),
    )  # fmt: skip


def question_parts(question: RowQuestion, columns: Sequence[str], vectors: AttributeVectors) -> FloatArray:
    """The question and the means of its columns (P, D)."""
    parts = [vectors.of([question.text])[0]]
    for name in columns:
        own = question.context.get(name, ())
        parts.append(vectors.of(own).mean(axis=0) if own else np.zeros(vectors.encoder.dimension, np.float32))
    return np.stack(parts)


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions of one site, and the documents that they are told apart by."""

    site: int
    questions: tuple[int, ...]
    documents: tuple[int, ...]
    """What is right for one of the questions, and mined wrong ones."""


def draw_batches(sites: Sequence[Site], epoch: int, *, size: int, negatives: int, seed: int) -> list[Batch]:
    """Every train question once, in batches of one site each, in an order of the epoch."""
    chance = random.Random(f"{seed} {epoch}")
    found = []
    for number, site in enumerate(sites):
        order = list(site.train)
        chance.shuffle(order)
        for start in range(0, len(order), size):
            own = order[start : start + size]
            documents = {one for question in own for one in site.gold[question]}
            for question in own:
                documents |= set(chance.sample(site.wrong[question], min(negatives, len(site.wrong[question]))))
            found.append(Batch(number, tuple(own), tuple(sorted(documents))))
    chance.shuffle(found)
    return found

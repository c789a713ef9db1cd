"""Lessons of human and synthetic questions, mined once and kept: what rerankers and the encoder learn from.

Each question is searched with a ranking that never saw its table. A table is on one side only: synthetic questions
about held-out tables are left out, and those about tables outside the train split are refused.
"""

import hashlib
import json
import logging
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from helios.engine import Engine
from helios.evaluation.questions import Question, read_questions
from helios.index.durable import sha256_file
from training.crossfit import RANKING_ALONE, CrossFitted
from training.errors import TrainingError
from training.holdout import is_held_out
from training.recipes import DataSettings
from training.reranker_lessons import Lesson, Role, load_lessons, mine, node_lesson, save_lessons

log = logging.getLogger(__name__)

CHUNK = 256
"""Questions that a kill can cost."""


class LessonData(DataSettings):
    """Questions of people and of templates."""

    synthetic: tuple[Path, ...] = ()
    """Question files of `helios train questions`."""
    synthetic_share: float = Field(default=1.0, ge=0.0)
    """Synthetic questions of an epoch for each human one, drawn anew every epoch."""
    held_from: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Where the held-out share of the tables begins: runs with 0 and 0.5, both with held_out=0.5, learn from one half
    each, so that each reads what the other learned from as if it were new."""
    splits: Path | None = None
    """JSON file, split name → table ids: a question about a table outside the split `train` is refused."""


def gather_lessons(data: LessonData, role: Role, path: Path, *, ranking: Path | None, depth: int) -> list[Lesson]:
    """The lessons of a file; where there is none yet they are mined into it, going on where a kill stopped.

    A node reranker can be given the lessons of an edge reranker: their edges' nodes are its lessons.
    """
    if path.is_file():
        lessons = load_lessons(path)
        return _of_nodes(data, lessons) if role == "node" and any(one.of_edges for one in lessons) else lessons
    if data.index is None or not (data.questions or data.synthetic):
        raise TrainingError("no lessons and nothing to mine them from: set data.index and data.questions, or lessons")
    asked = read_asked(data)
    parts = path.with_name(f"{path.stem}.parts")
    parts.mkdir(parents=True, exist_ok=True)
    lessons = []
    with CrossFitted(data.index, ranking, overrides=RANKING_ALONE) as fitted:
        for start in range(0, len(asked), CHUNK):
            chunk = asked[start : start + CHUNK]
            part = parts / f"{start:06d}-{_digest(chunk, data.index, role, ranking, depth)}.parquet"
            if not part.is_file():
                save_lessons(_mined(fitted, chunk, role, depth), part)
            lessons += load_lessons(part)
            log.info("%d of %d questions mined", start + len(chunk), len(asked))
    save_lessons(lessons, path)
    shutil.rmtree(parts)
    return lessons


def _of_nodes(data: LessonData, lessons: Sequence[Lesson]) -> list[Lesson]:
    if data.index is None:
        raise TrainingError("these lessons are of edges: set data.index, which says what the edges' nodes hold")
    with Engine.open(data.index) as engine:
        made = [node_lesson(engine, lesson) for lesson in lessons]
    return [lesson for lesson in made if lesson.positives and lesson.negatives]


def read_asked(data: LessonData) -> list[tuple[Question, bool]]:
    """All questions, each with whether it is synthetic; TrainingError for a table outside the train split."""
    human = [question for file in data.questions for question in read_questions(file)]
    made = [question for file in data.synthetic for question in read_questions(file)]
    _check_tables([*human, *made], data.splits)
    kept = [question for question in made if not _is_apart(question.table_id or "", data)]
    log.info("%d synthetic questions about held-out tables are left out", len(made) - len(kept))
    return [*((question, False) for question in human), *((question, True) for question in kept)]


def divide(lessons: Sequence[Lesson], data: LessonData) -> tuple[list[Lesson], list[Lesson]]:
    """(to learn from, to measure on): by table, and only human questions measure; TrainingError if none is to learn."""
    sides: tuple[list[Lesson], list[Lesson]] = ([], [])
    for lesson in lessons:
        is_apart = _is_apart(lesson.table, data)
        if not (is_apart and lesson.synthetic):
            sides[is_apart].append(lesson)
    if not sides[0]:
        raise TrainingError(f"none of the {len(lessons)} lessons is for training: are there questions with gold?")
    return sides


def _is_apart(table: str, data: LessonData) -> bool:
    return is_held_out(table, share=data.held_out, start=data.held_from)


def epoch_order(lessons: Sequence[Lesson], chance: random.Random, *, synthetic_share: float) -> list[int]:
    """Numbers of an epoch's lessons in a random order: all human ones, and a draw of the synthetic ones."""
    human = [number for number, lesson in enumerate(lessons) if not lesson.synthetic]
    made = [number for number, lesson in enumerate(lessons) if lesson.synthetic]
    count = min(len(made), round(synthetic_share * len(human)) if human else len(made))
    order = human + chance.sample(made, count)
    chance.shuffle(order)
    return order


def _mined(fitted: CrossFitted, asked: Sequence[tuple[Question, bool]], role: Role, depth: int) -> list[Lesson]:
    return [
        replace(lesson, synthetic=is_synthetic)
        for question, is_synthetic in asked
        for lesson in mine(fitted.engine, [question], role, depth=depth)
    ]


def _check_tables(questions: Sequence[Question], splits: Path | None) -> None:
    if splits is None:
        return
    try:
        train = set(json.loads(splits.read_text(encoding="utf-8"))["train"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{splits}: no readable split 'train' ({error!r})") from error
    strange = [question for question in questions if question.table_id not in train]
    if strange:
        raise TrainingError(
            f"{len(strange)} questions are about tables outside the train split, "
            f"the first is {strange[0].question_id} about {strange[0].table_id}"
        )


def _digest(
    asked: Sequence[tuple[Question, bool]], index: Path, role: Role, ranking: Path | None, depth: int
) -> str:  # fmt: skip
    """A hash of everything that the lessons of a chunk depend on: a part of other settings is not taken for it."""
    files = [index / "manifest.json", *([ranking / "card.json"] if ranking else [])]
    origin = [role, str(depth), *(sha256_file(file) for file in files if file.is_file())]
    return hashlib.sha256("\n".join([*origin, *map(repr, asked)]).encode()).hexdigest()[:16]

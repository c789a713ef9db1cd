"""What a task of DAQu is: questions that are rows, what a database says of them, and the documents they look for."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b

from helios.errors import EvaluationError

ROW, USER, LATER, WHOLE = "row", "user", "later", "whole"
"""Where a column comes from: the question's own row, what its author leads to, what came after the question, or the row
as one text, which trained weights may use."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the context: its name, what it leads through (`row`, `user`, `later`), and what it is in words."""

    name: str
    group: str
    about: str


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A question, the time and the user of its row, its context by column, and the documents that are relevant."""

    question_id: str
    text: str
    user_id: str | None
    time: datetime | None
    context: Mapping[str, tuple[str, ...]]
    """Attributes by column; nothing in it is later than the question."""
    qrels: Mapping[str, int]
    part: str = ""
    """`train`, `validation` or `test` where the data set's own rules decide it."""


@dataclass(frozen=True, slots=True)
class Task:
    """The questions of a task over one data set."""

    name: str
    columns: tuple[Column, ...]
    questions: tuple[RowQuestion, ...]
    documents: Mapping[str, str]
    measures: tuple[str, ...]
    """Names of the measures that the paper reports for the task; the first one decides."""

    def without(self, *names: str) -> "Task":
        """The task with some columns left out of every context."""
        questions = tuple(
            replace(one, context={name: own for name, own in one.context.items() if name not in names})
            for one in self.questions
        )
        return replace(self, columns=tuple(c for c in self.columns if c.name not in names), questions=questions)

    def capped(self, count: int, *, seed: int = 0) -> "Task":
        """The task with at most so many attributes in a column, drawn by the seed and the question alone."""
        questions = tuple(
            replace(
                one,
                context={
                    name: tuple(random.Random(f"{seed} {one.question_id} {name}").sample(own, min(count, len(own))))
                    for name, own in one.context.items()
                },
            )
            for one in self.questions
        )
        return replace(self, questions=questions)


class SplitBy(StrEnum):
    """What keeps the splits apart."""

    USER = "user"
    TIME = "time"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Split:
    """Questions by what they are for."""

    train: tuple[RowQuestion, ...]
    validation: tuple[RowQuestion, ...]
    test: tuple[RowQuestion, ...]


Shares = tuple[float, float, float]
PAPER_SHARES: Shares = (0.8, 0.1, 0.1)


def split(questions: Sequence[RowQuestion], by: SplitBy, *, shares: Shares = PAPER_SHARES, seed: int = 0) -> Split:
    """One split: users disjoint, or later questions for later parts, or as the task itself says.

    EvaluationError where a part is empty, or a question has no time to sort it by.
    """
    if by is SplitBy.GIVEN:
        parts = {name: tuple(q for q in questions if q.part == name) for name in ("train", "validation", "test")}
        return _checked(Split(parts["train"], parts["validation"], parts["test"]), by)
    first, second = shares[0] / sum(shares), (shares[0] + shares[1]) / sum(shares)
    if by is SplitBy.USER:
        users = user_places(questions, seed=seed)
        return _checked(_parted(questions, lambda one: users[user_of(one)], first, second), by)
    undated = next((one for one in questions if one.time is None), None)
    if undated is not None:
        raise EvaluationError(f"question {undated.question_id}: its row has no time; split by user instead")
    order = sorted(questions, key=lambda one: (one.time, one.question_id))
    place = {one.question_id: number / len(order) for number, one in enumerate(order)}
    return _checked(_parted(order, lambda one: place[one.question_id], first, second), by)


def folds(questions: Sequence[RowQuestion], count: int, *, validation: float = 0.1, seed: int = 0) -> list[Split]:
    """Splits by user whose test parts together are all questions, each once; every user is in one part of a split.

    EvaluationError for fewer than two folds, or where a part is empty.
    """
    if count < 2:
        raise EvaluationError(f"{count} folds: expected at least 2")
    users, found = user_places(questions, seed=seed), []
    for number in range(count):
        rest = [one for one in questions if int(users[user_of(one)] * count) != number]
        test = tuple(one for one in questions if int(users[user_of(one)] * count) == number)
        places = user_places(rest, seed=seed + 1)
        parts = _parted(rest, lambda one, places=places: places[user_of(one)], 1.0 - validation, 1.0)  # type: ignore[misc]
        found.append(_checked(Split(parts.train, parts.validation, test), SplitBy.USER))
    return found


def user_of(question: RowQuestion) -> str:
    """Whose question it is; one without a user is a user of its own."""
    return f"user {question.user_id}" if question.user_id is not None else f"question {question.question_id}"


def user_places(questions: Iterable[RowQuestion], *, seed: int) -> dict[str, float]:
    """The users in an order that the seed decides: a number from 0 to below 1 for each."""
    users = {user_of(one) for one in questions}
    order = sorted(users, key=lambda user: (blake2b(f"{seed} {user}".encode(), digest_size=8).digest(), user))
    return {user: number / len(order) for number, user in enumerate(order)}


def _parted(
    questions: Iterable[RowQuestion], place: Callable[[RowQuestion], float], first: float, second: float
) -> Split:  # fmt: skip
    parts: tuple[list[RowQuestion], list[RowQuestion], list[RowQuestion]] = ([], [], [])
    for one in questions:
        share = place(one)
        parts[0 if share < first else 1 if share < second else 2].append(one)
    return Split(tuple(parts[0]), tuple(parts[1]), tuple(parts[2]))


def _checked(found: Split, by: SplitBy) -> Split:
    for name in ("train", "validation", "test"):
        if not getattr(found, name):
            raise EvaluationError(f"split by {by}: no question is for {name}; are there enough questions?")
    return found

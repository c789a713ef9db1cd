"""What a step of the token encoder compares: questions, their right edges, mined wrong ones, and each other's.

An edge of another question counts as wrong only where it is: not where it is gold here too, holds the answer, or
lies in the same table and nothing is known of the answer.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from helios.evaluation.measures import normalise
from helios.index.reader import Corpus
from helios.models.text import passage_text, segment_text
from training.reranker_lessons import Lesson, Pair


@dataclass(frozen=True, slots=True)
class Draw:
    """A question of a batch by its number, a right edge and wrong ones."""

    lesson: int
    positive: Pair
    negatives: tuple[Pair, ...]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The question's own list, the right edge first."""
        return self.positive, *self.negatives


@dataclass(frozen=True, slots=True)
class Contrast:
    """One batch: the different edges, which of them is each question's right one, and which do not count for it."""

    edges: tuple[Pair, ...]
    target_B: Tensor
    ignored_BE: Tensor


def draw(lessons: Sequence[Lesson], number: int, chance: random.Random, *, negatives: int, pool: int) -> Draw:
    """A right edge, and wrong ones of the best `pool`, the better ones more often."""
    lesson = lessons[number]
    wrong = list(lesson.negatives[:pool])
    chosen = []
    for _ in range(min(negatives, len(wrong))):
        (at,) = chance.choices(range(len(wrong)), [1.0 / (rank + 5) for rank in range(len(wrong))])
        chosen.append(wrong.pop(at))
    return Draw(number, chance.choice(right_edges(lesson)), tuple(chosen))


def right_edges(lesson: Lesson) -> tuple[Pair, ...]:
    """One edge for every gold edge: the best found one, else the gold edge itself.

    A gold row alone is met by all its edges; the best of them says most of what was meant.
    """
    best: dict[int, Pair] = {}
    for candidate in lesson.candidates:
        if candidate.gold >= 0:
            best.setdefault(candidate.gold, candidate.pair)
    return (*best.values(), *lesson.missed)


def contrast(lessons: Sequence[Lesson], draws: Sequence[Draw], corpus: Corpus) -> Contrast:
    """Every question against all edges of the batch."""
    column = {pair: i for i, pair in enumerate(dict.fromkeys(pair for one in draws for pair in one.pairs))}
    words = {pair: f" {normalise(edge_text(corpus, pair))} " for pair in column}
    tables = {pair: table_of(corpus, pair) for pair in column}
    ignored = torch.zeros(len(draws), len(column), dtype=torch.bool)
    for row, one in enumerate(draws):
        lesson = lessons[one.lesson]
        right, own = set(lesson.positives), set(one.pairs)
        neither = {candidate.pair for candidate in lesson.candidates if candidate.has_answer}
        answers = [answer for answer in map(normalise, lesson.answers) if answer]
        for pair, at in column.items():
            if pair in right or pair in neither:
                ignored[row, at] = pair != one.positive
            elif pair not in own:
                holds = any(f" {answer} " in words[pair] for answer in answers)
                ignored[row, at] = holds if answers else tables[pair] == lesson.table
    target = torch.tensor([column[one.positive] for one in draws])
    return Contrast(tuple(column), target, ignored)


def edge_text(corpus: Corpus, pair: Pair) -> str:
    """Row and passage as one text, as a joint encoder reads them."""
    segment, passage = pair
    parts = [segment_text(corpus.segment(segment)).text] if segment >= 0 else []
    parts += [passage_text(corpus.passages[passage]).text] if passage >= 0 else []
    return ". ".join(parts)


def table_of(corpus: Corpus, pair: Pair) -> str | None:
    """The table of an edge's row."""
    return corpus.segment_id(pair[0]).table_id if pair[0] >= 0 else None

"""What a reranker is, and how its batches keep to a deadline."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
WINDOWS = 4
"""A list is cut into so many runs a lane, best first; texts are sorted by length inside a run alone."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Relevance of n texts as logits: values (n), and which of them were reached before the deadline (n)."""

    values: FloatArray
    """0 where `done` is False."""
    done: NDArray[np.bool_]


class Reranker(Protocol):
    """Reads a question and a text together; the score is a logit, comparable between texts of one question."""

    @property
    def max_tokens(self) -> int:
        """Tokens of question and text together that it reads; the rest is cut off."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text on its own, without special ones."""

    def score(self, question: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Score texts, the first ones first; `deadline` is an instant of time.monotonic()."""


def batches_of(lengths: Sequence[int], *, batch_tokens: int, lanes: int = 1) -> list[IntArray]:
    """Numbers of texts in batches of about `batch_tokens` padded tokens, like lengths together, first texts first.

    Short lists give every lane something to do.
    """
    tokens = np.asarray(lengths, np.int64)
    limit = max(1, min(batch_tokens, -(-int(tokens.sum()) // max(1, lanes)) if len(tokens) else 1))
    window = max(1, WINDOWS * lanes * limit // max(1, int(tokens.max(initial=1))))
    batches = []
    for first in range(0, len(tokens), window):
        numbers = np.arange(first, min(len(tokens), first + window))
        order = numbers[np.argsort(-tokens[numbers], kind="stable")]
        start = 0
        while start < len(order):
            count = max(1, limit // max(1, int(tokens[order[start]])))
            batches.append(order[start : start + count])
            start += count
    return batches


def score_batches(
    batches: Sequence[IntArray],
    lengths: Sequence[int],
    forward: Callable[[IntArray], FloatArray],
    *,
    deadline: float | None = None,
    pool: ThreadPoolExecutor | None = None,
) -> Scores:
    """Run batches in order until the deadline; one that would probably end after it is not begun."""
    values, done = np.zeros(len(lengths), np.float32), np.zeros(len(lengths), bool)
    tokens = np.asarray(lengths, np.int64)
    clock = _Clock(deadline)

    def run(batch: IntArray) -> None:
        size = int(tokens[batch].max()) * len(batch)
        if clock.allows(size):
            started = time.monotonic()
            values[batch] = forward(batch)
            done[batch] = True
            clock.note(size, time.monotonic() - started)

    if pool is None:
        for batch in batches:
            run(batch)
    else:
        list(pool.map(run, batches))
    return Scores(values, done)


class _Clock:
    """Knows what a padded token cost so far, and whether the next batch ends in time."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline
        self._lock = Lock()
        self._tokens = 0
        self._seconds = 0.0

    def allows(self, tokens: int) -> bool:
        if self.deadline is None:
            return True
        with self._lock:
            expected = tokens * self._seconds / self._tokens if self._tokens else 0.0
        return time.monotonic() + expected < self.deadline

    def note(self, tokens: int, seconds: float) -> None:
        with self._lock:
            self._tokens += tokens
            self._seconds += seconds

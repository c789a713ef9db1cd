"""A small model that reads a question beside the best answers of all readers at once: which one is it, or none?

    what do we pay for a gold service? | 85 : price , service gold ; prices | 21 : text , not fetched within 21 days ...

Every reader weighs its own answers by itself. This is the shared encoder with an adapter; an answer is read from the
vectors of its tokens and of the separator after them.

Shape legend: A answers, L tokens, D hidden size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.models.base import BaseModel
from helios.models.glossary import language_of
from helios.models.headed import HeadedEncoder, PlainTokenizer
from helios.models.routes import Runtime

FloatArray = NDArray[np.float32]
FILE = "rivals.safetensors"
ROLE = "answer-rivals"
RIVALS = 8
"""Answers that are read side by side, if they fit."""
MAX_TOKENS = 448
QUESTION_TOKENS, ANSWER_TOKENS, DONE_TOKENS, WHERE_TOKENS, TITLE_TOKENS = 48, 12, 12, 26, 6
SHOWN = 40
"""Characters of a cell that are shown; an answer shows three times as many."""
AROUND = 50
"""Characters to each side of an answer in a text that are shown, and the rest of a word that they cut; half of them
where words are not parted."""
HEADS = {"rival": (2, 1)}


@dataclass(frozen=True, slots=True)
class Rival:
    """An answer as the model reads it."""

    answer: str
    done: str
    """Its column, what is computed, or that it stands in a text."""
    where: str
    """What selects its rows, or the words around it."""
    title: str

    @classmethod
    def in_text(cls, text: str, start: int, end: int, *, title: str) -> "Rival":
        """Characters [start, end) of a sentence, with the words around them."""
        return cls(text[start:end][: 3 * SHOWN], "text", _around(text, start, end), title)


def _around(text: str, start: int, end: int) -> str:
    """What stands near some characters, in whole words."""
    is_spaced = text.count(" ") * 15 > len(text)  # Chinese is not
    near = AROUND if is_spaced else AROUND // 2
    first, last = max(0, start - near), min(len(text), end + near)
    if is_spaced:
        while first > 0 and not text[first - 1].isspace():
            first -= 1
        while last < len(text) and not text[last].isspace():
            last += 1
    return " ".join(text[first:last].split())


class RivalTokeniser:
    """A question and its answers as token numbers; threads may share it."""

    def __init__(self, base: BaseModel) -> None:
        self._plain = PlainTokenizer(base)

    def of(self, question: str, rivals: Sequence[Rival]) -> tuple[list[int], list[tuple[int, int]]]:
        """Token numbers, and (first, separator) of each answer that fits."""
        said = " ; ".join(f"{one.answer} {one.done} {one.where} {one.title}" for one in rivals)
        named, end = partial(self._plain.ids, language=language_of(said)), self._plain.separator
        ids = [self._plain.opening, *self._plain.ids(question, QUESTION_TOKENS), end]
        places = []
        for rival in rivals:
            title = named(rival.title.translate(_IN_TITLE), TITLE_TOKENS)
            shown = [
                *named(rival.answer, ANSWER_TOKENS), *named(f": {rival.done.translate(_IN_TITLE)}", DONE_TOKENS),
                *named(f", {rival.where}" if rival.where else "", WHERE_TOKENS), *named(";", 1), *title,
            ]  # fmt: skip
            if len(ids) + len(shown) + 1 > MAX_TOKENS:
                break
            places.append((len(ids), len(ids) + len(shown)))
            ids += [*shown, end]
        return ids, places


_IN_TITLE = str.maketrans("/_#", "   ")
"""Signs that part words in the names of files and columns."""


class RivalReader:
    """The model with its head; threads may share it. The weights are read on first use."""

    def __init__(self, base: BaseModel, weights: Path, *, runtime: Runtime = "auto", threads: int = 1) -> None:
        self._encoder = HeadedEncoder(base, weights, HEADS, runtime=runtime, threads=threads)
        self._tokeniser = RivalTokeniser(base)

    def read(self, question: str, rivals: Sequence[Rival]) -> FloatArray:
        """Log-odds (A) of the answers that fit, each against "none of them"; ModelError for unusable weights."""
        ids, places = self._tokeniser.of(question, rivals)
        if not places:
            return np.zeros(0, np.float32)
        (vectors_LD,) = self._encoder.encode([ids])
        read_A2D = [np.concatenate([vectors_LD[first:end].mean(axis=0), vectors_LD[end]]) for first, end in places]
        logits: FloatArray = self._encoder.head("rival", np.array(read_A2D, np.float32))[:, 0]
        return logits

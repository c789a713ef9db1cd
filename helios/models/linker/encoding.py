"""Tables as token arrays: distinct cells with their mentions, the titles' words, the headers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from helios.models.linker.arrays import Cells
from helios.models.linker.recognition import RecognisedCell, Recogniser
from helios.models.linker.text import tokens
from helios.types import Table

Array = npt.NDArray[Any]
INTRO_TOKENS = 200


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """One table for the kernels. U distinct texts, C non-empty cells in row-major order."""

    cells: Cells
    texts: tuple[str, ...]
    recognised: tuple[RecognisedCell, ...]
    rows: Array
    columns: Array
    texts_of_cells: Array
    context: Array
    """Distinct known tokens of title and section."""
    intro: Array
    """Distinct known tokens of the introduction's first INTRO_TOKENS."""
    header_offsets: Array
    header_tokens: Array


class TableEncoder:
    """Turns tables into arrays over one vocabulary, ."""

    def __init__(self, vocabulary: dict[str, int], recogniser: Recogniser) -> None:
        self._vocabulary = vocabulary
        self._recogniser = recogniser

    def encode(self, table: Table) -> EncodedTable:
        """Encode one table; cells without any letter or digit are left out."""
        texts: dict[str, int] = {}
        places: list[tuple[int, int, int]] = []
        for row, values in enumerate(table.rows):
            for column, text in enumerate(values):
                if text and any(map(str.isalnum, text)):
                    places.append((row, column, texts.setdefault(text, len(texts))))
        recognised = tuple(self._recogniser.recognise(texts))
        columns = np.array(places, dtype=np.int32).reshape(-1, 3)
        offsets, ids = _ragged([self._known(tokens(name)) for name in table.header])
        return EncodedTable(
            self._cells(recognised), tuple(texts), recognised, columns[:, 0], columns[:, 1], columns[:, 2],
            self._distinct(tokens(f"{table.title} {table.section}")),
            self._distinct(tokens(table.intro)[:INTRO_TOKENS]),
            offsets, ids,
        )  # fmt: skip

    def _distinct(self, words: Iterable[str]) -> Array:
        return np.array(sorted(set(self._known(words))), dtype=np.int32)

    def _known(self, words: Iterable[str]) -> list[int]:
        return [number for word in words if (number := self._vocabulary.get(word, -1)) >= 0]

    def _cells(self, recognised: Sequence[RecognisedCell]) -> Cells:
        get = self._vocabulary.get
        token_offsets, ids = _ragged([[get(word, -1) for word in cell.words] for cell in recognised])
        _, capitals = _ragged([cell.capitals for cell in recognised])
        mention_offsets, first = _ragged([[span[0] for span in cell.mentions] for cell in recognised])
        _, last = _ragged([[span[1] for span in cell.mentions] for cell in recognised])
        return Cells(token_offsets, ids, capitals, mention_offsets, first, last)


def _ragged(lists: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(values) for values in lists], out=offsets[1:])
    return offsets, np.array([value for values in lists for value in values], dtype=np.int32)

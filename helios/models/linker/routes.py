"""Further candidate routes, for mentions that neither a title key nor an alias spells: fuzzy and dense."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from helios.models.encoder import MiniLMEncoder
from helios.models.linker.arrays import Extra
from helios.models.linker.dense import DenseTitles
from helios.models.linker.encoding import EncodedTable
from helios.models.linker.fuzzy import FuzzyTitles
from helios.types import Passage, Table

Array = npt.NDArray[Any]
DEFINITION_WORDS = 10
"""First words of a passage's text that stand beside its title."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Which further routes a prepared folder has."""

    fuzzy: bool = False
    dense: bool = False

    def build(self, passages: Iterable[Passage], workdir: Path) -> None:
        """Index passages, in number order, for every route that is on; once over `passages` for each."""
        if self.fuzzy:
            FuzzyTitles.build((passage.title for passage in passages), workdir / "fuzzy")
        if self.dense:
            DenseTitles.build(list(map(definition, passages)), workdir / "dense", MiniLMEncoder.load())

    def open(self, workdir: Path) -> "ExtraRoutes | None":
        """The routes that `build` made; None if all are off."""
        if not (self.fuzzy or self.dense):
            return None
        fuzzy = FuzzyTitles.open(workdir / "fuzzy") if self.fuzzy else None
        dense = DenseTitles.open(workdir / "dense", MiniLMEncoder.load(threads=1)) if self.dense else None
        return ExtraRoutes(fuzzy, dense)


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention that has to be found otherwise: its distinct cell, its text, and the column it is first in."""

    cell: int
    text: str
    column: int


class ExtraRoutes:
    """The open routes."""

    def __init__(self, fuzzy: FuzzyTitles | None, dense: DenseTitles | None) -> None:
        self._fuzzy = fuzzy
        self._dense = dense

    def find(self, table: Table, encoded: EncodedTable, unresolved: Array) -> Extra:
        """Candidates of the distinct cells, given which mentions (bool, in the cells' order) are unresolved."""
        mentions = list(_mentions(encoded, unresolved))
        found: list[Array] = []
        owners: list[int] = []
        if self._fuzzy is not None:
            found += [self._fuzzy.find(mention.text) for mention in mentions]
            owners += [mention.cell for mention in mentions]
        if self._dense is not None:
            found += self._dense.find([in_context(table, mention) for mention in mentions])
            owners += [mention.cell for mention in mentions]
        return _by_cell(owners, found, len(encoded.texts))


def definition(passage: Passage) -> str:
    """A passage's title and first words, as the dense route reads it."""
    words = passage.text.split(maxsplit=DEFINITION_WORDS)[:DEFINITION_WORDS]
    return " : ".join(filter(None, (passage.title, " ".join(words))))


def in_context(table: Table, mention: Mention) -> str:
    """The mention with its header and its table's title, as the dense route reads it."""
    return f"{mention.text} : {table.header[mention.column]} , {table.title}"


def _mentions(encoded: EncodedTable, unresolved: Array) -> Iterator[Mention]:
    column_of = np.zeros(len(encoded.texts), dtype=np.int64)
    column_of[encoded.texts_of_cells[::-1]] = encoded.columns[::-1]
    at = 0
    for cell, recognised in enumerate(encoded.recognised):
        for first, last in recognised.mentions:
            if unresolved[at]:
                start, end = recognised.starts[first], recognised.ends[last - 1]
                yield Mention(cell, encoded.texts[cell][start:end], int(column_of[cell]))
            at += 1


def _by_cell(owners: Sequence[int], found: Sequence[Array], cells: int) -> Extra:
    lengths = [len(passages) for passages in found]
    cell_of = np.repeat(np.array(owners, dtype=np.int64), np.array(lengths, dtype=np.int64))
    order = np.argsort(cell_of, kind="stable")
    offsets = np.zeros(cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(cell_of, minlength=cells), out=offsets[1:])
    return Extra(offsets, np.concatenate([np.zeros(0, dtype=np.int32), *found])[order])

"""A small model that reads a question beside the best answers of programs, all at once: which one is it, or none?

    what do we pay for a gold service? | 85 : price , service gold | 3 : number of rows , level gold | ...

The trees weigh each program by itself and read no value. This is the shared encoder with an adapter; an answer is read
from the vectors of its tokens and of the separator after them.

Shape legend: A answers, L tokens, D hidden size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.models.base import BaseModel
from helios.models.headed import HeadedEncoder, PlainTokenizer
from helios.models.routes import Runtime
from helios.reading.tables.headers import spelled_out
from helios.reading.tables.matching import Match
from helios.reading.tables.programs import SAID, Op, Program, Result

FloatArray = NDArray[np.float32]
FILE = "rivals.safetensors"
ROLE = "table-rivals"
RIVALS = 8
"""Answers that are read side by side."""
MAX_TOKENS = 400
QUESTION_TOKENS, ANSWER_TOKENS, DONE_TOKENS, WHERE_TOKENS, TITLE_TOKENS = 48, 10, 12, 16, 6
SHOWN = 40
"""Characters of a cell that are shown."""
NAMING = 2
"""Cells that name a row which is chosen by the evidence."""
HEADS = {"rival": (2, 1)}


@dataclass(frozen=True, slots=True)
class Rival:
    """An answer as the model reads it."""

    answer: str
    done: str
    where: str
    title: str

    @classmethod
    def of(cls, program: Program, result: Result) -> "Rival":
        """The answer of a program, and how it comes about."""
        table = program.sheet.table
        title = " ".join(dict.fromkeys(filter(None, (Path(table.source).stem, table.title, table.section))))
        where = " , ".join(_said(program, match) for match in program.matches)
        return cls(result.text[: 3 * SHOWN], _done(program), where, title)


def _done(program: Program) -> str:
    columns = program.sheet.columns
    name = spelled_out(columns[program.column].header) if program.column >= 0 else ""
    text = SAID[program.op].format(name=name, how="most" if program.descending else "least")
    if program.order >= 0:
        which = "largest" if program.descending else "smallest"
        of = " sum of" if program.op is Op.TOP_SUM else ""
        place = f" {program.place}." if program.place > 1 else ""
        text += f" of{place} {which}{of} {spelled_out(columns[program.order].header)}"
    return text


def _said(program: Program, match: Match) -> str:
    """A condition in words, with the cell that holds for it."""
    columns = program.sheet.columns
    row = int(np.argmax(match.rows))
    if match.column < 0:
        cells = [(column.header, column.cells[row]) for column in columns if column.cells[row].strip()]
        return " ".join(f"{spelled_out(header)} {cell[:SHOWN]}" for header, cell in cells[:NAMING])
    if match.operator in "=~≈" and match.values == 1:
        return f"{spelled_out(columns[match.column].header)} {columns[match.column].cells[row][:SHOWN]}"
    return match.text if match.operator not in "=~" else f"{columns[match.column].header} {match.text}"


class RivalTokeniser:
    """A question and its answers as token numbers; threads may share it."""

    def __init__(self, base: BaseModel) -> None:
        self._plain = PlainTokenizer(base)

    def of(self, question: str, rivals: Sequence[Rival]) -> tuple[list[int], list[tuple[int, int]]]:
        """Token numbers, and (first, separator) of each answer that fits."""
        named, end = self._plain.ids, self._plain.separator
        ids = [self._plain.opening, *named(question, QUESTION_TOKENS), end]
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

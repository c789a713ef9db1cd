"""What the reader of columns learns from: a question, a table, and which of its columns are meant.

    training/columns/trades/01.json
    {"world": "an organ builder's workshop", "language": "en", "tables": [
      {"title": "Tuning visits 2025", "headers": ["Place", "Booked for", "Actually went", …], "rows": [["Corfe", …], …],
       "questions": [["which day did we turn up at Corfe?", "lookup", "Actually went", null, null, ["Place"]], …],
       "elsewhere": ["how many keyboards has Corfe?", …]}, …]}

A question of such a file is its text, the operation, the column asked for, the column that orders or is compared,
"max" or "min" ("max 2" is the second, "max top 3" the first three in their order), and the columns that select rows;
in some sets also the rows that they select, by their numbers from 1, null for all. Of two that "whether" compares the
one said first stands first, and "min" asks whether it is less. `elsewhere` are questions that it does not answer.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from helios.models.encoder import TokenVectors
from helios.reading.tables.candidates import match_sets
from helios.reading.tables.columns import TableText
from helios.reading.tables.matching import matches_of
from helios.reading.tables.programs import OPS, Op
from helios.reading.tables.reader import table_question
from helios.reading.tables.sheet import Sheet
from helios.types import Table
from training.errors import TrainingError

BESIDE = 0.6
"""Share of the questions that are also asked of another table of their file, which does not answer them."""
NAMED = 0.7
"""Share of the tables from files whose title is said beside the file's name."""
WHOLE_TABLE = (Op.COUNT,)
"""Operations that ask for no column; "whether" asks for one where it compares."""
BY_ANOTHER = (Op.EXTREME, Op.TOP_SUM, Op.DIFFERENCE)
"""Those that order by a column, or compare it."""
ORDERED = (Op.EXTREME, Op.TOP_SUM, Op.MODE)

NO_VECTORS = TokenVectors(np.zeros((0, 0), np.float32), np.zeros(0, np.int32), np.zeros((0, 2), np.int32))


@dataclass(frozen=True, slots=True)
class ColumnLesson:
    """A question and a table, and the programs over it that give the answer; none for a table that does not."""

    question: str
    table: TableText
    programs: tuple[tuple[int, int, int, int, tuple[int, ...]], ...]
    """(operation, column, order column, descending, columns that select rows)"""

    def record(self) -> dict[str, Any]:
        """As JSON holds it."""
        table = replace(self.table, matched=frozenset())
        return asdict(self) | {"table": asdict(table) | {"matched": sorted(self.table.matched)}}

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> "ColumnLesson":
        """What `record` gave."""
        table = record["table"]
        text = TableText(table["title"], tuple(table["headers"]), tuple(table["values"]), frozenset(table["matched"]))
        programs = tuple(
            (op, column, order, down, tuple(where)) for op, column, order, down, where in record["programs"]
        )
        return cls(record["question"], text, programs)


def labelled_files(folder: Path) -> list[Path]:
    """The files below a folder, in the order of their names; TrainingError where there is none."""
    found = sorted(folder.rglob("*.json"))
    if not found:
        raise TrainingError(f"{folder}: no .json file is there; training/columns has some")
    return found


def labelled_lessons(folder: Path, *, seed: int) -> Iterator[ColumnLesson]:
    """Lessons of all files below a folder; TrainingError for one that is not as above."""
    chance = random.Random(seed)
    for path in labelled_files(folder):
        try:
            found = list(_lessons(json.loads(path.read_text(encoding="utf-8")), chance))
        except (LookupError, TypeError, ValueError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise TrainingError(f"{path}: {what}; training/column_lessons.py says what a file must hold") from error
        yield from found


def _lessons(world: Mapping[str, Any], chance: random.Random) -> Iterator[ColumnLesson]:
    sheets = [_sheet(table, world["world"], chance) for table in world["tables"]]
    for sheet, table in zip(sheets, world["tables"], strict=True):
        others = [other for other in sheets if other is not sheet]
        for asked in table["questions"]:
            yield ColumnLesson(asked[0], _as_read(asked[0], sheet), (program_of(asked, table["headers"]),))
            if others and chance.random() < BESIDE:
                yield ColumnLesson(asked[0], _as_read(asked[0], chance.choice(others)), ())
        for question in table["elsewhere"]:
            yield ColumnLesson(question, _as_read(question, sheet), ())


def _sheet(table: Mapping[str, Any], world: str, chance: random.Random) -> Sheet:
    """A table with the name of a file, a title, or both, as folders have them."""
    title, stem = str(table["title"]), str(table["title"])
    if chance.random() < 0.5:
        stem = stem.replace(" ", "_")
    source = chance.choice([f"{stem}.csv", f"{stem}.xlsx", "", f"{world.split()[-1]}.xlsx"])
    if source and chance.random() >= NAMED:
        title = ""
    rows = tuple(tuple(map(str, row)) for row in table["rows"])
    return Sheet.of(Table(stem, title, tuple(table["headers"]), rows, source=source))


def _as_read(question: str, sheet: Sheet) -> TableText:
    """The table with the values that the question names; what is only meant needs an index, and is left out."""
    asked = table_question(question, NO_VECTORS)
    matches = matches_of(asked.asked.text, asked.words, asked.wording, sheet, ())
    return TableText.of(sheet, match_sets(matches, asked, sheet))


def program_of(asked: Sequence[Any], headers: Sequence[str]) -> tuple[int, int, int, int, tuple[int, ...]]:
    """(operation, column, order column, descending, columns that select rows) of a question of such a file."""
    _, operation, column, order, way, where, *_ = asked
    op, at = Op(operation), {header: number for number, header in enumerate(headers)}
    asks = op not in WHOLE_TABLE and (op is not Op.WHETHER or column is not None)
    one, other = at[column] if asks else -1, at[order] if op in BY_ANOTHER and order else -1
    if op is Op.DIFFERENCE and other >= 0:
        one, other = sorted((one, other))  # as candidates have them: from which to which is nobody's choice
    down = op in ORDERED and str(way).startswith("max")
    return OPS.index(op), one, other, int(down), tuple(sorted({at[one] for one in where}))


def place_of(way: str | None) -> int:
    """The place in an order that "max 2" means, 1 for "max"; below 0 so many that come first ("max top 3")."""
    _, *which = str(way).split()
    return 1 if not which else -int(which[-1]) if which[0] == "top" else int(which[-1])

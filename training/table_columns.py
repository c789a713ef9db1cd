"""The recipe of the reader of columns (`helios.reading.tables.columns`), a low-rank adapter of the shared encoder.

    helios train table-columns --recipe table-columns --out DIR \\
        "indexes=[INDEX]" "questions=[questions.jsonl]"

Each index is asked its questions, and others made from its tables. Of the tables found, those with a program that
gives the answer teach operation and columns: the loss is the negative log of what all such programs are given
together, so that nobody has to write programs down. The first table without one teaches what a question is not about.
A question may name the column and the table that its answer is read from (`column`, `table`), which leaves out
programs that are right by chance. Questions that say which columns they mean (`labelled=training/columns`) need no
index.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from helios.engine import Engine
from helios.index.durable import write_atomically
from helios.models.card import ModelCard, data_file, write_card
from helios.reading.tables.candidates import TablePrograms
from helios.reading.tables.columns import FILE, HEADS, UNSEEN, TableText, TableTokeniser, TokenisedTable
from helios.reading.tables.columns import ROLE as CARD_ROLE
from helios.reading.tables.programs import OPS, execute
from helios.reading.tables.reader import Sheets, plain_programs, table_facts, table_question
from training.adapted import AdaptedRecipe, batches_of_like
from training.column_lessons import ColumnLesson, labelled_files, labelled_lessons
from training.distributed import world
from training.log import LogRow
from training.recipes import Role
from training.settings import TrainSettings
from training.table_reader import LIGHT, Lesson, TableReaderSettings, lessons, same_items
from training.trainer import train

LESSONS = "column-lessons.jsonl"
MOST_PROGRAMS = 100
SEEN = 3
"""Cells of an answer that tell which tables it is from."""


class TableColumnsSettings(TableReaderSettings):
    """Everything that the result depends on beside the code."""

    limit: int = Field(default=2000, ge=0)
    made: int = Field(default=200, ge=0)
    rank: int = Field(default=32, ge=1)
    scale: float = 2.0
    batch: int = Field(default=12, ge=1)
    head_scale: float = Field(default=2.0, gt=0.0)
    """The heads learn so many times faster than the adapter."""
    labelled: Path | None = None
    """A folder of tables whose questions say which columns they mean (`training.column_lessons`)."""
    start: Path | None = None
    """Weights to begin from, of the same rank: those of an earlier run, or the adapter of a reader of passages."""
    train: TrainSettings = TrainSettings(epochs=3, learning_rate=5e-4, schedule="linear", evaluate_first=False)


def train_table_columns(
    settings: TableColumnsSettings,
    out: Path,
    *,
    device: Any = "cpu",
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> Mapping[str, float]:
    """Mine lessons of every index, train, and write the adapter with its card; returns nothing measured."""
    started = time.monotonic()
    with world(torch.device(device)) as here:
        if here.leads:
            write_lessons(settings, out / LESSONS)
        here.share(None)  # the others read what the leader wrote
        lines = (out / LESSONS).read_bytes().splitlines()
        recipe = ColumnRecipe([ColumnLesson.parse(json.loads(line)) for line in lines], settings, device=device)
        result = train(recipe, settings.train, out / "run", device=device, on_log=on_log)
        if not here.leads:
            return result.scores
    labelled = () if settings.labelled is None else labelled_files(settings.labelled)
    recipe.save(out / FILE)
    card = ModelCard(
        name=CARD_ROLE, role=CARD_ROLE, base=f"all-MiniLM-L6-v2 ({recipe.base.sha256[:12]})",
        summary="Reads a question beside a table's columns: which are asked for, order or select rows, what is done.",
        data=tuple(data_file(path) for path in (*settings.questions, *labelled) if path is not None),
        settings=settings.model_dump(mode="json", exclude={"indexes", "questions", "columns", "start", "labelled"}),
        scores=result.scores,
        seconds=time.monotonic() - started,
        limits="Mostly English; some questions in German, French, Spanish and Chinese.",
    )  # fmt: skip
    write_card(out, card, weights=[FILE])
    return result.scores


def write_lessons(settings: TableColumnsSettings, path: Path) -> None:
    """Mine the lessons of every index and those of labelled tables, unless a run before has kept them."""
    if path.is_file():
        return
    found = [lesson for number in range(len(settings.indexes)) for lesson in mine_columns(settings, number)]
    if settings.labelled is not None:
        found += labelled_lessons(settings.labelled, seed=settings.train.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(one.record(), ensure_ascii=False) + "\n" for one in found).encode())


def mine_columns(settings: TableColumnsSettings, number: int) -> Iterator[ColumnLesson]:
    """Lessons of one of the indexes."""
    index = settings.indexes[number]
    questions = settings.questions[number] if number < len(settings.questions) else None
    with Engine.open(index, overrides=LIGHT) as engine:
        sheets = Sheets(engine.corpus, engine.encoder)
        for lesson in lessons(engine, questions, settings):
            evidence = engine.search(lesson.question, k=50)
            asked = table_question(lesson.question, engine.encoder.encode_question(lesson.question))
            yield from column_lessons(lesson, plain_programs(asked, table_facts(evidence), sheets))


def column_lessons(lesson: Lesson, found: Sequence[TablePrograms]) -> Iterator[ColumnLesson]:
    """At most two tables that answer the question, and the first one that does not. A table that the
    question is about teaches nothing if no program over it gives the answer."""
    right = [(one, right_programs(lesson, one)) for one in found]
    answering = [(one, programs) for one, programs in right if programs]
    others = [(one, programs) for one, programs in right if not programs and not lesson.may_be_about(one.sheet)]
    for one, programs in [*answering[:2], *others[:1]]:
        yield ColumnLesson(lesson.question, TableText.of(one.sheet, one.sets), tuple(programs))


def right_programs(lesson: Lesson, found: TablePrograms) -> list[tuple[int, int, int, int, tuple[int, ...]]]:
    """Programs of a table that give the answer, from the column and the table that the question names, if it does."""
    named = [at for at, column in enumerate(found.sheet.columns) if column.header.strip() == lesson.column.strip()]
    kept = []
    for number, (op, chosen, column, order, down, _) in enumerate(found.parts.tolist()):
        if not lesson.items or (lesson.column and named and column >= 0 and column not in named):
            continue
        result = execute(found.program(number))
        if result is None or not lesson.is_about(found.sheet, result.cells[:SEEN]):
            continue
        if same_items(result.items, lesson.items):
            where = tuple(sorted({match.column for match in found.sets[chosen] if match.column >= 0}))
            kept.append((op, column, order, down, where))
    return list(dict.fromkeys(kept))[:MOST_PROGRAMS]


class ColumnRecipe(AdaptedRecipe):
    """The model under training (a recipe of `training.trainer`)."""

    def __init__(
        self, known: Sequence[ColumnLesson], settings: TableColumnsSettings, *, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__(
            HEADS, role=CARD_ROLE, rank=settings.rank, scale=settings.scale, head_scale=settings.head_scale,
            seed=settings.train.seed, device=device,
        )  # fmt: skip
        if settings.start is not None:
            self.begin_from(settings.start)
        self.lessons, self.settings = list(known), settings
        tokeniser = TableTokeniser(self.base)
        self.tokenised = [tokeniser.of(one.question, one.table) for one in self.lessons]

    def batches(self, epoch: int, *, seed: int) -> Sequence[tuple[int, ...]]:
        """Lessons of like length together, in a new order."""
        lengths = [len(one.ids) for one in self.tokenised]
        batches = batches_of_like(lengths, self.settings.batch, random.Random(f"{seed} {epoch}"))
        return [tuple(batch) for batch in batches]

    def size(self, batch: tuple[int, ...]) -> int:
        return len(batch)

    def step(self, batch: tuple[int, ...]) -> Tensor:
        """Is it this table, and which of its programs."""
        self.model.train()
        said, columns = self._outputs([self.tokenised[at] for at in batch])
        losses = []
        for row, at in enumerate(batch):
            programs = self.lessons[at].programs
            wanted = said.new_tensor(float(bool(programs)))
            losses.append(F.binary_cross_entropy_with_logits(said[row, -1], wanted))
            if programs and len(columns[row]):
                losses.append(-program_chances(said[row], columns[row], programs).logsumexp(0))
        return torch.stack(losses).sum() / len(batch)

    def _outputs(self, tables: Sequence[TokenisedTable]) -> tuple[Tensor, list[Tensor]]:
        """What the heads give for the questions (B, 12), and for the columns of each table (C, 3)."""
        hidden_BLD = self.model.vectors([one.ids for one in tables])
        sums_BLD = F.pad(hidden_BLD.cumsum(dim=1), (0, 0, 1, 0))
        places = np.array([(row, *place) for row, one in enumerate(tables) for place in one.columns], np.int64)
        rows, first, after, separator = torch.from_numpy(places.reshape(-1, 4).T.copy()).to(hidden_BLD.device)
        headers_CD = (sums_BLD[rows, after] - sums_BLD[rows, first]) / (after - first)[:, None]
        columns_C3 = self.model.heads["column"](torch.cat([headers_CD, hidden_BLD[rows, separator]], dim=1))
        counts = [len(one.columns) for one in tables]
        return self.model.heads["question"](hidden_BLD[:, 0]), list(columns_C3.split(counts))


def program_chances(
    said: Tensor, columns_C3: Tensor, programs: Sequence[tuple[int, int, int, int, tuple[int, ...]]]
) -> Tensor:
    """Log-probabilities (N) of programs, as the reader of columns adds them up."""
    ops = F.log_softmax(said[: len(OPS)], dim=-1)
    count, ends = len(columns_C3), said.new_tensor([UNSEEN, 0.0])
    asked = torch.cat([F.log_softmax(columns_C3[:, 0], dim=-1), ends])
    ordered = torch.cat([F.log_softmax(columns_C3[:, 1], dim=-1), ends])
    selects, not_selects = F.logsigmoid(columns_C3[:, 2]), F.logsigmoid(-columns_C3[:, 2])
    directions = F.logsigmoid(said[len(OPS)] * said.new_tensor([-1.0, 1.0, 0.0])) * said.new_tensor([1.0, 1.0, 0.0])
    places = np.array([[op, _place(column, count), _place(order, count), 2 if order < 0 else bool(down)]
                       for op, column, order, down, _ in programs])  # fmt: skip
    chosen_NC = np.zeros((len(programs), count), np.float32)
    for row, (*_, where) in enumerate(programs):
        chosen_NC[row, [column for column in where if column < count]] = 1.0
    op, column, order, down = torch.from_numpy(places.T.copy()).to(said.device)
    where_N = torch.from_numpy(chosen_NC).to(said.device) @ (selects - not_selects) + not_selects.sum()
    return ops[op] + asked[column] + ordered[order] + directions[down] + where_N


def _place(column: int, count: int) -> int:
    """Where a column's number stands; after all of them those that did not fit, and then none."""
    return count + 1 if column < 0 else min(column, count)


ROLE = Role(TableColumnsSettings, train_table_columns)

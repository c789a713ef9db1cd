"""The recipe of the reader of rivals (`helios.reading.tables.rivals`), a low-rank adapter of the shared encoder.

    helios train table-rivals --recipe table-rivals --out DIR \\
        "indexes=[INDEX]" "questions=[questions.jsonl]"

Each index is asked its questions, and others made from its tables. The best answers of the trees are read side by
side, in a new order every epoch; the loss is the negative log of what the right ones are given together, or "none of
them" where no answer is right.
"""

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from helios.engine import Engine
from helios.index.durable import write_atomically
from helios.models.base import find_base_model
from helios.models.card import ModelCard, data_file, write_card
from helios.reading.tables.columns import FILE as COLUMNS
from helios.reading.tables.reader import WEIGHTS, Sheets, TableReader, table_question
from helios.reading.tables.rivals import FILE, HEADS, RIVALS, Rival, RivalTokeniser
from helios.reading.tables.rivals import ROLE as CARD_ROLE
from training.adapted import AdaptedRecipe, batches_of_like
from training.log import LogRow
from training.recipes import Role
from training.settings import TrainSettings
from training.table_reader import LIGHT, TableReaderSettings, lessons, same_items
from training.trainer import train

LESSONS = "rival-lessons.jsonl"


class TableRivalsSettings(TableReaderSettings):
    """Everything that the result depends on beside the code."""

    limit: int = Field(default=500, ge=0)
    made: int = Field(default=60, ge=0)
    rank: int = Field(default=32, ge=1)
    scale: float = 2.0
    batch: int = Field(default=6, ge=1)
    head_scale: float = Field(default=2.0, gt=0.0)
    """The head learns so many times faster than the adapter."""
    hidden: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of lessons whose right answers are left out, drawn anew every epoch: then none of them is right."""
    start: Path | None = WEIGHTS / COLUMNS
    """An adapter to begin from, of the same rank; None begins from the encoder as it comes."""
    train: TrainSettings = TrainSettings(epochs=2, learning_rate=5e-4, schedule="linear", evaluate_first=False)


@dataclass(frozen=True, slots=True)
class RivalLesson:
    """A question, the answers to choose from, and which of them are right; maybe none."""

    question: str
    rivals: tuple[Rival, ...]
    right: tuple[bool, ...]


def train_table_rivals(
    settings: TableRivalsSettings,
    out: Path,
    *,
    device: Any = "cpu",
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> Mapping[str, float]:
    """Mine lessons of every index, train, and write the adapter with its card; returns nothing measured."""
    started = time.monotonic()
    path = out / LESSONS
    if not path.is_file():
        found = [lesson for number in range(len(settings.indexes)) for lesson in mine_rivals(settings, number)]
        write_rival_lessons(path, found)
    recipe = RivalRecipe(read_rival_lessons(path), settings, device=device)
    result = train(recipe, settings.train, out / "run", device=device, on_log=on_log)
    recipe.save(out / FILE)
    card = ModelCard(
        name=CARD_ROLE, role=CARD_ROLE, base=f"all-MiniLM-L6-v2 ({recipe.base.sha256[:12]})",
        summary="Reads a question beside the best answers of the reader of tables: which one is it, or none of them?",
        data=tuple(data_file(path) for path in settings.questions if path is not None),
        settings=settings.model_dump(mode="json", exclude={"indexes", "questions", "columns", "start"}),
        scores=result.scores,
        seconds=time.monotonic() - started,
        limits="Mostly English; some questions in German, French, Spanish and Chinese.",
    )  # fmt: skip
    write_card(out, card, weights=[FILE])
    return result.scores


def mine_rivals(settings: TableRivalsSettings, number: int) -> Iterator[RivalLesson]:
    """Lessons of one of the indexes."""
    index = settings.indexes[number]
    questions = settings.questions[number] if number < len(settings.questions) else None
    with Engine.open(index, overrides=LIGHT) as engine:
        sheets = Sheets(engine.corpus, engine.encoder)
        reader = TableReader.load(sheets, settings.columns, threads=os.cpu_count() or 1)
        for lesson in lessons(engine, questions, settings):
            evidence = engine.search(lesson.question, k=50)
            asked = table_question(lesson.question, engine.encoder.encode_question(lesson.question))
            executed = reader.executed(asked, evidence)
            best = executed.shares(reader.confidence.temperature)[:RIVALS]
            results = [executed.results[at] for at, _ in best]
            rivals = tuple(Rival.of(executed.programs[at], executed.results[at]) for at, _ in best)
            right = tuple(bool(lesson.items) and same_items(one.items, lesson.items) for one in results)
            if rivals:
                yield RivalLesson(lesson.question, rivals, right)


def write_rival_lessons(path: Path, found: Sequence[RivalLesson]) -> None:
    """Keep what was mined: a recipe that is run again does not search again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = ([one.question, [astuple(rival) for rival in one.rivals], one.right] for one in found)
    write_atomically(path, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records).encode())


def read_rival_lessons(path: Path) -> list[RivalLesson]:
    """What `write_rival_lessons` kept."""
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        RivalLesson(question, tuple(Rival(*one) for one in rivals), tuple(right)) for question, rivals, right in records
    ]


class RivalRecipe(AdaptedRecipe):
    """The model under training (a recipe of `training.trainer`)."""

    def __init__(
        self, known: Sequence[RivalLesson], settings: TableRivalsSettings, *, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__(
            HEADS, role=CARD_ROLE, rank=settings.rank, scale=settings.scale, head_scale=settings.head_scale,
            seed=settings.train.seed, device=device,
        )  # fmt: skip
        if settings.start is not None:
            self.begin_from(settings.start)
        self.lessons, self.settings = list(known), settings
        self.tokeniser = RivalTokeniser(find_base_model(None))
        self.lengths = [len(self.tokeniser.of(one.question, one.rivals)[0]) for one in self.lessons]

    def batches(self, epoch: int, *, seed: int) -> Sequence[tuple[tuple[int, int], ...]]:
        """(lesson, seed of the order of its answers), lessons of like length together, in a new order."""
        chance = random.Random(f"{seed} {epoch}")
        batches = batches_of_like(self.lengths, self.settings.batch, chance)
        return [tuple((at, chance.randrange(1 << 30)) for at in batch) for batch in batches]

    def size(self, batch: tuple[tuple[int, int], ...]) -> int:
        return len(batch)

    def step(self, batch: tuple[tuple[int, int], ...]) -> Tensor:
        """Which answer, or none of them."""
        self.model.train()
        tokenised, flags = [], []
        for at, seed in batch:
            lesson = self.lessons[at]
            order = self._order(lesson, random.Random(seed))
            tokenised.append(self.tokeniser.of(lesson.question, [lesson.rivals[number] for number in order]))
            flags.append([lesson.right[number] for number in order[: len(tokenised[-1][1])]])
        hidden_BLD = self.model.vectors([ids for ids, _ in tokenised])
        losses = []
        for row, (_, places) in enumerate(tokenised):
            read_A2D = torch.stack([
                torch.cat([hidden_BLD[row, first:end].mean(dim=0), hidden_BLD[row, end]]) for first, end in places
            ])  # fmt: skip
            logits_A = self.model.heads["rival"](read_A2D)[:, 0]
            losses.append(rival_loss(logits_A, torch.tensor(flags[row], device=logits_A.device)))
        return torch.stack(losses).mean()

    def _order(self, lesson: RivalLesson, chance: random.Random) -> list[int]:
        """Numbers of the answers in the order in which they are shown."""
        order = list(range(len(lesson.rivals)))
        chance.shuffle(order)
        wrong = [number for number in order if not lesson.right[number]]
        return wrong if wrong and chance.random() < self.settings.hidden else order


def rival_loss(logits_A: Tensor, right_A: Tensor) -> Tensor:
    """The negative log of what the right answers are given together; of "none", whose log-odds are 0, without any."""
    everything = torch.cat([logits_A, logits_A.new_zeros(1)]).logsumexp(0)
    return everything - logits_A[right_A].logsumexp(0) if right_A.any() else everything


ROLE = Role(TableRivalsSettings, train_table_rivals)

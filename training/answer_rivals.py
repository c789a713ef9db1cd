"""Training of the reader of rivals (`helios.reading.rivals`), a low-rank adapter of the shared encoder.

A lesson is a question with the best answers of all readers, in a new order every epoch; the loss is the negative log of
what the right ones are given together, or "none of them" where no answer is right.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import Field
from torch import Tensor

from helios.config import Section
from helios.models.base import find_base_model
from helios.reading.rivals import HEADS, ROLE, Rival, RivalTokeniser
from helios.reading.tables.columns import FILE as COLUMNS_FILE
from helios.reading.tables.reader import WEIGHTS
from training.adapted import AdaptedRecipe, batches_of_like
from training.settings import TrainSettings

COLUMNS = WEIGHTS / COLUMNS_FILE


class RivalSettings(Section):
    """How the reader of rivals is trained."""

    rank: int = Field(default=32, ge=1)
    scale: float = 2.0
    batch: int = Field(default=8, ge=1)
    head_scale: float = Field(default=2.0, gt=0.0)
    """The head learns so many times faster than the adapter."""
    hidden: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of lessons whose right answers are left out, drawn anew every epoch: then none of them is right."""
    start: Path | None = COLUMNS
    """An adapter to begin from, of the same rank, with its head where it has this one; None begins from the encoder. It
    must not have learned from the questions that are left out, as the packaged reader of rivals has."""
    train: TrainSettings = TrainSettings(epochs=3, learning_rate=4e-4, schedule="linear", evaluate_first=False)


@dataclass(frozen=True, slots=True)
class RivalLesson:
    """A question, the answers to choose from, and which of them are right; maybe none."""

    question: str
    rivals: tuple[Rival, ...]
    right: tuple[bool, ...]


class RivalRecipe(AdaptedRecipe):
    """The model under training (a recipe of `training.trainer`)."""

    def __init__(
        self, known: Sequence[RivalLesson], settings: RivalSettings, *, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__(
            HEADS, role=ROLE, rank=settings.rank, scale=settings.scale, head_scale=settings.head_scale,
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

"""The recipe of the embedded rerankers g_e and g_n (HELIOS B.1, B.2): adapter (or all weights) and head.

The engine mines the lists; the loss is the softmax cross-entropy of right pairs among wrong ones of the same
question; a share of the tables is held out to choose the checkpoint and the mixing weight. With `residual` the logits
of retrieval count in the loss, so that the model learns what retrieval does not know instead of all over again.
"""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from helios.config import Section
from helios.engine import Engine
from helios.index.reader import Corpus
from helios.models.adapters import save_adapter
from helios.models.base import find_base_model
from helios.models.bert import load_bert
from helios.models.card import ModelCard, data_file, write_card
from helios.models.runtime import supports_bf16
from helios.retrieval.reranking.pair_scorer import PairReader, PairScorer, load_pair_scorer
from training.checkpoints import load_best
from training.distributed import world
from training.errors import TrainingError
from training.log import LogRow
from training.mining import LessonData, divide, epoch_order, gather_lessons
from training.pair_lists import PairLists
from training.recipes import Role
from training.reranker_evaluation import measure_orders
from training.reranker_lessons import Lesson, Pair
from training.settings import TrainSettings
from training.trainer import ParameterGroup, train
from training.updates import Exported, Update, export, prepare

log = logging.getLogger(__name__)

LESSONS = "lessons.parquet"
ROLES = {
    "edge": """Reads a question together with a row and its passage (g_e of HELIOS): the small shared encoder, its
trained updates and a late-interaction head. Its logit is added to that of retrieval.""",
    "node": """Reads a question together with a row or a passage alone (g_n of HELIOS): the small shared encoder, its
trained updates and a late-interaction head. Its logit chooses what node expansion begins from.""",
}
LIMITS = """Learned on top of a learned ranking's log-odds and measured with it: by itself its order is worse than
retrieval's. English questions over tables and passages of an encyclopaedia."""
SCALE_RATE = 200.0
"""The scale of the late score is two digits where weights are a few hundredths: it learns so much faster."""


class RerankerSettings(Section):
    """What is trained, on what, and how."""

    role: Literal["edge", "node"] = "edge"
    """`edge` trains g_e, `node` trains g_n."""
    data: LessonData = LessonData()
    train: TrainSettings = TrainSettings(epochs=4, learning_rate=5e-4, accumulate=8, log_steps=10)
    lessons: Path | None = None
    """Lessons that an earlier run mined; None mines them into the run's folder."""
    ranking: Path | None = None
    """Folder that `helios train ranker` wrote: lists then are of rankings that never saw the question's table."""
    base: str | None = None
    """Folder of the base encoder; None finds it as search does."""
    start: Path | None = None
    """Adapter to begin from (the token encoder's knows what matches); None begins from the base."""
    pooling: Literal["first", "mean", "late"] = "late"
    update: Update = "lora"
    """`full` trains all weights; its file is the truncated SVD of their change, of the same rank."""
    rank: int = Field(default=32, ge=1)
    words: bool = False
    """Whether the file holds what a full run changed in the word embeddings: four of nine MB, and nothing measurable
    is lost without."""
    scale: float = Field(default=2.0, gt=0.0)
    max_tokens: int = Field(default=160, ge=32)
    depth: int = Field(default=100, ge=1)
    """Edges that are mined for a question."""
    pool: int = Field(default=60, ge=1)
    """Wrong pairs are drawn from so many of the best, the better ones more often."""
    negatives: int = Field(default=11, ge=1)
    """Wrong pairs beside each right one."""
    questions: int = Field(default=2, ge=1)
    """Questions of one batch."""
    k1: int = Field(default=40, ge=1)
    """Pairs that are reranked when measuring."""
    residual: bool = True
    """Learn on top of retrieval's logits, from right pairs that it found; False learns from all of them alone."""
    right: int = Field(default=2, ge=1)
    """Right pairs of a list, with `residual`: the best ones that retrieval found."""
    late_scale: float = Field(default=2.0, ge=0.0)
    """Where the scale of late pooling begins; 20 makes differences of cosines those of logits."""
    measured: int = Field(default=160, ge=1)
    """Held-out questions that choose the checkpoint; the end measures all of them."""


@dataclass(frozen=True, slots=True)
class List:
    """One question of a batch: right pairs, then wrong ones, and the logits that theirs are added to."""

    lesson: int
    pairs: tuple[Pair, ...]
    right: int
    priors: tuple[float, ...]


class RerankerRecipe:
    """The cross-encoder under training, with its lists (a recipe of `training.trainer`)."""

    def __init__(
        self, corpus: Corpus, lessons: Sequence[Lesson], settings: RerankerSettings,
        *, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        torch.manual_seed(settings.train.seed)
        self.settings, self.device = settings, torch.device(device)
        self.lessons, self.held_out = divide(lessons, settings.data)
        self.base = find_base_model(settings.base)
        self.lists = PairLists(
            corpus, PairReader(self.base.folder, max_tokens=settings.max_tokens), device=self.device
        )  # fmt: skip
        bert = load_bert(self.base.folder)
        self.adapted = prepare(bert, settings.update, rank=settings.rank, scale=settings.scale, start=settings.start)
        self.scorer = PairScorer(bert, settings.pooling).to(self.device)
        if settings.pooling == "late":
            torch.nn.init.constant_(self.scorer.scale, settings.late_scale)
        self.trained = {name: p for name, p in self.scorer.named_parameters() if p.requires_grad}

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        groups = [ParameterGroup([*self.adapted, *self.scorer.head.parameters()])]
        return [*groups, ParameterGroup([self.scorer.scale], SCALE_RATE)] if self.settings.pooling == "late" else groups

    def batches(self, epoch: int, *, seed: int) -> Sequence[tuple[List, ...]]:
        """Every human question once, with a right pair and wrong ones drawn anew each epoch."""
        chance = random.Random(f"{seed} {epoch}")
        order = epoch_order(self.lessons, chance, synthetic_share=self.settings.data.synthetic_share)
        lists = [drawn for number in order if (drawn := self._list(number, chance)).right]
        size = self.settings.questions
        return [tuple(lists[start : start + size]) for start in range(0, len(lists), size)]

    def size(self, batch: tuple[List, ...]) -> int:
        return len(batch)

    def step(self, batch: tuple[List, ...]) -> Tensor:
        """Cross-entropy of the right pairs."""
        self.scorer.train()
        rows = [(self.lessons[entry.lesson].question, entry.pairs) for entry in batch]
        logits = self.logits(rows)
        losses = []
        for entry, row in zip(batch, logits, strict=True):
            scores = row + torch.tensor(entry.priors, device=row.device)
            losses.append(scores.logsumexp(0) - scores[: entry.right].logsumexp(0))
        return torch.stack(losses).mean()

    def logits(self, rows: Sequence[tuple[str, Sequence[Pair]]]) -> list[Tensor]:
        """Scores of the pairs of questions."""
        return self.lists.logits(rows, self.scorer)

    def evaluate(self) -> Mapping[str, float]:
        """Measures of some held-out questions; the first decides."""
        return self.measure(self.held_out[: self.settings.measured])

    def measure(self, lessons: Sequence[Lesson]) -> dict[str, float]:
        """Rerank the lists of lessons and measure the orders."""
        if not lessons:
            return {}
        values = [self.values(lesson) for lesson in lessons]
        return measure_orders(lessons, values, self.settings.role)

    def values(self, lesson: Lesson) -> NDArray[np.float32]:
        """Logits of a lesson's first k1 candidates, as search computes them."""
        self.scorer.eval()
        pairs = [candidate.pair for candidate in lesson.candidates[: self.settings.k1]]
        bf16 = self.device.type != "cpu" or supports_bf16()
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            (logits,) = self.logits([(lesson.question, pairs)])
        return np.asarray(logits.cpu().numpy(), np.float32)

    def state_dict(self) -> Mapping[str, Any]:
        return {name: parameter.detach().cpu().clone() for name, parameter in self.trained.items()}

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        with torch.no_grad():
            for name, parameter in self.trained.items():
                parameter.copy_(state[name])

    def export(self) -> Exported:
        """What the file will hold, adapter and head."""
        settings = self.settings
        exported = export(
            self.scorer.bert, settings.update, base=self.base.folder, rank=settings.rank, scale=settings.scale,
            words=settings.words,
        )  # fmt: skip
        heads = {name: tensor.cpu() for name, tensor in self.scorer.head_tensors().items()}
        return replace(exported, tensors={**exported.tensors, **heads})

    def save(self, path: Path, exported: Exported, *, weight: float = 1.0) -> None:
        """Write the file that `EmbeddedReranker` reads; `weight` is what it counts beside retrieval."""
        metadata = {
            "role": self.settings.role, "pooling": self.settings.pooling, "max_tokens": str(self.settings.max_tokens),
            "base": self.base.sha256, "weight": str(weight),
        }  # fmt: skip
        save_adapter(path, exported.tensors, scale=exported.scale, metadata=metadata)

    def load_written(self, path: Path) -> None:
        """Go on with what a file kept of the weights."""
        self.scorer = load_pair_scorer(load_bert(self.base.folder), path).to(self.device)

    def _list(self, number: int, chance: random.Random) -> List:
        """Right pairs and drawn wrong ones of a lesson; `right` is 0 where retrieval had to find them and did not."""
        lesson, settings = self.lessons[number], self.settings
        found = [c for c in lesson.candidates[: settings.pool] if c.gold >= 0][: settings.right]
        pool = list(lesson.wrong[: settings.pool])
        drawn = []
        for _ in range(min(settings.negatives, len(pool))):
            (place,) = chance.choices(range(len(pool)), [1.0 / (rank + 10) for rank in range(len(pool))])
            drawn.append(pool.pop(place))
        if not settings.residual:
            pairs = (chance.choice(lesson.positives), *(c.pair for c in drawn))
            return List(number, pairs, 1, (0.0,) * len(pairs))
        listed = [*found, *drawn]
        return List(number, tuple(c.pair for c in listed), len(found), tuple(c.score for c in listed))


def train_reranker(
    settings: RerankerSettings, out: Path, *, device: Any = "cpu", on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Mine, train (or go on), and write `ROLE-reranker.safetensors` and a card to `out`; held-out scores."""
    if settings.data.index is None:
        raise TrainingError("a reranker learns from what an index finds: set data.index")
    out.mkdir(parents=True, exist_ok=True)
    with world(torch.device(device)) as here, Engine.open(settings.data.index) as engine:
        if here.leads:
            _lessons(settings, out)
        here.share(None)  # the others read what the leader mined
        recipe = RerankerRecipe(engine.corpus, _lessons(settings, out), settings, device=device)
        described = {
            "recipe": settings.model_dump(mode="json"),
            "lessons": len(recipe.lessons), "held_out": len(recipe.held_out), "base": recipe.base.sha256,
        }  # fmt: skip
        result = train(recipe, settings.train, out, device=device, description=described, on_log=on_log)
        if not here.leads:
            return {}
        if result.best is not None:
            recipe.load_state_dict(load_best(out)[1])
        path, exported = out / f"{settings.role}-reranker.safetensors", recipe.export()
        recipe.save(path, exported)
        recipe.load_written(path)
        scores = recipe.measure(recipe.held_out)
        recipe.save(path, exported, weight=scores.get("weight", 1.0))
    write_card(out, _card(recipe, exported, scores, seconds=result.seconds), weights=[path.name])
    return scores


def _card(
    recipe: RerankerRecipe, exported: Exported, scores: Mapping[str, float], *, seconds: float
) -> ModelCard:  # fmt: skip
    settings = recipe.settings
    role = ROLES[settings.role]
    return ModelCard(
        name=f"helios-{settings.role}-reranker", role=f"{settings.role} reranker", summary=" ".join(role.split()),
        base=f"all-MiniLM-L6-v2 ({recipe.base.sha256})",
        data=tuple(data_file(path) for path in (*settings.data.questions, *settings.data.synthetic)),
        settings=settings.model_dump(mode="json", exclude={"data", "lessons", "ranking", "base", "start"})
        | {"questions learned from": len(recipe.lessons), "questions held out": len(recipe.held_out)},
        scores=dict(scores) | {f"lost by rank, {part}": share for part, share in exported.errors.items()},
        limits=" ".join(LIMITS.split()), seconds=seconds,
    )  # fmt: skip


def _lessons(settings: RerankerSettings, out: Path) -> list[Lesson]:
    path = settings.lessons or out / LESSONS
    return gather_lessons(settings.data, settings.role, path, ranking=settings.ranking, depth=settings.depth)


ROLE = Role(RerankerSettings, train_reranker)

"""The recipe of the embedded rerankers g_e and g_n (HELIOS B.1, B.2): adapter and head of a cross-encoder.

The engine mines the lists; the loss is the softmax cross-entropy of one right pair among wrong ones of the same
question; a share of the tables is held out to choose the checkpoint and the mixing weight.
"""

import hashlib
import json
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from helios.config import Section
from helios.corpus import CorpusStore
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.models.adapters import adapter_tensors, add_adapter, save_adapter
from helios.models.base import find_base_model
from helios.models.bert import Bert, load_bert
from helios.models.reranking.evidence_text import evidence_texts
from helios.models.reranking.pair import PairReader, PairScorer, padded
from helios.models.runtime import supports_bf16
from training.checkpoints import load_best
from training.crossfit import CrossFitted
from training.errors import TrainingError
from training.holdout import is_held_out
from training.log import LogRow
from training.recipes import DataSettings, Role
from training.reranker_evaluation import measure_orders
from training.reranker_lessons import Lesson, Pair, load_lessons, mine, save_lessons
from training.settings import TrainSettings
from training.trainer import ParameterGroup, train

log = logging.getLogger(__name__)

LESSONS = "lessons.parquet"
CARD = "card.json"
CHUNK = 12
"""Pairs that go through the encoder together: those of like length."""
SCALE_RATE = 200.0
"""The scale of the late score is two digits where weights are a few hundredths: it learns so much faster."""


class RerankerSettings(Section):
    """What is trained, on what, and how."""

    role: Literal["edge", "node"] = "edge"
    """`edge` trains g_e, `node` trains g_n."""
    data: DataSettings = DataSettings()
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
    rank: int = Field(default=32, ge=1)
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
    retrieval_logits: bool = True
    """Whether the scores of retrieval are logits already: those of a learned ranking are, fused ones are not."""
    measured: int = Field(default=160, ge=1)
    """Held-out questions that choose the checkpoint; the end measures all of them."""


@dataclass(frozen=True, slots=True)
class List:
    """One question of a batch: the right pair, then wrong ones."""

    lesson: int
    pairs: tuple[Pair, ...]


class RerankerRecipe:
    """The cross-encoder under training, with its lists (a recipe of `training.trainer`)."""

    def __init__(
        self, corpus: CorpusStore, lessons: Sequence[Lesson], settings: RerankerSettings,
        *, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        torch.manual_seed(settings.train.seed)
        self.corpus, self.settings, self.device = corpus, settings, torch.device(device)
        self.lessons = [lesson for lesson in lessons if not is_held_out(lesson.table, share=settings.data.held_out)]
        self.held_out = [lesson for lesson in lessons if is_held_out(lesson.table, share=settings.data.held_out)]
        if not self.lessons:
            raise TrainingError(f"none of the {len(lessons)} lessons is for training: are there questions with gold?")
        self.base = find_base_model(settings.base)
        self.reader = PairReader(self.base.folder, max_tokens=settings.max_tokens)
        bert = load_bert(self.base.folder)
        self.adapted = add_adapter(bert, rank=settings.rank, scale=settings.scale)
        if settings.start is not None:
            begin_from(bert, settings.start, scale=settings.scale)
        self.scorer = PairScorer(bert, settings.pooling).to(self.device)
        self.trained = {name: p for name, p in self.scorer.named_parameters() if p.requires_grad}

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        groups = [ParameterGroup([*self.adapted, *self.scorer.head.parameters()])]
        return [*groups, ParameterGroup([self.scorer.scale], SCALE_RATE)] if self.settings.pooling == "late" else groups

    def batches(self, epoch: int, *, seed: int) -> Sequence[tuple[List, ...]]:
        """Every question once, with a right pair and wrong ones drawn anew each epoch."""
        chance = random.Random(f"{seed} {epoch}")
        order = list(range(len(self.lessons)))
        chance.shuffle(order)
        lists = [self._list(number, chance) for number in order]
        size = self.settings.questions
        return [tuple(lists[start : start + size]) for start in range(0, len(lists), size)]

    def size(self, batch: tuple[List, ...]) -> int:
        return len(batch)

    def step(self, batch: tuple[List, ...]) -> Tensor:
        """Cross-entropy of the right pairs."""
        self.scorer.train()
        rows = [(self.lessons[entry.lesson].question, entry.pairs) for entry in batch]
        logits = self.logits(rows)
        losses = [F.cross_entropy(row[None], torch.zeros(1, dtype=torch.long, device=row.device)) for row in logits]
        return torch.stack(losses).mean()

    def logits(self, rows: Sequence[tuple[str, Sequence[Pair]]]) -> list[Tensor]:
        """Scores of the pairs of questions; pairs of like length go through the encoder together."""
        read = [pair for question, pairs in rows for pair in self._read(question, pairs)]
        order = sorted(range(len(read)), key=lambda i: len(read[i]))
        places, scores = [], []
        for start in range(0, len(order), CHUNK):
            chunk = order[start : start + CHUNK]
            tensors = (torch.from_numpy(array).to(self.device) for array in padded([read[i] for i in chunk]))
            scores.append(self.scorer(*tensors).float())
            places += chunk
        back = torch.empty(len(places), dtype=torch.long, device=self.device)
        back[torch.tensor(places, device=self.device)] = torch.arange(len(places), device=self.device)
        return list(torch.cat(scores)[back].split([len(pairs) for _, pairs in rows]))

    def evaluate(self) -> Mapping[str, float]:
        """Measures of some held-out questions; the first decides."""
        return self.measure(self.held_out[: self.settings.measured])

    def measure(self, lessons: Sequence[Lesson]) -> dict[str, float]:
        """Rerank the lists of lessons and measure the orders."""
        if not lessons:
            return {}
        values = [self.values(lesson) for lesson in lessons]
        return measure_orders(lessons, values, self.settings.role, logits=self.settings.retrieval_logits)

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

    def save(self, path: Path, scores: Mapping[str, float]) -> None:
        """Write the file that `helios.models.reranking.embedded` reads."""
        settings = self.settings
        metadata = {
            "role": settings.role, "pooling": settings.pooling, "max_tokens": str(settings.max_tokens),
            "base": self.base.sha256, "weight": str(scores.get("weight", 0.5)),
        }  # fmt: skip
        tensors = {**adapter_tensors(self.scorer.bert), **self.scorer.head_tensors()}
        save_adapter(path, {name: tensor.cpu() for name, tensor in tensors.items()}, scale=settings.scale,
                     metadata=metadata)  # fmt: skip

    def _list(self, number: int, chance: random.Random) -> List:
        lesson, settings = self.lessons[number], self.settings
        pool = list(lesson.negatives[: settings.pool])
        pairs = [chance.choice(lesson.positives)]
        for _ in range(min(settings.negatives, len(pool))):
            (drawn,) = chance.choices(range(len(pool)), [1.0 / (rank + 10) for rank in range(len(pool))])
            pairs.append(pool.pop(drawn))
        return List(number, tuple(pairs))

    def _read(self, question: str, pairs: Sequence[Pair]) -> list[Any]:
        evidence = [
            (
                self.corpus.segment(segment) if segment >= 0 else None,
                self.corpus.passages[passage] if passage >= 0 else None,
            )
            for segment, passage in pairs
        ]
        texts = evidence_texts(
            question, evidence, max_tokens=self.settings.max_tokens, count_tokens=self.reader.count_tokens
        )
        return list(self.reader.read(question, texts))


def train_reranker(
    settings: RerankerSettings, out: Path, *, device: Any = "cpu", on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Mine, train (or go on), and write `ROLE-reranker.safetensors` and a card to `out`; held-out scores."""
    if settings.data.index is None:
        raise TrainingError("a reranker learns from what an index finds: set data.index")
    out.mkdir(parents=True, exist_ok=True)
    with Engine.open(settings.data.index) as engine:
        lessons = _lessons(settings.data.index, settings, out)
        recipe = RerankerRecipe(engine.corpus, lessons, settings, device=device)
        described = {
            "recipe": settings.model_dump(mode="json"),
            "lessons": len(recipe.lessons), "held_out": len(recipe.held_out), "base": recipe.base.sha256,
        }  # fmt: skip
        result = train(recipe, settings.train, out, device=device, description=described, on_log=on_log)
        if result.best is not None:
            recipe.load_state_dict(load_best(out)[1])
        with torch.no_grad():
            scores = recipe.measure(recipe.held_out)
    path = out / f"{settings.role}-reranker.safetensors"
    recipe.save(path, scores)
    card = {
        **described, "steps": result.steps, "best_step": result.best_step, "seconds": round(result.seconds, 1),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "held_out_scores": scores,
        "questions": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in settings.data.questions},
    }  # fmt: skip
    (out / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return scores


def _lessons(index: Path, settings: RerankerSettings, out: Path) -> list[Lesson]:
    path = settings.lessons or out / LESSONS
    if path.is_file():
        return load_lessons(path)
    if not settings.data.questions:
        raise TrainingError("no lessons and no questions to mine them for: set data.questions or lessons")
    questions = [question for file in settings.data.questions for question in read_questions(file)]

    def advance(done: int) -> None:
        if done % 100 == 0:
            log.info("%d of %d questions mined", done, len(questions))

    with CrossFitted(index, settings.ranking) as fitted:
        lessons = list(mine(fitted.engine, questions, settings.role, depth=settings.depth, advance=advance))
    save_lessons(lessons, path)
    return lessons


def begin_from(bert: Bert, path: Path, *, scale: float) -> None:
    """Give a wrapped encoder the updates of an adapter file; TrainingError if its rank or its shapes differ."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            saved = float((file.metadata() or {})["scale"])
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise TrainingError(f"{path}: no readable adapter to start from ({error})") from error
    with torch.no_grad():
        for name, parameter in bert.named_parameters():
            if parameter.requires_grad:
                found = tensors.get(name)
                if found is None or found.shape != parameter.shape:
                    raise TrainingError(f"{path}: {name} should have shape {tuple(parameter.shape)}; set rank to its")
                parameter.copy_(found * (saved / scale) if name.endswith(".B") else found)


ROLE = Role(RerankerSettings, train_reranker)

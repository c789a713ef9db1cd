"""The training loop that every recipe of torch models shares.

    result = train(recipe, TrainSettings(epochs=3, learning_rate=2e-5), Path("runs/encoder"))

A recipe says what is learned: its parameters, batches, loss and dev measures. The trainer adds accumulation,
mixed precision, the schedule, checkpoints, the log, and several processes under torchrun. Run it again with the
same arguments after a kill, and it goes on from the last checkpoint. Every batch starts from a random state of
its own, so a resumed run takes the very path of one that was never stopped.
"""

import contextlib
import hashlib
import json
import logging
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from helios.errors import IndexLockedError
from helios.index.durable import write_atomically
from helios.index.lock import WriteLock
from helios.models.runtime import supports_bf16
from training.checkpoints import BEST, LAST, Progress, load_last, save_best, save_last
from training.distributed import World, world
from training.errors import TrainingError
from training.log import LogRow, TrainLog
from training.settings import HOUSEKEEPING, NEWEST, TrainSettings

log = logging.getLogger(__name__)

Batch = TypeVar("Batch")
RUN = "run.json"


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """Parameters that learn at `scale` times the learning rate."""

    parameters: Sequence[nn.Parameter]
    scale: float = 1.0


class Recipe(Protocol[Batch]):
    """What is learned. It moves its own tensors to its device and sets its own train and eval modes."""

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        """What the optimiser changes, in the same order at every start."""

    def batches(self, epoch: int, *, seed: int) -> Sequence[Batch]:
        """All batches of an epoch, the same for the same arguments; light values such as example numbers."""

    def size(self, batch: Batch) -> int:
        """How many examples the loss of a batch is the mean of: its weight in an accumulated step."""

    def step(self, batch: Batch) -> Tensor:
        """The mean loss of a batch, a scalar with its graph. Random numbers come from the global generators."""

    def evaluate(self) -> Mapping[str, float]:
        """Dev measures by name; empty where there is nothing to measure. Runs without gradients."""

    def state_dict(self) -> Mapping[str, Any]:
        """The trained tensors, and what else `batches` and `step` depend on that changes."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        """Take over what `state_dict` gave, in place: parameters stay the same objects."""


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What came out; `best` and `last` are files in the run's folder."""

    steps: int
    seconds: float
    best_score: float | None
    best_step: int
    scores: dict[str, float] = field(default_factory=dict)
    """The last measurement."""
    best: Path | None = None
    last: Path | None = None


def train(
    recipe: Recipe[Batch],
    settings: TrainSettings,
    folder: Path,
    *,
    device: torch.device | str = "cpu",
    description: Mapping[str, Any] | None = None,
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> TrainResult:
    """Train, or go on where a killed run stopped; the recipe holds the last weights afterwards.

    `description` (JSON data: recipe settings, data hashes) is kept in `run.json`; a folder whose run was
    described otherwise is refused with TrainingError, as is one that another process trains in.
    """
    device = torch.device(device)
    folder.mkdir(parents=True, exist_ok=True)
    with world(device) as here, _only_run(folder, here):
        _check_run(folder, settings, description or {}, here)
        trainer = _Trainer(recipe, settings, folder, device, here, on_log)
        trainer.resume()
        trainer.run()
        here.share(None)  # nobody leaves before the leader has saved
        return trainer.result()


class _Trainer(Generic[Batch]):
    """One run in one process."""

    def __init__(
        self,
        recipe: Recipe[Batch],
        settings: TrainSettings,
        folder: Path,
        device: torch.device,
        here: World,
        on_log: Callable[[LogRow], None],
    ) -> None:
        if settings.accumulate % here.size:
            raise TrainingError(
                f"accumulate={settings.accumulate} batches a step cannot be shared evenly among {here.size} "
                "processes: set it to a multiple of their number"
            )
        self.recipe, self.settings, self.folder, self.here, self.device = recipe, settings, folder, here, device
        self.progress = Progress()
        groups = recipe.parameter_groups()
        self.parameters = [p for group in groups for p in group.parameters if p.requires_grad]
        self.optimizer = torch.optim.AdamW(_optimizer_groups(groups, settings), lr=settings.learning_rate)
        self.log = TrainLog(folder) if here.leads else None
        self.on_log = on_log
        self.saved_at = time.monotonic()
        self.clock = time.monotonic()
        self.total_steps = _total_steps(recipe, settings)

    def resume(self) -> None:
        """Take over the last checkpoint, if there is one; processes start from the leader's weights."""
        found = load_last(self.folder)
        if found is not None:
            self.progress, model, optimizer = found
            self.recipe.load_state_dict(model)
            self.optimizer.load_state_dict(optimizer)
        if self.here.share(self.progress.step) != self.progress.step:
            raise TrainingError(f"{self.folder}: not all processes see the same checkpoint; use a shared folder")
        if found is not None:
            log.info("%s: going on from step %d", self.folder, self.progress.step)
        self.here.copy_from_leader([parameter.data for parameter in self.parameters])
        if self.log:
            self.log.start(after_step=self.progress.step if found else -1)

    def run(self) -> None:
        """Epoch after epoch, to the end or until patience is over."""
        progress = self.progress
        if progress.step == 0 and progress.measured_step < 0 and self.settings.evaluate_first:
            self._evaluate()
        while not self._over():
            batches = self.recipe.batches(progress.epoch, seed=self.settings.seed)
            while progress.batch < len(batches) and not self._over():
                self._step(batches)
            if progress.batch >= len(batches):
                progress.epoch, progress.batch = progress.epoch + 1, 0
                self._evaluate()
        if progress.measured_step != progress.step:
            self._evaluate()
        if self.log:
            self.log.plot()

    def result(self) -> TrainResult:
        """What the run came to."""
        progress = self.progress
        return TrainResult(
            steps=progress.step,
            seconds=progress.seconds,
            best_score=progress.best_score,
            best_step=progress.best_step,
            scores=progress.scores,
            best=self.folder / BEST if progress.best_score is not None else None,
            last=self.folder / LAST,
        )

    def _over(self) -> bool:
        settings, progress = self.settings, self.progress
        impatient = settings.patience is not None and progress.waited >= settings.patience
        return impatient or progress.step >= self.total_steps or progress.epoch >= settings.epochs

    def _step(self, batches: Sequence[Batch]) -> None:
        """One optimiser step over the next `accumulate` batches, this process taking its share of them."""
        settings, progress = self.settings, self.progress
        numbers = range(progress.batch, min(progress.batch + settings.accumulate, len(batches)))
        examples = sum(self.recipe.size(batches[number]) for number in numbers)
        self.optimizer.zero_grad(set_to_none=True)
        loss = torch.zeros((), device=self.device)
        for number in numbers[self.here.rank :: self.here.size]:
            _seed_everything(settings.seed, progress.epoch, number)
            with self._precision():
                part = self.recipe.step(batches[number]) * (self.recipe.size(batches[number]) / examples)
            torch.autograd.backward(part)
            loss += part.detach()
        value = float(self.here.sum_gradients(self.parameters, loss))
        norm = self._clip()
        if not math.isfinite(value) or not math.isfinite(norm):
            raise TrainingError(
                f"epoch {progress.epoch}, batches {numbers.start} to {numbers.stop - 1}: loss {value}, norm of the "
                f"gradient {norm}; lower the learning rate, {self.folder} holds the last good checkpoint"
            )
        self._update()
        progress.step, progress.batch = progress.step + 1, numbers.stop
        progress.loss_sum, progress.loss_steps = progress.loss_sum + value, progress.loss_steps + 1
        self._after_step(is_last_of_epoch=numbers.stop >= len(batches))

    def _clip(self) -> float:
        limit = math.inf if self.settings.clip is None else self.settings.clip
        return float(nn.utils.clip_grad_norm_(self.parameters, limit))

    def _update(self) -> None:
        factor = _rate_factor(self.progress.step, self.total_steps, self.settings)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * group["scale"] * factor
        self.optimizer.step()

    def _after_step(self, *, is_last_of_epoch: bool) -> None:
        settings, step = self.settings, self.progress.step
        if step % settings.log_steps == 0:
            self._log_loss()
        if is_last_of_epoch:
            return  # the epoch's end evaluates and saves
        if settings.evaluate_steps and step % settings.evaluate_steps == 0:
            self._evaluate()
        elif self._save_is_due():
            self._save()

    def _save_is_due(self) -> bool:
        steps, minutes = self.settings.checkpoint_steps, self.settings.checkpoint_minutes
        if steps and self.progress.step % steps == 0:
            return True
        return minutes is not None and time.monotonic() - self.saved_at >= 60 * minutes

    def _evaluate(self) -> None:
        """Measure, keep the model if it is the best so far, and save."""
        progress, settings = self.progress, self.settings
        scores: dict[str, float] = {}
        if self.here.leads:
            with torch.no_grad():
                scores = {name: float(value) for name, value in self.recipe.evaluate().items()}
        progress.scores = self.here.share(scores)
        progress.measured_step = progress.step
        if progress.scores:
            takes_last = settings.best_by == NEWEST
            score = _chosen(progress.scores, None if takes_last else settings.best_by)
            best = progress.best_score
            is_better = best is None or takes_last or (score < best if settings.lower_is_better else score > best)
            progress.waited = 0 if is_better else progress.waited + 1
            if is_better:
                progress.best_score, progress.best_step = score, progress.step
                if self.here.leads:
                    save_best(self.folder, progress, model=self.recipe.state_dict())
            self._write(progress.scores)
        self._save()

    def _save(self) -> None:
        self._tick()
        if self.here.leads:
            model = self.recipe.state_dict()
            save_last(self.folder, self.progress, model=model, optimizer=self.optimizer.state_dict())
        self.saved_at = time.monotonic()

    def _log_loss(self) -> None:
        progress = self.progress
        mean = progress.loss_sum / progress.loss_steps
        progress.loss_sum, progress.loss_steps = 0.0, 0
        self._write({"loss": mean, "learning_rate": self.optimizer.param_groups[0]["lr"]})

    def _write(self, values: Mapping[str, float]) -> None:
        self._tick()
        if self.log:
            progress = self.progress
            row = LogRow(progress.step, progress.epoch, progress.seconds, dict(values))
            self.log.write(row)
            self.on_log(row)

    def _tick(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self.clock
        self.clock = now

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        choice = self.settings.bf16
        enabled = choice == "on" or (choice == "auto" and _has_bf16(self.device))
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)


def _optimizer_groups(groups: Sequence[ParameterGroup], settings: TrainSettings) -> list[dict[str, Any]]:
    """Each group twice: its matrices, which decay, and its vectors, which do not."""
    split = []
    for group in groups:
        trained = [parameter for parameter in group.parameters if parameter.requires_grad]
        for is_matrix, decay in ((True, settings.weight_decay), (False, 0.0)):
            members = [parameter for parameter in trained if (parameter.ndim > 1) == is_matrix]
            if members:
                split.append({"params": members, "weight_decay": decay, "scale": group.scale})
    if not split:
        raise TrainingError("the recipe has no parameter that requires a gradient")
    return split


def _total_steps(recipe: Recipe[Batch], settings: TrainSettings) -> int:
    """Steps of the whole run, taking every epoch to be as long as the first."""
    steps = settings.epochs * math.ceil(len(recipe.batches(0, seed=settings.seed)) / settings.accumulate)
    if not steps:
        raise TrainingError("the first epoch has no batches: are there examples?")
    return min(steps, settings.max_steps or steps)


def _rate_factor(step: int, total: int, settings: TrainSettings) -> float:
    """The share of the learning rate at a step, counted from 0."""
    warmup = round(settings.warmup * total) if settings.warmup < 1 else int(settings.warmup)
    if step < warmup:
        return (step + 1) / (warmup + 1)
    left = max(0.0, (total - step) / max(1, total - warmup))
    if settings.schedule == "constant":
        return 1.0
    return left if settings.schedule == "linear" else 0.5 * (1 - math.cos(math.pi * min(1.0, left)))


def _seed_everything(*numbers: int) -> None:
    """Set Python's, numpy's and torch's generators from some numbers."""
    seed = int.from_bytes(hashlib.sha256(repr(numbers).encode()).digest()[:4], "little")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _chosen(scores: Mapping[str, float], name: str | None) -> float:
    name = name or next(iter(scores))
    if name not in scores:
        raise TrainingError(f"best_by={name}: the recipe measures only {', '.join(scores)}")
    return scores[name]


def _has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and supports_bf16()


@contextlib.contextmanager
def _only_run(folder: Path, here: World) -> Iterator[None]:
    """Hold the folder for this run."""
    if not here.leads:
        yield
        return
    lock = WriteLock(folder)
    try:
        lock.acquire()
    except IndexLockedError as error:
        raise TrainingError(f"{folder}: another run trains in this folder; choose another, or wait") from error
    try:
        yield
    finally:
        lock.release()


def _check_run(folder: Path, settings: TrainSettings, description: Mapping[str, Any], here: World) -> None:
    """Write what this run is; where a run is saved already, it must be the same one."""
    if not here.leads:
        return
    path = folder / RUN
    run = json.loads(json.dumps({"settings": settings.model_dump(mode="json"), **description}))
    if path.is_file() and (folder / LAST).is_file():
        saved = json.loads(path.read_text(encoding="utf-8"))
        differing = [name for name in _differences(saved, run) if name.rpartition(".")[2] not in HOUSEKEEPING]
        if differing:
            raise TrainingError(
                f"{folder}: holds a run with another {', '.join(differing)}: train in another folder, "
                f"or delete {LAST} to start anew"
            )
    write_atomically(path, (json.dumps(run, indent=2, ensure_ascii=False) + "\n").encode())


def _differences(saved: Any, wanted: Any, prefix: str = "") -> list[str]:
    """Dotted names of values that differ."""
    if isinstance(saved, dict) and isinstance(wanted, dict):
        names = sorted(saved.keys() | wanted.keys())
        return [name for key in names for name in _differences(saved.get(key), wanted.get(key), f"{prefix}{key}.")]
    return [] if saved == wanted else [prefix.rstrip(".")]

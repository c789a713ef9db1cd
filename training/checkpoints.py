"""Checkpoints of a run: `last.pt` to go on from, `best.pt` with the best model by the dev measure.

A file is replaced in one rename, so a kill leaves the old one or the new one. Files hold tensors and plain
data only and are read with torch's restricted unpickler.
"""

import os
import pickle
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from helios.index.durable import fsync_path
from training.errors import TrainingError

LAST = "last.pt"
BEST = "best.pt"
FORMAT = 1


@dataclass(slots=True)
class Progress:
    """Where a run stands; changes as it goes."""

    step: int = 0
    """Optimiser steps done."""
    epoch: int = 0
    batch: int = 0
    """Batches done in this epoch."""
    seconds: float = 0.0
    """Time spent, over all restarts."""
    loss_sum: float = 0.0
    """Losses since the last line of the log, and how many steps they are of."""
    loss_steps: int = 0
    best_score: float | None = None
    best_step: int = 0
    waited: int = 0
    """Measurements since the best one."""
    measured_step: int = -1
    scores: dict[str, float] = field(default_factory=dict)
    """The last measurement."""


def save_last(folder: Path, progress: Progress, *, model: Any, optimizer: Any) -> None:
    """Everything that a resume needs."""
    _save(folder / LAST, {"progress": asdict(progress), "model": model, "optimizer": optimizer})


def load_last(folder: Path) -> tuple[Progress, Any, Any] | None:
    """Progress, model state and optimiser state; None where no run has saved yet."""
    if not (folder / LAST).is_file():
        return None
    saved = _load(folder / LAST)
    return Progress(**saved["progress"]), saved["model"], saved["optimizer"]


def save_best(folder: Path, progress: Progress, *, model: Any) -> None:
    """The model alone, with its scores."""
    _save(folder / BEST, {"progress": asdict(progress), "model": model})


def load_best(folder: Path) -> tuple[Progress, Any]:
    """The best model's state and the progress at which it was measured; TrainingError where there is none."""
    if not (folder / BEST).is_file():
        raise TrainingError(f"{folder}: no {BEST}; train there first")
    saved = _load(folder / BEST)
    return Progress(**saved["progress"]), saved["model"]


def _save(path: Path, content: dict[str, Any]) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        torch.save({"format": FORMAT, **content}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    fsync_path(path.parent)


def _load(path: Path) -> dict[str, Any]:
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise TrainingError(f"{path}: not a readable checkpoint ({error}); move it away to start anew") from error
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise TrainingError(f"{path}: not a checkpoint of this version (expected format {FORMAT})")
    return saved

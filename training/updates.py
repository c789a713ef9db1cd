"""What of an encoder is trained, low-rank updates or all weights, and how either becomes an adapter file.

A full run is exported as the truncated SVD of what it changed: search loads both kinds of run alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from helios.models.adapters import adapter_tensors, add_adapter, apply_adapter
from helios.models.bert import Bert, load_bert
from training.errors import TrainingError

Update = Literal["lora", "full"]


def prepare(
    bert: Bert, update: Update, *, rank: int, scale: float, start: Path | None = None, words: bool = True
) -> list[nn.Parameter]:  # fmt: skip
    """Make an encoder ready for training, in place, from an adapter where `start` names one; what is to be trained.

    Without `words` a full run leaves the word embeddings, half of the weights of a small encoder, as they are.
    """
    if update == "full":
        if start is not None:
            apply_adapter(bert, start)
        bert.requires_grad_()
        bert.embeddings.word_embeddings.requires_grad_(words)
        return [parameter for parameter in bert.parameters() if parameter.requires_grad]
    trained = add_adapter(bert, rank=rank, scale=scale)
    if start is not None:
        begin_from(bert, start, scale=scale)
    return trained


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


@dataclass(frozen=True, slots=True)
class Exported:
    """The tensors of an adapter file, the scale to write with them, and what was lost."""

    tensors: dict[str, Tensor]
    scale: float
    errors: Mapping[str, float]
    """||change - written|| / ||change||, Frobenius norms, by part of the encoder; empty where nothing is lost."""


def export(
    bert: Bert, update: Update, *, base: Path, rank: int, scale: float, words: bool = True
) -> Exported:  # fmt: skip
    """What turns the base of a folder into the trained encoder, as `helios.models.adapters` reads it.

    Without `words` the change of a full run's word embeddings is not written.
    """
    if update == "lora":
        return Exported({name: tensor.cpu() for name, tensor in adapter_tensors(bert).items()}, scale, {})
    before = dict(load_bert(base).named_parameters())
    changes = {
        name: parameter.detach().cpu().float() - before[name].detach()
        for name, parameter in bert.named_parameters()
        if words or name != "embeddings.word_embeddings.weight"
    }
    return compress(changes, rank=rank)


def compress(changes: Mapping[str, Tensor], *, rank: int) -> Exported:
    """Changes of weights by name as low-rank factors, those of vectors as they are; errors count bf16 rounding."""
    tensors: dict[str, Tensor] = {}
    squares: dict[str, list[float]] = {}
    for name, change in changes.items():
        if not change.any():
            continue
        written = _vector(name, change, tensors) if change.ndim == 1 else _matrix(name, change, rank, tensors)
        part = "embeddings" if name.startswith("embeddings.") else "layers"
        for key in (part, "all"):
            lost, whole = squares.setdefault(key, [0.0, 0.0])
            squares[key] = [lost + float((change - written).square().sum()), whole + float(change.square().sum())]
    return Exported(tensors, 1.0, {key: (lost / whole) ** 0.5 for key, (lost, whole) in squares.items()})


def _vector(name: str, change: Tensor, tensors: dict[str, Tensor]) -> Tensor:
    tensors[f"{name}.delta"] = change
    return change.to(torch.bfloat16).float()


def _matrix(name: str, change: Tensor, rank: int, tensors: dict[str, Tensor]) -> Tensor:
    """The best factors of a rank, both with the same norms."""
    left, values, right = torch.linalg.svd(change, full_matrices=False)
    roots = values[:rank].sqrt()
    stem = name.removesuffix(".weight")
    up, down = left[:, :rank] * roots, right[:rank] * roots[:, None]
    tensors[f"{stem}.A"], tensors[f"{stem}.B"] = down, up
    written: Tensor = up.to(torch.bfloat16).float() @ down.to(torch.bfloat16).float()
    return written

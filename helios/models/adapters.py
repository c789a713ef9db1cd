"""Low-rank adapters of the shared encoder: small files that turn the base into one of our trained models.

A linear layer with weight W becomes W + scale · B A. A file is safetensors with `layers.N.NAME.A` (rank, in) and
`layers.N.NAME.B` (out, rank), the trained tensors of a head under names that begin with `head.`, and metadata.
Files of full training also update embeddings so, and hold `PARAMETER.delta` for biases and norms: what is added.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helios.errors import ModelError
from helios.models.bert import Bert

TARGETS = ("query", "key", "value", "output", "up", "down")
"""Linear layers of `helios.models.bert.Layer` that an adapter changes."""


class LowRankLinear(nn.Module):
    """A frozen linear layer with a trainable low-rank update; begins as the layer it wraps."""

    def __init__(self, base: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = scale
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=5**0.5)

    def forward(self, x: Tensor) -> Tensor:
        changed: Tensor = self.base(x) + F.linear(F.linear(x, self.A), self.B) * self.scale
        return changed


def add_adapter(bert: Bert, *, rank: int, scale: float) -> list[nn.Parameter]:
    """Freeze an encoder and wrap its linear layers for training, in place; returns what is to be trained."""
    bert.requires_grad_(False)
    for layer in bert.layers:
        for name in TARGETS:
            setattr(layer, name, LowRankLinear(getattr(layer, name), rank, scale))
    return [parameter for parameter in bert.parameters() if parameter.requires_grad]


def adapter_tensors(bert: Bert) -> dict[str, Tensor]:
    """The trained updates of an encoder that `add_adapter` wrapped, under the names of the file."""
    found = {}
    for name, module in _adapted(bert):
        found[f"{name}.A"] = module.A.detach().clone()
        found[f"{name}.B"] = module.B.detach().clone()
    return found


def save_adapter(path: Path, tensors: Mapping[str, Tensor], *, scale: float, metadata: Mapping[str, str]) -> None:
    """Write updates and heads in bf16, half the size of fp32; `metadata` says what they are and from what."""
    from safetensors.torch import save_file

    halved = {name: tensor.detach().to(torch.bfloat16).contiguous() for name, tensor in tensors.items()}
    save_file(halved, path, {"scale": str(scale), **metadata})


def apply_adapter(bert: Bert, path: Path) -> dict[str, Tensor]:
    """Add the updates of a file to an encoder's weights, in place; returns the tensors of its heads, in fp32.

    Raises ModelError for a file that cannot be read or does not fit the encoder.
    """
    scale, tensors = read_adapter(path)
    parameters: dict[str, Any] = dict(bert.named_parameters())
    for name in sorted(tensors):
        if name.endswith(".delta"):
            _add(parameters.get(name.removesuffix(".delta")), tensors[name], f"{path}: {name}")
        if not name.endswith(".A"):
            continue
        target = f"{name.removesuffix('.A')}.weight"
        down, up = tensors[name], tensors.get(f"{name.removesuffix('.A')}.B")
        weight = parameters.get(target)
        if weight is None or up is None or (up.shape[0], down.shape[1]) != tuple(weight.shape):
            raise ModelError(f"{path}: {name} does not fit {target} of this encoder; was it trained from another base?")
        with torch.no_grad():
            weight += scale * (up @ down)
    return {name: tensor for name, tensor in tensors.items() if name.startswith("head.")}


def _add(parameter: Tensor | None, delta: Tensor, what: str) -> None:
    if parameter is None or parameter.shape != delta.shape:
        raise ModelError(f"{what} does not fit this encoder; was it trained from another base?")
    with torch.no_grad():
        parameter += delta


def read_adapter(path: Path) -> tuple[float, dict[str, Tensor]]:
    """Scale and tensors of a file, in fp32; ModelError for one that cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            names: list[str] = list(file.keys())
            scale = float((file.metadata() or {})["scale"])
            return scale, {name: file.get_tensor(name).float() for name in names}
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ModelError(f"{path}: no readable adapter ({error})") from error


def _adapted(bert: Bert) -> Iterator[tuple[str, LowRankLinear]]:
    for number, layer in enumerate(bert.layers):
        for name in TARGETS:
            module = getattr(layer, name)
            if isinstance(module, LowRankLinear):
                yield f"layers.{number}.{name}", module

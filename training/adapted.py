"""What recipes of small readers share: the encoder with an adapter and linear heads, trained together."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helios.errors import ModelError
from helios.models.adapters import adapter_tensors, add_adapter, read_adapter, save_adapter
from helios.models.base import find_base_model
from helios.models.bert import load_bert
from training.trainer import ParameterGroup

LENGTH = 20.0
"""The vectors are made this long before the heads read them, about what the encoder gives."""


class AdaptedModel(nn.Module):
    """The encoder with an adapter, and heads that read `inputs` of its vectors side by side."""

    def __init__(self, folder: Path, heads: Mapping[str, tuple[int, int]], *, rank: int, scale: float) -> None:
        super().__init__()
        self.bert = load_bert(folder)
        self.adapted = add_adapter(self.bert, rank=rank, scale=scale)
        size = self.bert.config.hidden_size
        self.heads = nn.ModuleDict({name: nn.Linear(inputs * size, out) for name, (inputs, out) in heads.items()})

    def vectors(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """Vectors of the tokens, all of one length: (B, L, D)."""
        lengths, device = np.array([len(one) for one in sequences]), next(self.heads.parameters()).device
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = np.concatenate([np.asarray(one, np.int64) for one in sequences])
        hidden: Tensor = self.bert(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device))
        return F.normalize(hidden.float(), dim=-1) * LENGTH


class AdaptedRecipe:
    """Everything of a recipe of `training.trainer` but its lessons and its loss."""

    def __init__(
        self, heads: Mapping[str, tuple[int, int]], *, role: str, rank: int, scale: float, head_scale: float, seed: int,
        device: torch.device | str,
    ) -> None:  # fmt: skip
        torch.manual_seed(seed)
        self.role, self.scale, self.head_scale = role, scale, head_scale
        self.base = find_base_model(None)
        self.model = AdaptedModel(self.base.folder, heads, rank=rank, scale=scale).to(torch.device(device))
        self.trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def begin_from(self, path: Path) -> None:
        """Take over the adapter of a file, and its heads if it has them; ModelError for another rank or base."""
        scale, tensors = read_adapter(path)
        own_heads = all(f"head.{name}.weight" in tensors for name in self.model.heads)
        with torch.no_grad():
            for name, head in self.model.heads.items() if own_heads else ():
                assert isinstance(head, nn.Linear)
                head.weight.copy_(tensors[f"head.{name}.weight"] / LENGTH)
                head.bias.copy_(tensors[f"head.{name}.bias"])
            for name, parameter in self.model.bert.named_parameters():
                if parameter.requires_grad:
                    found = tensors.get(name)
                    if found is None or found.shape != parameter.shape or scale != self.scale:
                        raise ModelError(f"{path}: {name} does not fit an adapter of this rank, scale and base")
                    parameter.copy_(found)

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        """The adapter, and the heads, which learn faster."""
        heads = list(self.model.heads.parameters())
        return [ParameterGroup(self.model.adapted), ParameterGroup(heads, scale=self.head_scale)]

    def evaluate(self) -> Mapping[str, float]:
        """Nothing: what the model is worth is measured with the whole reader."""
        return {}

    def state_dict(self) -> Mapping[str, Any]:
        return {name: parameter.detach().cpu().clone() for name, parameter in self.trained.items()}

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        with torch.no_grad():
            for name, parameter in self.trained.items():
                parameter.copy_(state[name])

    def save(self, path: Path) -> None:
        """Write the file that `helios.models.headed.HeadedEncoder` reads; its heads read unit vectors."""
        heads = {}
        for name, head in self.model.heads.items():
            assert isinstance(head, nn.Linear)
            heads[f"head.{name}.weight"] = head.weight.detach().cpu() * LENGTH
            heads[f"head.{name}.bias"] = head.bias.detach().cpu()
        tensors = {name: tensor.cpu() for name, tensor in adapter_tensors(self.model.bert).items()}
        save_adapter(path, tensors | heads, scale=self.scale, metadata={"role": self.role, "base": self.base.sha256})


def batches_of_like(lengths: Sequence[int], size: int, chance: random.Random) -> list[list[int]]:
    """Numbers of lessons in batches of like length, in a new order."""
    order = list(range(len(lengths)))
    chance.shuffle(order)
    found = []
    for start in range(0, len(order), 20 * size):
        near = sorted(order[start : start + 20 * size], key=lambda at: lengths[at])
        found += [near[at : at + size] for at in range(0, len(near), size)]
    chance.shuffle(found)
    return found

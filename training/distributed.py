"""Several processes that train one model, as torchrun starts them; one process is the simple case.

Gradients are summed in one message an optimiser step, so a recipe needs no wrapper and may run its model as
often as it likes in one step.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist

from training.errors import TrainingError

DEADLINE = timedelta(hours=2)
"""How long a process waits for the others, an evaluation included."""


@dataclass(frozen=True, slots=True)
class World:
    """This process's number and how many there are."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process evaluates, saves and logs."""
        return self.rank == 0

    def share(self, value: Any) -> Any:
        """The leader's value, in every process."""
        if self.size == 1:
            return value
        box = [value if self.leads else None]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def copy_from_leader(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite tensors with the leader's."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def sum_gradients(self, parameters: Sequence[nn.Parameter], loss: Tensor) -> Tensor:
        """Sum gradients over all processes, in place, and the loss, which is returned.

        A gradient that no process has stays None, so that the optimiser leaves its parameter alone.
        """
        if self.size == 1:
            return loss
        present = [float(parameter.grad is not None) for parameter in parameters]
        gradients = [_gradient(parameter).reshape(-1).float() for parameter in parameters]
        flat = torch.cat([*gradients, loss.new_tensor(present), loss.reshape(1).float()])
        dist.all_reduce(flat)
        held = flat[-1 - len(parameters) : -1].tolist()
        place = 0
        for parameter, processes in zip(parameters, held, strict=True):
            summed = flat[place : place + parameter.numel()].view_as(parameter)
            parameter.grad = summed.to(parameter.dtype) if processes else None
            place += parameter.numel()
        return flat[-1]


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


@contextmanager
def world(device: torch.device) -> Iterator[World]:
    """Join the processes that torchrun started (gloo on CPUs, NCCL on GPUs); alone without torchrun."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    if dist.is_initialized():
        yield World(dist.get_rank(), dist.get_world_size())
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=DEADLINE)
    try:
        yield World(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


def leads() -> bool:
    """Whether this process writes files and prints: the only one, or torchrun's first."""
    return os.environ.get("RANK", "0") == "0"


def local_device(name: str = "auto") -> torch.device:
    """The device of this process: `auto` is a GPU where there is one, its number from torchrun's LOCAL_RANK."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if name == "cuda" else torch.device(name)
    except RuntimeError:
        raise TrainingError(f"--device {name}: no such device; expected auto, cpu, cuda or cuda:1") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise TrainingError(f"--device {name}: torch finds {torch.cuda.device_count()} GPUs here; use cpu or auto")
    return device

"""Texts through an encoder in chunks of like length, each chunk forward and backward on a core of its own.

Cores that share one multiplication wait for the slower of them at every layer; chunks wait once a step. To autograd
the whole is one function of the encoder's parameters, so losses, accumulation and several processes need nothing
special. Gradients are summed in the order of the chunks: the result does not depend on the number of cores.

Shape legend: N texts of a chunk, L tokens, D hidden size.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from helios.models.bert import Bert

Tokens = tuple[list[int], NDArray[np.int64]]
"""Token numbers of a text, and which of them are kept as vectors."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Unit vectors of texts, chunk by chunk."""

    order: tuple[int, ...]
    """The number of each text, in the order of the chunks."""
    vectors: tuple[Tensor, ...]
    """(N, L, D), in fp32."""
    kept: tuple[Tensor, ...]
    """(N, L): which of them are tokens that search stores."""

    def chunks(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self.vectors, self.kept, strict=True)

    def in_order(self, columns: Sequence[Tensor]) -> Tensor:
        """Values (..., N) of the chunks, joined in the order of the texts."""
        joined = torch.cat(list(columns), dim=-1)
        back = torch.empty(len(self.order), dtype=torch.long, device=joined.device)
        back[torch.tensor(self.order, device=joined.device)] = torch.arange(len(self.order), device=joined.device)
        return joined[..., back]


class ParallelEncoder:
    """Encodes texts for training (with a graph) and for measuring (without).

    `recompute` keeps no activations between forward and backward but encodes every chunk again: a third slower,
    and memory holds one chunk a core however large the batch is.
    """

    def __init__(self, bert: Bert, *, lanes: int = 1, chunk_tokens: int = 2048, recompute: bool = False) -> None:
        self.bert = bert
        self.chunk_tokens = chunk_tokens
        self.recompute = recompute
        self.parameters = [parameter for parameter in bert.parameters() if parameter.requires_grad]
        self._pool = ThreadPoolExecutor(lanes, thread_name_prefix="encode") if lanes > 1 else None

    def encode(self, texts: Sequence[Tokens]) -> Encoded:
        """Vectors of texts; with a graph where gradients are on."""
        order = sorted(range(len(texts)), key=lambda n: (-len(texts[n][0]), n))
        chunks, start = [], 0
        while start < len(order):
            stop = start + max(1, self.chunk_tokens // len(texts[order[start]][0]))
            chunks.append(_padded([texts[n] for n in order[start:stop]], self._device))
            start = stop
        work = _Work(self.bert, chunks, self.parameters, self._map, self.recompute, _precision(self._device))
        if torch.is_grad_enabled():
            vectors: tuple[Tensor, ...] = _Encoding.apply(work, *self.parameters)
        else:
            vectors = work.forward(with_graph=False)
        return Encoded(tuple(order), vectors, tuple(chunk.kept_NL for chunk in chunks))

    @property
    def _device(self) -> torch.device:
        return self.bert.embeddings.word_embeddings.weight.device

    def _map(self, do: Callable[..., Any], *items: Sequence[Any]) -> Iterator[Any]:
        return self._pool.map(do, *items) if self._pool else map(do, *items)


@contextmanager
def one_thread_an_operation(device: torch.device) -> Iterator[int]:
    """Let operations on processors run on one core each, and restore it; gives the number of cores there were."""
    lanes = torch.get_num_threads()
    if device.type != "cpu":
        yield 1
        return
    torch.set_num_threads(1)
    try:
        yield lanes
    finally:
        torch.set_num_threads(lanes)


@dataclass(frozen=True, slots=True)
class _Chunk:
    ids_NL: Tensor
    mask_NL: Tensor
    kept_NL: Tensor


class _Work:
    """One encoding: its chunks, and their graphs from forward to backward."""

    def __init__(
        self, bert: Bert, chunks: Sequence[_Chunk], parameters: Sequence[nn.Parameter],
        each: Callable[..., Iterator[Any]], recompute: bool, precision: Callable[[], Any],
    ) -> None:  # fmt: skip
        self.bert, self.chunks, self.parameters = bert, chunks, parameters
        self.each, self.recompute, self.precision = each, recompute, precision
        self.graphs: list[Tensor] = []

    def forward(self, *, with_graph: bool) -> tuple[Tensor, ...]:
        keeps = with_graph and not self.recompute
        vectors = list(self.each(lambda chunk: self._encode(chunk, with_graph=keeps), self.chunks))
        self.graphs = vectors if keeps else []
        return tuple(one.detach() for one in vectors)

    def backward(self, gradients: Sequence[Tensor]) -> list[Tensor | None]:
        """Gradients of the parameters, given those of each chunk's vectors; once."""
        graphs: Sequence[Tensor | None] = self.graphs or [None] * len(self.chunks)
        self.graphs = []
        total: list[Tensor | None] = [None] * len(self.parameters)
        for parts in self.each(self._gradients, self.chunks, graphs, gradients):
            total = [
                part if so_far is None else so_far if part is None else so_far.add_(part)
                for so_far, part in zip(total, parts, strict=True)
            ]
        return total

    def _gradients(self, chunk: _Chunk, graph: Tensor | None, gradient: Tensor) -> tuple[Tensor | None, ...]:
        vectors = self._encode(chunk, with_graph=True) if graph is None else graph
        return torch.autograd.grad(vectors, self.parameters, gradient, allow_unused=True)

    def _encode(self, chunk: _Chunk, *, with_graph: bool) -> Tensor:
        """Threads have settings of their own: gradients and precision are those of the caller."""
        with torch.set_grad_enabled(with_graph), self.precision():
            vectors_NLD = self.bert(chunk.ids_NL, chunk.mask_NL)
            return F.normalize(vectors_NLD.float(), dim=-1)


class _Encoding(torch.autograd.Function):
    """Chunks of texts as a function of the encoder's parameters."""

    @staticmethod
    def forward(ctx: Any, work: _Work, *parameters: Tensor) -> tuple[Tensor, ...]:
        ctx.work = work
        return work.forward(with_graph=True)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return (None, *ctx.work.backward(gradients))


def _precision(device: torch.device) -> Callable[[], Any]:
    """The precision of this thread, to be entered in others; weights are cast once a chunk, so nothing is kept."""
    kind = device.type
    enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    return lambda: torch.autocast(kind, dtype, enabled=enabled, cache_enabled=False)


def _padded(texts: Sequence[Tokens], device: torch.device) -> _Chunk:
    length = max(len(ids) for ids, _ in texts)
    ids_NL = torch.zeros(len(texts), length, dtype=torch.long)
    mask_NL = torch.zeros(len(texts), length)
    kept_NL = torch.zeros(len(texts), length, dtype=torch.bool)
    for row, (ids, kept) in enumerate(texts):
        ids_NL[row, : len(ids)] = torch.tensor(ids)
        mask_NL[row, : len(ids)] = 1
        kept_NL[row, torch.from_numpy(kept)] = True
    return _Chunk(ids_NL.to(device), mask_NL.to(device), kept_NL.to(device))

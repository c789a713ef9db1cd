"""Ways that a BERT-shaped encoder can take through this machine: OpenVINO or torch, in bf16 or fp32, or a GPU.

A route turns lists of token numbers into unit vectors, one array (L, D) a text, in order.
"""

import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.checkpoint import Checkpoint
from helios.models.compiled import CompiledBert, is_installed
from helios.models.runtime import supports_bf16

if TYPE_CHECKING:
    from helios.models.bert import Bert

FloatArray = NDArray[np.float32]
Runtime = Literal["auto", "openvino", "torch"]
Device = Literal["auto", "cpu", "cuda"]
GPU_BATCH_TOKENS = 131_072
"""Tokens, with what fills up shorter texts, that a GPU reads at once."""
MOST_ON_GPU = 16
"""Processes that feed a GPU; more would wait for it."""
_GPU_BYTES, _GPU_BYTES_OF_NUMBER = 1_200_000_000, 36
"""Of a process with its weights, and of each number of the vectors that it reads at once: 1.7 GB were seen on an H200
at 384 dimensions, beside half a GB of CUDA's own."""
_GPU_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")
"""Where there is neither, importing torch to ask for a GPU would cost a second for nothing."""
Loaded = TypeVar("Loaded")
_SHARED: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
"""Models that encoders of this process hold, by what their vectors depend on: weights never change."""
_SHARING = RLock()


class Route(Protocol):
    """A way to encode texts."""

    def encode(self, texts: Sequence[Sequence[int]]) -> Iterator[FloatArray]:
        """Unit vectors (L, D) of every text's tokens, in order."""


class OpenVinoRoute:
    """A few short texts or a long one on each processor."""

    def __init__(self, bert: CompiledBert) -> None:
        self._bert = bert

    def encode(self, texts: Sequence[Sequence[int]]) -> Iterator[FloatArray]:
        """Unit vectors of every text's tokens; long texts first, so that no processor waits for the last one."""
        order = np.argsort([-len(ids) for ids in texts], kind="stable").tolist()
        found = dict(zip(order, self._bert.many([texts[at] for at in order]), strict=True))
        return (found.pop(at) for at in range(len(texts)))


class TorchRoute:
    """Texts of like length in batches, on as many threads as torch is set to."""

    def __init__(self, bert: "Bert", *, bf16: bool, batch_tokens: int, device: str = "cpu") -> None:
        self._bert = bert
        self._bf16 = bf16
        self._batch_tokens = batch_tokens
        self._device = device

    def encode(self, texts: Sequence[Sequence[int]]) -> Iterator[FloatArray]:
        """Unit vectors of every text's tokens; ModelError where a GPU has no memory for one text.

        A GPU without memory for so many at once reads fewer from then on.
        """
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        found: dict[int, FloatArray] = {}
        while order:
            size = max(1, self._batch_tokens // len(texts[order[0]]))
            batch = order[:size]
            vectors = self._forward([texts[at] for at in batch])
            if vectors is None:
                self._read_fewer(len(batch) * len(texts[batch[0]]), alone=len(batch) == 1)
                continue
            order = order[size:]
            ends = np.cumsum([len(texts[at]) for at in batch])[:-1]
            found |= dict(zip(batch, np.split(vectors, ends), strict=True))
        return (found.pop(at) for at in range(len(texts)))

    def _forward(self, batch: Sequence[Sequence[int]]) -> FloatArray | None:
        """Unit vectors of the texts' tokens, one text after another: (T, D); None where a GPU has too little memory."""
        import torch

        try:
            ids, mask = (torch.from_numpy(array).to(self._device) for array in _padded(batch))
            with torch.inference_mode(), torch.autocast(self._device, torch.bfloat16, enabled=self._bf16):
                vectors = self._bert(ids, mask)[mask.bool()].float()
                unit: FloatArray = torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()
            return unit
        except torch.cuda.OutOfMemoryError:
            return None

    def _read_fewer(self, tokens: int, *, alone: bool) -> None:
        """Half of the tokens at once from now on."""
        import torch

        if alone:
            raise ModelError(
                f"the GPU has no memory for a text of {tokens} tokens: free it, or set encoder.device=cpu; "
                "finished work is kept"
            )
        self._batch_tokens = tokens // 2
        torch.cuda.empty_cache()


def document_route(
    read: Callable[[], Checkpoint], runtime: Runtime, threads: int, *, batch_tokens: int, fingerprint: str,
    device: Device = "cpu",
) -> Route:  # fmt: skip
    """The fastest route for texts that are indexed or read again; ModelError for what is not installed.

    `read` reads the weights. What some encoder of this process holds already, and a model from the user's cache, do
    without: they are found by the `fingerprint`. A GPU reads in bf16, and many more tokens at once.
    """
    if uses_gpu(device):
        from helios.models.bert import bert_of

        try:
            bert = _shared(("cuda", fingerprint), lambda: bert_of(read()).to("cuda"))
        except RuntimeError as error:
            why = str(error).splitlines()[0]
            raise ModelError(f"the GPU does not take the encoder ({why}); set encoder.device=cpu") from error
        return TorchRoute(bert, bf16=True, batch_tokens=max(batch_tokens, GPU_BATCH_TOKENS), device="cuda")
    if _uses_openvino(runtime):
        return OpenVinoRoute(_compiled(read, bf16=supports_bf16(), lanes=threads, fingerprint=fingerprint))
    return TorchRoute(_module(read, fingerprint), bf16=supports_bf16(), batch_tokens=batch_tokens)


def question_route(read: Callable[[], Checkpoint], runtime: Runtime, *, fingerprint: str) -> Route:
    """The most exact route, of one thread; ModelError for a runtime that is not installed."""
    if _uses_openvino(runtime):
        return OpenVinoRoute(_compiled(read, bf16=False, lanes=1, fingerprint=fingerprint))
    return TorchRoute(_module(read, fingerprint), bf16=False, batch_tokens=1)


def _compiled(read: Callable[[], Checkpoint], *, bf16: bool, lanes: int, fingerprint: str) -> CompiledBert:
    return _shared(
        ("openvino", fingerprint, bf16, lanes),
        lambda: CompiledBert(read, bf16=bf16, lanes=lanes, fingerprint=fingerprint),
    )


def _module(read: Callable[[], Checkpoint], fingerprint: str) -> "Bert":
    from helios.models.bert import bert_of

    return _shared(("torch", fingerprint), lambda: bert_of(read()))


def _shared(key: Hashable, load: Callable[[], Loaded]) -> Loaded:
    """What encoders of this process have in common, for as long as one of them holds it: 90 MB and a second each."""
    with _SHARING:
        loaded: Loaded | None = _SHARED.get(key)
        if loaded is None:
            loaded = _SHARED[key] = load()
        return loaded


@dataclass(frozen=True, slots=True)
class RouteSpeed:
    """How fast a route is, in tokens a second, and how near its vectors are to torch's in fp32 (mean, worst cosine)."""

    route: str
    tokens_per_second: float
    mean_cosine: float
    worst_cosine: float


def measure_routes(
    checkpoint: Checkpoint, texts: Sequence[Sequence[int]], *, threads: int, repeats: int = 5
) -> Iterator[RouteSpeed]:
    """The median speed of every route that is installed, on some texts; the first route is the reference."""
    reference: FloatArray | None = None
    tokens = sum(map(len, texts))
    for name, route in _routes(checkpoint, threads):
        vectors = np.concatenate(list(route.encode(texts)))
        seconds = []
        for _ in range(repeats):
            started = time.perf_counter()
            list(route.encode(texts))
            seconds.append(time.perf_counter() - started)
        reference = vectors if reference is None else reference
        cosines = np.einsum("ld,ld->l", vectors, reference)
        yield RouteSpeed(name, tokens / float(np.median(seconds)), float(cosines.mean()), float(cosines.min()))


def _routes(checkpoint: Checkpoint, threads: int) -> Iterator[tuple[str, Route]]:
    for bf16 in (False, True) if supports_bf16() else (False,):
        precision = "bf16" if bf16 else "fp32"
        if has_torch():
            from helios.models.bert import bert_of

            yield f"torch {precision}", TorchRoute(bert_of(checkpoint), bf16=bf16, batch_tokens=4096)
        if is_installed():
            yield f"openvino {precision}", OpenVinoRoute(CompiledBert(lambda: checkpoint, bf16=bf16, lanes=threads))
    if uses_gpu("auto"):
        from helios.models.bert import bert_of

        on_gpu = bert_of(checkpoint).to("cuda")
        yield "cuda bf16", TorchRoute(on_gpu, bf16=True, batch_tokens=GPU_BATCH_TOKENS, device="cuda")


def has_torch() -> bool:
    """Whether this interpreter has torch."""
    return find_spec("torch") is not None


def uses_gpu(device: Device) -> bool:
    """Whether this machine's GPU is used; ModelError where it was asked for and torch finds none."""
    driven = any(Path(place).exists() for place in _GPU_DRIVERS) or os.name == "nt"
    if device == "cpu" or (device == "auto" and not driven):
        return False
    if not has_torch():
        if device == "auto":
            return False
        raise ModelError("encoder.device=cuda needs torch, which is not installed: pip install torch")
    import torch

    problem = "finds no CUDA GPU" if not torch.cuda.is_available() else _gpu_problem()
    if problem and device == "cuda":
        raise ModelError(
            f"encoder.device=cuda, but torch {torch.__version__} {problem}: install a build of torch for CUDA and the "
            "driver (`helios doctor` lists the GPUs), or set encoder.device=cpu"
        )
    return not problem


@cache
def _gpu_problem() -> str:
    """Why the GPU that torch finds computes nothing: too old for this torch, full, or somebody else's; or nothing."""
    import torch

    try:
        ones = torch.ones(8, 8, device="cuda", dtype=torch.bfloat16)
        return "" if float((ones @ ones).sum()) == 512.0 else "computes wrongly on its GPU"
    except RuntimeError as error:
        return f"cannot use its GPU ({str(error).splitlines()[0]})"


def gpu_room(dimension: int) -> int:
    """How many processes can read on the GPU at once by its free memory, at least one; it has been found before."""
    import torch

    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    each = _GPU_BYTES + _GPU_BYTES_OF_NUMBER * GPU_BATCH_TOKENS * dimension
    return max(1, min(MOST_ON_GPU, free // each))


def _uses_openvino(runtime: Runtime) -> bool:
    if runtime == "torch" or (runtime == "auto" and not is_installed()):
        if not has_torch():
            raise ModelError("encoding needs OpenVINO or torch, and neither is installed: pip install openvino")
        return False
    if not is_installed():
        raise ModelError("encoder.runtime=openvino, but openvino is not installed: pip install openvino")
    return True


def _padded(batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token numbers and mask (B, L) of texts of any length."""
    length = max(map(len, batch))
    ids, mask = np.zeros((len(batch), length), np.int64), np.zeros((len(batch), length), np.int64)
    for row, numbers in enumerate(batch):
        ids[row, : len(numbers)] = numbers
        mask[row, : len(numbers)] = 1
    return ids, mask

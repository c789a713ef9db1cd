"""Routes that a BERT-shaped encoder can take through this machine: torch or OpenVINO, in bf16 or fp32.

A route is a function from token ids and mask (B, L) to unit vectors (B, L, D).
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.runtime import supports_bf16

FloatArray = NDArray[np.float32]
Runtime = Literal["auto", "openvino", "torch"]
Batch = tuple[NDArray[np.int64], NDArray[np.int64]]
Forward = Callable[[NDArray[np.int64], NDArray[np.int64]], FloatArray]


class Route:
    """A way to encode batches, `lanes` of them at a time.

    One core a batch leaves no core waiting for another, as several cores for one batch did.
    """

    def __init__(self, forward: Forward, *, lanes: int = 1) -> None:
        self.forward = forward
        self.lanes = lanes
        self._pool = ThreadPoolExecutor(lanes, thread_name_prefix="encode") if lanes > 1 else None

    def encode(self, batches: Iterable[Batch]) -> Iterator[FloatArray]:
        """Unit vectors (B, L, D) of every batch of ids and mask (B, L), in order."""
        if self._pool is None:
            yield from (self.forward(ids, mask) for ids, mask in batches)
        else:
            yield from self._pool.map(lambda batch: self.forward(*batch), batches)


@dataclass(frozen=True, slots=True)
class RouteSpeed:
    """How fast a route is, in tokens a second, and how near its vectors are to torch's in fp32 (mean, worst cosine)."""

    route: str
    tokens_per_second: float
    mean_cosine: float
    worst_cosine: float


def measure_routes(module: Any, ids: NDArray[np.int64], *, threads: int, repeats: int = 5) -> Iterator[RouteSpeed]:
    """The median speed of every route that is installed, on one batch of token ids (B, L) without padding."""
    import torch

    torch.set_num_threads(threads)
    mask = np.ones_like(ids)
    reference: FloatArray | None = None
    for name, route in _routes(module, threads):
        batches = [(ids, mask)] * route.lanes
        vectors, *_ = route.encode(batches)
        seconds = []
        for _ in range(repeats):
            started = time.perf_counter()
            list(route.encode(batches))
            seconds.append((time.perf_counter() - started) / route.lanes)
        reference = vectors if reference is None else reference
        cosines = np.einsum("bld,bld->bl", vectors, reference)
        yield RouteSpeed(name, ids.size / float(np.median(seconds)), float(cosines.mean()), float(cosines.min()))


def _routes(module: Any, threads: int) -> Iterator[tuple[str, Route]]:
    yield "torch fp32", Route(torch_forward(module, bf16=False))
    if supports_bf16():
        yield "torch bf16", Route(torch_forward(module, bf16=True))
    if find_spec("openvino") is not None:
        yield "openvino fp32", openvino_route(module, threads, bf16=False)
        if supports_bf16():
            yield "openvino bf16", openvino_route(module, threads, bf16=True)


def document_route(module: Any, runtime: Runtime, threads: int | None) -> Route:
    if runtime == "openvino" or (runtime == "auto" and find_spec("openvino") is not None):
        if find_spec("openvino") is None:
            raise ModelError("encoder.runtime=openvino, but openvino is not installed: install helios-retrieval[cpu]")
        return openvino_route(module, threads, bf16=supports_bf16())
    return Route(torch_forward(module, bf16=supports_bf16()))


def torch_forward(module: Any, *, bf16: bool) -> Forward:
    import torch

    def forward(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> FloatArray:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            vectors = module(torch.from_numpy(ids), torch.from_numpy(mask)).float()
            unit: FloatArray = torch.nn.functional.normalize(vectors, dim=-1).numpy()
        return unit

    return forward


def openvino_route(module: Any, threads: int | None, *, bf16: bool) -> Route:
    lanes = threads or os.cpu_count() or 1
    run = openvino_forward(module, lanes, inputs=2, bf16=bf16)

    def forward(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> FloatArray:
        vectors = run(ids, mask)
        unit: FloatArray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        return unit

    return Route(forward, lanes=lanes)


def openvino_forward(module: Any, lanes: int, *, inputs: int, bf16: bool) -> Callable[..., FloatArray]:
    """A torch module of `inputs` integer matrices (B, L), compiled; each calling thread has a request of its own.

    What it returns belongs to the request and is overwritten by the thread's next call.
    """
    openvino = _silent_openvino()
    settings = {
        "INFERENCE_PRECISION_HINT": "bf16" if bf16 else "f32",
        "INFERENCE_NUM_THREADS": lanes,
        "NUM_STREAMS": lanes,
    }
    compiled = openvino.Core().compile_model(_openvino_graph(module, inputs), "CPU", settings)
    own = threading.local()

    def forward(*matrices: NDArray[np.int64]) -> FloatArray:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        output: FloatArray = own.request.infer(list(matrices))[0]
        return output

    return forward


def _silent_openvino() -> ModuleType:
    """OpenVINO, imported without its telemetry, which reports to its makers that it was imported.

    It takes the package for not installed and goes without. An OpenVINO that was imported before stays as it is.
    """
    telemetry = "openvino_telemetry"
    hidden = "openvino" not in sys.modules and sys.modules.setdefault(telemetry, None) is None  # type: ignore[arg-type]
    try:
        return import_module("openvino")
    finally:
        if hidden:
            del sys.modules[telemetry]


def _openvino_graph(module: Any, inputs: int) -> Any:
    """The module as OpenVINO's graph, for any batch and length.

    `openvino.convert_model` would trace the module twice more to compare, which takes seconds, and report its use; the
    frontend alone does neither.
    """
    import torch
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    example = tuple(torch.ones(2, 16, dtype=torch.long) for _ in range(inputs))
    with torch.no_grad(), warnings.catch_warnings():  # the tracer warns that it is old
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(module.eval(), example, check_trace=False)  # type: ignore[no-untyped-call]
    frontend = FrontEndManager().load_by_framework("pytorch")
    decoder = TorchScriptPythonDecoder(traced)  # has to live until the graph is there
    return frontend.convert(frontend.load(decoder))

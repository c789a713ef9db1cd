"""A BERT-shaped encoder as an OpenVINO graph, made from its weights: no torch, no tracing, a third of a second.

What was compiled is kept in the user's cache (`Kept`), from which it is mapped in a fraction of that time.

The length of a text is rounded up, and what that adds is masked: OpenVINO prepares and keeps kernels for every shape
that it meets, 1.2 MB and 4 ms each. Short texts of one length share a run, and several runs go on at once, one
processor each. A vector depends on nothing but its text: what else is in a run does not change a bit of it.

Shape legend: B batch, L tokens, D hidden size, H heads.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.models.checkpoint import BertConfig, Checkpoint
from helios.models.digests import remembered_digest
from helios.places import cache_folder

log = logging.getLogger(__name__)

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
WHOLE_BF16, WHOLE = 16, 8
"""Lengths are multiples of it: a tile of bf16 has 16 rows, which cost what one costs."""
TOGETHER = 128
"""Tokens of a run, where it has several texts; longer ones gain nothing by it."""
HIDDEN = -1e9
"""What is added to the attention that a token pays to padding."""
KEPT = 10
"""Compiled models in the cache, 90 MB each; the oldest go first. One index takes six to build, search and ask."""
_DIGEST = sha256().digest_size
_MAPPED: dict[Path, Any] = {}
"""Files of the cache that models of this process read from: OpenVINO does not hold them, so they are never let go."""


def is_installed() -> bool:
    """Whether this interpreter has OpenVINO."""
    return find_spec("openvino") is not None


class CompiledBert:
    """Unit token vectors of single texts; threads may share it, and each has a request of its own."""

    def __init__(
        self, read: Callable[[], Checkpoint], *, bf16: bool, lanes: int = 1, fingerprint: str | None = None
    ) -> None:
        """`read` is called if the model is not in the cache, where it has the name that its `fingerprint` gives."""
        self.lanes = lanes
        kept = None if fingerprint is None else Kept.of(fingerprint, _settings(bf16=bf16, lanes=lanes))
        model = None if kept is None else kept.read()
        if model is None:
            model = compiled(bert_graph(read()), bf16=bf16, lanes=lanes)
            if kept is not None:
                kept.write(model)
        self._compiled = model
        self._whole = WHOLE_BF16 if bf16 else WHOLE
        self._own = threading.local()
        self._pool = ThreadPoolExecutor(lanes, thread_name_prefix="encode") if lanes > 1 else None

    def vectors(self, ids: Sequence[int]) -> FloatArray:
        """The vectors (L, D) of one text's tokens, unit length, from their numbers."""
        return self._run([ids])[0]

    def many(self, texts: Sequence[Sequence[int]]) -> Iterator[FloatArray]:
        """The vectors of every text, in order; those of like length go best beside each other."""
        runs = list(self._runs(texts))
        yield from chain.from_iterable(map(self._run, runs) if self._pool is None else self._pool.map(self._run, runs))

    def _run(self, texts: Sequence[Sequence[int]]) -> list[FloatArray]:
        """Vectors of texts whose lengths are the same when they are rounded up."""
        if not hasattr(self._own, "request"):
            self._own.request = self._compiled.create_infer_request()
        length = self._rounded(texts[0])
        ids = np.zeros((len(texts), length), np.int64)
        mask = np.full((len(texts), 1, 1, length), HIDDEN, np.float32)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            mask[row, ..., : len(text)] = 0.0
        output = self._own.request.infer([ids, mask])[0]
        return [np.array(output[row, : len(text)], np.float32) for row, text in enumerate(texts)]

    def _runs(self, texts: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
        """Neighbours that share a run: as many as a power of two, so that shapes stay few."""
        for length, group in groupby(texts, key=self._rounded):
            left = list(group)
            while left:
                count = 1 << (max(1, min(len(left), TOGETHER // length)).bit_length() - 1)
                yield left[:count]
                left = left[count:]

    def _rounded(self, text: Sequence[int]) -> int:
        return max(1, -(-len(text) // self._whole)) * self._whole


def compiled(graph: Any, *, bf16: bool, lanes: int) -> Any:
    """A graph compiled for the processor, with `lanes` streams of one thread each."""
    return silent_openvino().Core().compile_model(graph, "CPU", _settings(bf16=bf16, lanes=lanes))


def _settings(*, bf16: bool, lanes: int) -> dict[str, Any]:
    return {
        "INFERENCE_PRECISION_HINT": "bf16" if bf16 else "f32",
        "INFERENCE_NUM_THREADS": lanes,
        "NUM_STREAMS": lanes,
    }


@dataclass(frozen=True, slots=True)
class Kept:
    """A compiled model in the user's cache, followed by its SHA-256; whatever is wrong with it, it is made again.

    Its name stands for all that changes it: the weights, the settings, this file, OpenVINO and the processor.
    """

    path: Path
    settings: dict[str, Any]

    @classmethod
    def of(cls, fingerprint: str, settings: dict[str, Any]) -> "Kept":
        """The place of a model that `fingerprint` tells from others."""
        openvino = silent_openvino()
        core = openvino.Core()
        machine = [core.get_property("CPU", name) for name in ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES")]
        parts = (fingerprint, settings, openvino.__version__, machine, _instructions(), Path(__file__).read_bytes())
        return cls(cache_folder() / "compiled" / f"{sha256(repr(parts).encode()).hexdigest()[:32]}.bin", settings)

    def read(self) -> Any | None:
        """The model, mapped from the cache; None where there is none that is whole."""
        try:
            if self.path not in _MAPPED:
                stored = np.memmap(self.path, np.uint8, "c")  # OpenVINO takes no array that is read only
                digest = remembered_digest(self.path, lambda: sha256(stored.data[:-_DIGEST]).hexdigest())
                if bytes.fromhex(digest) != stored.data[-_DIGEST:].tobytes():
                    raise ValueError("its SHA-256 is another")
                _MAPPED[self.path] = silent_openvino().Tensor(np.asarray(stored[:-_DIGEST]), shared_memory=True)
            return silent_openvino().Core().import_model(_MAPPED[self.path], "CPU", self.settings)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RuntimeError, TypeError) as error:  # OpenVINO raises RuntimeError
            log.info("%s: not used (%s); the model is compiled again", self.path, error)
            return None

    def write(self, model: Any) -> None:
        """Keep a model, and forget the oldest ones; without a word where the cache cannot be written."""
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            content = model.export_model().getbuffer()
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with temporary.open("wb") as file:
                file.write(content)
                file.write(sha256(content).digest())
            temporary.replace(self.path)
            found = sorted(self.path.parent.glob("*.bin"), key=lambda path: path.stat().st_mtime)
            for old in found[:-KEPT]:
                old.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:
            log.info("%s: the compiled model is not kept (%s)", self.path, error)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _instructions() -> str:
    """What this processor can compute, where the system says so."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def silent_openvino() -> ModuleType:
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


def bert_graph(checkpoint: Checkpoint) -> Any:
    """Token numbers (B, L) and what is added to attention (B, 1, 1, L) to unit vectors (B, L, D), in OpenVINO."""
    openvino = silent_openvino()
    build = _Builder(import_module("openvino.opset13"), checkpoint)
    ids = build.op.parameter([-1, -1], np.int64, name="ids")
    mask = build.op.parameter([-1, 1, 1, -1], np.float32, name="mask")
    hidden = build.embeddings(ids)
    for number in range(checkpoint.config.num_hidden_layers):
        hidden = build.layer(hidden, mask, f"layers.{number}")
    unit = build.op.normalize_l2(hidden, build.whole(-1), 1e-12, "max")
    return openvino.Model([build.op.result(unit)], [ids, mask], "bert")


class _Builder:
    """Nodes of the graph; names follow `helios.models.bert`."""

    def __init__(self, op: Any, checkpoint: Checkpoint) -> None:
        self.op = op
        self.config: BertConfig = checkpoint.config
        self.tensors = checkpoint.tensors

    def embeddings(self, ids: Any) -> Any:
        op = self.op
        length = op.gather(op.shape_of(ids), self.whole(1), self.whole(0))
        table = self.tensors["embeddings.position_embeddings.weight"]
        table = np.pad(table, ((0, -len(table) % WHOLE_BF16), (0, 0)))  # the longest text is rounded up too
        positions = op.slice(op.constant(table), self.whole(0), length, self.whole(1), self.whole(0))
        words = op.gather(self._constant("embeddings.word_embeddings.weight"), ids, op.constant(np.array(0, np.int64)))
        types = op.constant(self.tensors["embeddings.token_type_embeddings.weight"][0].copy())
        return self._norm(op.add(op.add(words, positions), types), "embeddings.LayerNorm")

    def layer(self, hidden: Any, mask: Any, name: str) -> Any:
        op, heads = self.op, self.config.num_attention_heads
        size = self.config.hidden_size // heads

        def split(part: str) -> Any:
            shaped = op.reshape(self._linear(hidden, f"{name}.{part}"), self.whole(0, 0, heads, size), True)
            return op.transpose(shaped, self.whole(0, 2, 1, 3))

        mixed = op.scaled_dot_product_attention(split("query"), split("key"), split("value"), mask)
        mixed = op.reshape(op.transpose(mixed, self.whole(0, 2, 1, 3)), self.whole(0, 0, heads * size), True)
        hidden = self._norm(op.add(hidden, self._linear(mixed, f"{name}.output")), f"{name}.output_norm")
        inner = op.gelu(self._linear(hidden, f"{name}.up"), "erf")
        return self._norm(op.add(hidden, self._linear(inner, f"{name}.down")), f"{name}.down_norm")

    def whole(self, *numbers: int) -> Any:
        """A constant list of whole numbers."""
        return self.op.constant(np.array(numbers, np.int64))

    def _linear(self, value: Any, name: str) -> Any:
        product = self.op.matmul(value, self._constant(f"{name}.weight"), False, True)
        return self.op.add(product, self._constant(f"{name}.bias"))

    def _norm(self, value: Any, name: str) -> Any:
        centred = self.op.mvn(value, self.whole(-1), True, self.config.layer_norm_eps, "inside_sqrt")
        return self.op.add(self.op.multiply(centred, self._constant(f"{name}.weight")), self._constant(f"{name}.bias"))

    def _constant(self, name: str) -> Any:
        return self.op.constant(np.ascontiguousarray(self.tensors[name]))

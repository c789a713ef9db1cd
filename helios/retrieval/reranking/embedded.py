"""The embedded reranker: a cross-encoder on the shared base with our adapter and head."""

import logging
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.base import BaseModel, find_base_model
from helios.models.compiled import compiled, is_installed
from helios.models.routes import Runtime
from helios.models.runtime import supports_bf16
from helios.once import once
from helios.retrieval.reranking.reranker import FloatArray, Scores, batches_of, score_batches

if TYPE_CHECKING:
    from helios.retrieval.reranking.pair_scorer import Pair, PairReader, PairScorer

log = logging.getLogger(__name__)

Role = Literal["edge", "node"]
IntArray = NDArray[np.int64]
PairForward = Callable[[IntArray, IntArray, IntArray], FloatArray]
WEIGHTS = Path(__file__).parent / "weights"


class EmbeddedReranker:
    """Scores pairs in length-sorted batches, one a core at a time; threads may share it."""

    def __init__(
        self, base: BaseModel, adapter: Path, *, runtime: Runtime = "auto", max_tokens: int = 160,
        batch_tokens: int = 1024, lanes: int | None = None,
    ) -> None:  # fmt: skip
        self.base = base
        self.adapter = adapter
        self.runtime = runtime
        self.batch_tokens = batch_tokens
        self.lanes = lanes or os.cpu_count() or 1
        self._max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"EmbeddedReranker({self.adapter.name!r}, runtime={self.runtime!r})"

    @classmethod
    def load(
        cls, role: Role, model: str | None = None, *, base: str | None = None, runtime: Runtime = "auto",
        max_tokens: int = 160, batch_tokens: int = 1024, lanes: int | None = None,
    ) -> "EmbeddedReranker":  # fmt: skip
        """The packaged reranker of a role, or the file `model`; weights are read on first use.

        Raises ModelError if there is no such file, or no base encoder.
        """
        adapter = packaged(role) if model is None else Path(model).expanduser()
        if not adapter.is_file():
            raise ModelError(f"{adapter}: no such reranker; expected a .safetensors file of `helios train`")
        return cls(
            find_base_model(base), adapter, runtime=runtime, max_tokens=max_tokens, batch_tokens=batch_tokens,
            lanes=lanes,
        )  # fmt: skip

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    @property
    def fingerprint(self) -> str:
        """A hash of everything that changes the scores."""
        return sha256(f"{self.base.sha256} {self._max_tokens} ".encode() + self.adapter.read_bytes()).hexdigest()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._reader.count_tokens(texts)

    def score(self, question: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Logits of texts; with a deadline the first ones come first, without one all are scored."""
        from helios.retrieval.reranking.pair_scorer import padded

        forward = self._forward
        pairs: list[Pair] = self._reader.read(question, texts)
        lengths = [len(pair) for pair in pairs]
        batches = batches_of(lengths, batch_tokens=self.batch_tokens, lanes=self.lanes)
        return score_batches(
            batches,
            lengths,
            lambda batch: forward(*padded([pairs[i] for i in batch])),
            deadline=deadline,
            pool=self._pool,
        )

    @once
    def _reader(self) -> "PairReader":
        from helios.retrieval.reranking.pair_scorer import PairReader

        return PairReader(self.base.folder, max_tokens=self._max_tokens)

    @once
    def _forward(self) -> PairForward:
        from helios.models.bert import load_bert
        from helios.retrieval.reranking.pair_scorer import load_pair_scorer, require_base

        require_base(self.adapter, self.base)
        bert = load_bert(self.base.folder)
        if self._max_tokens > bert.config.max_position_embeddings:
            raise ModelError(
                f"advanced.rerank.max_tokens={self._max_tokens}, but {self.base.folder} reads at most "
                f"{bert.config.max_position_embeddings} tokens: set it to that or less"
            )
        return pair_forward(load_pair_scorer(bert, self.adapter), self.runtime, self.lanes)

    @once
    def _pool(self) -> ThreadPoolExecutor | None:
        return ThreadPoolExecutor(self.lanes, thread_name_prefix="rerank") if self.lanes > 1 else None


def packaged(role: Role) -> Path:
    """Where the package keeps the reranker of a role."""
    return WEIGHTS / role / f"{role}-reranker.safetensors"


def pair_forward(scorer: "PairScorer", runtime: Runtime, lanes: int) -> PairForward:
    """The fastest way through this machine for one batch on one core: ids, mask and types (B, L) to logits (B)."""
    if runtime == "openvino" or (runtime == "auto" and is_installed()):
        if not is_installed():
            raise ModelError("encoder.runtime=openvino, but openvino is not installed: pip install openvino")
        return _openvino_forward(scorer, lanes, bf16=supports_bf16())
    return torch_pair_forward(scorer, bf16=supports_bf16())


def torch_pair_forward(scorer: "PairScorer", *, bf16: bool) -> PairForward:
    """Through torch, on as many threads as torch is set to."""
    import torch

    def forward(ids: IntArray, mask: IntArray, types: IntArray) -> FloatArray:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            logits: FloatArray = scorer(*(torch.from_numpy(array) for array in (ids, mask, types))).float().numpy()
        return logits

    return forward


def _openvino_forward(scorer: "PairScorer", lanes: int, *, bf16: bool) -> PairForward:
    """The scorer compiled; each calling thread has a request of its own."""
    model = compiled(_traced(scorer), bf16=bf16, lanes=lanes)
    own = threading.local()

    def forward(ids: IntArray, mask: IntArray, types: IntArray) -> FloatArray:
        if not hasattr(own, "request"):
            own.request = model.create_infer_request()
        return np.array(own.request.infer([ids, mask, types])[0], np.float32)

    return forward


def _traced(scorer: "PairScorer") -> Any:
    """The scorer as OpenVINO's graph, for any batch and length.

    `openvino.convert_model` would trace the module twice more to compare, which takes seconds; the frontend does not.
    """
    import torch
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    example = tuple(torch.ones(2, 16, dtype=torch.long) for _ in range(3))
    with torch.no_grad(), warnings.catch_warnings():  # the tracer warns that it is old
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(scorer.eval(), example, check_trace=False)  # type: ignore[no-untyped-call]
    frontend = FrontEndManager().load_by_framework("pytorch")
    decoder = TorchScriptPythonDecoder(traced)  # has to live until the graph is there
    return frontend.convert(frontend.load(decoder))

"""The edge reranker g_e as a teacher (HELIOS B.1): its logits for the lists that an encoder learns from."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional as F

from helios.errors import ModelError
from helios.index.reader import Corpus
from helios.models.base import BaseModel
from helios.models.bert import load_bert
from helios.models.runtime import supports_bf16
from helios.retrieval.reranking.pair_scorer import PairReader, load_pair_scorer
from training.errors import TrainingError
from training.pair_lists import PairLists
from training.reranker_lessons import Pair


class Teacher:
    """A trained edge reranker, frozen; the same lists get the same bits, whatever the number of cores."""

    def __init__(self, path: Path, base: BaseModel, corpus: Corpus, *, device: torch.device, lanes: int) -> None:
        try:
            self._scorer = load_pair_scorer(load_bert(base.folder), path).to(device).requires_grad_(False)
        except ModelError as error:
            raise TrainingError(f"teacher: {error}") from error
        with safe_open(path, framework="pt") as file:
            max_tokens = int((file.metadata() or {}).get("max_tokens", "160"))
        self._lists = PairLists(corpus, PairReader(base.folder, max_tokens=max_tokens), device=device)
        self._pool = ThreadPoolExecutor(lanes, thread_name_prefix="teach") if lanes > 1 else None
        self._bf16 = device.type != "cpu" or supports_bf16()

    def logits(self, rows: Sequence[tuple[str, Sequence[Pair]]]) -> list[Tensor]:
        """A question's logits for its pairs, without a graph."""
        return self._lists.logits(rows, self._score, each=self._each)

    def _score(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        with torch.no_grad(), torch.autocast(ids.device.type, torch.bfloat16, enabled=self._bf16):
            return torch.as_tensor(self._scorer(ids, mask, types))

    def _each(self, do: Callable[[Any], Tensor], chunks: Iterable[Any]) -> Iterable[Tensor]:
        return self._pool.map(do, chunks) if self._pool else map(do, chunks)


def divergence(student_logits: Tensor, teacher_logits: Tensor, *, temperature: float) -> Tensor:
    """KL divergence of the student's distribution over a list from the teacher's, softened by a temperature."""
    target = F.log_softmax(teacher_logits.float() / temperature, dim=-1)
    return F.kl_div(F.log_softmax(student_logits.float(), dim=-1), target, reduction="sum", log_target=True)

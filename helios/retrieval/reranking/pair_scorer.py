"""The embedded cross-encoder: question and text in one sequence through the shared encoder, one score out.

    [CLS] question [SEP] text [SEP]        token types 0 for the question's side, 1 for the text's

Shape legend: B batch, L tokens, D hidden size, Q question tokens, T text tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from helios.errors import ModelError
from helios.models.base import BaseModel
from helios.models.bert import Bert
from helios.models.vocabulary import Vocabulary

Pooling = Literal["first", "mean", "late"]
POOLINGS: tuple[Pooling, ...] = ("first", "mean", "late")
IntArray = NDArray[np.int64]


class PairScorer(nn.Module):
    """A score a pair, by a linear layer on the first token or on the mean of the text's tokens.

    `late` adds MaxSim of the question's tokens over the text's, all of them read together: what the base already
    knows of similarity ranks pairs before anything is trained.
    """

    def __init__(self, bert: Bert, pooling: Pooling) -> None:
        super().__init__()
        self.bert = bert
        self.pooling = pooling
        self.head = nn.Linear(bert.config.hidden_size, 1)
        self.scale = nn.Parameter(torch.tensor([LATE_SCALE if pooling == "late" else 0.0]))
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids_BL: Tensor, mask_BL: Tensor, types_BL: Tensor) -> Tensor:
        """Logits (B) of pairs."""
        x_BLD: Tensor = self.bert(ids_BL, mask_BL, types_BL)
        text_BL = (mask_BL * types_BL).to(x_BLD.dtype)
        pooled_BD = x_BLD[:, 0] if self.pooling == "first" else _mean(x_BLD, text_BL)
        logits_B: Tensor = self.head(pooled_BD).squeeze(-1)
        if self.pooling == "late":
            logits_B = logits_B + self.scale * _late(x_BLD, mask_BL.to(x_BLD.dtype) - text_BL, text_BL)
        return logits_B

    def head_tensors(self) -> dict[str, Tensor]:
        """What belongs beside the adapter in its file."""
        tensors = {"head.weight": self.head.weight, "head.bias": self.head.bias}
        return {**tensors, "head.scale": self.scale} if self.pooling == "late" else tensors


LATE_SCALE = 20.0
"""The late score is a mean of cosines; times this, its differences are those of logits."""


def _mean(x_BLD: Tensor, kept_BL: Tensor) -> Tensor:
    """The mean of the kept token vectors: (B, D)."""
    return (x_BLD * kept_BL.unsqueeze(-1)).sum(1) / kept_BL.sum(1, keepdim=True).clamp(min=1.0)


def _late(x_BLD: Tensor, question_BL: Tensor, text_BL: Tensor) -> Tensor:
    """The mean over a question's tokens of the largest cosine with a token of the text: (B)."""
    unit = F.normalize(x_BLD, dim=-1)
    cosines_BLL = unit @ unit.transpose(1, 2) - (1.0 - text_BL).unsqueeze(1) * 4.0
    best_BL = cosines_BLL.amax(-1)
    return (best_BL * question_BL).sum(1) / question_BL.sum(1).clamp(min=1.0)


def load_pair_scorer(bert: Bert, path: Path) -> PairScorer:
    """Merge a file of adapter and head into the encoder; ModelError if it is no reranker's or does not fit."""
    from helios.models.adapters import apply_adapter

    heads = apply_adapter(bert, path)
    scorer = PairScorer(bert, _pooling(path))
    _load_heads(scorer, heads, path)
    return scorer.eval()


def trained_base(path: Path) -> str | None:
    """SHA-256 of the base that a reranker was trained on; None for a file that does not say."""
    return _metadata(path).get("base")


def require_base(path: Path, base: BaseModel) -> None:
    """ModelError for a file that says that it was trained on another base."""
    trained_on = trained_base(path)
    if trained_on is not None and trained_on != base.sha256:
        raise ModelError(
            f"{path}: was trained on a base with SHA-256 {trained_on[:12]}, {base.folder} has {base.sha256[:12]}: set "
            "encoder.model to that base, or rerank.backend=none"
        )


def _metadata(path: Path) -> dict[str, str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path}: no readable reranker ({error}); expected a file of `helios train`") from error


def _pooling(path: Path) -> Pooling:
    named = _metadata(path).get("pooling")
    for pooling in POOLINGS:
        if pooling == named:
            return pooling
    raise ModelError(f"{path}: not a reranker: its metadata name no pooling of {', '.join(POOLINGS)}, but {named}")


def _load_heads(scorer: PairScorer, heads: Mapping[str, Tensor], path: Path) -> None:
    for name, parameter in scorer.head_tensors().items():
        found = heads.get(name)
        if found is None or found.shape != parameter.shape:
            shape = None if found is None else tuple(found.shape)
            raise ModelError(f"{path}: {name} must have shape {tuple(parameter.shape)}, found {shape}")
        with torch.no_grad():
            parameter.copy_(found)


@dataclass(frozen=True, slots=True)
class Pair:
    """Token numbers of a question with its special tokens, and of a text with the last one."""

    question: tuple[int, ...]
    text: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.question) + len(self.text)


class PairReader:
    """Turns a question and texts into token numbers; a question has at most half of the tokens."""

    def __init__(self, folder: Path, *, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self._tokenizer = Vocabulary.of(folder).tokenizer
        first, last = (self._tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
        if first is None or last is None:
            raise ModelError(f"{folder}/tokenizer.json lacks [CLS] or [SEP]: not a BERT's")
        self._first, self._last = int(first), int(last)

    def read(self, question: str, texts: Sequence[str]) -> list[Pair]:
        """The pairs of one question, cut to `max_tokens`."""
        (asked,) = self._ids([question])
        start = (self._first, *asked[: self.max_tokens // 2 - 2], self._last)
        room = self.max_tokens - len(start) - 1
        return [Pair(start, (*ids[:room], self._last)) for ids in self._ids(texts)]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without special ones."""
        return [len(ids) for ids in self._ids(texts)]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]


def padded(pairs: Sequence[Pair]) -> tuple[IntArray, IntArray, IntArray]:
    """Token numbers, mask and types (B, L) of a batch."""
    length = max(map(len, pairs), default=0)
    ids, mask, types = (np.zeros((len(pairs), length), np.int64) for _ in range(3))
    for row, pair in enumerate(pairs):
        ids[row, : len(pair)] = pair.question + pair.text
        mask[row, : len(pair)] = 1
        types[row, len(pair.question) : len(pair)] = 1
    return ids, mask, types

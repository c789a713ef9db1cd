"""What the adapters of other libraries' rerankers share: lengths, batches and deadlines around one forward."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from helios.errors import ModelError
from helios.retrieval.reranking.reranker import FloatArray, Scores, batches_of, score_batches


class LibraryReranker(ABC):
    """A reranker around a tokenizer and a model of the Hugging Face libraries; one thread at a time."""

    def __init__(self, tokenizer: Any, *, max_tokens: int, batch_tokens: int) -> None:
        self.batch_tokens = batch_tokens
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_tokens={self._max_tokens}, batch_tokens={self.batch_tokens})"

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self._ids(texts)]

    def score(self, question: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        """Logits of texts; with a deadline the first ones come first."""
        if not texts:
            return score_batches([], [], lambda batch: self.logits(question, []))
        (asked,) = self.count_tokens([question])
        lengths = [min(self._max_tokens, asked + length) for length in self.count_tokens(texts)]
        return score_batches(
            batches_of(lengths, batch_tokens=self.batch_tokens),
            lengths,
            lambda batch: self.logits(question, [texts[i] for i in batch]),
            deadline=deadline,
        )

    @abstractmethod
    def logits(self, question: str, texts: Sequence[str]) -> FloatArray:
        """Scores of one batch (n)."""

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._tokenizer(
            list(texts), add_special_tokens=False, truncation=True, max_length=1 << 16, verbose=False
        )["input_ids"]
        return ids


def named(model: str | None, backend: str) -> str:
    """The model's name; ModelError without one, since only `embedded` comes with the package."""
    if model is None:
        raise ModelError(f"rerank.backend={backend} needs a model: set rerank.model (and advanced.rerank.node_model)")
    return model

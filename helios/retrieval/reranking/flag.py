"""FlagEmbedding's FlagReranker: encoders such as bge-reranker-v2-m3.

Its `compute_score` runs the first batch twice, has no deadline, and swallows errors of the model, so only its
model and tokenizer are used.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from helios.errors import ModelError
from helios.extras import import_library
from helios.retrieval.reranking.library import LibraryReranker, named
from helios.retrieval.reranking.reranker import FloatArray


class FlagPairReranker(LibraryReranker):
    """The logit of a FlagReranker's model."""

    def __init__(self, reranker: Any, *, max_tokens: int = 512, batch_tokens: int = 8192) -> None:
        super().__init__(reranker.tokenizer, max_tokens=max_tokens, batch_tokens=batch_tokens)
        self._device = reranker.target_devices[0]
        self._model = reranker.model.to(self._device).eval()

    @classmethod
    def load(
        cls, model: str | None, *, max_tokens: int = 512, batch_tokens: int = 8192, device: str | None = None
    ) -> "FlagPairReranker":
        """A folder or a name on the hub; ModelError if it cannot be loaded."""
        name = named(model, "flag")
        library = import_library("FlagEmbedding")
        try:
            loaded = library.FlagReranker(name, devices=device)
        except (OSError, ValueError) as error:
            raise ModelError(f"{name}: FlagEmbedding could not load it as a reranker: {error}") from error
        return cls(loaded, max_tokens=max_tokens, batch_tokens=batch_tokens)

    def logits(self, question: str, texts: Sequence[str]) -> FloatArray:
        import torch

        inputs = self._tokenizer(
            [question] * len(texts),
            list(texts),
            truncation="only_second",
            max_length=self.max_tokens,
            padding=True,
            return_tensors="pt",
        ).to(self._device)
        with torch.inference_mode():
            logits = self._model(**inputs, return_dict=True).logits
        return np.asarray(logits.view(-1).float().cpu().numpy(), np.float32)

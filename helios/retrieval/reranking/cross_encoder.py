"""Rerankers of sentence-transformers: any CrossEncoder with one output."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from helios.errors import ModelError
from helios.extras import import_library
from helios.retrieval.reranking.library import LibraryReranker, named
from helios.retrieval.reranking.reranker import FloatArray


class CrossEncoderReranker(LibraryReranker):
    """A CrossEncoder's raw output as the logit."""

    def __init__(self, model: Any, *, max_tokens: int = 512, batch_tokens: int = 8192) -> None:
        super().__init__(model.tokenizer, max_tokens=max_tokens, batch_tokens=batch_tokens)
        self._model = model

    @classmethod
    def load(
        cls, model: str | None, *, max_tokens: int = 512, batch_tokens: int = 8192, device: str | None = None
    ) -> "CrossEncoderReranker":
        """A folder or a name on the hub; ModelError if it is missing or has several outputs."""
        name = named(model, "cross-encoder")
        library = import_library("sentence_transformers")
        try:
            loaded = library.CrossEncoder(name, max_length=max_tokens, device=device)
        except (OSError, ValueError) as error:
            raise ModelError(f"{name}: no CrossEncoder of sentence-transformers could be loaded: {error}") from error
        if loaded.num_labels != 1:
            raise ModelError(f"{name}: has {loaded.num_labels} outputs, a reranker has one")
        return cls(loaded, max_tokens=max_tokens, batch_tokens=batch_tokens)

    def logits(self, question: str, texts: Sequence[str]) -> FloatArray:
        import torch

        pairs = [(question, text) for text in texts]
        scores = self._model.predict(
            pairs, batch_size=len(pairs), show_progress_bar=False, activation_fn=torch.nn.Identity()
        )
        return np.asarray(scores, np.float32)

"""The shared encoder with an adapter and linear heads of its own: what small readers are made of."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.base import BaseModel
from helios.models.checkpoint import read_checkpoint, read_config, read_tensors
from helios.models.glossary import Tokens, tokens_of
from helios.models.routes import Route, Runtime, document_route
from helios.models.vocabulary import Vocabulary
from helios.once import once

FloatArray = NDArray[np.float32]
BATCH_TOKENS = 1024


class PlainTokenizer:
    """Words as token numbers of the base, without padding or marks of its own; threads may share it."""

    def __init__(self, base: BaseModel) -> None:
        self.tokenizer = Vocabulary.of(base.folder).tokenizer
        self._is_english = base.is_english
        marks: Any = [self.tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]")]
        self.opening, self.separator = marks

    def ids(self, text: str, most: int, language: str = "") -> list[int]:
        """The first tokens of a text, which is in this language, or in the one that it tells."""
        (found,) = self.tokens([text], language)
        return found.ids[:most]

    def tokens(self, texts: Sequence[str], language: str = "") -> Sequence[Tokens]:
        """All tokens of every text; the default base reads other languages word by word in English."""
        if self._is_english:
            return tokens_of(self.tokenizer, texts, language)
        found: Sequence[Tokens] = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return found


class HeadedEncoder:
    """Token vectors of the adapted encoder, and what its heads make of them; threads may share it.

    `heads` has for each head how many vectors it reads side by side and how many numbers it gives. The weights are read
    on first use; ModelError then for a file that lacks a head or is of another base.
    """

    def __init__(
        self, base: BaseModel, weights: Path, heads: Mapping[str, tuple[int, int]], *, runtime: Runtime = "auto",
        threads: int = 1,
    ) -> None:  # fmt: skip
        self.base, self.weights, self.heads, self.runtime, self.threads = base, weights, heads, runtime, threads

    def encode(self, sequences: Sequence[Sequence[int]]) -> list[FloatArray]:
        """Unit vectors (tokens, D) of each sequence."""
        return list(self._route.encode([list(ids) for ids in sequences]))

    def head(self, name: str, vectors: FloatArray) -> FloatArray:
        """What a head gives for vectors (..., inputs · D): (..., outputs)."""
        return vectors @ self._read[f"head.{name}.weight"].T + self._read[f"head.{name}.bias"]

    @once
    def _read(self) -> Mapping[str, FloatArray]:
        """The heads; a model from the user's cache does without the rest of the file and of the base."""
        read, _ = read_tensors(self.weights)
        size = read_config(self.base.folder).hidden_size
        for name, (inputs, outputs) in self.heads.items():
            shape = (outputs, inputs * size)
            found = read.get(f"head.{name}.weight")
            if found is None or found.shape != shape or f"head.{name}.bias" not in read:
                raise ModelError(f"{self.weights}: lacks head.{name} of shape {shape}; train it again")
        return {name: tensor for name, tensor in read.items() if name.startswith("head.")}

    @once
    def _route(self) -> Route:
        _ = self._read  # before the many weights
        return document_route(
            lambda: read_checkpoint(self.base.folder, self.weights), self.runtime, self.threads,
            batch_tokens=BATCH_TOKENS,
            fingerprint=sha256(self.base.sha256.encode() + self.weights.read_bytes()).hexdigest(),
        )  # fmt: skip

"""The token encoder f_e: texts in, one unit vector a token out (HELIOS 4.1).

Documents go through the fastest route that the machine has (OpenVINO in bf16, torch in bf16, torch in fp32);
questions always through torch in fp32, where 20 tokens cost milliseconds. Tokens are batched by length.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.base import NAME, WEIGHTS_SHA256, BaseModel, find_base_model
from helios.models.routes import Route, Runtime, document_route, torch_forward
from helios.once import once

log = logging.getLogger(__name__)

FloatArray = NDArray[np.float32]
MAX_QUESTION_TOKENS = 128
RECENT = 64
"""Questions whose vectors are kept: every stage of a search asks for them."""
SHIPPED_ADAPTER = Path(__file__).parent / "weights" / "token-encoder.safetensors"


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Unit vectors (n, D) of a text's tokens, and the characters [start, end) that each stands for (n, 2)."""

    vectors: FloatArray
    ids: NDArray[np.int32]
    """Numbers of the tokens in the encoder's vocabulary."""
    spans: NDArray[np.int32]


class TokenEncoder(Protocol):
    """What indexing and search need of an encoder."""

    def __hash__(self) -> int:
        """Of the object: what it has encoded can be remembered."""

    @property
    def dimension(self) -> int: ...

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest token number."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything that changes the vectors: an index refuses an encoder with another one."""

    def encode_documents(self, texts: Sequence[str]) -> Iterator[TokenVectors]:
        """Vectors of the kept tokens of every text, in order."""

    def encode_question(self, question: str) -> TokenVectors:
        """Vectors of the question's tokens."""

    def token_spans(self, text: str) -> NDArray[np.int32]:
        """The spans that `encode_documents` would give, without running the model."""

    def for_pairs(self) -> "TokenEncoder":
        """The same model for texts of two nodes, which keeps twice as many tokens as far as the model can read."""


class MiniLMEncoder:
    """Token vectors of a BERT-shaped encoder's last layer; punctuation and special tokens are not kept.

    The position and the number of kept tokens of a text depend on the text alone, so that an explanation can
    be made later from the text. A text of nothing else keeps its first special token, with the empty span (0, 0).
    Threads may encode questions at the same time; documents are for one thread.
    """

    def __init__(
        self, base: BaseModel, *, adapter: Path | None = None, runtime: Runtime = "auto", max_tokens: int = 256,
        batch_tokens: int = 8192, threads: int | None = None,
    ) -> None:  # fmt: skip
        from tokenizers import Tokenizer

        self.base = base
        self.adapter = adapter
        self.max_tokens = max_tokens
        self.batch_tokens = batch_tokens
        self.threads = threads
        self.runtime = runtime
        self._tokenizer = Tokenizer.from_file(str(base.folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._keep = _kept_tokens(self._tokenizer)

    @classmethod
    def load(
        cls, model: str | None = None, *, adapter: str | None = None, runtime: Runtime = "auto",
        max_tokens: int = 256, batch_tokens: int = 8192, threads: int | None = None,
    ) -> "MiniLMEncoder":  # fmt: skip
        """Find the base model and make an encoder of it; the weights are read on first use.

        `adapter` is a file of `helios.models.adapters`, "none", or None for the one in the package, which is for the
        default base alone. Raises ModelError for files that are missing or wrong.
        """
        base = find_base_model(model)
        return cls(
            base, adapter=_adapter(adapter, base), runtime=runtime, max_tokens=max_tokens,
            batch_tokens=batch_tokens, threads=threads,
        )  # fmt: skip

    @property
    def name(self) -> str:
        return self.base.folder.name if self.base.source == "config" else NAME

    @property
    def dimension(self) -> int:
        return int(self._bert.config.hidden_size)

    @property
    def vocabulary_size(self) -> int:
        return len(self._keep)

    @property
    def fingerprint(self) -> str:
        settings = f"{self.base.sha256} last-layer unit no-punctuation max={self.max_tokens}"
        files = [self.base.folder / "config.json", self.base.folder / "tokenizer.json"]
        files += [self.adapter] if self.adapter else []
        return sha256(settings.encode() + b"".join(file.read_bytes() for file in files)).hexdigest()

    def encode_documents(self, texts: Sequence[str]) -> Iterator[TokenVectors]:
        encodings = self._tokenizer.encode_batch(list(texts))
        lengths = np.array([len(encoding.ids) for encoding in encodings])
        results: list[TokenVectors | None] = [None] * len(encodings)
        order = np.argsort(-lengths, kind="stable")
        batches = []
        start = 0
        while start < len(order):
            batches.append(order[start : start + max(1, self.batch_tokens // int(lengths[order[start]]))])
            start += len(batches[-1])
        padded = (_pad([encodings[i].ids for i in batch], int(lengths[batch[0]])) for batch in batches)
        for batch, vectors in zip(batches, self._document_route.encode(padded), strict=True):
            for row, i in enumerate(batch):
                kept = self._kept(encodings[i])
                results[i] = self._tokens(vectors[row], encodings[i], kept)
        for result in results:
            if result is not None:
                yield result

    def encode_question(self, question: str) -> TokenVectors:
        return self._recent(question)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_recent"}

    @once
    def _recent(self) -> Callable[[str], TokenVectors]:
        return lru_cache(RECENT)(self._encode_question)

    def _encode_question(self, question: str) -> TokenVectors:
        encoding = self._tokenizer.encode(question)
        kept = self._kept(encoding)[:MAX_QUESTION_TOKENS]
        ids, mask = _pad([encoding.ids], len(encoding.ids))
        tokens = self._tokens(torch_forward(self._bert, bf16=False)(ids, mask)[0], encoding, kept)
        for array in (tokens.vectors, tokens.ids, tokens.spans):
            array.flags.writeable = False
        return tokens

    def token_spans(self, text: str) -> NDArray[np.int32]:
        encoding = self._tokenizer.encode(text)
        return self._spans(encoding, self._kept(encoding))

    def for_pairs(self) -> "MiniLMEncoder":
        limit = int(self._bert.config.max_position_embeddings)
        twin = MiniLMEncoder(
            self.base, adapter=self.adapter, runtime=self.runtime, max_tokens=min(2 * self.max_tokens, limit),
            batch_tokens=self.batch_tokens, threads=self.threads,
        )  # fmt: skip
        twin.__dict__["_bert"] = self._bert  # where `once` keeps it: the weights are shared
        return twin

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Tokens that the texts would be stored as."""
        return sum(len(self._kept(encoding)) for encoding in self._tokenizer.encode_batch(list(texts)))

    def tokenise(self, texts: Sequence[str]) -> list[tuple[list[int], NDArray[np.int64]]]:
        """For every text the token numbers that the model reads, and which of them are kept as vectors."""
        return [(list(encoding.ids), self._kept(encoding)) for encoding in self._tokenizer.encode_batch(list(texts))]

    def _kept(self, encoding: Any) -> NDArray[np.int64]:
        kept = np.flatnonzero(self._keep[np.array(encoding.ids, np.int64)])
        return kept if len(kept) else np.zeros(1, np.int64)

    def _tokens(self, vectors_LD: FloatArray, encoding: Any, kept: NDArray[np.int64]) -> TokenVectors:
        return TokenVectors(vectors_LD[kept], np.array(encoding.ids, np.int32)[kept], self._spans(encoding, kept))

    def _spans(self, encoding: Any, kept: NDArray[np.int64]) -> NDArray[np.int32]:
        return np.array(encoding.offsets, np.int32).reshape(-1, 2)[kept]

    @once
    def _bert(self) -> Any:
        import torch

        from helios.models.adapters import apply_adapter
        from helios.models.bert import load_bert

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        bert = load_bert(self.base.folder)
        if self.adapter is not None:
            apply_adapter(bert, self.adapter)
        if self.max_tokens > bert.config.max_position_embeddings:
            raise ModelError(
                f"encoder.max_tokens={self.max_tokens}, but {self.base.folder} reads at most "
                f"{bert.config.max_position_embeddings} tokens: set encoder.max_tokens to that or less"
            )
        return bert

    @once
    def _document_route(self) -> Route:
        return document_route(self._bert, self.runtime, self.threads)


def _adapter(configured: str | None, base: BaseModel) -> Path | None:
    if configured == "none":
        return None
    if configured is None:
        return SHIPPED_ADAPTER if base.sha256 == WEIGHTS_SHA256 and SHIPPED_ADAPTER.is_file() else None
    path = Path(configured).expanduser()
    if not path.is_file():
        raise ModelError(
            f"encoder.adapter={configured}: no such file; expected an adapter, or none to use the base alone"
        )
    return path


def _kept_tokens(tokenizer: Any) -> NDArray[np.bool_]:
    """For every token id, whether it holds a letter or a digit."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    keep = np.zeros(max(vocabulary.values()) + 1, bool)
    for token, number in vocabulary.items():
        keep[number] = token not in special and any(character.isalnum() for character in token)
    return keep


def _pad(ids: Sequence[Sequence[int]], length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    padded = np.zeros((len(ids), length), np.int64)
    mask = np.zeros((len(ids), length), np.int64)
    for row, numbers in enumerate(ids):
        padded[row, : len(numbers)] = numbers
        mask[row, : len(numbers)] = 1
    return padded, mask

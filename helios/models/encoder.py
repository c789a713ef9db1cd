"""The token encoder f_e: texts in, one unit vector a token out (HELIOS 4.1).

Documents go through the fastest route that the machine has (OpenVINO in bf16, torch in bf16, torch in fp32);
questions always in fp32, where 20 tokens cost milliseconds.
"""

import copy
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.index.languages import recognise
from helios.models.base import NAME, WEIGHTS_SHA256, BaseModel, find_base_model
from helios.models.checkpoint import Checkpoint, read_checkpoint, read_config
from helios.models.glossary import Tokens, gloss, glossaries_digest, tokens_of
from helios.models.routes import Device, Route, Runtime, document_route, question_route
from helios.models.vocabulary import Vocabulary
from helios.once import once

log = logging.getLogger(__name__)

FloatArray = NDArray[np.float32]
MAX_QUESTION_TOKENS = 128
HEAD_TOKENS = 32
"""The first tokens of a long text, its titles, that every further window begins with."""
FEW_TEXTS = 200
"""Up to so many texts are tokenised one by one where their tokens are counted."""
SHIPPED_ADAPTER = Path(__file__).parent / "weights" / "token-encoder.safetensors"


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Unit vectors (n, D) of a text's tokens, and the characters [start, end) that each stands for (n, 2)."""

    vectors: FloatArray
    ids: NDArray[np.int32]
    """Numbers of the tokens in the encoder's vocabulary."""
    spans: NDArray[np.int32]
    cut: int = 0
    """Tokens of the text that no window read."""

    def __repr__(self) -> str:
        return f"TokenVectors({len(self.ids)})"

    def first(self, count: int) -> "TokenVectors":
        """The first `count` tokens."""
        return TokenVectors(self.vectors[:count], self.ids[:count], self.spans[:count])


class TokenEncoder(Protocol):
    """What indexing and search need of an encoder."""

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

    def places_words(self, text: str) -> bool:
        """Whether `token_spans` can say where the tokens of a stored text are."""

    def for_pairs(self) -> "TokenEncoder":
        """The same model for texts of two nodes, which keeps twice as many tokens as far as the model can read."""


class MiniLMEncoder:
    """Token vectors of a BERT-shaped encoder's last layer; punctuation and special tokens are not kept.

    The position and the number of kept tokens of a text depend on the text alone, so that an explanation can
    be made later from the text. A text of nothing else keeps its first special token, with the empty span (0, 0).
    A text that is longer than the model reads is read in windows, each beginning with the text's first tokens, so
    that a window knows what it is about; what is beyond the last window is cut (`TokenVectors.cut` counts it).
    Threads may share it.
    """

    def __init__(
        self, base: BaseModel, *, adapter: Path | None = None, runtime: Runtime = "auto", max_tokens: int = 256,
        windows: int = 1, batch_tokens: int = 8192, threads: int | None = None, device: Device = "cpu",
    ) -> None:  # fmt: skip
        self.base = base
        self.adapter = adapter
        self.max_tokens = max_tokens
        self.windows = windows
        self.batch_tokens = batch_tokens
        self.threads = threads or os.cpu_count() or 1
        self.runtime = runtime
        self.device = device
        self.config = read_config(base.folder)
        if max_tokens > self.config.max_position_embeddings:
            raise ModelError(
                f"advanced.encoder.max_tokens={max_tokens}, but {base.folder} reads at most "
                f"{self.config.max_position_embeddings} tokens: set it to that or less"
            )
        vocabulary = Vocabulary.of(base.folder)
        self._tokenizer = vocabulary.tokenizer
        self._keep = vocabulary.keep
        self._blank = vocabulary.blank
        self._windows = Windows.of(self._tokenizer, max_tokens=max_tokens, count=windows)
        self.glossary: str | None = None
        self._weights_of: MiniLMEncoder | None = None

    @classmethod
    def load(
        cls, model: str | None = None, *, adapter: str | None = None, runtime: Runtime = "auto",
        max_tokens: int = 256, windows: int = 1, batch_tokens: int = 8192, threads: int | None = None,
        device: Device = "cpu",
    ) -> "MiniLMEncoder":  # fmt: skip
        """Find the base model and make an encoder of it; the weights are read on first use.

        `adapter` is a file of `helios.models.adapters`, "none", or None for the one in the package, which is for the
        default base alone. Documents are read on `device`, questions always on the processor. Raises ModelError for
        files that are missing or wrong.
        """
        base = find_base_model(model)
        return cls(
            base, adapter=_adapter(adapter, base), runtime=runtime, max_tokens=max_tokens, windows=windows,
            batch_tokens=batch_tokens, threads=threads, device=device,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"MiniLMEncoder({self.name!r}, adapter={self.adapter and self.adapter.name!r}, runtime={self.runtime!r})"

    @property
    def name(self) -> str:
        return self.base.folder.name if self.base.source == "config" else NAME

    @property
    def dimension(self) -> int:
        return self.config.hidden_size

    @property
    def vocabulary_size(self) -> int:
        return len(self._keep)

    @once
    def fingerprint(self) -> str:
        settings = f"{self.base.sha256} last-layer unit no-punctuation max={self.max_tokens}"
        files = [self.base.folder / "config.json", self.base.folder / "tokenizer.json"]
        files += [self.adapter] if self.adapter else []
        return sha256(settings.encode() + b"".join(file.read_bytes() for file in files)).hexdigest()

    @property
    def record(self) -> dict[str, str]:
        """What an index notes of the encoder of its vectors."""
        found = {"name": self.name, "fingerprint": self.fingerprint}
        return found if self.glossary is None else {**found, "glossary": self.glossary}

    def with_glossary(self, digest: str | None) -> "MiniLMEncoder":
        """The same model, to which other languages than English are read word by word in English
        (`helios.models.glossary`); with None they are read as they stand, as by indexes that note no glossary.

        Of an index that was read by other glossaries than the installed ones the places of words are not known.
        """
        if digest == self.glossary:
            return self
        view = copy.copy(self)
        view.glossary, view._weights_of = digest, self._weights_of or self
        return view

    def encode_documents(self, texts: Sequence[str]) -> Iterator[TokenVectors]:
        encodings = self._encodings(texts)
        windows = [self._windows.of_text(encoding.ids) for encoding in encodings]
        vectors = self._documents.encode([window.ids for own in windows for window in own])
        for encoding, own in zip(encodings, windows, strict=True):
            parts = [next(vectors)[window.first : window.first + window.count] for window in own]
            yield self._tokens(parts[0] if len(parts) == 1 else np.concatenate(parts), encoding)

    def encode_question(self, question: str) -> TokenVectors:
        text = question.encode("utf-8", "replace").decode()  # half of a character is no text
        (encoding,) = self._encodings([text])
        (window,) = self._windows.first(encoding.ids)
        (vectors,) = self._questions.encode([window.ids])
        tokens = self._tokens(vectors[window.first : window.first + window.count], encoding)
        return tokens.first(MAX_QUESTION_TOKENS)

    def token_spans(self, text: str) -> NDArray[np.int32]:
        (encoding,) = self._encodings([text])
        return self._spans(encoding, self._kept(encoding))

    def places_words(self, text: str) -> bool:
        return self.glossary in (None, glossaries_digest()) or recognise(text) == "en"

    def for_pairs(self) -> "MiniLMEncoder":
        pairs = MiniLMEncoder(
            self.base, adapter=self.adapter, runtime=self.runtime,
            max_tokens=min(2 * self.max_tokens, self.config.max_position_embeddings), windows=self.windows,
            batch_tokens=self.batch_tokens, threads=self.threads, device=self.device,
        )  # fmt: skip
        return pairs.with_glossary(self.glossary)

    def load_ahead(self, *, documents: bool) -> None:
        """Read and compile now what the first question, or the first document, would wait for."""
        _ = self._documents if documents else self._questions

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Tokens that the texts would be stored as."""
        encodings = self._encodings(texts)
        return sum(max(1, len(self._kept(encoding))) for encoding in encodings)

    def token_ids(self, texts: Sequence[str]) -> Iterator[NDArray[np.int32]]:
        """The token numbers that `encode_documents` would give for every text, without running the model."""
        for encoding in self._encodings(texts):
            kept = self._kept(encoding)
            ids = np.array(encoding.ids, np.int32)[kept] if len(kept) else self._windows.first([])[0].ids[:1]
            yield np.asarray(ids, np.int32)

    def token_frequencies(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """How many of the texts hold each token of the vocabulary, by the tokens that `token_ids` gives: (V)."""
        from helios.models.word_counts import count_holders

        found, odd = np.zeros(self.vocabulary_size, np.int32), list(texts)
        if len(texts) > FEW_TEXTS and self._splits_words:
            foreign = [self.glossary is not None and gloss(text) is not None for text in texts]
            odd, plain = list(compress(texts, foreign)), list(compress(texts, map(not_, foreign)))
            found, left = count_holders(plain, self._tokenizer, self._keep, room=self._windows.room)
            odd += [plain[number] for number in left]
        for ids in self.token_ids(odd):
            found[np.unique(ids)] += 1
        return found

    @once
    def _splits_words(self) -> bool:
        from helios.models.word_counts import splits_words

        return splits_words(self._tokenizer)

    def tokenise(self, texts: Sequence[str]) -> list[tuple[list[int], NDArray[np.int64]]]:
        """For every text the token numbers that the model reads first, and which of them are kept as vectors."""
        found = []
        for encoding in self._encodings(texts):
            (window,) = self._windows.first(encoding.ids)
            kept = self._kept(encoding)
            kept = kept[kept < window.count] + window.first
            found.append((window.ids, kept if len(kept) else np.zeros(1, np.int64)))
        return found

    def _encodings(self, texts: Sequence[str]) -> Sequence[Tokens]:
        if self.glossary is not None:
            return tokens_of(self._tokenizer, texts)
        found: Sequence[Tokens] = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return found

    def _kept(self, encoding: Tokens) -> NDArray[np.int64]:
        """Places of the tokens of a text that are stored, of those that some window reads."""
        return np.flatnonzero(self._keep[np.array(encoding.ids[: self._windows.room], np.int64)])

    def _tokens(self, vectors_LD: FloatArray, encoding: Tokens) -> TokenVectors:
        """Kept tokens of a text from the vectors of all that were read; the first special one if there is no other."""
        kept = self._kept(encoding)
        cut = max(0, len(encoding.ids) - self._windows.room)
        if not len(kept):
            return replace(self._nothing, cut=cut)
        kept = kept[kept < len(vectors_LD)]
        ids = np.array(encoding.ids, np.int32)[kept]
        return TokenVectors(vectors_LD[kept], ids, self._spans(encoding, kept), cut)

    def _spans(self, encoding: Tokens, kept: NDArray[np.int64]) -> NDArray[np.int32]:
        if not len(kept):
            return np.zeros((1, 2), np.int32)
        spans = np.array(encoding.offsets, np.int32).reshape(-1, 2)
        blank = self._blank[np.array(encoding.ids, np.int64)]
        spans[1:, 0] += blank[1:] & (spans[1:, 0] == spans[:-1, 1]) & (spans[1:, 1] > spans[1:, 0])
        return spans[kept]

    @once
    def _nothing(self) -> TokenVectors:
        """What a text without words is: the first special token."""
        ids = self._windows.first([])[0].ids
        (vectors,) = self._questions.encode([ids])
        return TokenVectors(vectors[:1], np.array(ids[:1], np.int32), np.zeros((1, 2), np.int32))

    @once
    def _checkpoint(self) -> Checkpoint:
        return read_checkpoint(self.base.folder, self.adapter)

    @once
    def _documents(self) -> Route:
        """The fastest way through this machine."""
        if self._weights_of is not None:
            return self._weights_of._documents
        return document_route(
            lambda: self._checkpoint, self.runtime, self.threads, batch_tokens=self.batch_tokens,
            fingerprint=self.fingerprint, device=self.device,
        )  # fmt: skip

    @once
    def _questions(self) -> Route:
        """The most exact one, of one thread: a question is too short to share out."""
        if self._weights_of is not None:
            return self._weights_of._questions
        return question_route(lambda: self._checkpoint, self.runtime, fingerprint=self.fingerprint)


@dataclass(frozen=True, slots=True)
class Window:
    """Token numbers that are read together; `count` of them from `first` on are the text's next ones."""

    ids: list[int]
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Windows:
    """How a text's tokens are cut into windows: special tokens around, the first `head` tokens before later ones."""

    opening: list[int]
    closing: list[int]
    tokens: int
    """The text's own tokens that one window holds."""
    head: int
    count: int

    @classmethod
    def of(cls, tokenizer: Any, *, max_tokens: int, count: int) -> "Windows":
        """Windows of at most `max_tokens` tokens; the tokenizer knows the special ones."""
        around = tokenizer.encode("x").ids
        plain = tokenizer.encode("x", add_special_tokens=False).ids
        at = next(n for n in range(len(around)) if around[n : n + len(plain)] == plain)
        opening, closing = around[:at], around[at + len(plain) :]
        tokens = max_tokens - len(opening) - len(closing)
        return cls(opening, closing, tokens, min(HEAD_TOKENS, tokens // 4), count)

    @property
    def room(self) -> int:
        """Tokens of a text that all windows read together."""
        return self.tokens + (self.count - 1) * (self.tokens - self.head)

    def first(self, ids: Sequence[int]) -> list[Window]:
        """The first window alone."""
        own = list(ids[: self.tokens])
        return [Window([*self.opening, *own, *self.closing], len(self.opening), len(own))]

    def of_text(self, ids: Sequence[int]) -> list[Window]:
        """All windows of a text, at least one."""
        windows = self.first(ids)
        head, step = list(ids[: self.head]), self.tokens - self.head
        for start in range(self.tokens, min(len(ids), self.room), step):
            own = list(ids[start : min(start + step, self.room)])
            windows.append(Window([*self.opening, *head, *own, *self.closing], len(self.opening) + len(head), len(own)))
        return windows


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

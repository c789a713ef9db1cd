"""The two-level set encoding of a context (DAQu 3.2): attributes to columns, columns to one vector.

    vectors = AttributeVectors(PooledTokens(MiniLMEncoder.load(adapter="none")))
    augmented = encode_question("How do I measure a qubit?", context, vectors, ColumnWeights(share=0.7))
    augmented.vector            # q̃ = λ·q + (1 − λ)·q′, of length 1; q itself where there is no context

Every attribute is encoded alone, so their order cannot matter; a column is the mean of its attributes, and the context
the mean of its columns, or their sum by learned weights. Vectors are kept by content, and the memory is bounded.

Shape legend: N texts, C columns of a context, D dimension.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from helios.augment.context import Context, ContextColumn
from helios.bounded import Bounded
from helios.errors import ModelError
from helios.extras import import_library
from helios.index.durable import write_atomically

if TYPE_CHECKING:
    from helios.models.encoder import TokenEncoder

FloatArray = NDArray[np.float32]
SHARE = 0.7
"""λ, as the paper has it."""
MEGABYTES = 64


class TextEncoder(Protocol):
    """Texts to unit vectors; whatever gives one vector a text."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors of the texts (N, D), in order."""


class PooledTokens:
    """A token encoder as an encoder of texts: the unit mean of a text's token vectors."""

    def __init__(self, encoder: "TokenEncoder") -> None:
        self.encoder = encoder

    @property
    def name(self) -> str:
        return f"pooled {self.encoder.fingerprint[:12]}"

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode(self, texts: Sequence[str]) -> FloatArray:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        means = np.stack([found.vectors.mean(axis=0) for found in self.encoder.encode_documents(texts)])
        return unit(means)


class SentenceEncoder:
    """Any encoder of sentence-transformers (Contriever, DPR, BGE-M3), by its name on the hub or its folder."""

    def __init__(self, model: str, *, device: str | None = None, batch: int = 32) -> None:
        self._model = _sentence_transformer(model, device)
        self.name, self.batch = model, batch

    @property
    def dimension(self) -> int:
        return int(self._model.get_embedding_dimension())

    def encode(self, texts: Sequence[str]) -> FloatArray:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        found = self._model.encode(list(texts), batch_size=self.batch, show_progress_bar=False, convert_to_numpy=True)
        return unit(np.asarray(found, np.float32))


class AttributeVectors:
    """Vectors of texts, kept by their content up to so many megabytes; threads may share it."""

    def __init__(self, encoder: TextEncoder, *, megabytes: int = MEGABYTES) -> None:
        self.encoder = encoder
        self._kept: Bounded[bytes, FloatArray] = Bounded(megabytes << 20, size=lambda vector: vector.nbytes + 128)

    def __len__(self) -> int:
        return len(self._kept)

    def known(self) -> dict[bytes, FloatArray]:
        """What is kept now, by the hash of its text."""
        return self._kept.items()

    def keep(self, key: bytes, vector: FloatArray) -> None:
        """Keep a vector that was made before."""
        self._kept.put(key, vector)

    def of(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors of the texts (N, D), in order; each text that is not known yet is encoded once."""
        keys = [blake2b(text.encode("utf-8", "replace"), digest_size=16).digest() for text in texts]
        found = {key: vector for key in dict.fromkeys(keys) if (vector := self._kept.get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            for key, vector in zip(missing, self.encoder.encode(list(missing.values())), strict=True):
                found[key] = vector
                self._kept.put(key, vector)
        return np.stack([found[key] for key in keys]) if keys else np.zeros((0, self.encoder.dimension), np.float32)


@dataclass(frozen=True, slots=True)
class ColumnWeights:
    """How much the question and each column of its context count; the defaults are the paper's mean.

    Without `weights` the columns that a context has share 1 − λ evenly. With them, each column has its own share of it
    whatever others are there, so a context without some columns leaves more to the question, and a column of weight 0
    is left out. `attention` above 0 moves weight to columns that are like the question.
    """

    share: float = SHARE
    """λ: the question's own share."""
    weights: Mapping[str, float] | None = None
    """By a column's role, or its name where the role has none; columns of no weight count `other`."""
    other: float = 0.0
    attention: float = 0.0
    """Sharpness β of the attention over columns: weights are multiplied by exp(β·cos(q, R)) and scaled back."""
    flat: bool = False
    """One mean over all attributes instead of two levels, for comparison (Figure 2)."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise ValueError(f"share={self.share}: expected a number from 0 to 1, the question's own share")
        if any(weight < 0 or not math.isfinite(weight) for weight in (self.weights or {}).values()):
            raise ValueError("weights of columns: expected numbers of at least 0")

    def of(self, column: ContextColumn) -> float:
        """What a column counts before attention, of learned weights."""
        found = self.weights or {}
        return found.get(column.role, found.get(column.name, self.other))


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """What one column came to."""

    column: ContextColumn
    vector: FloatArray
    """The mean of its attributes' vectors (D)."""
    weight: float
    """Its share in q̃, beside λ for the question."""


@dataclass(frozen=True, slots=True)
class Augmented:
    """A question's vector with its context in it."""

    vector: FloatArray
    """q̃ (D), of length 1."""
    question: FloatArray
    """q (D), of length 1."""
    share: float
    """What the question itself counts; 1 without a context."""
    parts: tuple[ColumnPart, ...] = field(default=())


def encode_question(
    question: str, context: Context, vectors: AttributeVectors, weights: ColumnWeights | None = None,
    attributes: AttributeVectors | None = None,
) -> Augmented:  # fmt: skip
    """q̃ of a question and its context; q as it is where the context says nothing, or nothing of weight.

    `attributes` encodes the attributes where an encoder of their own was trained.
    """
    weights = weights or ColumnWeights()
    columns = [column for column in context.columns if column.attributes]
    texts = [text for column in columns for text in column.texts()]
    found = vectors.of([question, *(texts if attributes is None else ())])
    own, rest = found[0], found[1:] if attributes is None else attributes.of(texts)
    if not columns:
        return Augmented(own, own, 1.0)
    ends = np.cumsum([column.kept for column in columns])
    parts_CD = np.stack([part.mean(axis=0) for part in np.split(rest, ends[:-1])])
    share, shares_C = column_shares(own, parts_CD, columns, weights)
    vector = unit(share * own + shares_C @ parts_CD)
    parts = tuple(
        ColumnPart(column, part, float(weight))
        for column, part, weight in zip(columns, parts_CD, shares_C, strict=True)
    )
    return Augmented(vector, own, share, parts)


def column_shares(
    question_D: FloatArray, parts_CD: FloatArray, columns: Sequence[ContextColumn], weights: ColumnWeights
) -> tuple[float, FloatArray]:
    """The share of the question, and of every column (C), in q̃; they need not sum to 1, since q̃ is scaled anyway."""
    rest = 1.0 - weights.share
    if weights.flat:
        counts_C = np.array([column.kept for column in columns], np.float32)
        shares_C = counts_C / counts_C.sum()
    elif weights.weights is None:
        shares_C = np.full(len(columns), 1.0 / len(columns), np.float32)
    else:
        shares_C = np.array([weights.of(column) for column in columns], np.float32)
    if weights.attention and (total := float(shares_C.sum())) > 0.0:
        cosines_C = unit(parts_CD) @ question_D
        drawn_C = shares_C * np.exp(weights.attention * (cosines_C - cosines_C.max()))
        shares_C = (total / float(drawn_C.sum()) * drawn_C).astype(np.float32)
    if weights.share == 0.0 and not shares_C.any():
        return 1.0, shares_C
    return weights.share, (rest * shares_C).astype(np.float32)


def save_vectors(path: Path, vectors: AttributeVectors) -> None:
    """Write what is kept, for another process with the same encoder."""
    known = vectors.known()
    keys = np.frombuffer(b"".join(known), np.uint8).reshape(len(known), -1)
    held = np.stack(list(known.values())) if known else np.zeros((0, vectors.encoder.dimension), np.float32)
    buffer = BytesIO()
    np.savez(buffer, encoder=np.array(vectors.encoder.name), keys=keys, vectors=held)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())


def load_vectors(path: Path, vectors: AttributeVectors) -> int:
    """Take over what `save_vectors` wrote, if it is of the same encoder: how many vectors; 0 where there is no file.

    ModelError for a file that cannot be read.
    """
    if not path.is_file():
        return 0
    try:
        with np.load(path, allow_pickle=False) as found:
            if str(found["encoder"]) != vectors.encoder.name:
                return 0
            keys, held = found["keys"], found["vectors"]
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise ModelError(f"{path}: no readable vectors ({error}); delete the file to encode anew") from None
    for key, vector in zip(keys, held, strict=True):
        vectors.keep(key.tobytes(), vector)
    return len(keys)


def unit(vectors: FloatArray) -> FloatArray:
    """Vectors of length 1; a zero vector stays zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-12), np.float32)


def _sentence_transformer(model: str, device: str | None) -> Any:
    library = import_library("sentence_transformers", needed_by=f"encoder {model}")
    try:
        return library.SentenceTransformer(model, device=device)
    except (OSError, ValueError) as error:
        raise ModelError(f"encoder {model}: sentence-transformers cannot load it ({error})") from None

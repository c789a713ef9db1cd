"""A trained augmenter: what the question and each column count, and a small map of their vectors and the documents'.

    model = load_augmenter(Path("runs/augment"), vectors.encoder.name)
    model.asked(question, context, vectors) @ model.documents(documents_MD).T

`helios train augment` writes it. Without a map the vectors stay those of the encoder.

Shape legend: M vectors, D dimension, R rank of the map.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.augment.context import Attribute, Context, ContextColumn
from helios.augment.encoding import AttributeVectors, ColumnWeights, FloatArray, encode_question, unit
from helios.errors import ModelError
from helios.models.card import ModelCard, read_card

ROLE = "augmenter"
WEIGHTS = "augmenter.safetensors"
ADAPTER, ATTRIBUTE_ADAPTER = "token-encoder.safetensors", "attribute-encoder.safetensors"
ROW_COLUMN = "row"
"""The question's own row as one text: the question, and the row's texts after it."""


@dataclass(frozen=True, slots=True)
class AugmentModel:
    """What `helios train augment` learned."""

    weights: ColumnWeights
    down_DR: FloatArray | None = None
    up_RD: FloatArray | None = None
    """The map x + x·down·up, of questions and of documents; None changes nothing."""
    expansion: str | None = None
    """How the questions were expanded in words, where the model has no set of attributes (a baseline)."""
    adapter: Path | None = None
    """The trained encoder of questions and documents, for `MiniLMEncoder.load(adapter=...)`; None is the base."""
    attribute_adapter: Path | None = None
    """That of attributes, where it is another one."""

    @property
    def adapters(self) -> tuple[Path, ...]:
        """The trained encoders: of questions and documents, and of attributes where they have their own."""
        return tuple(path for path in (self.adapter, self.attribute_adapter) if path is not None)

    def question(self, vector: FloatArray) -> FloatArray:
        """A question's vector, or several (…, D), as it is compared with documents."""
        return self.documents(vector)

    def documents(self, vectors: FloatArray) -> FloatArray:
        """Documents' vectors (…, D) as they are compared with questions."""
        if self.down_DR is None or self.up_RD is None:
            return vectors
        return unit(np.asarray(vectors + vectors @ self.down_DR @ self.up_RD, np.float32))

    @property
    def is_for_search(self) -> bool:
        """Whether an engine can use it: it learned a set of attributes, over the vectors that the index has."""
        return self.expansion is None and not self.adapters

    def check_for_search(self) -> None:
        """ModelError where an engine cannot use it."""
        if not self.is_for_search:
            raise ModelError(
                "the augmenter (search.augmenter) learned from expanded words or trained its own encoder, and an index "
                "has the vectors of the encoder that built it; train one with update=few and no expansion"
            )

    @property
    def fingerprint(self) -> str:
        """Of the map alone."""
        parts = (part.tobytes() for part in (self.down_DR, self.up_RD) if part is not None)
        return blake2b(b"".join(parts), digest_size=16).hexdigest()

    def transposed(self, vector_D: FloatArray) -> FloatArray:
        """The vector (D) whose product with a text is that of `vector_D` with the mapped text, up to its length."""
        if self.down_DR is None or self.up_RD is None:
            return vector_D
        return np.asarray(vector_D + self.down_DR @ (self.up_RD @ vector_D), np.float32)

    def lengths(self, vectors_MD: FloatArray) -> FloatArray:
        """How long the map makes vectors: (M)."""
        if self.down_DR is None or self.up_RD is None:
            return np.asarray(np.linalg.norm(vectors_MD, axis=1), np.float32)
        mapped_MD = vectors_MD + vectors_MD @ self.down_DR @ self.up_RD
        return np.asarray(np.maximum(np.linalg.norm(mapped_MD, axis=1), 1e-9), np.float32)

    def asked(self, question: str, context: Context, vectors: AttributeVectors) -> FloatArray:
        """A question with its context as one vector (D), as it is compared with documents."""
        found = encode_question(question, self.with_row(question, context), vectors, self.weights)
        return self.question(found.vector)

    def with_row(self, question: str, context: Context) -> Context:
        """The context with the question's row as one text, where the model has learned from such a column."""
        known = any(column.name == ROW_COLUMN for column in context.columns)
        return context if known or not (self.weights.weights or {}).get(ROW_COLUMN) else with_row(question, context)


def with_row(question: str, context: Context) -> Context:
    """The context with one column more: the question and the texts of its own row as one text.

    The columns of the row itself are those that no key leads to.
    """
    own = [text for column in context.columns if not column.path for text in column.texts()]
    if not own:
        return context
    attribute = Attribute(ROW_COLUMN, "\n".join([question, *own]), context.row)
    return replace(context, columns=(*context.columns, ContextColumn(ROW_COLUMN, (), (attribute,), 1)))


def load_augmenter(folder: Path, encoder: str, *, split: Mapping[str, Any] | None = None) -> AugmentModel:
    """The trained augmenter of a folder, for vectors of the encoder of this name.

    `split` says which questions it is measured on: a model that was trained on another split has seen some of them.
    ModelError for a folder that is none, is damaged, or was trained with another encoder or split.
    """
    card = read_card(folder, ROLE)
    card.check(folder, encoder=encoder, **({"split": split} if split is not None else {}))
    down, up = _map(folder, card)
    expansion = card.values.get("expansion")
    adapters = [folder / name if name in card.files else None for name in (ADAPTER, ATTRIBUTE_ADAPTER)]
    return AugmentModel(
        column_weights(folder, card.values), down, up, None if expansion is None else str(expansion), *adapters
    )


def column_weights(folder: Path, values: Mapping[str, Any]) -> ColumnWeights:
    """λ and the weights of columns that a card holds; ModelError where they are no numbers that can be."""
    try:
        weights = {str(name): float(weight) for name, weight in values["weights"].items()}
        return ColumnWeights(float(values["share"]), weights, attention=float(values.get("attention", 0.0)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{folder}: the card holds no weights of columns ({error}); train it again") from None


def _map(folder: Path, card: ModelCard) -> tuple[FloatArray | None, FloatArray | None]:
    if WEIGHTS not in card.files:
        return None, None
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors: dict[str, NDArray[Any]] = load_file(folder / WEIGHTS)
        down, up = (np.asarray(tensors[name], np.float32) for name in ("map.down", "map.up"))
    except (OSError, SafetensorError, KeyError) as error:
        raise ModelError(f"{folder / WEIGHTS}: no readable map ({error}); train it again") from None
    if down.ndim != 2 or down.shape != up.T.shape:
        raise ModelError(f"{folder / WEIGHTS}: map.down {down.shape} and map.up {up.shape} do not fit each other")
    return down, up

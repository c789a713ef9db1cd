"""Everything of a task as vectors, and ranked lists of documents from the vectors of questions.

Shape legend: N questions, M documents, D dimension.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from helios.augment.context import Context
from helios.augment.encoding import AttributeVectors, Augmented, ColumnWeights, encode_question
from helios.evaluation.augment.tasks import RowQuestion, Task

FloatArray = NDArray[np.float32]
BATCH = 256


class Bench:
    """A task's documents as vectors, encoded once."""

    def __init__(self, task: Task, vectors: AttributeVectors) -> None:
        self.task, self.vectors = task, vectors
        self.document_ids = tuple(task.documents)
        self.documents_MD = encode_all(vectors, list(task.documents.values()))

    def rank(self, questions_ND: FloatArray, *, depth: int) -> Iterator[list[str]]:
        """For every question the best documents, best first."""
        for start in range(0, len(questions_ND), BATCH):
            yield from self.order(questions_ND[start : start + BATCH] @ self.documents_MD.T, depth=depth)

    def order(self, scores_NM: FloatArray, *, depth: int) -> Iterator[list[str]]:
        """The documents of every row of scores, best first; ties by the order of the documents."""
        for scores_M in scores_NM:
            best = np.argsort(-scores_M, kind="stable")[:depth]
            yield [self.document_ids[number] for number in best.tolist()]

    def augmented(self, questions: Sequence[RowQuestion], weights: ColumnWeights) -> list[Augmented]:
        """Questions with their contexts as vectors."""
        return [
            encode_question(one.text, Context.from_columns(one.context), self.vectors, weights) for one in questions
        ]

    def texts(self, texts: Sequence[str]) -> FloatArray:
        """Vectors of questions in words (N, D)."""
        return encode_all(self.vectors, texts)


def encode_all(vectors: AttributeVectors, texts: Sequence[str]) -> FloatArray:
    """Vectors of many texts (N, D)."""
    parts = [vectors.of(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
    return np.concatenate(parts) if parts else np.zeros((0, vectors.encoder.dimension), np.float32)


def warm(task: Task, vectors: AttributeVectors) -> None:
    """Encode every text of a task that will be asked for, in large batches."""
    texts = {text for one in task.questions for own in one.context.values() for text in own}
    encode_all(vectors, [*dict.fromkeys(one.text for one in task.questions), *sorted(texts, key=lambda t: (len(t), t))])

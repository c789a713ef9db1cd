"""Everything of a task as vectors, and ranked lists of documents from the vectors of questions.

Shape legend: N questions, M documents, D dimension.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from helios.augment.context import Context
from helios.augment.encoding import AttributeVectors, Augmented, ColumnWeights, encode_question
from helios.augment.model import AugmentModel
from helios.engine import Engine
from helios.errors import EvaluationError
from helios.evaluation.augment.tasks import ROW, WHOLE, RowQuestion, Task

FloatArray = NDArray[np.float32]
BATCH = 256


class Bench:
    """A task's documents as vectors, encoded once."""

    def __init__(
        self, task: Task, vectors: AttributeVectors, *, attributes: AttributeVectors | None = None,
        model: AugmentModel | None = None,
    ) -> None:  # fmt: skip
        """`attributes` encodes attributes where another encoder does; `model` brings the documents to its questions."""
        self.task, self.vectors, self.attributes = task, vectors, attributes
        self.document_ids = tuple(task.documents)
        documents_MD = encode_all(vectors, list(task.documents.values()))
        self.documents_MD = documents_MD if model is None else model.documents(documents_MD)

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
            encode_question(
                one.text, Context.from_columns(self._shown(one, weights)), self.vectors, weights, self.attributes
            )
            for one in questions
        ]

    def _shown(self, question: RowQuestion, weights: ColumnWeights) -> Mapping[str, Sequence[str]]:
        return shown_columns(self.task, question, weights)

    def texts(self, texts: Sequence[str]) -> FloatArray:
        """Vectors of questions in words (N, D)."""
        return encode_all(self.vectors, texts)


def shown_columns(task: Task, question: RowQuestion, weights: ColumnWeights) -> Mapping[str, Sequence[str]]:
    """The columns that count: the row as one text only where weights were learned for it."""
    if weights.weights is not None:
        return question.context
    whole = {column.name for column in task.columns if column.group == WHOLE}
    return {name: own for name, own in question.context.items() if name not in whole}


def engine_lists(
    engine: Engine, task: Task, questions: Sequence[RowQuestion], *, depth: int, weights: ColumnWeights | None,
    augmenter: AugmentModel | None = None,
) -> Iterator[list[str]]:  # fmt: skip
    """For every question the best documents by late interaction, best first, from an engine over the documents.

    `weights` None asks without a context; `augmenter` is as for `Engine.search`. EvaluationError where the engine's
    passages are not the task's documents.
    """
    missing = next((one for one in task.documents if engine.corpus.passages.find(one) is None), None)
    if missing is not None:
        raise EvaluationError(
            f"{engine.snapshot.directory}: no passage {missing!r}; index what --documents writes for this task"
        )
    for one in questions:
        context = None if weights is None else _of_row(task, one, weights)
        found = engine.search(one.text, k=depth, context=context, context_weights=weights, augmenter=augmenter)
        yield list(dict.fromkeys(edge.passage.passage_id for edge in found.edges if edge.passage is not None))


def _of_row(task: Task, question: RowQuestion, weights: ColumnWeights) -> Context:
    """A question's context with the ways that its columns were reached in: the row's own are reached by none."""
    paths = {column.name: () if column.group in (ROW, WHOLE) else (column.group,) for column in task.columns}
    context = Context.from_columns(shown_columns(task, question, weights))
    columns = tuple(replace(column, path=paths.get(column.name, ())) for column in context.columns)
    return replace(context, columns=columns, row=question.question_id)


def encode_all(vectors: AttributeVectors, texts: Sequence[str]) -> FloatArray:
    """Vectors of many texts (N, D)."""
    parts = [vectors.of(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
    return np.concatenate(parts) if parts else np.zeros((0, vectors.encoder.dimension), np.float32)


def warm(task: Task, vectors: AttributeVectors) -> None:
    """Encode every text of a task that will be asked for, in large batches."""
    texts = {text for one in task.questions for own in one.context.values() for text in own}
    encode_all(vectors, [*dict.fromkeys(one.text for one in task.questions), *sorted(texts, key=lambda t: (len(t), t))])

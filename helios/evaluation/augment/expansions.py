"""Question expansion in words: the baselines of DAQu (4.2), as texts to be encoded or searched.

`row` and `user` append one store (what stands in the question's own row, or what its author leads to), `full` all of
the context, `terms` the pieces of it that BM25 finds most like the question. `llm` (after query2doc) has a language
model write a passage that would answer, `lamer` shows it the best documents first.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, Field

from helios.evaluation.augment.tasks import ROW, USER, WHOLE, RowQuestion, Task
from helios.evaluation.baselines import Bm25Texts
from helios.llm.client import LanguageModel
from helios.llm.outcome import Answer
from helios.llm.request import Message, Request

PIECES = 5
"""Pieces of the context that BM25 chooses."""
SHOWN = 5
"""Documents that `lamer` shows the model."""
EXCERPT = 600
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class Expansion(StrEnum):
    """What is appended to a question."""

    NONE = "none"
    ROW = "row"
    USER = "user"
    FULL = "full"
    TERMS = "terms"
    LLM = "llm"
    LAMER = "lamer"


FROM_CONTEXT = (Expansion.NONE, Expansion.ROW, Expansion.USER, Expansion.FULL, Expansion.TERMS)
FROM_MODEL = (Expansion.LLM, Expansion.LAMER)


class Passage(BaseModel):
    """What a language model writes for a question."""

    passage: str = Field(min_length=1, max_length=4000)


def expanded(task: Task, question: RowQuestion, expansion: Expansion, documents: Bm25Texts) -> str:
    """A question with words of its context appended; the order of the columns is the task's."""
    groups = {column.name: column.group for column in task.columns}
    if expansion is Expansion.NONE:
        return question.text
    if expansion is Expansion.TERMS:
        texts = [text for name, own in question.context.items() if groups[name] != WHOLE for text in own]
        pieces = [piece for text in texts for piece in _SENTENCE.split(text)]
        order = sorted(pieces, key=lambda piece: (-documents.worth(question.text, piece), piece))
        return "\n".join([question.text, *dict.fromkeys(order[:PIECES])])
    every = tuple(group for group in groups.values() if group != WHOLE)
    wanted = {Expansion.ROW: (ROW,), Expansion.USER: (USER,)}.get(expansion, every)
    texts = [
        text
        for column in task.columns
        if groups[column.name] in wanted
        for text in question.context.get(column.name, ())
    ]
    return "\n".join([question.text, *texts])


def written(
    task: Task, questions: Sequence[RowQuestion], expansion: Expansion, documents: Bm25Texts, model: LanguageModel
) -> tuple[list[str], int]:
    """Questions with a passage that a language model wrote appended, and how many the model failed on.

    A question on which it failed stays as it is.
    """
    texts, failed = [], 0
    ids = list(task.documents)
    for question in questions:
        shown: list[str] = []
        if expansion is Expansion.LAMER:
            scores = documents.scores(question.text)
            shown = [task.documents[ids[i]][:EXCERPT] for i in (-scores).argsort(kind="stable")[:SHOWN].tolist()]
        (outcome,) = model.ask([_request(question.text, shown)], budget=model.budget())
        if isinstance(outcome, Answer):
            texts.append(f"{question.text}\n{outcome.value.passage}")
        else:
            texts.append(question.text)
            failed += 1
    return texts, failed


def _request(question: str, shown: Sequence[str]) -> Request[Passage]:
    asked = "Write a short passage that answers the question, as it might stand in the documents that are searched."
    if shown:
        asked += " The documents below were found for it; they may be wrong, but show what such documents are like."
    listed = "\n\n".join(f"Document {number}:\n{text}" for number, text in enumerate(shown, start=1))
    content = "\n\n".join(part for part in (listed, f"Question: {question}") if part)
    return Request((Message("system", asked), Message("user", content)), Passage)

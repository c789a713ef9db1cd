"""Examples for the extractive reader: what the engine finds for train questions, with every candidate graded.

Examples are kept in chunks beside the weights, so that a recipe that was killed goes on where it stopped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.engine import Engine
from helios.evaluation.measures import exact_match, f1
from helios.evaluation.questions import Question
from helios.reading.extractive import Candidates, answer_spans
from helios.reading.features import FEATURES, span_key
from helios.reading.passages import PassageReader
from helios.reading.vectors import StoredVectors
from helios.types import Evidence
from training.holdout import table_place

CHUNK = 100
"""Questions of one file."""


@dataclass(frozen=True, slots=True)
class Example:
    """The candidates of one question: features (N, F), F1 and exact match of each, and which are the same answer."""

    question_id: str
    fold: float
    """From 0 to 1, by the question's table."""
    features: NDArray[np.float16]
    f1: NDArray[np.float32]
    exact: NDArray[np.bool_]
    answers: NDArray[np.int32]
    """Candidates with the same number are the same answer."""


class Search(Protocol):
    """What finds evidence for a train question."""

    def __call__(self, question: Question, *, k: int) -> Evidence: ...


def mine_examples(
    engine: Engine, questions: Sequence[Question], folder: Path, *, edges: int, k: int, seed: int,
    passages: Sequence[PassageReader] = (), search: Search | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> list[Example]:  # fmt: skip
    """Search every question and grade its candidates; chunks that `folder` has already are read from there.

    `search` finds the evidence instead of the engine. Of several readers of `passages` each reads its equal share of
    the tables, in their order by `table_fold`: those that it has not learned from.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vectors = StoredVectors(engine.index, engine.encoder)
    examples: list[Example] = []
    for start in range(0, len(questions), CHUNK):
        path = folder / f"examples-{start:06d}.npz"
        chunk = questions[start : start + CHUNK]
        if not path.is_file():
            mined = []
            for number, question in enumerate(chunk, start=start + 1):
                evidence = search(question, k=k) if search else engine.search(question.text, k=k)
                read = None
                if passages:
                    reader = passages[int(table_fold(question, seed=seed) * len(passages))]
                    read = reader.passages(question.text, evidence, edges=edges)
                candidates = answer_spans(question.text, evidence, vectors, edges=edges, passages=read)
                mined.append(grade(question, candidates, seed=seed))
                advance(number)
            _save(path, mined)
        examples.extend(_load(path))
    return examples


def read_examples(folder: Path) -> list[Example]:
    """All examples that `mine_examples` left in a folder."""
    return [example for path in sorted(folder.glob("examples-*.npz")) for example in _load(path)]


def grade(question: Question, candidates: Candidates, *, seed: int) -> Example:
    """Compare every candidate with the answers."""
    texts = [candidates.text(number) for number in range(len(candidates.spans))]
    numbers: dict[str, int] = {}
    same = [numbers.setdefault(span_key(text), len(numbers)) for text in texts]
    return Example(
        question.question_id,
        table_fold(question, seed=seed),
        candidates.features.astype(np.float16),
        np.array([f1(text, question.answers) for text in texts], np.float32),
        np.array([exact_match(text, question.answers) for text in texts], bool),
        np.array(same, np.int32),
    )


def table_fold(question: Question, *, seed: int) -> float:
    """A number from 0 to 1, the same for all questions of a table."""
    return table_place(question.table_id or question.question_id, seed=seed) / 2**32


def _save(path: Path, examples: Sequence[Example]) -> None:
    sizes = np.array([len(example.f1) for example in examples])
    partial = path.with_suffix(".part")
    with partial.open("wb") as file:
        np.savez(
            file,
            ids=np.array([example.question_id for example in examples]),
            folds=np.array([example.fold for example in examples]),
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            features=np.concatenate([example.features for example in examples]),
            f1=np.concatenate([example.f1 for example in examples]),
            exact=np.concatenate([example.exact for example in examples]),
            answers=np.concatenate([example.answers for example in examples]),
        )
    partial.replace(path)


def _load(path: Path) -> Iterator[Example]:
    with np.load(path) as arrays:
        offsets = arrays["offsets"]
        features, scores, exact, answers = (arrays[name] for name in ("features", "f1", "exact", "answers"))
        if features.shape[1] != len(FEATURES):
            raise ValueError(f"{path}: made with other features; remove the folder")
        for at, (name, fold) in enumerate(zip(arrays["ids"].tolist(), arrays["folds"].tolist(), strict=True)):
            here = slice(int(offsets[at]), int(offsets[at + 1]))
            yield Example(name, fold, features[here], scores[here], exact[here], answers[here])

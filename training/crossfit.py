"""Searching train questions with rankings that never saw their tables.

A model that reads what the learned ranking put first must not learn from rankings of questions that the ranking was
itself trained on: there the right edge comes first far more often than it will later.
"""

import json
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from helios.engine import Engine
from helios.evaluation.questions import Question
from helios.types import Evidence
from training.errors import TrainingError
from training.holdout import table_place

FOLDS = "folds"
"""Folder of a trained ranking with one ranking a fold, each grown without the tables of its fold."""


def table_fold(table: str, *, seed: int, folds: int) -> int:
    """The fold of a table."""
    return table_place(table, seed=seed) % folds


class CrossFitted:
    """Engines over one index, one a fold, opened when first needed; without a trained ranking the packaged one.

    None of them reranks.
    """

    def __init__(self, index: Path, ranking: Path | None) -> None:
        self.index = index
        self.ranking = ranking
        self._opened: dict[int, Engine] = {}
        self._open = ExitStack()
        self._seed, self._folds = (0, 1) if ranking is None else _fold_settings(ranking)

    def engine(self, question: Question) -> Engine:
        """The engine whose ranking has not seen the question's table."""
        table = question.table_id or question.question_id
        fold = table_fold(table, seed=self._seed, folds=self._folds)
        if fold not in self._opened:
            own = ["rerank.backend=none"]  # the packaged reranker has seen all tables
            if self.ranking is not None:
                own.append(f"search.ranker={self.ranking / FOLDS / str(fold)}")
            self._opened[fold] = self._open.enter_context(Engine.open(self.index, overrides=own))
        return self._opened[fold]

    def search(self, question: Question, *, k: int) -> Evidence:
        """Evidence for a train question as search gives it for a new one."""
        return self.engine(question).search(question.text, k=k)

    def __enter__(self) -> "CrossFitted":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()


def _fold_settings(ranking: Path) -> tuple[int, int]:
    try:
        recipe = json.loads((ranking / "card.json").read_text(encoding="utf-8"))["recipe"]
        seed, folds = int(recipe["seed"]), int(recipe["folds"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{ranking}: not a folder that `helios train ranker` wrote ({error})") from error
    missing = [fold for fold in range(folds) if not (ranking / FOLDS / str(fold)).is_dir()]
    if missing:
        raise TrainingError(f"{ranking / FOLDS / str(missing[0])} is missing: train the ranking again")
    return seed, folds

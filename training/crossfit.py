"""Searching train questions with rankings that never saw their tables.

A model that reads what the learned ranking put first must not learn from rankings of questions that the ranking was
itself trained on: there the right edge comes first far more often than it will later.
"""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from helios.config import RerankSettings
from helios.engine import Engine
from helios.evaluation.questions import Question
from helios.graph import Subgraph
from helios.models.encoder import MiniLMEncoder
from helios.models.ranker import EdgeRanker
from helios.retrieval.edges import FactoredEdges
from helios.retrieval.late_reranker import ENCODER, LATE_FEATURES, LateReranker, late_encoder
from helios.types import Evidence
from training.errors import TrainingError
from training.holdout import share_of, table_place

FOLDS = "folds"
"""Folder of a trained ranking with one ranking a fold, each grown without the tables of its fold."""
SHARES = "shares"
"""Folder of a trained reranking with its encoders, each of which held one share of the tables out."""


def table_fold(table: str, *, seed: int, folds: int) -> int:
    """The fold of a table."""
    return table_place(table, seed=seed) % folds


class CrossFitted:
    """Engines over one index, one a fold, opened when first needed; without a trained ranking the packaged one.

    None of them reranks by itself: the packaged reranker has seen all tables. With `reranking`, a folder that
    `helios train late-reranker` wrote, `ranked` does.
    """

    def __init__(self, index: Path, ranking: Path | None, reranking: Path | None = None) -> None:
        self.index = index
        self.ranking = ranking
        self._reranking = None if reranking is None else CrossFittedReranking(reranking)
        self._opened: dict[int, Engine] = {}
        self._open = ExitStack()
        self._seed, self._folds = (0, 1) if ranking is None else _fold_settings(ranking)

    def engine(self, question: Question) -> Engine:
        """The engine whose ranking has not seen the question's table."""
        table = question.table_id or question.question_id
        fold = table_fold(table, seed=self._seed, folds=self._folds)
        if fold not in self._opened:
            own = ["rerank.backend=none"]
            if self.ranking is not None:
                own.append(f"search.ranker={self.ranking / FOLDS / str(fold)}")
            self._opened[fold] = self._open.enter_context(Engine.open(self.index, overrides=own))
        return self._opened[fold]

    def ranked(self, question: Question, *, k: int) -> Subgraph:
        """What search has for a train question before the stages after reranking: its best k edges."""
        engine = self.engine(question)
        found = engine.retrieve_edges(question.text, k=k)
        return found if self._reranking is None else self._reranking.rerank(engine, question, found)

    def search(self, question: Question, *, k: int) -> Evidence:
        """Evidence for a train question as search gives it for a new one."""
        return self.engine(question).search(question.text, k=k)

    def __enter__(self) -> "CrossFitted":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()


class CrossFittedReranking:
    """Late-interaction rerankers whose trees and whose encoder never saw the question's table."""

    def __init__(self, folder: Path) -> None:
        self._seed, folds = _fold_settings(folder, role="late-reranker")
        self._k1 = int(_recipe(folder, "late-reranker")["k1"])
        shares = sorted((folder / SHARES).glob(f"*/{ENCODER}"), key=lambda path: int(path.parent.name))
        if not shares:
            raise TrainingError(f"{folder / SHARES} is missing: train the reranker with encoders that held tables out")
        self._encoders: list[MiniLMEncoder] = [late_encoder(path, RerankSettings()) for path in shares]
        self._trees = [EdgeRanker.load(folder / FOLDS / str(fold), features=LATE_FEATURES) for fold in range(folds)]

    def rerank(self, engine: Engine, question: Question, subgraph: Subgraph) -> Subgraph:
        """A train question's edges as search reranks those of a new one."""
        edges, table = engine.edge_index, question.table_id or question.question_id
        if not isinstance(edges, FactoredEdges):
            raise TrainingError("late-interaction reranking orders factored edges")
        trees = self._trees[table_fold(table, seed=self._seed, folds=len(self._trees))]
        reranker = LateReranker(self._encoders[share_of(table, len(self._encoders))], trees)
        return reranker.rerank(engine.part, edges, question.text, subgraph, k1=self._k1)


def _fold_settings(folder: Path, *, role: str = "ranker") -> tuple[int, int]:
    recipe = _recipe(folder, role)
    seed, folds = int(recipe["seed"]), int(recipe["folds"])
    missing = [fold for fold in range(folds) if not (folder / FOLDS / str(fold)).is_dir()]
    if missing:
        raise TrainingError(f"{folder / FOLDS / str(missing[0])} is missing: train the ranking again")
    return seed, folds


def _recipe(folder: Path, role: str) -> Mapping[str, Any]:
    try:
        recipe: Mapping[str, Any] = json.loads((folder / "card.json").read_text(encoding="utf-8"))["recipe"]
        int(recipe["seed"]), int(recipe["folds"])
        return recipe
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{folder}: not a folder that `helios train {role}` wrote ({error})") from error

"""Searching train questions with rankings that never saw their tables.

A model that reads what the learned ranking put first must not learn from rankings of questions that the ranking was
itself trained on: there the right edge comes first far more often than it will later.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from helios.config import AdvancedRerankSettings, load_config
from helios.engine import Engine
from helios.errors import ModelError
from helios.evaluation.questions import Question
from helios.index.reader import IndexReader
from helios.index.search import EdgeSearch
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot
from helios.index.visible import query_of
from helios.models.card import read_card
from helios.once import once
from helios.retrieval.pipeline import Models
from helios.retrieval.ranking.model import EdgeRanker
from helios.retrieval.ranking.stage import ROLE as RANKER
from helios.retrieval.reranking.late import ENCODER, LATE_FEATURES, LateReranking, NodeReading, late_encoder
from helios.retrieval.reranking.late import ROLE as LATE_RERANKER
from helios.retrieval.state import SearchState, Stage, run_stages
from helios.types import Evidence
from training.errors import TrainingError
from training.holdout import share_of, table_place

FOLDS = "folds"
"""Folder of a trained ranking with one ranking a fold, each grown without the tables of its fold."""
SHARES = "shares"
"""Folder of a trained reranking with its encoders, each of which held one share of the tables out."""
KEPT_MB = 256
"""Memory for the vectors of nodes that a trained encoder has read: questions about one table have many in common."""
RANKING_ALONE = ("expansion.enabled=false", "refinement.mode=off", "advanced.search.spread=0")
"""Settings of an engine that only ranks edges of the graph: models of later stages may still be missing."""
RANKED = ("retrieve", "rank")
"""The stages that find edges of the graph and put them in order: f_e (HELIOS 4.1)."""


def table_fold(table: str, *, seed: int, folds: int) -> int:
    """The fold of a table."""
    return table_place(table, seed=seed) % folds


def rank_edges(engine: Engine, question: str, *, k: int, index: IndexReader | None = None) -> SearchState:
    """A question after edge retrieval and the learned ranking, with its best k edges.

    `index` is searched instead of the engine's own where one is given.
    """
    state = engine.begin(question, k=k)
    if index is not None:
        query = query_of(question, state.query.tokens, index.tokens, index.postings)
        state = replace(state, query=query, search=EdgeSearch(index, engine.pipeline.fused.fusion, engine.threads))
    state = run_stages(state, [stage for stage in engine.pipeline.stages if stage.name in RANKED])
    return replace(state, subgraph=state.subgraph.top(k))


class CrossFitted:
    """Engines over one index, one a fold, opened when first needed; without a trained ranking the packaged one.

    None of them reranks by itself: the packaged reranker has seen all tables. With `reranking`, a folder that
    `helios train late-reranker` wrote, `ranked` and `stages` do.
    """

    def __init__(
        self, index: Path, ranking: Path | None, reranking: Path | None = None, *, overrides: Sequence[str] = ()
    ) -> None:
        """`overrides` are further settings of the engines, such as `RANKING_ALONE`."""
        self.index = index
        self.ranking = ranking
        self.overrides = tuple(overrides)
        self._reranking = None if reranking is None else CrossFittedReranking(reranking)
        self._models = Models(threads=os.cpu_count() or 1)
        self._opened: dict[int, Engine] = {}
        self._open = ExitStack()
        self._seed, self._folds = (0, 1) if ranking is None else _fold_settings(ranking, RANKER)

    def engine(self, question: Question) -> Engine:
        """The engine whose ranking has not seen the question's table."""
        fold = table_fold(_table(question), seed=self._seed, folds=self._folds)
        if fold not in self._opened:
            self._opened[fold] = self._open.enter_context(self._engine(fold))
        return self._opened[fold]

    def ranked(self, question: Question, *, k: int) -> SearchState:
        """What search has for a train question before the stages that add edges: its best k edges."""
        state = rank_edges(self.engine(question), question.text, k=k)
        return state if self._reranking is None else self._reranking.stage(question).run(state)

    def stages(self, question: Question) -> tuple[Stage, ...]:
        """The stages of a search for a train question, with the reranking that never saw its table."""
        usual = self.engine(question).pipeline.stages
        if self._reranking is None:
            return usual
        after = 1 + max(place for place, stage in enumerate(usual) if stage.name in RANKED)
        return (*usual[:after], self._reranking.stage(question), *usual[after:])

    def search(self, question: Question, *, k: int) -> Evidence:
        """Evidence for a train question as search gives it for a new one, but for the reranking."""
        return self.engine(question).search(question.text, k=k)

    def __enter__(self) -> "CrossFitted":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        self._models.close()

    def _engine(self, fold: int) -> Engine:
        own = [*self.overrides, "rerank.backend=none"]
        if self.ranking is not None:
            own.append(f"search.ranker={self.ranking / FOLDS / str(fold)}")
        settings = search_settings(self._snapshot, load_config(overrides=own))
        return Engine(self._snapshot, settings, models=self._models, index=self._reader)

    @once
    def _snapshot(self) -> Snapshot:
        return self._open.enter_context(Snapshot.open(self.index))

    @once
    def _reader(self) -> IndexReader:
        """What all engines read: one takes much less memory than one for each."""
        return IndexReader.of(self._snapshot)


class CrossFittedReranking:
    """Late-interaction rerankers whose trees and whose encoder never saw the question's table."""

    def __init__(self, folder: Path) -> None:
        self._seed, folds = _fold_settings(folder, LATE_RERANKER)
        self._k1 = int(_recipe(folder, LATE_RERANKER)["k1"])
        shares = sorted((folder / SHARES).glob(f"*/{ENCODER}"), key=lambda path: int(path.parent.name))
        if not shares:
            raise TrainingError(f"{folder / SHARES} is missing: train the reranker with encoders that held tables out")
        self._readings = [NodeReading(late_encoder(path), megabytes=KEPT_MB) for path in shares]
        folders = [folder / FOLDS / str(fold) for fold in range(folds)]
        self._trees = [EdgeRanker.load(one, role=LATE_RERANKER, features=LATE_FEATURES)[0] for one in folders]

    def stage(self, question: Question) -> LateReranking:
        """The stage that reads a train question's edges as search reads those of a new one."""
        table = _table(question)
        trees = self._trees[table_fold(table, seed=self._seed, folds=len(self._trees))]
        reading, usual = self._readings[share_of(table, len(self._readings))], AdvancedRerankSettings()
        return LateReranking(reading, trees, first=self._k1, within=usual.within, tokens=usual.tokens)


def _table(question: Question) -> str:
    return question.table_id or question.question_id


def _fold_settings(folder: Path, role: str) -> tuple[int, int]:
    recipe = _recipe(folder, role)
    seed, folds = int(recipe["seed"]), int(recipe["folds"])
    missing = [fold for fold in range(folds) if not (folder / FOLDS / str(fold)).is_dir()]
    if missing:
        raise TrainingError(f"{folder / FOLDS / str(missing[0])} is missing: train the ranking again")
    return seed, folds


def _recipe(folder: Path, role: str) -> Mapping[str, Any]:
    """The settings that a folder was trained with, those of the folds at least."""
    try:
        recipe = read_card(folder, role).settings
        int(recipe["seed"]), int(recipe["folds"])
        return recipe
    except (ModelError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{folder}: not a folder that `helios train {role}` wrote ({error})") from error

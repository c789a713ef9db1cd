"""The linker's recipe: train tables' hyperlinks → aliases → examples out of fold → two scorers → weights.

The alias table that a training example sees never holds what its own table taught, so the scorer learns how
far aliases can be trusted on new tables. Deterministic for one seed; independent of dev tables and questions.
"""

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt

from helios.corpus import CorpusStore
from helios.errors import CorpusError
from helios.models.linker.aliases import AliasTable, BoundAliases, bind
from helios.models.linker.encoding import EncodedTable
from helios.models.linker.features import FIRST_FEATURES, SECOND_FEATURES, Pairs
from helios.models.linker.linker import Linker, TableLinker
from helios.models.linker.passages import PassageIndex
from helios.models.linker.recognition import Recogniser
from helios.models.linker.scorer import Scorer, ScorerSettings
from helios.models.trees import Trees
from helios.types import Table
from training.linker_lessons import TableLessons, lessons, merge_lessons

log = logging.getLogger(__name__)

Array = npt.NDArray[Any]
RISING = ("popularity", "alias_count")
"""Features that may only raise a score: links from other tables never make a passage a worse candidate."""


@dataclass(frozen=True, slots=True)
class LinkerRecipe:
    """How to train; shares are of the train tables, in seeded random order."""

    seed: int = 13
    folds: int = 4
    first_share: float = 0.10
    second_share: float = 0.42
    threshold_share: float = 0.05
    first_rounds: int = 90
    second_rounds: int = 350
    first_threshold: float = 0.002
    edges_per_gold: float = 1.95
    """The default threshold gives this many links per gold link on the held-out train tables."""
    negatives: float = 0.25
    """Share of wrong candidates that the first scorer sees (they are weighted up again)."""


def train_linker(
    store: CorpusStore,
    table_ids: Sequence[str],
    out: Path,
    *,
    workdir: Path,
    recipe: LinkerRecipe | None = None,
    advance: Callable[[str, int], None] = lambda stage, tables: None,
) -> Linker:
    """Train on the hyperlinks of `table_ids`, write weights to `out` and return the linker.

    `workdir` holds the passage index; `advance` is told the stage and how many tables it has done.
    """
    recipe = recipe or LinkerRecipe()
    examples = _Examples(store, _shuffled(store, table_ids, recipe.seed), recipe, workdir, advance)
    first_tables, second_tables, threshold_tables = examples.shares()
    log.info("%d tables for the first scorer, %d for the second", len(first_tables), len(second_tables))
    first = _fit_first(examples, first_tables, recipe)
    draft = Scorer(first, None, ScorerSettings(0.0, recipe.first_threshold))
    second = _fit_second(examples, second_tables, draft, recipe)
    scorer = Scorer(first, second, ScorerSettings(0.0, recipe.first_threshold))
    threshold = _choose_threshold(examples, threshold_tables, scorer, recipe.edges_per_gold)
    scorer = Scorer(first, second, ScorerSettings(threshold, recipe.first_threshold))
    linker = Linker(merge_lessons(examples.lessons.values()), scorer)
    linker.save(out)
    return linker


def _shuffled(store: CorpusStore, table_ids: Sequence[str], seed: int) -> list[int]:
    numbers = sorted(number for name in table_ids if (number := store.tables.find(name)) is not None)
    if not numbers:
        raise CorpusError(f"none of the {len(table_ids)} training tables is in the corpus")
    random.Random(seed).shuffle(numbers)
    return numbers


class _Examples:
    """Labelled candidates of train tables, each from a linker whose aliases exclude the table's fold."""

    def __init__(
        self,
        store: CorpusStore,
        tables: list[int],
        recipe: LinkerRecipe,
        workdir: Path,
        advance: Callable[[str, int], None],
    ) -> None:
        self.store = store
        self.tables = tables
        self.recipe = recipe
        self._advance = advance
        pairs = ((passage.title, passage.text) for passage in store.passages)
        self.index = PassageIndex.build(pairs, workdir / "passages")
        self.numbers = {name: number for number, name in enumerate(store.passages.ids())}
        self.titles = list(store.passages.titles())
        self.lessons = self._learn()
        self._fold_linkers: dict[int, tuple[AliasTable, BoundAliases, dict[str, int]]] = {}
        self._fold_of = {table: place % recipe.folds for place, table in enumerate(tables)}

    def _learn(self) -> dict[int, TableLessons]:
        recogniser = Recogniser()
        taught: dict[int, TableLessons] = {}
        for number in self.tables:
            taught[number] = lessons(self.store.tables[number], recogniser, self._title, self._types)
            self._advance("aliases", 1)
        return taught

    def _title(self, passage_id: str) -> str | None:
        number = self.numbers.get(passage_id)
        return None if number is None else self.titles[number]

    def _types(self, passage_id: str) -> tuple[str, ...]:
        number = self.numbers.get(passage_id)
        return () if number is None else self.index.type_names_of(number)

    def shares(self) -> tuple[list[int], list[int], list[int]]:
        """Tables of the first scorer, of the second, and of the threshold; disjoint."""
        recipe, count = self.recipe, len(self.tables)
        first = max(1, int(recipe.first_share * count))
        second = first + max(1, int(recipe.second_share * count))
        return (
            self.tables[:first],
            self.tables[first:second],
            self.tables[second : second + max(1, int(recipe.threshold_share * count))],
        )

    def linkers(self, scorer: Scorer, tables: list[int]) -> Iterator[tuple[TableLinker, list[int]]]:
        """Fold by fold: a linker that has not learned from the fold, and the fold's tables."""
        for fold in range(self.recipe.folds):
            members = [table for table in tables if self._fold_of[table] == fold]
            if members:
                aliases, bound, words = self._aliases_without(fold)
                yield TableLinker(Linker(aliases, scorer), self.index, bound, words), members

    def _aliases_without(self, fold: int) -> tuple[AliasTable, BoundAliases, dict[str, int]]:
        if fold not in self._fold_linkers:
            others = (taught for table, taught in self.lessons.items() if self._fold_of[table] != fold)
            aliases = merge_lessons(others)
            self._fold_linkers[fold] = (aliases, *bind(aliases, self.index))
        return self._fold_linkers[fold]

    def labels(self, table: Table, encoded: EncodedTable, pairs: Pairs) -> Array:
        """bool[N]: whether the table's hyperlinks hold the pair."""
        width = len(self.titles)
        cells = {
            (int(row), int(column)): cell
            for cell, (row, column) in enumerate(zip(encoded.rows, encoded.columns, strict=True))
        }
        gold = [
            cells[link.row, link.column] * width + self.numbers[link.passage_id]
            for link in table.hyperlinks
            if (link.row, link.column) in cells and link.passage_id in self.numbers
        ]
        return np.isin(pairs.cells.astype(np.int64) * width + pairs.passages, np.array(gold, dtype=np.int64))

    def done(self, stage: str) -> None:
        """Report one table."""
        self._advance(stage, 1)


def _fit_first(examples: _Examples, tables: list[int], recipe: LinkerRecipe) -> Trees:
    generator = np.random.default_rng(recipe.seed)
    blocks: list[tuple[Array, Array]] = []
    for linker, members in examples.linkers(Scorer.untrained(), tables):
        for number in members:
            table = examples.store.tables[number]
            encoded, pairs = linker.candidates(table)
            labels = examples.labels(table, encoded, pairs)
            kept = labels | (generator.random(len(labels)) < recipe.negatives)
            blocks.append((pairs.features[kept], labels[kept]))
            examples.done("first scorer")
    features, labels = (np.concatenate(column) for column in zip(*blocks, strict=True))
    weights = np.where(labels, 1.0, 1.0 / recipe.negatives)
    settings = {"learning_rate": 0.12, "num_leaves": 31}
    return _fit(features, labels, weights, FIRST_FEATURES, settings, recipe.first_rounds, recipe.seed)


def _fit_second(examples: _Examples, tables: list[int], draft: Scorer, recipe: LinkerRecipe) -> Trees:
    blocks: list[tuple[Array, Array, Array]] = []
    for linker, members in examples.linkers(draft, tables):
        for number in members:
            table = examples.store.tables[number]
            encoded, pairs = linker.candidates(table)
            pairs, features = linker.collect(encoded, pairs)
            labels = examples.labels(table, encoded, pairs)
            weight = min(1.0, (3000.0 / max(len(labels), 1)) ** 0.5)
            blocks.append((features, labels, np.full(len(labels), weight)))
            examples.done("second scorer")
    features, labels, weights = (np.concatenate(column) for column in zip(*blocks, strict=True))
    settings = {"learning_rate": 0.07, "num_leaves": 63}
    return _fit(features, labels, weights, SECOND_FEATURES, settings, recipe.second_rounds, recipe.seed)


def _fit(
    features: Array,
    labels: Array,
    weights: Array,
    names: tuple[str, ...],
    settings: dict[str, float],
    rounds: int,
    seed: int,
) -> Trees:
    log.info("fitting on %d pairs, %d of them links", len(labels), int(labels.sum()))
    parameters = {
        "objective": "binary", "min_data_in_leaf": 60, "max_bin": 127, "feature_fraction": 0.6,
        "bagging_fraction": 0.6, "bagging_freq": 1, "seed": seed, "deterministic": True,
        "force_row_wise": True, "num_threads": 1, "verbose": -1,
        "monotone_constraints": [int(name in RISING) for name in names],
    } | settings  # fmt: skip
    data = lightgbm.Dataset(features, labels.astype(np.float32), weight=weights, feature_name=list(names))
    return Trees.of(lightgbm.train(parameters, data, rounds))


def _choose_threshold(examples: _Examples, tables: list[int], scorer: Scorer, edges_per_gold: float) -> float:
    """The score at which held-out tables get `edges_per_gold` distinct (row, passage) edges per gold edge."""
    scores: list[float] = []
    gold = 0
    for linker, members in examples.linkers(scorer, tables):
        for number in members:
            table = examples.store.tables[number]
            links = linker.link(table, threshold=0.0)
            best: dict[tuple[int, int], float] = {}
            for row, passage, score in zip(links.rows, links.passages, links.scores, strict=True):
                best[int(row), int(passage)] = max(best.get((int(row), int(passage)), 0.0), float(score))
            scores.extend(best.values())
            gold += len({(link.row, link.passage_id) for link in table.hyperlinks})
            examples.done("threshold")
    scores.sort(reverse=True)
    wanted = min(int(edges_per_gold * gold), len(scores) - 1)
    return round(scores[wanted], 6) if scores else 0.5

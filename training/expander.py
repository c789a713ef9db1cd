"""The recipe of node expansion's pair model (f_S→P and f_P→S, HELIOS B.3): trees that find hidden gold links again.

Few gold edges lack a link, so more are hidden: those that the linker was least sure of, and a share of the others.
The questions are searched over the graph without them, with rankings that never saw their tables; the pairs that
expansion would look at become examples, gold pairs against all others.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import AdvancedExpansionSettings, Section
from helios.engine import Engine
from helios.evaluation.expansion import linkable_edges
from helios.evaluation.questions import Question, read_questions
from helios.graph import DataGraph
from helios.index.reader import Corpus, IndexReader
from helios.models.card import ModelCard, data_file, write_card
from helios.models.trees import Trees
from helios.retrieval.expansion.candidates import PAIR_FEATURES, Reach, find_pairs
from helios.retrieval.expansion.model import ROLE as CARD_ROLE
from helios.retrieval.expansion.model import TREES
from helios.retrieval.expansion.seeds import BestEdges
from helios.retrieval.expansion.stage import READ, seeds_of
from helios.types import Edge
from training.crossfit import RANKING_ALONE, CrossFitted, rank_edges, table_fold
from training.errors import TrainingError
from training.log import LogRow
from training.recipes import DataSettings, Role

SUMMARY = """Scores pairs of a row and a passage that the data graph does not link, for a question: gradient-boosted
trees over how well the row's cells, the question and the table's other links spell the passage's title, BM25 and MaxSim
of the pair, and how good the row, its table and the passage are as seeds. Scores are log-odds."""
LIMITS = """Most examples are links that the linker found and the recipe hid. Links that the linker misses are harder:
see the measures of each kind."""


class ExpanderSettings(Section):
    """Everything that the result depends on beside the data."""

    data: DataSettings = DataSettings()
    ranking: Path | None = None
    """Folder that `helios train ranker` wrote; without one the index's own ranking is used, trained on the questions
    or not."""
    questions: int | None = Field(default=None, ge=1)
    """At most so many questions, those with edges that lack a link by themselves first."""
    hide_below: float = 0.5
    """Gold links of a lower score are hidden."""
    hide_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """Share of the other gold links that are hidden."""
    trees: int = 150
    leaves: int = 15
    learning_rate: float = 0.05
    least_examples: int = 30
    """Examples in a leaf."""
    feature_share: float = 0.6
    example_share: float = 0.8
    negatives: float = Field(default=0.3, gt=0.0, le=1.0)
    """Share of the wrong pairs that are learned from, each for as many as it stands for."""
    folds: int = Field(default=5, ge=2)
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Hidden:
    """Gold edges by question id that the searched graph lacks: those that lacked a link before, and all."""

    missing: Mapping[str, frozenset[Edge]]
    lacking: Mapping[str, frozenset[Edge]]


@dataclass(frozen=True, slots=True)
class Group:
    """The candidate pairs of one question: features (C, F), which are gold, and which of these had no link (C).

    `lacking` and `missing` count gold edges that are not linked or had no link, among the candidates or not.
    """

    table: str
    features: NDArray[np.float32]
    gold: NDArray[np.bool_]
    unlinked: NDArray[np.bool_]
    lacking: int
    missing: int


def train_expander(
    settings: ExpanderSettings, out: Path, *, device: Any = None, on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Hide links, search the train questions, fit, and write the pair model to `out`; cross-validated measures.

    Trees are grown on the processor, so `device` changes nothing. Raises TrainingError for settings without data
    and for questions without an edge to find.
    """
    if settings.data.index is None or not settings.data.questions:
        raise TrainingError("expansion learns from what an index finds: set data.index and data.questions")
    started = time.monotonic()
    questions = [question for path in settings.data.questions for question in read_questions(path)]
    groups = []
    for group in mine_groups(settings, questions):
        groups.append(group)
        on_log(LogRow(len(groups), 0, time.monotonic() - started, {"gold": sum(int(g.gold.sum()) for g in groups)}))
    if not any(group.gold.any() for group in groups):
        raise TrainingError("no question has a gold edge among the pairs that expansion looks at: nothing to learn")
    measures = cross_validate(groups, settings)
    out.mkdir(parents=True, exist_ok=True)
    Trees.of(fit(groups, settings)).save(out / TREES)
    card = ModelCard(
        name="helios-pair-model", role=CARD_ROLE, summary=" ".join(SUMMARY.split()), base="none (trees)",
        data=tuple(data_file(path) for path in settings.data.questions),
        settings=settings.model_dump(mode="json", exclude={"data", "ranking"}),
        scores=measures, limits=" ".join(LIMITS.split()), seconds=time.monotonic() - started,
        needs={"features": PAIR_FEATURES},
    )  # fmt: skip
    write_card(out, card, weights=[TREES])
    return measures


def hide_links(settings: ExpanderSettings, questions: Sequence[Question], corpus: Corpus, graph: DataGraph) -> Hidden:
    """The gold edges to find again."""
    draw = random.Random(settings.seed)
    missing: dict[str, frozenset[Edge]] = {}
    lacking: dict[str, frozenset[Edge]] = {}
    for question in questions:
        own, hidden = [], []
        for edge in linkable_edges(question, corpus):
            chance = draw.random()
            number = graph.edge_number(*edge_nodes(edge))
            if number is None:
                own.append(edge)
            elif max(link.score for link in graph.links(number)) < settings.hide_below or chance < settings.hide_share:
                hidden.append(edge)
        if own or hidden:
            missing[question.question_id] = frozenset(own)
            lacking[question.question_id] = frozenset([*own, *hidden])
    return Hidden(missing, lacking)


def edge_nodes(edge: Edge) -> tuple[int, int]:
    """Both sides of an edge that has them; ValueError for one that lacks a side."""
    if edge.segment is None or edge.passage is None:
        raise ValueError(f"{edge} lacks a side")
    return edge.segment, edge.passage


def graph_without(graph: DataGraph, edges: Iterable[Edge], directory: Path) -> DataGraph:
    """A copy of a graph, links and all, that lacks some edges."""
    nodes = np.array(sorted(edge_nodes(edge) for edge in edges), np.int64).reshape(-1, 2)
    count = np.int64(graph.passage_count)
    keys = np.asarray(graph.edge_segments, np.int64) * count + graph.edge_passages
    links = np.diff(graph.link_offsets)
    kept = np.repeat(~np.isin(keys, nodes[:, 0] * count + nodes[:, 1]), links)
    columns = [np.repeat(side, links) for side in (graph.edge_segments, graph.edge_passages)]
    columns += [graph.link_columns, graph.link_starts, graph.link_ends, graph.link_scores]
    return DataGraph.write(
        directory, *(np.asarray(column)[kept] for column in columns),
        segment_count=graph.segment_count, passage_count=graph.passage_count,
    )  # fmt: skip


class Unlinked(IndexReader):
    """An index as it would be with other links."""

    def __init__(self, index: IndexReader, graph: DataGraph) -> None:
        super().__init__(index.parts, index.layers, index.numbering, whole=index)
        self._graph = graph

    @property
    def graph(self) -> DataGraph:  # type: ignore[override]
        """The other links."""
        return self._graph


def mine_groups(settings: ExpanderSettings, questions: Sequence[Question]) -> Iterator[Group]:
    """The candidate pairs of every question that has an edge to find."""
    index = settings.data.index
    assert index is not None
    with (
        TemporaryDirectory() as folder, Engine.open(index) as plain,
        CrossFitted(index, settings.ranking, overrides=RANKING_ALONE) as engines,
    ):  # fmt: skip
        hidden = hide_links(settings, questions, plain.corpus, plain.graph)
        edges = {edge for own in hidden.lacking.values() for edge in own}
        unlinked = Unlinked(plain.index, graph_without(plain.graph, edges, Path(folder) / "graph"))
        for question in _chosen(settings, questions, hidden):
            yield _group(engines.engine(question), unlinked, question, hidden)


def _chosen(settings: ExpanderSettings, questions: Sequence[Question], hidden: Hidden) -> list[Question]:
    """Questions with an edge to find, those without a link first, the others in an order drawn by lot."""
    found = [question for question in questions if question.question_id in hidden.lacking]
    random.Random(settings.seed).shuffle(found)
    found.sort(key=lambda question: not hidden.missing[question.question_id])
    return found[: settings.questions]


def _group(engine: Engine, index: IndexReader, question: Question, hidden: Hidden) -> Group:
    state = rank_edges(engine, question.text, k=READ, index=index)
    pairs = find_pairs(state, seeds_of(state, BestEdges()), Reach())
    missing, lacking = hidden.missing[question.question_id], hidden.lacking[question.question_id]
    edges = [Edge(row, passage) for row, passage in zip(pairs.rows.tolist(), pairs.passages.tolist(), strict=True)]
    gold = np.array([edge in lacking for edge in edges], bool)
    unlinked = np.array([edge in missing for edge in edges], bool)
    table = question.table_id or question.question_id
    return Group(table, pairs.features, gold, unlinked, len(lacking), len(missing))


def cross_validate(groups: Sequence[Group], settings: ExpanderSettings) -> dict[str, float]:
    """Share of the edges to find that are among the best pairs, of all and of those that the linker had not found.

    The trees of a question saw no question on its table.
    """
    folds = np.array([table_fold(group.table, seed=settings.seed, folds=settings.folds) for group in groups])
    beam = AdvancedExpansionSettings().beam
    found = unlinked = 0
    for fold in range(settings.folds):
        held = [group for group, at in zip(groups, folds, strict=True) if at == fold]
        rest = [group for group, at in zip(groups, folds, strict=True) if at != fold]
        if not held or not any(group.gold.any() for group in rest):
            continue
        trees = fit(rest, settings)
        for group in held:
            if len(group.gold):
                best = np.argsort(-np.asarray(trees.predict(group.features, num_threads=1)), kind="stable")[:beam]
                found += int(group.gold[best].sum())
                unlinked += int(group.unlinked[best].sum())
    lacking, missing = sum(group.lacking for group in groups), sum(group.missing for group in groups)
    reached = sum(int(group.gold.sum()) for group in groups)
    return {
        "edges to find": lacking, "of them without a link before": missing,
        "share among the candidates": round(reached / max(lacking, 1), 4),
        f"share in the best {beam}": round(found / max(lacking, 1), 4),
        f"share in the best {beam}, without a link before": round(unlinked / max(missing, 1), 4),
    }  # fmt: skip


def fit(groups: Sequence[Group], settings: ExpanderSettings) -> lightgbm.Booster:
    """Trees for all groups."""
    draw = np.random.default_rng(settings.seed)
    features, gold = [], []
    for group in groups:
        kept = group.gold | (draw.random(len(group.gold)) < settings.negatives)
        features.append(group.features[kept])
        gold.append(group.gold[kept])
    labels = np.concatenate(gold)
    data = lightgbm.Dataset(
        np.concatenate(features), labels.astype(np.int8), weight=np.where(labels, 1.0, 1.0 / settings.negatives),
        feature_name=list(PAIR_FEATURES),
    )  # fmt: skip
    parameters = {
        "objective": "binary", "num_leaves": settings.leaves, "learning_rate": settings.learning_rate,
        "min_data_in_leaf": settings.least_examples, "feature_fraction": settings.feature_share,
        "bagging_fraction": settings.example_share, "bagging_freq": 1, "lambda_l2": 5.0,
        "seed": settings.seed, "deterministic": True, "num_threads": 1, "verbose": -1,
    }  # fmt: skip
    return lightgbm.train(parameters, data, num_boost_round=settings.trees)


ROLE = Role(ExpanderSettings, train_expander)

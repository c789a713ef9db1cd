"""One task, all systems: the paper's baselines and DAQu, question by question, with paired intervals."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from helios.augment.context import Context
from helios.augment.encoding import MEGABYTES, AttributeVectors, ColumnWeights, PooledTokens, encode_question
from helios.augment.model import AugmentModel
from helios.engine import Engine
from helios.errors import EvaluationError
from helios.evaluation.augment.expansions import FROM_CONTEXT, FROM_MODEL, Expansion, expanded, written
from helios.evaluation.augment.measures import depth_of, measure
from helios.evaluation.augment.ranking import Bench, FloatArray, engine_lists, warm
from helios.evaluation.augment.tasks import RowQuestion, Split, Task
from helios.evaluation.baselines import Bm25Texts
from helios.evaluation.evaluate import MeasureResult
from helios.evaluation.sources.measures import mean
from helios.llm.client import LanguageModel
from helios.models.encoder import MiniLMEncoder

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Values of λ that are searched."""
NOTHING, SET, SET_CHOSEN, FLAT_CHOSEN = "no expansion", "set", "set, λ chosen", "flat mean, λ chosen"
LATE = "late interaction"
TIMED = 20
"""Questions whose time is taken."""


@dataclass(frozen=True, slots=True)
class SystemReport:
    """What one system reached on the test questions."""

    name: str
    measures: tuple[MeasureResult, ...]
    against_nothing: tuple[MeasureResult, ...]
    """By how much each measure is above that of no expansion, with intervals of a paired bootstrap over questions."""
    values: Mapping[str, tuple[float, ...]]
    """Every question's figures, in the order of the report's `question_ids`."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """All systems on one task."""

    task: str
    split: str
    question_ids: tuple[str, ...]
    documents: int
    systems: tuple[SystemReport, ...]
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The first measure on validation questions by λ, for the mean of columns (Figure 3)."""
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    """p50 of making a question's vector, by how."""

    def __getitem__(self, name: str) -> SystemReport:
        return next(system for system in self.systems if system.name == name)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured beside the paper's baselines."""

    model: LanguageModel | None = None
    columns_left_out: bool = False
    counts: tuple[int, ...] = ()
    """Attributes a column, each with figures of its own (Table 4)."""
    timed: bool = False
    seed: int = 0
    trained: Mapping[str, Sequence[AugmentModel]] = field(default_factory=dict)
    """Trained augmenters by name, one for each split."""
    engine: Engine | None = None
    """Over an index of the task's documents, for late interaction."""


def measure_task(
    task: Task,
    splits: Sequence[Split],
    vectors: AttributeVectors,
    plan: Plan | None = None,
    *,
    split_name: str = "",
    progress: Callable[[str], None] = lambda system: None,
) -> TaskReport:
    """Every system on the test parts of all splits; what is chosen is chosen on the validation part of the same split.

    EvaluationError where the splits ask a question twice.
    """
    plan = plan or Plan()
    tested = [one for split in splits for one in split.test]
    if len({one.question_id for one in tested}) != len(tested):
        raise EvaluationError("a question is in the test parts of two splits")
    progress("vectors")
    bench, documents = Bench(task, vectors), Bm25Texts(list(task.documents.values()))
    warm(task, vectors)
    depth = depth_of(task.measures)
    run = _Run(task, tested, depth, plan.seed)
    for expansion in FROM_CONTEXT:
        progress(expansion.value)
        texts = [expanded(task, one, expansion, documents) for one in tested]
        run.add(_name(expansion), bench.rank(bench.texts(texts), depth=depth))
    if plan.model is not None:
        for expansion in FROM_MODEL:
            progress(expansion.value)
            texts, failed = written(task, tested, expansion, documents, plan.model)
            note = f"the model failed on {failed} questions" if failed else ""
            run.add(_name(expansion), bench.rank(bench.texts(texts), depth=depth), note=note)
    progress("BM25")
    run.add("BM25", bench.order(np.stack([documents.scores(one.text) for one in tested]), depth=depth))
    progress("set")
    run.add(SET, bench.rank(_vectors(bench, tested, ColumnWeights()), depth=depth))
    shares = {}
    for name, flat in ((SET_CHOSEN, False), (FLAT_CHOSEN, True)):
        chosen, shares[name] = chosen_shares(bench, splits, flat=flat)
        run.add(name, _by_split(bench, task, splits, chosen, depth))
        if not flat and plan.columns_left_out:
            for column in task.columns:
                progress(f"without {column.name}")
                left = task.without(column.name)
                run.add(f"{SET}, without {column.name}", _by_split(bench, left, splits, chosen, depth))
        for count in plan.counts if not flat else ():
            progress(f"{count} attributes")
            fewer = task.capped(count, seed=plan.seed)
            run.add(f"{SET}, {count} a column", _by_split(bench, fewer, splits, chosen, depth))
    for name, models in plan.trained.items():
        progress(name)
        run.add(f"trained: {name}", _trained(bench, splits, models, documents, depth))
    if plan.engine is not None:
        _add_late(run, plan.engine, splits, plan.trained, depth, progress)
    milliseconds = time_questions(task, tested, vectors) if plan.timed else {}
    ids = tuple(one.question_id for one in tested)
    return TaskReport(task.name, split_name, ids, len(task.documents), run.reports(), shares, milliseconds)


def _add_late(
    run: "_Run", engine: Engine, splits: Sequence[Split], trained: Mapping[str, Sequence[AugmentModel]], depth: int,
    progress: Callable[[str], None],
) -> None:  # fmt: skip
    """The default engine alone, with the context, by the learned weights of columns, and by all that was learned."""
    evenly = ColumnWeights(share=engine.config.search.context_share)
    ways: dict[str, list[tuple[ColumnWeights | None, AugmentModel | None]]] = {
        LATE: [(None, None)] * len(splits),
        f"{LATE}, set": [(evenly, None)] * len(splits),
    }
    for name, models in trained.items():
        if all(model.is_for_search for model in models):
            ways[f"{LATE}, weights of {name}"] = [(model.weights, None) for model in models]
            ways[f"{LATE}, trained: {name}"] = [(model.weights, model) for model in models]
    for name, own in ways.items():
        progress(name)
        lists = (
            engine_lists(engine, run.task, split.test, depth=depth, weights=weights, augmenter=augmenter)
            for split, (weights, augmenter) in zip(splits, own, strict=True)
        )
        run.add(name, (ranked for own in lists for ranked in own))


class _Run:
    """The figures of the systems so far."""

    def __init__(self, task: Task, tested: Sequence[RowQuestion], depth: int, seed: int) -> None:
        self.task, self.tested, self.depth, self.seed = task, tested, depth, seed
        self.values: dict[str, dict[str, list[float]]] = {}
        self.notes: dict[str, str] = {}

    def add(self, name: str, ranked: Iterable[Sequence[str]], *, note: str = "") -> None:
        """The lists of a system, in the order of the tested questions."""
        figures: dict[str, list[float]] = {each: [] for each in self.task.measures}
        for question, own in zip(self.tested, ranked, strict=True):
            for each in self.task.measures:
                figures[each].append(measure(each, own, question.qrels))
        self.values[name], self.notes[name] = figures, note

    def reports(self) -> tuple[SystemReport, ...]:
        """Means and differences."""
        nothing = self.values[NOTHING]
        return tuple(
            SystemReport(
                name,
                tuple(mean(each, own[each], seed=self.seed) for each in self.task.measures),
                tuple(
                    mean(each, np.subtract(own[each], nothing[each]).tolist(), seed=self.seed)
                    for each in self.task.measures
                ),
                {each: tuple(found) for each, found in own.items()},
                self.notes[name],
            )
            for name, own in self.values.items()
        )


def chosen_shares(
    bench: Bench, splits: Sequence[Split], *, flat: bool = False
) -> tuple[list[ColumnWeights], dict[str, float]]:
    """For every split the λ that is best on its validation questions, and the means over all of them by λ."""
    name, chosen = bench.task.measures[0], []
    totals: dict[str, list[float]] = {f"{share:g}": [] for share in SHARES}
    for split in splits:
        best: tuple[float, ColumnWeights] | None = None
        for share in SHARES:
            weights = ColumnWeights(share=share, flat=flat)
            ranked = bench.rank(_vectors(bench, split.validation, weights), depth=depth_of((name,)))
            values = [measure(name, own, one.qrels) for one, own in zip(split.validation, ranked, strict=True)]
            totals[f"{share:g}"] += values
            score = float(np.mean(values))
            if best is None or score >= best[0]:  # of equal ones the λ that trusts the context least
                best = (score, weights)
        if best is not None:
            chosen.append(best[1])
    return chosen, {share: float(np.mean(values)) for share, values in totals.items()}


def _trained(
    bench: Bench, splits: Sequence[Split], models: Sequence[AugmentModel], documents: Bm25Texts, depth: int
) -> Iterator[list[str]]:
    """Lists of the test questions of all splits, each by the model that never saw them."""
    for split, model in zip(splits, models, strict=True):
        own = _bench_of(bench, model)
        if model.expansion is None:
            vectors = _vectors(own, split.test, model.weights)
        else:
            form = Expansion(model.expansion)
            vectors = own.texts([expanded(bench.task, one, form, documents) for one in split.test])
        yield from own.rank(model.question(vectors), depth=depth)


def _bench_of(bench: Bench, model: AugmentModel) -> Bench:
    """The task in the vectors of a model: its own encoders where it has any."""
    if model.adapter is None:
        return Bench(bench.task, bench.vectors, model=model)
    kept = [AttributeVectors(_adapted(bench, path), megabytes=MEGABYTES) for path in model.adapters]
    return Bench(bench.task, kept[0], attributes=kept[1] if len(kept) > 1 else None, model=model)


def _adapted(bench: Bench, path: Path) -> PooledTokens:
    encoder = bench.vectors.encoder
    if not isinstance(encoder, PooledTokens) or not isinstance(encoder.encoder, MiniLMEncoder):
        raise EvaluationError(f"{path}: an adapter of a token encoder; leave out --encoder")
    base = encoder.encoder
    return PooledTokens(MiniLMEncoder(base.base, adapter=path, runtime=base.runtime, max_tokens=base.max_tokens))


def time_questions(task: Task, questions: Sequence[RowQuestion], vectors: AttributeVectors) -> dict[str, float]:
    """p50 in milliseconds of a question's vector: alone, with its context encoded anew, and with it known already."""
    found: dict[str, list[float]] = {"question alone": [], "context, cold": [], "context, warm": []}
    for one in sorted(questions, key=lambda one: one.question_id)[:TIMED]:
        fresh, context = AttributeVectors(vectors.encoder), Context.from_columns(one.context)
        for name, asked in (("question alone", Context()), ("context, cold", context), ("context, warm", context)):
            started = time.perf_counter()
            encode_question(one.text if name != "context, cold" else f"{one.text} ", asked, fresh)
            found[name].append(1000 * (time.perf_counter() - started))
    return {name: float(np.median(values)) for name, values in found.items()}


def _by_split(
    bench: Bench, task: Task, splits: Sequence[Split], chosen: Sequence[ColumnWeights], depth: int
) -> Iterator[list[str]]:
    """Lists of the test questions of all splits, each with the weights of its split and its context in this task."""
    questions = {one.question_id: one for one in task.questions}
    for split, weights in zip(splits, chosen, strict=True):
        own = [questions[one.question_id] for one in split.test]
        yield from bench.rank(_vectors(bench, own, weights), depth=depth)


def _vectors(bench: Bench, questions: Sequence[RowQuestion], weights: ColumnWeights) -> FloatArray:
    return np.stack([one.vector for one in bench.augmented(questions, weights)])


def _name(expansion: Expansion) -> str:
    return NOTHING if expansion is Expansion.NONE else f"expansion: {expansion.value}"

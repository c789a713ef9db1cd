"""Reads a task, measures it, and makes tables of the report."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from helios.augment.encoding import (
    AttributeVectors,
    PooledTokens,
    SentenceEncoder,
    TextEncoder,
    load_vectors,
    save_vectors,
)  # fmt: skip
from helios.augment.model import AugmentModel, load_augmenter
from helios.errors import EvaluationError
from helios.evaluation.augment.options import TaskName
from helios.evaluation.augment.purchases import product_to_product, review_to_product
from helios.evaluation.augment.run import Plan, TaskReport, measure_task
from helios.evaluation.augment.stackexchange import any_answer, best_answer
from helios.evaluation.augment.tables import Tables, open_tables
from helios.evaluation.augment.tasks import PAPER_SHARES, Shares, Split, SplitBy, Task, folds, split
from helios.index.durable import write_atomically

if TYPE_CHECKING:
    from rich.table import Table

    from helios.engine import Engine
    from helios.evaluation.evaluate import MeasureResult
    from helios.llm.client import LlmClient

MEGABYTES = 4096
"""Vectors that an evaluation holds at most: those of a whole task."""


@dataclass(frozen=True, slots=True)
class AugmentOptions:
    """What `helios eval augment` is asked for."""

    data: Path
    task: TaskName = TaskName.ANY_ANSWER
    by: SplitBy = SplitBy.USER
    folds: int | None = None
    shares: tuple[float, ...] = (0.8, 0.1, 0.1)
    encoder: str | None = None
    vectors: Path | None = None
    cap: int = 200
    later: bool = False
    columns: bool = False
    counts: tuple[int, ...] = ()
    timed: bool = False
    llm: str | None = None
    model: str | None = None
    config: Path | None = None
    overrides: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    weights: tuple[Path, ...] = ()
    """Folders that `helios train augment` wrote."""
    documents: Path | None = None
    """Where the documents are written to, as JSON lines for an index."""
    index: Path | None = None
    """An index of them, for late interaction."""


def evaluate_augment(options: AugmentOptions, *, progress: Callable[[str], None] = lambda text: None) -> TaskReport:
    """Read the task, split it, and measure every system.

    EvaluationError for data of another layout; ModelError for an encoder that cannot be had.
    """
    task = read_task(options.data, options.task, later=options.later, cap=options.cap, seed=options.seed)
    if options.limit is not None:
        task = replace(task, questions=task.questions[: options.limit])
    if options.documents is not None:
        write_documents(task, options.documents)
    splits = splits_of(task, options.by, folds_count=options.folds, shares=options.shares, seed=options.seed)
    vectors = AttributeVectors(text_encoder(options.encoder), megabytes=MEGABYTES)
    known = load_vectors(options.vectors, vectors) if options.vectors else 0
    client = _client(options)
    trained = trained_models(options, len(splits), vectors.encoder.name)
    name = f"by {options.by}" + (f", {options.folds} folds" if options.folds else "")
    with ExitStack() as stack:
        if client is not None:
            stack.callback(client.close)
        engine = None if options.index is None else stack.enter_context(_engine(options.index, options))
        plan = Plan(client, options.columns, options.counts, options.timed, options.seed, trained, engine)
        try:
            return measure_task(task, splits, vectors, plan, split_name=name, progress=progress)
        finally:
            if options.vectors and len(vectors) > known:
                save_vectors(options.vectors, vectors)


def write_documents(task: Task, path: Path) -> None:
    """A task's documents as JSON lines, which `helios index build` reads."""
    lines = (json.dumps({"id": name, "text": text}, ensure_ascii=False) for name, text in task.documents.items())
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def _engine(index: Path, options: AugmentOptions) -> "Engine":
    from helios.engine import Engine

    return Engine.open(index, config=options.config, overrides=options.overrides)


def read_task(data: Path, name: TaskName, *, later: bool = False, cap: int = 200, seed: int = 0) -> Task:
    """A task over a data set; EvaluationError where the files are not those of its layout."""
    with open_tables(data) as tables:
        return _reader(name, later=later, cap=cap, seed=seed)(tables)


def _reader(name: TaskName, *, later: bool, cap: int, seed: int) -> Callable[[Tables], Task]:
    if name is TaskName.ANY_ANSWER:
        return lambda tables: any_answer(tables, later=later, cap=cap, seed=seed)
    if name is TaskName.BEST_ANSWER:
        return lambda tables: best_answer(tables, later=later, cap=cap, seed=seed)
    return review_to_product if name is TaskName.REVIEW_TO_PRODUCT else product_to_product


def splits_of(
    task: Task, by: SplitBy, *, folds_count: int | None = None, shares: Sequence[float] = PAPER_SHARES, seed: int = 0
) -> list[Split]:
    """One split, or as many as there are folds."""
    if folds_count is not None and by is not SplitBy.USER:
        raise EvaluationError(f"folds are of users: leave out --folds with --by {by}")
    if folds_count is not None:
        return folds(task.questions, folds_count, seed=seed)
    return [split(task.questions, by, shares=cast(Shares, tuple(shares)), seed=seed)]


def split_record(
    task: TaskName, by: SplitBy, *, folds_count: int | None, shares: Sequence[float], seed: int, fold: int
) -> dict[str, object]:
    """What decides which questions are for training: a model's card has it."""
    record: dict[str, object] = {"task": task.value, "by": by.value, "seed": seed}
    if folds_count is not None:
        return {**record, "folds": folds_count, "fold": fold}
    return record if by is SplitBy.GIVEN else {**record, "shares": [float(share) for share in shares]}


def trained_models(options: AugmentOptions, count: int, encoder: str) -> dict[str, list[AugmentModel]]:
    """The models of every `--weights` folder by its name, one for each split; ModelError where one does not fit."""
    found = {}
    for folder in options.weights:
        parts = [folder / f"fold-{number}" for number in range(count)] if options.folds else [folder]
        found[folder.name] = [
            load_augmenter(
                part, encoder,
                split=split_record(
                    options.task, options.by, folds_count=options.folds, shares=options.shares, seed=options.seed,
                    fold=number,
                ),
            )
            for number, part in enumerate(parts)
        ]  # fmt: skip
    return found


def text_encoder(name: str | None) -> TextEncoder:
    """The packaged encoder, its token vectors pooled, or one of sentence-transformers by its name."""
    if name is not None:
        return SentenceEncoder(name)
    from helios.models.encoder import MiniLMEncoder

    return PooledTokens(MiniLMEncoder.load(adapter="none"))


def _client(options: AugmentOptions) -> "LlmClient | None":
    """The language model, where one is configured."""
    from helios.config import load_config
    from helios.reading.asking import llm_overrides

    if options.model and not options.llm:
        raise EvaluationError("--model needs --llm, the address of its server")
    settings = load_config(options.config, llm_overrides(options.llm, options.model, options.overrides)).language_model
    if not settings.model:
        return None
    from helios.llm.client import LlmClient

    return LlmClient.open(settings)


def tables_of(report: TaskReport) -> "list[Table]":
    """The systems with their measures, λ on validation questions, and times."""
    from rich.table import Table

    first = [found.name for found in report.systems[0].measures]
    title = f"{report.task} {report.split}: {len(report.question_ids)} questions, {report.documents:,} documents"
    systems = Table(title=title)
    for heading in ("system", *first, f"{first[0]} beside no expansion"):
        is_name = heading == "system"
        systems.add_column(heading, justify="left" if is_name else "right", no_wrap=is_name)
    for system in report.systems:
        means = [f"{100 * found.mean:.1f}" for found in system.measures]
        name = " · ".join(filter(None, (system.name, system.note)))
        systems.add_row(name, *means, _difference(system.against_nothing[0]))
    found = [systems]
    if report.shares:
        searched = Table(title=f"{first[0]} on validation questions, by λ")
        values = list(next(iter(report.shares.values())))
        for heading in ("", *values):
            searched.add_column(heading, justify="right")
        for name, by_share in report.shares.items():
            searched.add_row(name, *(f"{100 * by_share[share]:.1f}" for share in values))
        found.append(searched)
    if report.milliseconds:
        times = Table("a question's vector", "p50 ms", title="time")
        for name, value in report.milliseconds.items():
            times.add_row(name, f"{value:.2f}")
        found.append(times)
    return found


def _difference(found: "MeasureResult") -> str:
    return f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"

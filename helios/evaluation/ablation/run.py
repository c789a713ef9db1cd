"""Runs an ablation: every question through every method, and every variant's difference to the full search."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helios.engine import Engine
from helios.errors import EvaluationError
from helios.evaluation.ablation.results import Measured, question_digest
from helios.evaluation.ablation.searches import Searches
from helios.evaluation.ablation.variants import FULL, Method, Variant, method_settings
from helios.evaluation.evaluate import MeasureResult, bootstrap_interval, measure_question
from helios.evaluation.kept import KeptRows
from helios.evaluation.questions import Question
from helios.evaluation.report import code_commit

KEPT = "questions"
"""Folder of the figures by question."""
WARM_UP = 2
"""Questions that are asked once beforehand, so that latencies are those of a warm system."""


@dataclass(frozen=True, slots=True)
class Row:
    """A variant with its means and, by measure, its difference to the full search over the same questions."""

    variant: Variant
    measures: Mapping[str, MeasureResult]
    differences: Mapping[str, MeasureResult]
    versus: Mapping[str, MeasureResult]
    """The same against `variant.versus`; empty if there is none."""
    latency_ms: Mapping[str, float]
    problems: Mapping[str, int]
    """What a stage could not do, and for how many questions."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """All rows over the same questions."""

    rows: tuple[Row, ...]
    questions: int
    depth: int
    seed: int


def run_ablation(
    engine: Engine,
    variants: Sequence[Variant],
    questions: Sequence[Question],
    *,
    depth: int = 50,
    seed: int = 0,
    out: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Ablation:
    """Ask what was not asked before, then compare; the folder `out` keeps every question's figures.

    `progress` hears how many questions are done. Raises EvaluationError for no questions at all.
    """
    if not questions:
        raise EvaluationError("there are no questions to evaluate")
    methods = {variant.method: variant for variant in reversed(variants) if variant.method is not None}
    folder = None if out is None else out / KEPT
    kept = {
        method: KeptRows(folder and folder / _file_name(variant), _key(engine, method, depth=depth), Measured.from_json)
        for method, variant in methods.items()
    }
    try:
        _ask(Searches(engine, list(methods), k=depth), kept, questions, depth=depth, progress=progress)
    finally:
        for file in kept.values():
            file.close()
    rows = {method: _measured(file, questions) for method, file in kept.items()}
    named = {variant.name: rows[variant.method] for variant in variants if variant.method is not None}
    compared = tuple(_row(variant, named, seed=seed) for variant in variants)
    return Ablation(compared, len(questions), depth, seed)


def _ask(
    searches: Searches,
    kept: Mapping[Method, KeptRows[Measured]],
    questions: Sequence[Question],
    *,
    depth: int,
    progress: Callable[[int], None] | None,
) -> None:
    """Question by question, so that methods share their steps."""
    warm = 0
    for done, question in enumerate(questions, start=1):
        digest = question_digest(question)
        missing = [method for method, file in kept.items() if file.row(question.question_id, digest) is None]
        if missing and warm < WARM_UP:
            warm += 1
            for method in missing:
                searches.search(question.text, method)
        searches.forget()
        for method in missing:
            found = searches.search(question.text, method)
            result = measure_question(question, found.edges, latency_ms=found.milliseconds, depth=depth)
            kept[method].add(
                Measured(
                    question.question_id,
                    digest,
                    result.values,
                    found.milliseconds,
                    len(found.edges),
                    found.problems,
                )
            )
        if progress is not None:
            progress(done)


def _measured(file: KeptRows[Measured], questions: Sequence[Question]) -> list[Measured]:
    rows = (file.row(question.question_id, question_digest(question)) for question in questions)
    return [row for row in rows if row is not None]


def _row(variant: Variant, named: Mapping[str, Sequence[Measured]], *, seed: int) -> Row:
    """Means, latencies and differences of one variant, from the rows of all by name."""
    rows = named.get(variant.name, ())
    if not rows:
        return Row(variant, {}, {}, {}, {}, {})
    names = dict.fromkeys(name for row in rows for name in row.values)
    values = {name: [row.values[name] for row in rows if name in row.values] for name in names}
    latencies = np.array([row.milliseconds for row in rows])
    problems: dict[str, int] = {}
    for row in rows:
        for problem in dict.fromkeys(row.problems):
            problems[problem] = problems.get(problem, 0) + 1
    return Row(
        variant,
        {name: _mean(name, found, seed=seed) for name, found in values.items()},
        {} if variant.name == FULL else _differences(rows, named[FULL], seed=seed),
        _differences(rows, named[variant.versus], seed=seed) if variant.versus else {},
        {f"p{p}": float(np.percentile(latencies, p)) for p in (50, 95)},
        problems,
    )


def _differences(rows: Sequence[Measured], others: Sequence[Measured], *, seed: int) -> dict[str, MeasureResult]:
    """Means of the differences by question, with the intervals of a paired bootstrap; both asked the same."""
    pairs = list(zip(rows, others, strict=True))
    names = dict.fromkeys(name for row in rows for name in row.values)
    gains = {
        name: [row.values[name] - other.values[name] for row, other in pairs if name in row.values] for name in names
    }
    return {name: _mean(name, found, seed=seed) for name, found in gains.items()}


def _mean(name: str, values: Sequence[float], *, seed: int) -> MeasureResult:
    low, high = bootstrap_interval(values, seed=seed)
    return MeasureResult(name, float(np.mean(values)), low, high, len(values))


def _key(engine: Engine, method: Method, *, depth: int) -> dict[str, Any]:
    """All that a method's figures depend on, beside the question."""
    return {
        "index": engine.snapshot.manifest.content_hash(),
        "commit": code_commit(),
        "depth": depth,
        "search": engine.config.resolved(),
        "method": method_settings(method),
    }


def _file_name(variant: Variant) -> str:
    group = "" if variant.group is None else f"{variant.group.value}-"
    return f"{group}{re.sub(r'[^a-z0-9]+', '-', variant.name.lower()).strip('-')}.jsonl"

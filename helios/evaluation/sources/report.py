"""A report over sources: means by paradigm and by data set, macro averages, as tables and as JSON."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import helios
from helios.evaluation.evaluate import MeasureResult
from helios.evaluation.report import code_commit, machine_facts
from helios.evaluation.sources.gold import GoldReport, causes
from helios.evaluation.sources.measures import macro, mean
from helios.evaluation.sources.outcomes import Outcome
from helios.evaluation.sources.questions import SourceQuestion
from helios.evaluation.sources.trust import Trust, trust

MACRO = ("selection@", "retrieval")
"""Measures whose mean over the paradigms is reported; the others mean different things in different paradigms."""
PERCENTILES = (50, 95)
EXCEPTIONS_SHOWN = 20
THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
COUNTS_ONLY = ("paradigms asked", "sources asked")
"""Means of counts, which are no percentages."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """Everything that one system's outcomes say."""

    name: str
    questions: int
    macro: tuple[MeasureResult, ...]
    paradigms: Mapping[str, tuple[MeasureResult, ...]]
    datasets: Mapping[str, tuple[MeasureResult, ...]]
    coverage: tuple[tuple[float, float, float | None], ...]
    """(threshold, share of structured questions answered above it, execution match among them)."""
    trust: Mapping[str, Trust]
    """What confidences are worth, by data set and, with `, a person`, by what a person would accept."""
    latency_ms: Mapping[str, float]
    counts: Mapping[str, int]
    judged: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)

    def value(self, group: str, measure: str) -> float:
        """The mean of a measure in `macro`, in a paradigm or in a data set; KeyError where it has none."""
        rows = self.macro if group == "macro" else {**self.datasets, **self.paradigms}[group]
        return {row.name: row.mean for row in rows}[measure]

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "name": self.name,
            "questions": self.questions,
            "macro": _plain(self.macro),
            "paradigms": {name: _plain(rows) for name, rows in self.paradigms.items()},
            "datasets": {name: _plain(rows) for name, rows in self.datasets.items()},
            "coverage": [dict(zip(("threshold", "answered", "precision"), row, strict=True)) for row in self.coverage],
            "trust": {name: asdict(found) for name, found in self.trust.items()},
            "latency_ms": {name: round(value, 3) for name, value in self.latency_ms.items()},
            "counts": dict(self.counts),
            "judge": dict(self.judged),
            "config": dict(self.config),
        }


def summarise(
    name: str,
    outcomes: Sequence[Outcome],
    questions: Sequence[SourceQuestion],
    *,
    seed: int = 0,
    judged: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
) -> SourceReport:
    """Means with intervals over the outcomes, which stand in the order of the questions."""
    pairs = list(zip(questions, outcomes, strict=True))
    by_paradigm = _grouped(pairs, lambda question: str(question.paradigm))
    by_dataset = _grouped(pairs, lambda question: question.dataset or "questions")
    names = dict.fromkeys(measure for outcome in outcomes for measure in outcome.values)
    wanted = [measure for measure in names if measure.startswith(MACRO)]
    averages = [
        macro(measure, {g: _values(rows, measure) for g, rows in by_paradigm.items()}, seed=seed) for measure in wanted
    ]
    latencies = [outcome.milliseconds for outcome in outcomes]
    return SourceReport(
        name=name,
        questions=len(pairs),
        macro=tuple(row for row in averages if row is not None),
        paradigms={group: _means(rows, names, seed) for group, rows in by_paradigm.items()},
        datasets={group: _means(rows, names, seed) for group, rows in by_dataset.items()},
        coverage=_coverage(outcomes),
        trust=_trust(by_dataset),
        latency_ms={f"p{p}": float(np.percentile(latencies, p)) for p in PERCENTILES},
        counts={
            "without gold rows": sum(
                "execution match" not in outcome.values and "nDCG@10" not in outcome.values for outcome in outcomes
            ),
            "without a selected source": sum(not outcome.ranked for outcome in outcomes),
            "without a result": sum(not outcome.tried for outcome in outcomes),
            "with problems": sum(bool(outcome.problems) for outcome in outcomes),
        },
        judged=judged or {},
        config=config or {},
    )


def document(reports: Sequence[SourceReport], gold: Sequence[GoldReport], context: Mapping[str, Any]) -> dict[str, Any]:
    """All reports as plain values, with the date, the machine and the code version."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "helios_version": helios.__version__,
        "commit": code_commit(),
        "machine": machine_facts(),
        **context,
        "systems": [report.to_json() for report in reports],
        "gold": [report.to_json() for report in gold],
    }


def render(report: SourceReport) -> RenderableType:
    """One table: the macro averages, then the measures of each paradigm and of each data set."""
    groups = {"macro": report.macro, **report.paradigms, **(report.datasets if len(report.datasets) > 1 else {})}
    table = Table(title=f"{report.name}: {report.questions} questions")
    for heading in ("over", "measure", "%", "95 % interval", "questions"):
        table.add_column(heading, justify="left" if heading in ("over", "measure") else "right")
    for group, rows in groups.items():
        for number, row in enumerate(rows):
            table.add_row("" if number else group, row.name, *_cells(row), str(row.count))
        table.add_section()
    lines: list[RenderableType] = [table, *_trust_lines(report.trust)]
    latency = ", ".join(f"{name} {value:.0f}" for name, value in report.latency_ms.items())
    lines.append(Text(f"latency (ms): {latency}"))
    told = {name: value for name, value in {**report.counts, **_flat(report.judged)}.items() if value}
    if told:
        lines.append(Text(", ".join(f"{name}: {value}" for name, value in told.items())))
    return Group(*lines)


def render_gold(reports: Sequence[GoldReport]) -> RenderableType:
    """Gold queries by data set, and the first exceptions with their causes."""
    table = Table(title="gold queries through the guarded executors")
    for heading in ("data set", "queries", "executed", "match", "no stored answers", "p50 ms", "exceptions"):
        table.add_column(heading, justify="left" if heading in ("data set", "exceptions") else "right")
    lines: list[RenderableType] = [table]
    for report in reports:
        median = f"{np.median(report.milliseconds):.1f}" if report.milliseconds else ""
        told = ", ".join(f"{cause}: {count}" for cause, count in causes(report).items()) or "none"
        figures = (report.queries, report.executed, report.matched, report.without_answers)
        table.add_row(report.dataset, *map(str, figures), median, told)
        shown = report.exceptions[:EXCEPTIONS_SHOWN]
        lines += [Text(f"{row.question_id} on {row.source}: {row.cause}: {row.detail}") for row in shown]
        if len(report.exceptions) > len(shown):
            lines.append(Text(f"{len(report.exceptions) - len(shown)} more of {report.dataset}; --json lists all"))
    return Group(*lines)


def _grouped(
    pairs: Iterable[tuple[SourceQuestion, Outcome]], key: Callable[[SourceQuestion], str]
) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for question, outcome in pairs:
        groups[key(question)].append(outcome)
    return dict(groups)


def _values(outcomes: Iterable[Outcome], measure: str) -> list[float]:
    return [outcome.values[measure] for outcome in outcomes if measure in outcome.values]


def _means(outcomes: Sequence[Outcome], names: Iterable[str], seed: int) -> tuple[MeasureResult, ...]:
    columns = {name: _values(outcomes, name) for name in names}
    return tuple(mean(name, values, seed=seed) for name, values in columns.items() if values)


def _coverage(outcomes: Sequence[Outcome]) -> tuple[tuple[float, float, float | None], ...]:
    """How many structured questions are answered, and how well, from each confidence on."""
    measured = [outcome for outcome in outcomes if "execution match" in outcome.values]
    rows = []
    for threshold in THRESHOLDS if measured else ():
        kept = [o.values["execution match"] for o in measured if o.tried and o.tried[0].confidence >= threshold]
        rows.append((threshold, len(kept) / len(measured), sum(kept) / len(kept) if kept else None))
    return tuple(rows)


def _trust(groups: Mapping[str, Sequence[Outcome]]) -> dict[str, Trust]:
    """Confidence against both matches, by data set."""
    found: dict[str, Trust] = {}
    for group, outcomes in groups.items():
        for suffix, measure in (("", "execution match"), (", a person", "accepted by a person")):
            measured = [outcome for outcome in outcomes if measure in outcome.values]
            pairs = [(o.tried[0].confidence if o.tried else 0.0, o.values[measure] == 1.0) for o in measured]
            if pairs:
                found[f"{group}{suffix}"] = trust(pairs)
    return found


def _trust_lines(found: Mapping[str, Trust]) -> list[RenderableType]:
    """What a confidence was worth, one line a data set."""
    lines: list[RenderableType] = []
    for name, one in found.items():
        tenths = ", ".join(f"{t.said:.0%} → {t.right:.0%} ({t.count})" for t in one.tenths)
        lines.append(Text(
            f"{name}: said → right (questions): {tenths}; calibration error {one.calibration_error:.1%} "
            f"({one.error_by_chance:.1%} by chance), "
            f"right of the surest half {one.precision_of_half:.1%}, answered at 88 % right {one.answered_at_88:.1%}"
        ))  # fmt: skip
    return lines


def _plain(rows: Sequence[MeasureResult]) -> dict[str, Any]:
    return {
        row.name: {
            "mean": round(row.mean, 6),
            "interval_95": [round(row.low, 6), round(row.high, 6)],
            "questions": row.count,
        }
        for row in rows
    }


def _cells(row: MeasureResult) -> tuple[str, str]:
    """Mean and interval, in percent unless they count something."""
    scale, digits, unit = (1, 2, " of them") if row.name in COUNTS_ONLY else (100, 1, "")
    interval = f"{scale * row.low:.{digits}f} to {scale * row.high:.{digits}f}"
    return f"{scale * row.mean:.{digits}f}{unit}", interval


def _flat(judged: Mapping[str, Any]) -> dict[str, Any]:
    return {f"judge {name}": value for name, value in judged.items() if not isinstance(value, Mapping)}

"""An ablation as tables for people (terminal, Markdown) and as JSON for programs."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

import helios
from helios.evaluation.ablation.run import Ablation, Row
from helios.evaluation.ablation.variants import FULL, method_settings
from helios.evaluation.evaluate import CUTOFFS, MeasureResult
from helios.evaluation.report import code_commit, machine_facts

MISSING = "–"


def render(ablation: Ablation, *, facts: Sequence[str] = (), width: int = 80) -> RenderableType:
    """Two tables for a terminal of this width, in percent and in points, with notes below."""
    names = _columns(ablation)
    means = _table(f"{ablation.questions} questions, in %", [*(_short(name) for name in names), "p50 ms", "p95 ms"])
    compared = _most_telling(names)[: max(1, (width - 17) // 21)]
    differences = _table(f"difference to {FULL}, in points (95 % interval)", compared)
    group = None
    for row in ablation.rows:
        if row.variant.group != group:
            means.add_section()
            differences.add_section()
        group = row.variant.group
        means.add_row(row.variant.name, *(_percent(row.measures.get(name)) for name in names), *_latencies(row))
        if row.variant.name != FULL:
            differences.add_row(row.variant.name, *(_points(row.differences.get(name)) for name in compared))
    notes = [Text(note) for note in (*_notes(ablation), *facts)]
    return Lines(means, differences, *notes) if len(ablation.rows) > 1 else Lines(means, *notes)


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _short(name: str) -> str:
    """`HITS@4K` as two lines, so that a table fits into 80 columns."""
    return name.replace("@", "\n@") if len(name) > 5 else name


def _most_telling(names: Sequence[str]) -> list[str]:
    """The measures in the order in which a narrow table shows them."""
    first = [name for name in names if name.startswith("nDCG")]
    return list(dict.fromkeys([*first, *(name for name in ("AR@2", "AR@10", "AR@50") if name in names), *names]))


def to_markdown(ablation: Ablation, *, context: Mapping[str, str], facts: Sequence[str] = ()) -> str:
    """The same as a document: what was run, the means, the differences, the notes."""
    names = _columns(ablation)
    lines = ["# Ablation", "", *(f"- {name}: {value}" for name, value in context.items()), ""]
    lines += _markdown_table(
        ["%", *names, "p50 ms", "p95 ms"],
        [
            [row.variant.name, *(_percent(row.measures.get(name)) for name in names), *_latencies(row)]
            for row in ablation.rows
        ],
    )
    lines += ["", f"Difference to `{FULL}` in points, with the 95 % interval of a paired bootstrap:", ""]
    lines += _markdown_table(
        ["points", *names],
        [
            [row.variant.name, *(_points(row.differences.get(name)) for name in names)]
            for row in ablation.rows
            if row.variant.name != FULL
        ],
    )
    lines += ["", *(f"- {note}" for note in (*_notes(ablation), *facts))]
    return "\n".join(lines).rstrip() + "\n"


def to_json(ablation: Ablation, *, context: Mapping[str, str], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The ablation as plain values, with the date, the machine and the code version."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "helios_version": helios.__version__,
        "commit": code_commit(),
        "machine": machine_facts(),
        **context,
        "questions": ablation.questions,
        "depth": ablation.depth,
        "seed": ablation.seed,
        **facts,
        "variants": [_variant(row) for row in ablation.rows],
    }


def report_context(index: str, questions: str, count: int) -> dict[str, str]:
    """What a reader has to know about figures: of what, when, where, with which code."""
    facts = machine_facts()
    return {
        "index": index,
        "questions": f"{count} of {questions}",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gib']} GiB",
        "code": f"HELIOS {helios.__version__}, commit {code_commit() or 'unknown'}",
    }


def _columns(ablation: Ablation) -> list[str]:
    names = [f"AR@{k}" for k in CUTOFFS if k <= ablation.depth]
    wanted = [*names, f"nDCG@{ablation.depth}", "HITS@4K"]
    return [name for name in wanted if any(name in row.measures for row in ablation.rows)]


def _notes(ablation: Ablation) -> list[str]:
    """Why a row is missing or what to know about it, one line each."""
    notes = [f"{row.variant.name}: {row.variant.note}" for row in ablation.rows if row.variant.note]
    for row in ablation.rows:
        told = [name for name in _most_telling(_columns(ablation))[:3] if name in row.versus]
        gains = [f"{name} {_points(row.versus[name])}" for name in told]
        notes += [f"{row.variant.name} against {row.variant.versus}: {', '.join(gains)}"] if gains else []
        notes += [f"{row.variant.name}: {problem} ({count} questions)" for problem, count in row.problems.items()]
    return list(dict.fromkeys(notes))


def _percent(result: MeasureResult | None) -> str:
    return MISSING if result is None else f"{100 * result.mean:.1f}"


def _points(result: MeasureResult | None) -> str:
    if result is None:
        return MISSING
    mean, low, high = (_signed(100 * value) for value in (result.mean, result.low, result.high))
    return f"{mean} [{low}, {high}]"


def _signed(value: float) -> str:
    """With its sign, and zero without one."""
    text = f"{value:+.1f}"
    return "0.0" if float(text) == 0 else text


def _latencies(row: Row) -> list[str]:
    return [f"{row.latency_ms[name]:.0f}" if row.latency_ms else MISSING for name in ("p50", "p95")]


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *("---:" for _ in header[1:])]
    return ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)]


def _variant(row: Row) -> dict[str, Any]:
    variant = row.variant
    return {
        "group": None if variant.group is None else variant.group.value,
        "name": variant.name,
        "note": variant.note,
        "method": None if variant.method is None else method_settings(variant.method),
        "measures": {name: _result(found) for name, found in row.measures.items()},
        "difference_to_full": {name: _result(found) for name, found in row.differences.items()},
        "versus": variant.versus,
        "difference_to_versus": {name: _result(found) for name, found in row.versus.items()},
        "latency_ms": {name: round(value, 3) for name, value in row.latency_ms.items()},
        "problems": dict(row.problems),
    }


def _result(found: MeasureResult) -> dict[str, Any]:
    return {
        "mean": round(found.mean, 6),
        "interval_95": [round(found.low, 6), round(found.high, 6)],
        "questions": found.count,
    }

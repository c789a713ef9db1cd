"""An evaluation report for people (a table) and for programs (JSON)."""

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import helios
from helios.evaluation.documents import CollectionReport
from helios.evaluation.evaluate import EvaluationReport, QuestionResult
from helios.evaluation.runs import encode_edge_id


def render(report: EvaluationReport) -> RenderableType:
    """Tables for a terminal: measures in percent with intervals, then latencies."""
    table = Table(title=f"{report.name}: {report.counts['questions']} questions")
    table.add_column("measure")
    for heading in ("%", "95 % interval", "questions"):
        table.add_column(heading, justify="right")
    for row in report.measures:
        interval = f"{100 * row.low:.1f} to {100 * row.high:.1f}"
        table.add_row(row.name, f"{100 * row.mean:.1f}", interval, str(row.count))
    latency = ", ".join(f"{name} {value:.0f}" for name, value in report.latency_ms.items())
    lines: list[RenderableType] = [table, Text(f"latency (ms): {latency}")]
    if report.spent:
        spent = ", ".join(f"{name} {value:,.0f}" for name, value in report.spent.items())
        lines.append(Text(f"language model, a question: {spent}"))
    apart = {name: n for name, n in report.counts.items() if name != "questions" and n}
    if apart:
        lines.append(Text(", ".join(f"{name.replace('_', ' ')}: {n}" for name, n in apart.items())))
    return Group(*lines)


def to_json(report: EvaluationReport, *, with_questions: bool = True) -> dict[str, Any]:
    """The report as plain values, with the date, the machine and the code version."""
    document: dict[str, Any] = {
        "name": report.name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "helios_version": helios.__version__,
        "commit": code_commit(),
        "machine": machine_facts(),
        "config": dict(report.config),
        "counts": dict(report.counts),
        "latency_ms": {name: round(value, 3) for name, value in report.latency_ms.items()},
        "language_model": {name: round(value, 3) for name, value in report.spent.items()},
        "measures": {
            row.name: {
                "mean": round(row.mean, 6),
                "interval_95": [round(row.low, 6), round(row.high, 6)],
                "questions": row.count,
            }
            for row in report.measures
        },
    }
    if with_questions:
        document["questions"] = [_question(row) for row in report.questions]
    return document


def machine_facts() -> dict[str, Any]:
    """What latencies depend on: processor, usable cores, memory, Python."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def code_commit() -> str | None:
    """The git commit that the code runs from, None outside a checkout; `+` marks uncommitted changes."""
    command = [
        "git",
        "-C",
        str(Path(helios.__file__).parent),
        "describe",
        "--always",
        "--dirty=+",
        "--abbrev=12",
    ]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None


def _processor() -> str:
    """The model name where the system tells it, else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _question(row: QuestionResult) -> Mapping[str, Any]:
    return {
        "id": row.question_id,
        "latency_ms": round(row.latency_ms, 3),
        "answer_rank": row.answer_rank,
        "measures": {name: round(value, 6) for name, value in row.values.items()},
        "edges": [encode_edge_id(edge_id) for edge_id, _ in row.ranking],
    }


FOLDER_COLUMNS = (
    "questions",
    "right",
    "wrong",
    "abstained",
    "refused",
    "right of answered",
    "said",
    "auc",
    "evidence@3",
)


def folder_tables(found: Mapping[str, Any]) -> list[Table]:
    """What `folders.report` found, by folder and by kind of question, as tables for a terminal."""
    tables = []
    for title, rows in (("folder", found["worlds"]), ("kind", found["kinds"])):
        table = Table(title, *FOLDER_COLUMNS)
        for name, row in [*rows.items(), ("all", found["all"])]:
            table.add_row(name, *("" if row[column] is None else f"{row[column]:g}" for column in FOLDER_COLUMNS))
        tables.append(table)
    return tables


def collections_table(found: Iterable[CollectionReport]) -> Table:
    """What was measured of collections of documents, as a table for a terminal."""
    table = Table(
        "collection", "queries", "HELIOS %", "95 % interval", "BM25 %", "times BM25", "95 % interval", "p50 ms"
    )
    for one in found:
        table.add_row(
            one.name, str(one.helios.count), f"{100 * one.helios.mean:.1f}",
            f"{100 * one.helios.low:.1f} to {100 * one.helios.high:.1f}", f"{100 * one.bm25.mean:.1f}",
            f"{one.ratio:.3f}", f"{one.ratio_low:.3f} to {one.ratio_high:.3f}", f"{one.p50_ms:.0f}",
        )  # fmt: skip
    return table

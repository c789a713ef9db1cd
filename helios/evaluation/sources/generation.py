"""Execution match of generated queries over questions with gold queries, whole and per database.

python -m helios.evaluation.sources.generation spider/dev.jsonl.gz spider/database --json out.json
"""

import gzip
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from helios.evaluation.sources.match import is_ordered, rows_match
from helios.evaluation.sources.plain import PlainSqlite
from helios.executors.base import Language, NativeQuery
from helios.routing.formulation.generator import THRESHOLD, SqlGenerator
from helios.sources.base import Source


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question."""

    question_id: str
    database: str
    shape: str
    question: str
    gold: str
    query: str
    confidence: float
    explanation: str
    right: bool
    milliseconds: float


def main(
    questions: Path, databases: Path, threshold: float = THRESHOLD,
    out: Annotated[Path | None, typer.Option("--json", help="Write every outcome here, one JSON line each.")] = None,
) -> None:  # fmt: skip
    """Generate SQL for Spider-style questions and compare the rows with the gold query's."""
    outcomes = measure(read_questions(questions), lambda name: PlainSqlite(databases / name / f"{name}.sqlite"))
    if out is not None:
        out.write_text("".join(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes), encoding="utf-8")
    for line in report(outcomes, threshold=threshold):
        typer.echo(line)


def read_questions(path: Path) -> list[dict[str, Any]]:
    """Questions with `id`, `db_id`, `question` and `query`."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def measure(questions: Iterable[dict[str, Any]], open_source: Callable[[str], Source]) -> list[Outcome]:
    """Generate, execute and compare, one question after the other."""
    generator = SqlGenerator()
    sources: dict[str, Source] = {}
    outcomes = []
    for asked in questions:
        name = asked["db_id"]
        if name not in sources:
            sources[name] = open_source(name)
            generator.formulate("warm", sources[name])
        source, gold = sources[name], asked["query"]
        started = perf_counter()
        candidates = generator.formulate(asked["question"], source)
        milliseconds = 1000 * (perf_counter() - started)
        query, confidence, explanation, right = "", 0.0, "", False
        if candidates:
            best = candidates[0]
            query, confidence, explanation = best.query.text, best.confidence, best.explanation
            expected = source.execute(NativeQuery(Language.SQL, gold)).rows
            right = rows_match(source.execute(best.query).rows, expected, ordered=is_ordered(gold))
        outcomes.append(
            Outcome(asked["id"], name, shape(gold), asked["question"], gold, query, confidence, explanation, right,
                    milliseconds)
        )  # fmt: skip
    return outcomes


def shape(query: str) -> str:
    """What a gold query does, coarsely."""
    text = f" {query.lower()} "
    if any(f" {word} " in text for word in ("intersect", "union")):
        return "set operation"
    if " except " in text or " not in " in text:
        return "absence"
    if text.count("select") > 1:
        return "subquery"
    joins = " + join" if " join " in text else ""
    if " having " in text:
        return "having" + joins
    if " group by " in text:
        return ("group, limit" if " limit " in text else "group") + joins
    if " order by " in text:
        return ("superlative" if " limit " in text else "order") + joins
    kind = "aggregate" if any(f"{word}(" in text.split(" from ")[0].replace(" (", "(") for word in
                              ("count", "avg", "sum", "min", "max")) else "lookup"  # fmt: skip
    return kind + (" + filter" if " where " in text else "") + joins


def report(outcomes: Sequence[Outcome], *, threshold: float) -> list[str]:
    """Match, answered share and precision: whole, per database, per shape, and along thresholds."""
    lines = [f"{'':28}{'n':>5}{'match':>8}{'answered':>10}{'precision':>11}"]
    lines.append(_line("all", outcomes, threshold))
    for title, key in (("database", "database"), ("shape", "shape")):
        groups: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in outcomes:
            groups[getattr(outcome, key)].append(outcome)
        lines.append(f"by {title}")
        lines += [_line(f"  {name}", groups[name], threshold) for name in sorted(groups)]
        if key == "database":
            lines += [
                _line(f"  without {name}", [o for o in outcomes if o.database != name], threshold)
                for name in sorted(groups)
            ]
    lines.append("by threshold")
    lines += [_line(f"  {t / 20:.2f}", outcomes, t / 20) for t in range(6, 20)]
    times = sorted(outcome.milliseconds for outcome in outcomes)
    lines.append(f"milliseconds: median {statistics.median(times):.1f}, p95 {times[int(0.95 * len(times))]:.1f}")
    return lines


def _line(name: str, outcomes: Sequence[Outcome], threshold: float) -> str:
    answered = [outcome for outcome in outcomes if outcome.confidence >= threshold]
    match = 100 * sum(outcome.right for outcome in outcomes) / max(1, len(outcomes))
    precision = 100 * sum(outcome.right for outcome in answered) / max(1, len(answered))
    share = 100 * len(answered) / max(1, len(outcomes))
    return f"{name:28}{len(outcomes):5d}{match:7.1f}%{share:9.1f}%{precision:10.1f}%"


if __name__ == "__main__":
    typer.run(main)

"""`helios demo`: index the sample corpus, ask its questions, and show the evidence that was found."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from helios.evaluation.questions import Question
    from helios.types import Evidence, EvidenceEdge

DEPTH = 5
"""Edges looked at per question."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A sample question, its evidence, the rank of its first gold edge (None: below DEPTH) and the time taken."""

    question: "Question"
    evidence: "Evidence"
    gold_rank: int | None
    milliseconds: float


def demo_command(
    which: Annotated[
        str | None,
        typer.Argument(metavar="[augment]", help="augment: a help desk whose database knows who asks."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the index.")] = Path("demo-index"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Index the sample corpus that comes with HELIOS, answer its questions and show the evidence.

    `helios demo augment` shows something else: the same question of two customers, with two answers.

    Example: helios demo --out demo-index
    """
    if which not in (None, "augment"):
        raise typer.BadParameter(
            f"there is no demo {which!r}; there is `augment`, or leave it out", param_hint="augment"
        )
    if which is not None:
        from indexing.demo_augment import demo_augment

        demo_augment(out, as_json=as_json)
        return
    from rich.console import Console

    console = Console(highlight=False, quiet=as_json)
    seconds = _build(out, console)
    answered = []
    for result in ask_sample_questions(out):
        answered.append(result)
        _print_answered(result, console)
    if as_json:
        typer.echo(json.dumps(summary(answered) | {"index": str(out), "build_seconds": round(seconds, 1)}, indent=2))
    else:
        _print_summary(answered, out, console)


def ask_sample_questions(index: Path) -> Iterator[Answered]:
    """Search an index of the sample corpus for each of its questions."""
    from helios.corpus.sample import QUESTIONS, sample_path
    from helios.engine import Engine
    from helios.evaluation.edges import ranked_edges
    from helios.evaluation.questions import read_questions

    with Engine.open(index) as engine:
        questions = read_questions(sample_path() / QUESTIONS)
        engine.search(questions[0].text, k=DEPTH)  # loads the models, so that the times below are those of a search
        for question in questions:
            started = time.perf_counter()
            evidence = engine.search(question.text, k=DEPTH)
            milliseconds = (time.perf_counter() - started) * 1000
            ranks = (
                rank
                for rank, edge in enumerate(ranked_edges(evidence), start=1)
                if any(edge.edge_id.covers(gold) for gold in question.gold_edges)
            )
            yield Answered(question, evidence, next(ranks, None), milliseconds)


def summary(answered: list[Answered]) -> dict[str, Any]:
    """How many gold edges came first and among the first DEPTH, their ranks, and how long a search took."""
    return {
        "questions": len(answered),
        "gold_first": sum(result.gold_rank == 1 for result in answered),
        f"gold_in_top_{DEPTH}": sum(result.gold_rank is not None for result in answered),
        "median_milliseconds": round(median(result.milliseconds for result in answered), 1),
        "ranks": {result.question.question_id: result.gold_rank for result in answered},
    }


def _build(out: Path, console: "Console") -> float:
    """Build the index and say what it holds; seconds taken."""
    from helios.corpus.sample import sample_path
    from indexing.cli import available_cores
    from indexing.pipeline import build_index
    from indexing.progress import default_progress

    console.print("Indexing the sample corpus (the first time takes about a minute) ...")
    report = build_index(sample_path(), out, workers=available_cores(), progress=default_progress())
    counts = report.manifest.counts
    console.print(
        f"{out}: {counts.tables} tables with {counts.segments} rows, {counts.passages} passages, "
        f"{counts.edges} predicted links; {report.seconds:.1f} s\n",
        soft_wrap=True,
    )
    return report.seconds


def _print_answered(result: Answered, console: "Console") -> None:
    """A question and its best evidence, with the gold edge's rank."""
    from rich.text import Text

    mark = "[green]✓[/green]" if result.gold_rank == 1 else "[yellow]·[/yellow]"
    where = f"at rank {result.gold_rank}" if result.gold_rank else f"not in the top {DEPTH}"
    console.print(Text.assemble(Text.from_markup(mark), " ", (result.question.text, "bold")), soft_wrap=True)
    for edge in result.evidence.edges[:1]:
        for line in _edge_lines(edge):
            console.print(line, soft_wrap=True)
    answer = " / ".join(result.question.answers)
    console.print(Text(f"  expected: {answer}; its evidence is {where}\n", style="dim"), soft_wrap=True)


def _edge_lines(edge: "EvidenceEdge") -> Iterator["Text"]:
    from rich.text import Text

    if edge.segment is not None:
        cells = zip(edge.segment.header, edge.segment.cells, strict=True)
        row = " | ".join(f"{name}: {cell}" for name, cell in cells if cell)
        yield Text.assemble("  table    ", (edge.segment.title, "cyan"), f": {row}")
    if edge.passage is not None:
        yield Text.assemble("  passage  ", (edge.passage.title, "green"), f": {edge.passage.text}")


def _print_summary(answered: list[Answered], out: Path, console: "Console") -> None:
    found = summary(answered)
    console.print(
        f"{found['questions']} questions: the right evidence came first for {found['gold_first']}, among the first "
        f"{DEPTH} for {found[f'gold_in_top_{DEPTH}']}; {found['median_milliseconds']:.0f} ms per question (median).",
        soft_wrap=True,
    )
    command = f'{_command(Path(sys.argv[0]))} search "Who designed Pascal?" --index {out} --explain'
    console.print(f"\nAsk your own: {command}", soft_wrap=True)


def _command(called_as: Path) -> str:
    """What to type to run this program again."""
    if called_as.name == "__main__.py":
        return f"{Path(sys.executable).name} -m {called_as.parent.name}"
    return "helios" if shutil.which(called_as.name) == str(called_as.absolute()) else str(called_as)

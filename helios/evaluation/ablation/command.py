"""`helios eval ablate`: from the command line to tables, files and a plot."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import Progress

from helios.engine import Engine
from helios.errors import EvaluationError
from helios.evaluation.ablation.plot import plot_ablation, require_matplotlib
from helios.evaluation.ablation.report import render, report_context, to_json, to_markdown
from helios.evaluation.ablation.run import Ablation, run_ablation
from helios.evaluation.ablation.variants import Group, ablation_variants
from helios.evaluation.questions import Question
from helios.index.durable import write_atomically
from helios.retrieval.joint import token_counts

NAME = "ablation"
"""Files of an output folder: ablation.json, ablation.md, ablation.png, and the folder `questions`."""
ENCODINGS = (
    "stored: nodes apart, as the index holds them; factored: nodes apart, not quantised; joint: both nodes as one "
    "text, not quantised; all over the same candidates, without the learned ranking"
)


def ablate(
    engine: Engine,
    questions: Sequence[Question],
    groups: Sequence[Group],
    *,
    source: Path,
    depth: int,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the ablation and print it; with `out`, keep it there too."""
    if out is not None:
        require_matplotlib()
        _make_folder(out)
    variants = ablation_variants(engine.config, groups)
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(f"{len(variants)} variants", total=len(questions))
        ablation = run_ablation(
            engine, variants, questions, depth=depth, seed=seed, out=out,
            progress=lambda done: bar.update(task, completed=done),
        )  # fmt: skip
    counts = asdict(token_counts(engine.index)) if Group.EDGES in groups else None
    facts = [ENCODINGS, _counted(counts)] if counts else []
    context = report_context(engine.snapshot.directory.name, source.name, len(questions))
    facts_json = {"settings": engine.config.resolved()} | ({"token_vectors": counts} if counts else {})
    origin = {"index": context["index"], "source": source.name}
    document = to_json(ablation, context=origin, facts=facts_json)
    if out is not None:
        _write(out, ablation, document, to_markdown(ablation, context=context, facts=facts))
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    shown = Console()
    shown.print(render(ablation, facts=facts, width=shown.width))
    if out is not None:
        typer.echo(f"written to {out}: {NAME}.json, {NAME}.md, {NAME}.png", err=True)


def _counted(counts: dict[str, Any]) -> str:
    ratio = counts["joint"] / max(counts["factored"], 1)
    return (
        f"an index of jointly encoded edges would hold {counts['joint']:,} token vectors for its {counts['units']:,} "
        f"edges and lone nodes, this one holds {counts['factored']:,}: {ratio:.1f} times as many"
    )


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvaluationError(f"{out}: cannot be made a folder for results ({error.strerror})") from None


def _write(out: Path, ablation: Ablation, document: dict[str, Any], markdown: str) -> None:
    try:
        write_atomically(out / f"{NAME}.json", (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
        write_atomically(out / f"{NAME}.md", markdown.encode())
        write_atomically(out / f"{NAME}.png", plot_ablation(ablation))
    except OSError as error:
        raise EvaluationError(f"cannot write {error.filename}: {error.strerror}") from error

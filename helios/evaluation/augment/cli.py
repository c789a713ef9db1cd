"""`helios eval augment`: what a database knows of a question's row, beside other ways to expand a question."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helios.evaluation.augment.options import TaskName
from helios.evaluation.augment.tasks import SplitBy

if TYPE_CHECKING:
    from helios.evaluation.augment.run import TaskReport


def augment(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Folder of Parquet, CSV or a dump's XML, or a SQLite file (.gz too).")
    ],
    task: Annotated[TaskName, typer.Option("--task", help="What is looked for.")] = TaskName.ANY_ANSWER,
    by: Annotated[SplitBy, typer.Option("--by", help="What keeps train, validation and test apart.")] = SplitBy.USER,
    folds: Annotated[
        int | None, typer.Option("--folds", min=2, help="With --by user: test every question once, in so many folds.")
    ] = None,
    shares: Annotated[
        str, typer.Option("--shares", help="Shares of train, validation and test, with commas.")
    ] = "0.8,0.1,0.1",
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", help="Folder or hub name for sentence-transformers; without it the packaged one."),
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="FILE", help="Keep the vectors here for the next run.")
    ] = None,
    cap: Annotated[int, typer.Option("--cap", min=1, help="Attributes of a column at most.")] = 200,
    weights: Annotated[
        list[Path] | None,
        typer.Option("--weights", metavar="FOLDER", help="Also a trained augmenter of the same split; repeatable."),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option("--documents", metavar="FILE", help="Write what is searched here, as JSON lines to index."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option("--index", "-i", help="Index of these documents, for late interaction too."),
    ] = None,
    later: Annotated[
        bool, typer.Option("--later", help="Also the paper's comments, which are later than the question.")
    ] = False,
    columns: Annotated[bool, typer.Option("--columns", help="Also without each column.")] = False,
    counts: Annotated[
        str | None, typer.Option("--counts", help="Also with so many attributes a column, such as 1,3,30.")
    ] = None,
    timed: Annotated[bool, typer.Option("--timed", help="Also the time that a question's vector takes.")] = False,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="URL", help="Also expansions by the model of this server.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="With --llm: which model.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="YAML file with settings that differ.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only this many questions, by id.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of splits, samples and bootstrap intervals.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find answers for questions that are rows of a database: DAQu beside no expansion, expansions in words, and BM25.

    Example: helios eval augment site.sqlite --task any-answer --by user --folds 5
    """
    from rich.console import Console

    from helios.evaluation.augment.command import AugmentOptions, evaluate_augment, tables_of

    options = AugmentOptions(
        data, task, by, folds, numbers(shares, "--shares", exactly=3), encoder, vectors, cap, later, columns,
        tuple(int(one) for one in numbers(counts, "--counts")) if counts else (), timed, llm, model, config,
        tuple(overrides or ()), limit, seed, tuple(weights or ()), documents, index,
    )  # fmt: skip
    report = evaluate_augment(options, progress=lambda text: Console(stderr=True).print(text, style="dim"))
    if as_json:
        typer.echo(json.dumps(_record(report), indent=2, ensure_ascii=False))
        return
    for table in tables_of(report):
        Console().print(table)


def numbers(text: str, option: str, *, exactly: int | None = None) -> tuple[float, ...]:
    """Positive numbers with commas between them."""
    try:
        found = tuple(float(one) for one in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) <= 0 or (exactly and len(found) != exactly):
        wanted = f"{exactly} positive numbers" if exactly else "positive numbers"
        raise typer.BadParameter(f"{option}={text}: expected {wanted} with commas, such as 0.8,0.1,0.1")
    return found


def _record(report: "TaskReport") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(report)

"""`helios augment show`: what a question would be given of its row, by column, with counts and times."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from helios.augment.context import Context, ContextColumn
from helios.errors import ContextError
from helios.sources.registry_file import DEFAULT_FILE
from helios.terminal import escape, printable

app = typer.Typer(help="Show what a database adds to a question that is one of its rows.", no_args_is_help=True)

SHOWN, LENGTH = 5, 90
"""Values of a column that are printed, and characters of each."""


@app.callback()
def _root() -> None:
    """Keeps `show` a sub-command while it is the only one."""


@app.command("show")
def show_command(
    row: Annotated[
        list[str],
        typer.Argument(metavar="TABLE KEY | COLUMN=VALUE...", help="A row by its key, or values that name rows."),
    ],
    source: Annotated[str, typer.Option("--source", help="Name of the registered database.")],
    file_of_sources: Annotated[Path, typer.Option("--sources", metavar="FILE", help="The file of sources.")] = Path(
        DEFAULT_FILE
    ),
    settings: Annotated[
        Path | None, typer.Option("--augment", metavar="FILE", help="Keys, times and columns to leave out, as YAML.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The question's time; by default what the row says.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print all values, uncut.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what a question would be given of its row, by column.

    Example: helios augment show tickets 17 --source helpdesk
    """
    from helios.augment.augmenter import open_augmenter
    from helios.sources.registry import Registry

    with Registry.open(file_of_sources) as registry:
        augmenter = open_augmenter(registry, source, settings)
        when = None if at is None else read_time(at)
        if any("=" in part for part in row):
            context = augmenter.of_values(read_values(row), at=when)
        elif len(row) == 2:
            context = augmenter.of_row(row[0], row[1], at=when)
        elif len(row) == 1 and ":" in row[0]:
            context = augmenter.of(row[0], at=when)
        else:
            raise typer.BadParameter("expected TABLE KEY, such as tickets 17, or values such as customer_id=5")
    if as_json:
        typer.echo(printable(json.dumps(context_dict(context), indent=2, ensure_ascii=False)))
    else:
        print_context(context, every=every)


def read_context(
    row: str | None, source: str | None, file_of_sources: Path | None, settings: Path | None
) -> Context | None:
    """The context that `--context` names: `tickets:17`, or values as `customer_id=5`; None where it was not given.

    Wrong usage without a source, and for what has no use without a row.
    """
    if row is None:
        if source is not None or settings is not None:
            raise typer.BadParameter("--source and --augment say where --context is from: give that too")
        return None
    from helios.augment.augmenter import open_augmenter
    from helios.sources.registry import Registry

    if source is None:
        raise typer.BadParameter("--context needs --source, the name of the registered database that has the row")
    with Registry.open(file_of_sources or Path(DEFAULT_FILE)) as registry:
        augmenter = open_augmenter(registry, source, settings)
        return augmenter.of_values(read_values([row])) if "=" in row else augmenter.of(row)


def read_values(parts: list[str]) -> dict[str, str]:
    """`customer_id=5` as a mapping."""
    pairs = [part.partition("=") for part in parts]
    if not all(name.strip() and value.strip() for name, _, value in pairs):
        raise typer.BadParameter("expected COLUMN=VALUE, such as customer_id=5, and nothing else beside it")
    return {name.strip(): value.strip() for name, _, value in pairs}


def read_time(text: str) -> datetime:
    """A time of the command line; ContextError."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ContextError(f"--at: expected a time such as 2024-03-01 or 2024-03-01T12:00:00, got {text!r}") from None


def context_dict(context: Context) -> dict[str, Any]:
    """A context as plain JSON data."""
    document = asdict(context)
    for column, plain in zip(context.columns, document["columns"], strict=True):
        plain["kept"] = column.kept
    return document


def print_context(context: Context, *, every: bool = False) -> None:
    """The columns of a context, each with the way that led there."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(context.row)}[/bold]")
    for column in context.columns:
        _print_column(console, column, every=every)
    for note in context.notes:
        console.print(f"[yellow]{escape(note)}[/yellow]", soft_wrap=True)
    cut = ", cut" if context.truncated else ""
    console.print(
        f"[dim]{len(context)} values of {len(context.columns)} columns in {context.seconds * 1e3:.0f} ms{cut}[/dim]"
    )


def _print_column(console: Console, column: ContextColumn, *, every: bool) -> None:
    way = f"  [dim]by {escape(', then '.join(column.path))}[/dim]" if column.path else ""
    counts = f"{column.kept}" if column.kept == column.found else f"{column.kept} of {column.found:,}"
    console.print(
        f"  [cyan]{escape(column.name)}[/cyan] ({counts}){way}  [dim]{column.seconds * 1e3:.1f} ms[/dim]",
        soft_wrap=True,
    )
    for text in column.texts()[: None if every else SHOWN]:
        shown = text if every or len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"
        console.print(f"      {escape(shown)}", soft_wrap=True)
    if not every and column.kept > SHOWN:
        console.print(f"      [dim]and {column.kept - SHOWN} more (--all)[/dim]")

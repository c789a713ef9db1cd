"""The options of commands that take a question with the context of its row."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from helios.augment.context import Context

RowOption = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="TABLE:KEY", help="The row that the question is, or values that name rows: customer_id=5."
    ),
]
SourceOption = Annotated[
    str | None, typer.Option("--source", metavar="NAME", help="With --context: the database that has the row.")
]
AugmentOption = Annotated[
    Path | None, typer.Option("--augment", metavar="FILE", help="With --context: keys, times, columns, as YAML.")
]


def given_context(
    row: str | None, source: str | None, file_of_sources: Path | None, settings: Path | None
) -> "Context | None":
    """What `helios.augment.cli.read_context` reads of these options; without them nothing is loaded."""
    if row is None and source is None and settings is None:
        return None
    from helios.augment.cli import read_context

    return read_context(row, source, file_of_sources, settings)

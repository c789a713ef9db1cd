"""The options of commands that take a question with the context of its row."""

from pathlib import Path
from typing import Annotated

import typer

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

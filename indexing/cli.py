"""`helios index ...`: the commands that build and inspect an index."""

import typer

app = typer.Typer(help="Build and inspect an index.", no_args_is_help=True)

"""`helios train ...`: recipes that train the models."""

import typer

app = typer.Typer(help="Train the models that HELIOS ships or that you fine-tune.", no_args_is_help=True)

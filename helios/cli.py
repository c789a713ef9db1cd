"""`helios`: the root of the command line.

Commands are loaded when they run, so that `helios --help` is quick. Those of the sibling packages are
found through the entry points `helios.commands`; `helios` itself never imports a sibling.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from helios import __version__
from helios.errors import HeliosError
from helios.extras import extra_of, installation
from helios.terminal import one_line, printable

OWN_COMMANDS = {
    "ask": ("helios.reading.cli:ask_command", "Answer a question and cite the cells and sentences that say so."),
    "chat": ("helios.reading.chat:chat_command", "Ask one question after the other at a prompt."),
    "search": ("helios.retrieval.cli:search_command", "Rank evidence for a question."),
    "sample": ("helios.corpus.sample_files:sample_command", "Write the files of the README's examples."),
    "init": ("helios.reference:init_command", "Write a config file that explains every setting."),
    "eval": ("helios.evaluation.cli:app", "Measure an index against questions with known evidence."),
    "sources": ("helios.sources.cli:app", "Register and inspect the databases, graphs and corpora to ask."),
    "augment": ("helios.augment.cli:app", "Show what a database adds to a question that is one of its rows."),
    "doctor": ("helios.doctor:doctor_command", "Show what is installed and what this machine can do."),
}
SIBLING_HELP = {
    "demo": "Index the sample corpus and answer its questions.",
    "index": "Build an index, change it, back it up and inspect it.",
    "train": "Train the models that HELIOS ships or that you fine-tune.",
    "serve": "Serve searches and answers over HTTP.",
    "mcp": "Offer an index to an agent (Model Context Protocol).",
}
"""Short help of known sibling commands, so that listing them does not import them."""


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"helios {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; `helios.__main__` does so for the `helios` script."""
    build_app()(prog_name="helios")


def build_app() -> typer.Typer:
    """The root application with every command as a placeholder that loads itself on first use."""
    app = typer.Typer(
        name="helios",
        cls=RootGroup,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=True,
    )
    app.callback()(root)
    for name, target, help_text in own_and_sibling_commands():
        context = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command(name, cls=_deferred(target), help=help_text, context_settings=context)(_placeholder)
    return app


def root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="HELIOS_DEBUG", help="Show tracebacks and debug messages.")
    ] = False,
) -> None:
    """Ask a folder of tables and documents; get an answer that cites the cells and sentences that say so.

    [bold]First:[/bold] helios ask FOLDER "your question"   (keeps an index of the folder in your cache)

    [bold]Then:[/bold]  helios chat FOLDER   stays open for more questions

    No files at hand?  helios sample   writes some
    """
    level = logging.DEBUG if debug else logging.WARNING
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])


class _OneLine(logging.Formatter):
    """Messages that name files and records: what would move the cursor or begin a line of its own is shown."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = one_line(record.message)
        return super().formatMessage(record)


class RootGroup(TyperGroup):
    """Turns errors that a user can mend into one message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; HeliosError, and a file that cannot be used, become a message and exit code 1."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except HeliosError as error:
            if ctx.params.get("debug"):
                logging.getLogger(__name__).debug("traceback of the error below", exc_info=error)
            _print_error(printable(str(error)))
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(1) from None
        except ModuleNotFoundError as error:
            if ctx.params.get("debug") or extra_of(error.name or "") is None:
                raise
            _print_error(f"this needs {error.name}, which is not installed: {installation(error.name or '')}")
            raise typer.Exit(1) from None
        except OSError as error:
            if error.filename is None or ctx.params.get("debug"):
                raise
            _print_error(f"{error.filename}: {error.strerror} (`helios --debug ...` shows where)")
            raise typer.Exit(1) from None
        return result


def _print_error(message: str) -> None:
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(message, err=True)


def load_target(target: str, name: str) -> Any:
    """The click command behind `module:attribute`, a typer app or a function; HeliosError if absent."""
    module_name, _, attribute = target.partition(":")
    try:
        found = getattr(import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise HeliosError(f"`helios {name}` is not part of this installation ({error})") from error
        raise HeliosError(
            f"`helios {name}` needs {error.name!r}, which is not installed: {installation(error.name or '')}"
        ) from error
    if isinstance(found, typer.Typer):
        return typer.main.get_group(found)
    return _command_of(found, name)


def _command_of(function: Callable[..., Any], name: str) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.command(name)(function)
    return typer.main.get_command(app)


def own_and_sibling_commands() -> Iterator[tuple[str, str, str]]:
    """(name, `module:attribute`, short help) of every command; entry points cannot replace own ones."""
    for name, (target, help_text) in OWN_COMMANDS.items():
        yield name, target, help_text
    for point in sorted(entry_points(group="helios.commands"), key=lambda point: point.name):
        if point.name not in OWN_COMMANDS:
            provider = point.dist.name if point.dist else point.module
            yield point.name, point.value, SIBLING_HELP.get(point.name, f"Provided by {provider}.")


def _deferred(target: str) -> type[TyperCommand]:
    """A command class that gives way to the real command when it is about to run."""

    class DeferredCommand(TyperCommand):
        def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
            command = load_target(target, self.name or str(info_name))
            return command.make_context(info_name, args, parent=parent, **extra)

    return DeferredCommand


def _placeholder() -> None:
    """Never runs: the real command makes the context and is invoked with it."""


def _discard_output() -> None:
    """The reader of our output is gone: let the interpreter's last flush go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):
            continue
    os.close(nowhere)


if __name__ == "__main__":
    main()

"""`helios chat`: questions and answers at a prompt, over an engine that stays open."""

import _thread
import difflib
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from helios.__main__ import is_importing
from helios.errors import HeliosError
from helios.reading.cli import EDGES, answer_json, indexed, print_answer
from helios.terminal import escape, printable

if TYPE_CHECKING:
    from helios.engine import Engine
    from helios.types import Evidence

PROMPT = "> "
SHOWN = 10
"""Edges that /evidence shows."""
_MOMENT_S, _AGAIN_S = 0.05, 1.0
"""Until an interrupt comes again that waited for an import, and one that nobody heeded."""


def chat_command(
    folder: Annotated[Path | None, typer.Argument(help="The folder of files to ask.")] = None,
    index: Annotated[
        Path | None, typer.Option("--index", "-i", help="Instead of a folder of files: an index of them.")
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option("--llm", metavar="URL", help="Refine and read with the model of this OpenAI-compatible server."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="With --llm: which model; the server's only one.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="CONDITION", help="Only what fits, as: source = 'a.csv'.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings that differ.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")
    ] = None,
) -> None:
    """Ask one question after the other at a prompt; a folder's index follows the folder between them.

    Ctrl-C ends a question, Ctrl-D or /quit the chat. Questions may come through a pipe, one a line.

    Example: helios chat ~/reports
    """
    if (folder is None) == (index is None):
        raise typer.BadParameter("give a folder of files to ask, or --index and the folder of an index")
    if folder is not None and not folder.exists():
        raise typer.BadParameter(f"{folder}: no such file or folder; give the folder to ask")
    if model and not llm:
        raise typer.BadParameter("--model needs --llm, the address of its server")
    from helios.reading.asking import llm_overrides

    settings = llm_overrides(llm, model, overrides or ())
    with Chat(folder, index, config=config, overrides=settings, where=where) as chat:
        chat.engine()
        chat.run()


class _Interrupts:
    """Ctrl-C as KeyboardInterrupt, raised until somebody heeds it: within an import, which it would break, it waits,
    and where a library swallows it, it comes again. A first question loads much."""

    def __init__(self) -> None:
        self._again: threading.Timer | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.heeded()
        importing = is_importing(frame)
        self._again = threading.Timer(_MOMENT_S if importing else _AGAIN_S, _send, (number,))
        self._again.daemon = True
        self._again.start()
        if not importing:
            raise KeyboardInterrupt

    def swallowed(self, what: "sys.UnraisableHookArgs") -> None:
        """Tell what a library swallows, but no interrupt, which comes again, and no end of what one left half made."""
        if issubclass(what.exc_type, KeyboardInterrupt):
            return
        if self._again is None or getattr(what.object, "__name__", "") != "__del__":
            sys.__unraisablehook__(what)

    def heeded(self) -> None:
        """The interrupt has been caught, or what it was meant for is over: it does not come again."""
        if self._again is not None:
            self._again.cancel()


def _send(number: int) -> None:
    if os.name == "nt":  # os.kill would end the process
        _thread.interrupt_main(signal.Signals(number))
    else:
        os.kill(os.getpid(), number)


class Chat:
    """A conversation with a folder or an index; each line is a question or a command."""

    def __init__(
        self, folder: Path | None, index: Path | None, *, config: Path | None = None, overrides: list[str],
        where: str | None = None,
    ) -> None:  # fmt: skip
        from helios.retrieval.pipeline import Models

        self.folder, self.index = folder, index
        self.config, self.overrides = config, overrides
        self.where = where
        self.console = Console(highlight=False)
        self.evidence: Evidence | None = None
        self._models = Models(threads=os.cpu_count() or 1)
        self._engine: Engine | None = None
        self._interrupts = _Interrupts()

    def __enter__(self) -> "Chat":
        return self

    def __exit__(self, *_: object) -> None:
        if self._engine is not None:
            self._engine.close()
        self._models.close()

    def run(self) -> None:
        """Read lines until they end; what goes wrong with one ends no more than this one."""
        if sys.stdin.isatty():
            import readline  # noqa: F401  the arrow keys edit the line and bring back earlier ones

            self.console.print("Ask a question, or type /help. Ctrl-D leaves.")
        if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, signal.SIG_DFL, None):
            signal.signal(signal.SIGINT, self._interrupts)
            sys.unraisablehook = self._interrupts.swallowed
        while (line := self._line()) is not None:
            try:
                if not self.take(line):
                    return
            except KeyboardInterrupt:
                self._interrupts.heeded()
                self.console.print("[yellow]stopped; ask another question, or leave with Ctrl-D[/yellow]")
            except (HeliosError, OSError) as error:
                self.console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
            finally:
                self._interrupts.heeded()
            sys.stdout.flush()

    def take(self, line: str) -> bool:
        """Answer a question or follow a command; False after /quit."""
        if not line:
            return True
        if not line.startswith("/"):
            self._ask(line)
            return True
        name, _, argument = line.partition(" ")
        if name not in COMMANDS:
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else "/help lists the commands"
            self.console.print(f"no command {escape(name)}; {hint}", soft_wrap=True)
            return True
        COMMANDS[name][1](self, argument.strip())
        return name != "/quit"

    def engine(self) -> "Engine":
        """The engine, over what the folder or the index holds now."""
        from helios.engine import Engine

        place = indexed(self.folder, self.config, self.overrides) if self.folder is not None else self.index
        assert place is not None
        if self._engine is None:
            self._engine = Engine.open(place, config=self.config, overrides=self.overrides, models=self._models)
        else:
            self._engine.refresh()
        return self._engine

    def _line(self) -> str | None:
        """The next line without its end; None where there are no more."""
        while True:
            try:
                if sys.stdin.isatty():
                    return input(PROMPT).strip()
                line = sys.stdin.readline()
                if line:
                    typer.echo(f"{PROMPT}{printable(line.strip())}")
                return line.strip() if line else None
            except EOFError:
                self.console.print()
                return None
            except KeyboardInterrupt:
                self._interrupts.heeded()
                self.console.print()

    def _ask(self, question: str) -> None:
        from helios.reading.asking import answer_question

        engine = self.engine()
        answer, self.evidence = answer_question(engine, engine.reader, question, k=EDGES, where=self.where)
        print_answer(answer_json(answer, engine.corpus), answer, self.evidence)

    def show_evidence(self, _: str) -> None:
        """The evidence of the last question."""
        from helios.retrieval.cli import print_edge

        for edge in self._last().edges[:SHOWN]:
            print_edge(self.console, edge)

    def explain(self, _: str) -> None:
        """The evidence of the last question with the words that matched."""
        from helios.retrieval.cli import print_evidence

        print_evidence(self.engine().search(self._last().question, k=SHOWN, where=self.where, explain=True))

    def narrow(self, condition: str) -> None:
        """Ask only what fits a condition from now on, or everything again."""
        if condition:
            self.engine().view(condition)
        self.where = condition or None
        said = f"only what fits: {condition}" if condition else "everything; narrow it with /where source = 'a.csv'"
        self.console.print(f"asking {escape(said)}", soft_wrap=True)

    def help(self, _: str) -> None:
        """What can be typed."""
        for name, command in COMMANDS.items():
            self.console.print(f"{name:10} {command[0]}")
        self.console.print("anything else is a question")

    def leave(self, _: str) -> None:
        """Nothing more to do."""

    def _last(self) -> "Evidence":
        if self.evidence is None:
            raise HeliosError("there is no evidence yet: ask a question first")
        return self.evidence


COMMANDS: Mapping[str, tuple[str, Callable[[Chat, str], Any]]] = {
    "/evidence": ("show the evidence of the last question", Chat.show_evidence),
    "/explain": ("show it with the words that matched", Chat.explain),
    "/where": ("ask only what fits, as /where source = 'a.csv'; alone it asks everything again", Chat.narrow),
    "/help": ("show this", Chat.help),
    "/quit": ("leave, as Ctrl-D does", Chat.leave),
}

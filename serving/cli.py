"""`helios serve`: one process with the HTTP interface; `helios serve keys` makes, lists and revokes keys."""

import json
import os
import re
from pathlib import Path
from typing import Annotated

import typer

from helios.errors import ConfigError
from helios.terminal import printable

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)
keys_app = typer.Typer(help="Make, list and revoke the keys of clients.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
KeysFile = Annotated[
    Path | None, typer.Option("--keys", "--file", help="The file of keys; ~/.config/helios/keys.json.")
]


@app.callback(invoke_without_command=True)
def serve_command(
    context: typer.Context,
    index: Annotated[
        list[str] | None,
        typer.Option("--index", "-i", metavar="[NAME=]FOLDER", help="Folder of an index, with a name; repeatable."),
    ] = None,
    sources: Annotated[
        Path | None, typer.Option("--sources", metavar="FILE", help="A file of registered sources to serve, too.")
    ] = None,
    aliases: Annotated[
        Path | None, typer.Option("--aliases", metavar="FILE", help="Keep aliases of indexes in this file.")
    ] = None,
    sync: Annotated[
        list[str] | None,
        typer.Option("--sync", metavar="NAME=FOLDER", help="The folder that an index may be synced with; repeatable."),
    ] = None,
    backups: Annotated[
        Path | None, typer.Option("--backups", metavar="FOLDER", help="Where backups go that clients ask for.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; any but loopback needs --keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8080,
    keys: Annotated[
        Path | None, typer.Option("--keys", help="Ask clients for a key of this file (helios serve keys).")
    ] = None,
    permits: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Questions worked on at a time; as many as processors.")
    ] = None,
    queue: Annotated[int, typer.Option(min=0, help="Questions that may wait; more are refused with 503.")] = 64,
    seconds: Annotated[float, typer.Option(min=0.1, help="Most time for one question, waiting included.")] = 30.0,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Another name by which the server is called; repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option("--allow-origin", help="A web site whose scripts may call it; repeatable.")
    ] = None,
    log_questions: Annotated[bool, typer.Option("--log-questions", help="Write the questions into the log.")] = False,
    otel: Annotated[
        bool, typer.Option("--otel", help="Send traces where OTEL_EXPORTER_OTLP_ENDPOINT says (extra otel).")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings that differ.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")
    ] = None,
) -> None:
    """Serve searches and answers over HTTP, on this machine alone unless there are keys.

    Example: helios serve --index my-index
    """
    if context.invoked_subcommand is not None:
        return
    if not index and sources is None:
        raise typer.BadParameter("give --index, the folder of an index (`helios demo` makes one), or --sources")
    from serving.server import run_server
    from serving.settings import Limits, ServerSettings

    limits = Limits(permits=permits or os.cpu_count() or 1, queue=queue, seconds=seconds)
    indexes, corpora = named_folders(index or []), named_folders(sync or [], option="--sync")
    for name in corpora:
        if name not in indexes:
            raise typer.BadParameter(f"--sync {name}=...: no --index is called {name!r}")
    settings = ServerSettings(
        indexes, sources=sources, aliases=aliases, corpora=corpora, backups=backups, host=host, port=port, keys=keys,
        allowed_hosts=tuple(allow_host or ()),
        allowed_origins=tuple(allow_origin or ()), log_questions=log_questions, traces=otel, config=config,
        overrides=tuple(overrides or ()), limits=limits,
    )  # fmt: skip
    run_server(settings, listening=lambda address: typer.echo(f"listening on {address}"))


def mcp_command(
    index: Annotated[
        list[str], typer.Option("--index", "-i", metavar="[NAME=]FOLDER", help="Folder of an index, with a name.")
    ],
    sources: Annotated[
        Path | None, typer.Option("--sources", metavar="FILE", help="A file of registered sources to offer, too.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Most time for one question.")] = 30.0,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings that differ.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")
    ] = None,
) -> None:
    """Offer an index to an agent on this machine, by the Model Context Protocol over standard input and output.

    Example: helios mcp --index my-index
    """
    from serving.server import run_tools
    from serving.settings import Limits, ServerSettings

    settings = ServerSettings(
        named_folders(index),
        sources=sources,
        config=config,
        overrides=tuple(overrides or ()),
        limits=Limits(seconds=seconds),
    )
    run_tools(settings)


def named_folders(given: list[str], *, option: str = "--index") -> dict[str, Path]:
    """Folders by the names that clients use; ConfigError for a name that is wrong or comes twice."""
    folders: dict[str, Path] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        path = Path(folder if equals else text)
        name = name if equals else path.resolve().name
        if not NAME.fullmatch(name):
            raise ConfigError(f"{option} {text}: {name!r} is no name; give one of letters and digits, as NAME=FOLDER")
        if name in folders:
            raise ConfigError(f"{option} {text}: there are two {name!r}; give another name, as NAME=FOLDER")
        folders[name] = path
    return folders


@app.command("load")
def load_command(
    index: Annotated[Path, typer.Option("--index", "-i", help="Folder of the index.")],
    questions: Annotated[
        Path | None, typer.Option(help="JSON lines with a field question; those of the packaged sample.")
    ] = None,
    times: Annotated[str, typer.Option(help="Rates, as multiples of what the engine answers alone.")] = "0.5,1,2,5",
    seconds: Annotated[float, typer.Option(min=1, help="Of each rate.")] = 60.0,
    permits: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Questions worked on at a time; as many as processors.")
    ] = None,
    queue: Annotated[int, typer.Option(min=0, help="Questions that may wait.")] = 64,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Start a server over an index and ask it more and more, beside what its engine does alone in the same run.

    Example: helios serve load --index my-index --questions dev.jsonl --seconds 600
    """
    from rich.console import Console

    from helios.corpus.sample import sample_path
    from helios.evaluation.questions import read_questions
    from serving.load import LoadSettings, measure_server

    try:
        factors = [float(part) for part in times.split(",")]
    except ValueError:
        factors = []
    if not factors or not all(0 < factor <= 1000 for factor in factors):
        raise typer.BadParameter(f"--times {times}: expected numbers above 0, as in 0.5,1,2,5")
    asked = tuple(one.text for one in read_questions(questions or sample_path() / "questions.jsonl"))
    settings = LoadSettings(
        index, asked, factors, seconds, permits or os.cpu_count() or 1, queue, tuple(overrides or ())
    )
    found = measure_server(settings, lambda words: typer.echo(f"{words} ...", err=True))
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        Console(highlight=False, width=140).print(found.table())


@keys_app.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="What it is for, such as the client's name.")],
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="search, ask, write or admin; repeatable; search and ask.")
    ] = None,
    index: Annotated[
        list[str] | None, typer.Option("--index", help="Indexes within reach, * and ? fit any; repeatable; all.")
    ] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="The same of sources; repeatable; all.")] = None,
    per_minute: Annotated[int | None, typer.Option("--per-minute", min=1, help="Most questions a minute.")] = None,
    file: KeysFile = None,
) -> None:
    """Make a key, and print it: it cannot be shown again.

    Example: helios serve keys add dashboard --scope search --per-minute 60
    """
    from serving.keys import Key, KeyFile, Scope, default_file

    scopes = tuple(scope or (Scope.SEARCH, Scope.ASK))
    unknown = [one for one in scopes if one not in list(Scope)]
    if unknown:
        raise typer.BadParameter(f"--scope {unknown[0]}: expected {', '.join(Scope)}")
    key = Key("", name, "", tuple(str(one) for one in scopes), tuple(index or "*"), tuple(source or "*"), per_minute)
    path = file or default_file()
    typer.echo(KeyFile(path).add(key))
    typer.echo(f"added to {path}; start the server with --keys {path}", err=True)


@keys_app.command("list")
def list_keys(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False, file: KeysFile = None
) -> None:
    """List the keys: their ids, names, scopes and limits; the keys themselves are not kept.

    Example: helios serve keys list
    """
    from dataclasses import asdict

    from serving.keys import KeyFile, default_file

    keys = KeyFile(file or default_file()).listed()
    if as_json:
        shown = [{name: value for name, value in asdict(key).items() if name != "sha256"} for key in keys]
        typer.echo(json.dumps(shown, indent=2))
        return
    for key in keys:
        limit = "" if key.per_minute is None else f", {key.per_minute} a minute"
        reach = f"indexes {', '.join(key.indexes)}, sources {', '.join(key.sources)}"
        typer.echo(printable(f"{key.id}  {key.name}: {', '.join(key.scopes)}; {reach}{limit}; {key.created}"))


@keys_app.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `list` shows it.")],
    file: KeysFile = None,
) -> None:
    """Revoke a key: servers that run refuse it from their next request on.

    Example: helios serve keys revoke k7QdXw2p
    """
    from serving.keys import KeyFile, default_file

    key = KeyFile(file or default_file()).revoke(key_id)
    typer.echo(printable(f"revoked {key.id} ({key.name})"))

"""`helios sources add|list|show|check|remove|refresh`: the registry on the command line.

Exit codes: 0 done, 1 a source or the file cannot be used, 2 wrong usage.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from helios.errors import HeliosError
from helios.executors.address import shown
from helios.sources.descriptor import CorpusSchema, Descriptor, GraphSchema, RdfSchema, RelationalSchema
from helios.sources.kinds import all_kinds, kind_named, kind_names
from helios.sources.knowledge_cli import add_commands
from helios.sources.registry import RegisteredSource, Registry
from helios.sources.registry_file import DEFAULT_FILE, read_yaml
from helios.sources.spec import SourceSpec, plain_spec
from helios.terminal import escape, printable

app = typer.Typer(help="Register and inspect the sources that HELIOS may ask.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the source.")]
File = Annotated[Path, typer.Option("--sources", metavar="FILE", help="The file of sources.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


TABLE_FILES = (".parquet", ".csv", ".csv.gz", ".tsv")


def _known_kind(name: str | None) -> str | None:
    if name is not None and name not in kind_names():
        raise typer.BadParameter(f"{name!r} is no kind of source; there are {', '.join(kind_names())}")
    return name


@app.command("add")
def add_command(
    name: Name,
    kind: Annotated[
        str | None,
        typer.Option(help="Guessed from the path or URL where that is clear.", callback=_known_kind),
    ] = None,
    path: Annotated[str | None, typer.Option(help="File or folder of the data.")] = None,
    file: Annotated[list[str] | None, typer.Option("--file", metavar="[TABLE=]FILE", help="Repeatable.")] = None,
    url: Annotated[str | None, typer.Option(help="Where a server is; without a password.")] = None,
    user: Annotated[str | None, typer.Option(help="Who asks the server.")] = None,
    password_env: Annotated[str | None, typer.Option(help="NAME of the variable with the password.")] = None,
    description: Annotated[str, typer.Option(help="What the source is about.")] = "",
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Repeatable.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Change a source that is registered.")] = False,
    file_of_sources: File = Path(DEFAULT_FILE),
    as_json: AsJson = False,
) -> None:
    """Register a source; nothing is opened yet, `check` does that.

    Example: helios sources add shop --path shop.sqlite --description "Customers and their invoices"
    """
    given = {
        "path": path, "files": _files(file), "url": url, "user": user, "password_env": password_env,
        "description": description or None,
    }  # fmt: skip
    values: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for setting in settings or []:
        _set(values, setting)
    values = {"kind": kind or values.get("kind") or _guessed(values)} | values
    if values["kind"] == "duckdb" and str(values.get("path", "")).lower().endswith(TABLE_FILES):
        values["files"] = [values.pop("path")]  # a file that DuckDB reads as a table is no database of its own
    _make_portable(values, file_of_sources)
    with Registry.open(file_of_sources, create=True) as registry:
        kept = registry.add(name, values, replace=replace)
        spec = registry.spec(name)
    if path is not None and not Path(path).exists():
        typer.echo(f"warning: {path}: no such file or folder yet", err=True)
    _say(
        as_json, {"added": name, **_shown(spec)},
        f"added [bold]{escape(name)}[/bold] ({spec.kind}) to {escape(str(file_of_sources))}; "
        f"`helios sources check {escape(name)}` opens it", kept=kept,
    )  # fmt: skip


@app.command("list")
def list_command(file_of_sources: File = Path(DEFAULT_FILE), as_json: AsJson = False) -> None:
    """Show all registered sources; opens none.

    Example: helios sources list
    """
    with Registry.open(file_of_sources) as registry:
        specs = {name: registry.spec(name) for name in registry.names()}
    if as_json:
        typer.echo(printable(json.dumps([{"name": name, **_shown(spec)} for name, spec in specs.items()], indent=2)))
        return
    grid = Grid("name", "kind", "where", "about", box=None, header_style="bold")
    for name, spec in specs.items():
        grid.add_row(escape(name), escape(spec.kind), escape(_where(spec)), escape(spec.description))
    Console(highlight=False).print(grid if specs else "no sources are registered; `helios sources add` registers one")


@app.command("show")
def show_command(
    name: Name,
    question: Annotated[str, typer.Option("--question", "-q", help="Cut to what this question is about.")] = "",
    budget: Annotated[int | None, typer.Option("--tokens", min=1, help="Cut to about so many tokens.")] = None,
    file_of_sources: File = Path(DEFAULT_FILE),
    as_json: AsJson = False,
) -> None:
    """Print a source's descriptor as a prompt sees it.

    Example: helios sources show shop
    """
    from helios.sources.descriptor_text import text
    from helios.sources.linking import linked

    with Registry.open(file_of_sources) as registry:
        descriptor = registry.source(name).descriptor()
    if as_json:
        descriptor = linked(descriptor, question) if question else descriptor
        typer.echo(printable(json.dumps(asdict(descriptor), indent=2, ensure_ascii=False)))
    else:
        typer.echo(printable(text(descriptor, budget_tokens=budget, question=question)))


@app.command("check")
def check_command(
    names: Annotated[list[str] | None, typer.Argument(help="Sources; all where none is named.")] = None,
    file_of_sources: File = Path(DEFAULT_FILE),
    as_json: AsJson = False,
) -> None:
    """Open sources, read one thing of each, and say which guards are active.

    Example: helios sources check shop
    """
    with Registry.open(file_of_sources) as registry:
        checked = [_checked(registry.source(name)) for name in names or registry.names()]
    if as_json:
        typer.echo(printable(json.dumps(checked, indent=2, ensure_ascii=False)))
    else:
        _print_checks(checked)
    if not all(result["ok"] for result in checked):
        raise typer.Exit(1)


@app.command("remove")
def remove_command(name: Name, file_of_sources: File = Path(DEFAULT_FILE), as_json: AsJson = False) -> None:
    """Take a source out of the file, and delete what is cached of it; its data stays.

    Example: helios sources remove shop
    """
    with Registry.open(file_of_sources) as registry:
        kept = registry.remove(name)
    _say(as_json, {"removed": name}, f"removed [bold]{escape(name)}[/bold]; its data was not touched", kept=kept)


@app.command("refresh")
def refresh_command(
    names: Annotated[list[str] | None, typer.Argument(help="Sources; all where none is named.")] = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="Also encode the documents of a corpus once.")] = False,
    file_of_sources: File = Path(DEFAULT_FILE),
    as_json: AsJson = False,
) -> None:
    """Read descriptors again; servers that use the file see it at once.

    Example: helios sources refresh shop
    """
    done: list[dict[str, Any]] = []
    with Registry.open(file_of_sources) as registry:
        for name in names or registry.names():
            registry.spec(name)
            try:
                done.append({"name": name, "ok": True, "holds": _size(registry.refresh(name))})
                if vectors:
                    _store_vectors(registry.source(name))
            except HeliosError as error:
                done.append({"name": name, "ok": False, "error": str(error)})
    if as_json:
        typer.echo(printable(json.dumps(done, indent=2, ensure_ascii=False)))
    else:
        for result in done:
            said = escape(result.get("holds") or result["error"])
            mark = "[green]read[/green]" if result["ok"] else "[red]failed[/red]"
            Console(highlight=False).print(f"{mark} [bold]{escape(result['name'])}[/bold]: {said}", soft_wrap=True)
    if not all(result["ok"] for result in done):
        raise typer.Exit(1)


@app.command("import-graph")
def import_graph_command(
    nodes: Annotated[Path, typer.Argument(help="JSON lines of nodes: id, labels, properties; also .gz.")],
    edges: Annotated[Path, typer.Argument(help="JSON lines of relationships: src, dst, type, properties; also .gz.")],
    out: Annotated[Path, typer.Argument(help="The ladybug database to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a database that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build a property graph from files of nodes and edges; `add` registers it.

    Example: helios sources import-graph nodes.jsonl edges.jsonl graph.lbug
    """
    from helios.sources.graph_import import import_graph

    made = import_graph(nodes, edges, out, overwrite=overwrite)
    if as_json:
        typer.echo(printable(json.dumps(asdict(made), indent=2)))
        return
    typer.echo(f"{out}: {made.nodes} nodes, {made.relationships} relationships in {made.tables} tables")
    for name, count in made.beside.items():
        typer.echo(
            f"  {printable(name)}: {count} values fit no column; they come with whole nodes and cannot be searched"
        )


def _checked(source: RegisteredSource) -> dict[str, Any]:
    from helios.sources.guards import refuses_writes, role_in_words

    about: dict[str, Any] = {"name": source.name, "kind": source.kind, "language": str(source.language)}
    try:
        source.check()
        refused = refuses_writes(source.opened)
        about |= {"ok": refused is not False, "guards": list(kind_named(source.kind).guards), "refuses_writes": refused}
        access = getattr(source.spec, "access", None)
        if access is not None and access.limits():
            about["access"] = access.in_words()
        if (role := role_in_words(source.opened)) is not None:
            about["role"] = role
        if refused is False:
            about["error"] = "the guard let a write through its check; do not use this source"
    except HeliosError as error:
        about |= {"ok": False, "error": str(error)}
    return about


def _print_checks(checked: list[dict[str, Any]]) -> None:
    console = Console(highlight=False)
    for result in checked:
        mark = "[green]ok[/green]    " if result["ok"] else "[red]failed[/red]"
        console.print(f"{mark} [bold]{escape(result['name'])}[/bold]  [dim]{result['kind']}[/dim]")
        if "error" in result:
            console.print(f"       {escape(result['error'])}", soft_wrap=True)
        for guard in result.get("guards", ()):
            console.print(f"       [dim]{escape(guard)}[/dim]", soft_wrap=True)
        if "access" in result:
            console.print(f"       [dim]access: {escape(result['access'])}[/dim]", soft_wrap=True)
        if "role" in result:
            console.print(f"       [dim]role: {escape(result['role'])}[/dim]", soft_wrap=True)
        if result.get("refuses_writes"):
            console.print("       [dim]probe: a write was refused[/dim]")


def _store_vectors(source: RegisteredSource) -> None:
    """Encode a corpus's documents, with a progress bar where somebody watches."""
    from rich.progress import Progress

    from helios.sources.corpus import DocumentCorpus

    corpus = source.opened
    if not isinstance(corpus, DocumentCorpus):
        return
    with Progress(console=Console(stderr=True), transient=True, disable=not Console(stderr=True).is_terminal) as bar:
        task = bar.add_task(f"encoding {source.name}", total=len(corpus.index))
        corpus.store_vectors(lambda count: bar.advance(task, count))


def _size(descriptor: Descriptor) -> str:
    match descriptor.schema:
        case RelationalSchema(tables=tables):
            rows = sum(table.row_count or 0 for table in tables)
            return f"{len(tables):,} tables, {rows:,} rows"
        case RdfSchema(predicates=predicates, triple_count=count):
            return f"{len(predicates):,} predicates, {count:,} triples"
        case GraphSchema(labels=labels, relationships=relationships):
            return f"{len(labels):,} labels, {len(relationships):,} relationship types"
        case CorpusSchema(document_count=count):
            return f"{count:,} documents"


def _guessed(values: dict[str, Any]) -> str:
    """The kind that a path, a file or a URL tells; wrong usage where it tells none, or two."""
    url = values.get("url")
    files = values.get("files") or ()
    names = [str(values["path"])] if values.get("path") else [*(files.values() if isinstance(files, dict) else files)]
    known = all_kinds()
    if url:
        scheme = str(url).partition("://")[0].lower()
        found = {kind.name for kind in known if scheme in kind.schemes}
    else:
        endings = [name.lower() for name in names]
        found = {kind.name for kind in known for name in endings if kind.endings and name.endswith(kind.endings)}
        if len(found) != 1 and len(names) == 1:
            path = Path(names[0]).expanduser()
            start = _start(path)
            found = {kind.name for kind in known if kind.looks_like is not None and kind.looks_like(path, start)}
    if len(found) == 1:
        return found.pop()
    raise typer.BadParameter(f"name the kind with --kind ({', '.join(kind_names())})", param_hint="--kind")


def _start(path: Path) -> bytes:
    """The first bytes of a file; none of a folder."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(16)


def _files(given: list[str] | None) -> dict[str, str] | list[str] | None:
    if not given:
        return None
    if not any("=" in file for file in given):
        return given
    pairs = [file.partition("=") for file in given]
    if not all(name and equals and file for name, equals, file in pairs):
        raise typer.BadParameter("give every file a table (TABLE=FILE), or none", param_hint="--file")
    return {name: file for name, _, file in pairs}


def _set(values: dict[str, Any], setting: str) -> None:
    """`limits.timeout=5` into values; the value is read as YAML."""
    key, equals, raw = setting.partition("=")
    if not equals or not key.strip():
        raise typer.BadParameter(f"expected KEY=VALUE, got {setting!r}", param_hint="--set")
    *sections, leaf = key.strip().split(".", 1)
    inner = values
    for section in sections:
        inner = inner.setdefault(section, {})
        if not isinstance(inner, dict):
            raise typer.BadParameter(f"{section} is no section", param_hint="--set")
    inner[leaf] = read_yaml(raw, where=f"--set {key}")


def _make_portable(values: dict[str, Any], file_of_sources: Path) -> None:
    """Paths of the command line are from the working directory, those of the file from the file's folder."""
    folder = file_of_sources.expanduser().resolve().parent

    def portable(path: str) -> str:
        if "\0" in path:
            return path  # no path: the registration says so
        absolute = Path(path).expanduser().resolve()
        return str(absolute.relative_to(folder)) if absolute.is_relative_to(folder) else str(absolute)

    if isinstance(values.get("path"), str):
        values["path"] = portable(values["path"])
    match values.get("files"):
        case dict() as files:
            values["files"] = {name: portable(str(file)) for name, file in files.items()}
        case list() as files:
            values["files"] = [portable(str(file)) for file in files]


def _shown(spec: SourceSpec) -> dict[str, Any]:
    """A registration with as much of its address as may be shown."""
    values = plain_spec(spec)
    return values | {"url": shown(values["url"])} if "url" in values else values


def _where(spec: SourceSpec) -> str:
    values = _shown(spec)
    files = values.get("files", ())
    place = values.get("path") or values.get("url") or ", ".join(files.values() if isinstance(files, dict) else files)
    return str(place)


def _say(as_json: bool, document: dict[str, Any], sentence: str, *, kept: bool) -> None:
    if as_json:
        typer.echo(printable(json.dumps(document, indent=2, ensure_ascii=False)))
    else:
        Console(highlight=False).print(sentence, soft_wrap=True)
    if not kept:
        typer.echo("the file had to be written anew: its comments are lost", err=True)


add_commands(app)

"""`helios sources teach|taught|forget|describe`: what people know of a source, on the command line."""

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from helios.errors import ConfigError, SourceError
from helios.executors.base import NativeQuery
from helios.sources.base import Source
from helios.sources.descriptor import RelationalSchema
from helios.sources.knowledge import JOIN, Example, read_knowledge, write_knowledge
from helios.sources.registry import Registry
from helios.sources.registry_file import DEFAULT_FILE
from helios.terminal import escape, printable

Name = Annotated[str, typer.Argument(help="Name of the source.")]
File = Annotated[Path, typer.Option("--sources", metavar="FILE", help="The file of sources.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_commands(app: typer.Typer) -> None:
    """Put the commands beside the others of `helios sources`."""
    app.command("teach")(teach_command)
    app.command("taught")(taught_command)
    app.command("forget")(forget_command)
    app.command("describe")(describe_command)


def teach_command(
    name: Name,
    question: Annotated[str, typer.Argument(help="A question as people ask it.")],
    query: Annotated[str, typer.Argument(help="The query that answers it; it is run once.")],
    file_of_sources: File = Path(DEFAULT_FILE),
    as_json: AsJson = False,
) -> None:
    """Teach a source a question with its query, which is run first and must pass the guard.

    Example: helios sources teach shop "How many customers?" "SELECT count(*) FROM customer"
    """
    if not question.strip() or not question.isprintable():
        raise ConfigError(f"question {question!r}: expected words that can be printed; nothing was taught")
    with Registry.open(file_of_sources) as registry:
        source = registry.source(name)
        try:
            result = source.execute(NativeQuery(source.language, query))
        except SourceError as error:
            raise ConfigError(f"source {name!r}: nothing was taught, since the query does not run: {error}") from None
        knowledge = source.knowledge().with_example(Example(question=question, query=query))
        write_knowledge(source.knowledge_path, knowledge)
    rows = f"{len(result)} row{'' if len(result) == 1 else 's'}{' or more' if result.truncated else ''}"
    if as_json:
        said = {"taught": question, "rows": len(result), "examples": len(knowledge.examples)}
        typer.echo(printable(json.dumps(said, ensure_ascii=False)))
    else:
        sentence = f"taught [bold]{escape(name)}[/bold]: {escape(question)} ({rows})"
        Console(highlight=False).print(sentence, soft_wrap=True)


def taught_command(name: Name, file_of_sources: File = Path(DEFAULT_FILE), as_json: AsJson = False) -> None:
    """Show what a source was taught: questions with their queries, words, metrics, descriptions and joins.

    Example: helios sources taught shop
    """
    with Registry.open(file_of_sources) as registry:
        knowledge = registry.source(name).knowledge()
    document = knowledge.model_dump(mode="json", exclude_defaults=True)
    if as_json:
        typer.echo(printable(json.dumps(document, indent=2, ensure_ascii=False)))
        return
    for example in knowledge.examples:
        typer.echo(printable(f"{example.question}\n    {' '.join(example.query.split())}"))
    for title, texts in (("means", knowledge.glossary), ("is", knowledge.metrics), (":", knowledge.descriptions)):
        for word, text in texts.items():
            typer.echo(printable(f"{word}{'' if title == ':' else ' '}{title} {text}"))
    for join in knowledge.joins:
        typer.echo(printable(f"join {join}"))
    if not document:
        typer.echo("nothing was taught; `helios sources teach` does that")


def forget_command(
    name: Name,
    question: Annotated[str, typer.Argument(help="The question, as `taught` shows it.")],
    file_of_sources: File = Path(DEFAULT_FILE),
    as_json: AsJson = False,
) -> None:
    """Forget a question that was taught.

    Example: helios sources forget shop "How many customers live in Oslo?"
    """
    with Registry.open(file_of_sources) as registry:
        source = registry.source(name)
        write_knowledge(source.knowledge_path, source.knowledge().without_example(question))
    said = {"forgotten": question}
    typer.echo(printable(json.dumps(said) if as_json else f"forgotten: {question}"))


def describe_command(
    name: Name,
    what: Annotated[str, typer.Argument(help="A table, `table.column`, a word, a metric, or `a.b = c.d`.")],
    text: Annotated[str, typer.Argument(help="What it is.")] = "",
    word: Annotated[bool, typer.Option("--word", help="A word of people, and what it means here.")] = False,
    metric: Annotated[bool, typer.Option("--metric", help="A number with a name, and how it is computed.")] = False,
    join: Annotated[bool, typer.Option("--join", help="A join that the schema does not declare.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take it out.")] = False,
    file_of_sources: File = Path(DEFAULT_FILE),
    as_json: AsJson = False,
) -> None:
    """Say what a table, a column, a word or a metric of a source is, or which columns join.

    Example: helios sources describe shop purchase.amount "in euros, without tax"
    """
    if word + metric + join > 1:
        raise typer.BadParameter("give one of --word, --metric and --join")
    if not join and not remove and not text.strip():
        raise typer.BadParameter("give a text, or --remove", param_hint="TEXT")
    key = "glossary" if word else "metrics" if metric else "descriptions"
    with Registry.open(file_of_sources) as registry:
        source = registry.source(name)
        knowledge = source.knowledge()
        before = knowledge
        if join and not JOIN.fullmatch(what):
            raise typer.BadParameter("expected `table.column = table.column`", param_hint="WHAT")
        if not remove and not word and not metric:
            _check_names(source, [side.strip() for side in what.split("=")] if join else [what])
        if join:
            kept = tuple(other for other in knowledge.joins if other != what)
            knowledge = knowledge.model_copy(update={"joins": kept if remove else (*kept, what)})
        else:
            texts = {other: said for other, said in getattr(knowledge, key).items() if other != what}
            knowledge = knowledge.model_copy(update={key: texts if remove else texts | {what: text}})
        if remove and knowledge == before:
            raise ConfigError(f"source {name!r}: {what!r} was not described, so nothing was taken out")
        write_knowledge(source.knowledge_path, knowledge)
        read_knowledge(source.knowledge_path)
    said = "taken out" if remove else "already noted, nothing changed" if knowledge == before else "noted"
    typer.echo(printable(json.dumps({said: what}) if as_json else f"{said}: {what}"))


def _check_names(source: Source, names: Sequence[str]) -> None:
    """ConfigError for a table or column that a database lacks; the names of graphs are not checked."""
    schema = source.descriptor().schema
    if not isinstance(schema, RelationalSchema):
        return
    known = [table.name for table in schema.tables]
    known += [f"{table.name}.{column.name}" for table in schema.tables for column in table.columns]
    spelt = {name.casefold() for name in known}
    for name in names:
        if name.casefold() not in spelt:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else "give a table, or table.column"
            raise ConfigError(f"source {source.name!r} has no table or column {name!r}; {hint}")

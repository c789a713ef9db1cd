"""`helios ask`: an answer with its citations, for people and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from helios.augment.options import AugmentOption, RowOption, SourceOption, given_context
from helios.reading.base import Answer, Support
from helios.terminal import escape, printable

if TYPE_CHECKING:
    from helios.index.reader import Corpus
    from helios.types import Evidence

EDGES = 50
"""Edges that an answer is read from."""
SHOWN = 3
"""Edges that are shown where there is no answer."""
LIKELY, POSSIBLE = 0.6, 0.35
SAID = 0.015
"""Confidence from which on another answer is named."""
"""Confidence from which an answer is called likely, and possible; below it is weak."""
NOTES = {
    Support.CITED: "no citation holds the answer word by word",
    Support.UNSUPPORTED: "unsupported: no citation checked out",
}


def ask_command(
    asked: Annotated[
        list[str], typer.Argument(metavar="[FOLDER] QUESTION", help="The question, in quotes; a folder before it.")
    ],
    index: Annotated[Path | None, typer.Option("--index", "-i", help="Folder of the index.")] = None,
    sources: Annotated[
        Path | None,
        typer.Option(
            "--sources",
            metavar="FILE",
            help="A file of registered sources to ask instead of an index; with --context: that has the row.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", "--k", min=1, help="How many edges to search for (50); with --sources: how many to ask (3)."
        ),
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
    context: RowOption = None,
    source: SourceOption = None,
    augment: AugmentOption = None,
    fields: Annotated[
        str | None,
        typer.Option("--map", metavar="title=FIELD,text=FIELD", help="With a folder: as in helios index build."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings that differ.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")
    ] = None,
) -> None:
    """Answer a question and cite the cells and sentences that say so, or say why not.

    What is asked is an index, registered sources, or just a folder of files: its index is kept in the user's cache.

    Example: helios ask ~/reports "Who signed the lease?"
    """
    if len(asked) > 2:
        raise typer.BadParameter("expected a question, or a folder and a question; put the question in quotes")
    question, folder = asked[-1], Path(asked[0]) if len(asked) > 1 else None
    if not question.strip():
        raise typer.BadParameter("the question is empty")
    if model and not llm:
        raise typer.BadParameter("--model needs --llm, the address of its server")
    asks_sources = sources is not None and context is None
    if sum((index is not None, asks_sources, folder is not None)) != 1:
        raise typer.BadParameter(
            'give one of: a folder before the question, as in helios ask FOLDER "…"; --index, the folder of an index; '
            "--sources, a file of registered sources"
        )
    if folder is not None and not folder.exists():
        raise typer.BadParameter(f"{folder}: no such file or folder; give the folder to ask before the question")
    if fields is not None and folder is None:
        raise typer.BadParameter("--map says how a folder of files is read: give a folder before the question")
    from helios.engine import Engine
    from helios.reading.asking import answer_question, llm_overrides

    settings = llm_overrides(llm, model, overrides or ())
    if where is not None and asks_sources:
        raise typer.BadParameter("--where selects from an index: give --index, or a folder")
    if where is not None:
        from helios.corpus.where import Where

        Where.parse(where)  # an error in it is told before a folder is read
    given = given_context(context, source, sources, augment)
    if folder is not None:
        index = indexed(folder, config, settings, fields)
    if index is None:
        assert sources is not None
        from helios.routing.cli import ask_sources

        ask_sources(question, sources, k=k, config=config, overrides=settings, as_json=as_json)
        return
    with Engine.open(index, config=config, overrides=settings) as engine:
        answer, evidence = answer_question(engine, engine.reader, question, k=k or EDGES, where=where, context=given)
        shown = answer_json(answer, engine.corpus)
    if as_json or answer.abstained:
        shown["evidence"] = evidence.to_dict()["edges"][:SHOWN]
    if as_json:
        typer.echo(printable(json.dumps(shown, indent=2, ensure_ascii=False)))
    else:
        print_answer(shown, answer, evidence)


def indexed(folder: Path, config: Path | None, overrides: Sequence[str], fields: str | None = None) -> Path:
    """The index of what a folder holds now, made by the sibling that builds indexes; a folder that is an index is its
    own. `fields` is what --map says."""
    from importlib.metadata import entry_points

    from helios.config import load_config
    from helios.corpus.mapping import FieldMap
    from helios.errors import HeliosError
    from helios.index.manifest import MANIFEST_FILE, PARTS_FOLDER

    if (folder / MANIFEST_FILE).is_file() and (folder / PARTS_FOLDER).is_dir():
        return folder
    mapping = FieldMap.parse(fields) if fields is not None else None
    for point in entry_points(group="helios.folders"):
        index: Path = point.load()(folder, load_config(config, overrides), mapping)
        return index
    raise HeliosError("this installation cannot build indexes: install helios-retrieval, or give --index")


def answer_json(answer: Answer, corpus: "Corpus") -> dict[str, Any]:
    """An answer as plain JSON data; every citation with the cell or sentence that it is from."""
    from helios.reading.citations import cited_source, file_of, place_of

    document = asdict(replace(answer, likely=())) | {"abstained": answer.abstained}
    del document["likely"]
    for citation, plain in zip(answer.citations, document["citations"], strict=True):
        plain["source"] = cited_source(citation, corpus)
        plain["segment"] = str(citation.segment_id) if citation.segment_id else None
        plain["place"] = place_of(citation, corpus)
        plain["file"] = file_of(citation, corpus)
    return document


def _print_evidence(evidence: "Evidence") -> None:
    from helios.retrieval.cli import print_edge

    console = Console(highlight=False)
    if evidence.edges:
        console.print("[dim]the best evidence:[/dim]")
    for edge in evidence.edges[:SHOWN]:
        print_edge(console, edge)


def print_answer(shown: dict[str, Any], answer: Answer, evidence: "Evidence") -> None:
    """An answer with how sure it is and its citations, from `answer_json`; else why there is none, and the evidence."""
    console = Console(highlight=False)
    if answer.abstained:
        console.print(f"[yellow]no answer[/yellow]: {escape(answer.reason)}", soft_wrap=True)
    else:
        console.print(f"[bold]{escape(answer.text)}[/bold]{_sureness(answer.confidence)}", soft_wrap=True)
        note = "; ".join(note for note in (NOTES.get(answer.support, ""), answer.reason) if note)
        if note:
            console.print(f"    [yellow]{escape(note)}[/yellow]", soft_wrap=True)
    if answer.explanation:
        console.print(f"    {escape(answer.explanation)}", soft_wrap=True)
    for citation in shown["citations"]:
        source, start, end = citation["source"], citation["start"], citation["end"]
        words = f"{escape(source[:start])}[bold]{escape(source[start:end])}[/bold]{escape(source[end:].rstrip())}"
        console.print(f"    [cyan]{escape(_place(citation))}[/cyan]: {words}", soft_wrap=True)
    for problem in answer.dropped:
        console.print(f"    [dim]dropped citation: {escape(problem)}[/dim]", soft_wrap=True)
    for note in answer.notes:
        colour = "yellow" if answer.degraded else "dim"
        console.print(f"    [{colour}]{escape(note)}[/{colour}]", soft_wrap=True)
    if answer.calls:
        console.print(f"    [dim]language model: {answer.calls} calls, {answer.tokens:,} tokens[/dim]")
    likely = [(text.strip(), confidence) for text, confidence in answer.alternatives if confidence >= SAID]
    others = " · ".join(f"{text} {confidence:.0%}" for text, confidence in likely)
    if others:
        console.print(f"    [dim]else: {escape(others)}[/dim]", soft_wrap=True)
    if answer.abstained:
        _print_evidence(evidence)


def _place(citation: dict[str, Any]) -> str:
    """Where a citation is from, with its file unless the title says it."""
    place, file = citation["place"], citation["file"]
    return place if PurePosixPath(file).stem.casefold() in place.casefold() else f"{place}, in {file}"


def _sureness(confidence: float) -> str:
    """A confidence in a word and a colour, so that 14 % does not look like 90 %; nothing where none is known."""
    if not confidence:
        return ""
    if confidence >= LIKELY:
        return f"  [green]likely, {confidence:.0%}[/green]"
    if confidence >= POSSIBLE:
        return f"  [yellow]possible, {confidence:.0%}[/yellow]"
    return f"  [red]weak, {confidence:.0%}: look at the evidence[/red]"

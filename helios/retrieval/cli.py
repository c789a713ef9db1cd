"""`helios search`: ranked evidence for a question, for people and as JSON."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from helios.augment.options import AugmentOption, RowOption, SourceOption, given_context
from helios.terminal import escape, printable
from helios.types import Evidence, EvidenceEdge

SHORT = 60
"""Characters of an attribute that are printed."""


def search_command(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    index: Annotated[Path | None, typer.Option("--index", "-i", help="Folder of the index.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many edges to show.")] = 10,
    where: Annotated[
        str | None, typer.Option("--where", metavar="CONDITION", help="Only what fits, as: source = 'a.csv'.")
    ] = None,
    context: RowOption = None,
    source: SourceOption = None,
    file_of_sources: Annotated[
        Path | None, typer.Option("--sources", metavar="FILE", help="With --context: the file of sources.")
    ] = None,
    augment: AugmentOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show which words matched.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings that differ.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")
    ] = None,
) -> None:
    """Rank evidence for a question.

    Example: helios search "Which rivers flow into the Black Sea?" --index my-index -k 3
    """
    if not question.strip():
        raise typer.BadParameter("the question is empty")
    if index is None:
        raise typer.BadParameter(
            "give --index, the folder of an index: `helios index build FILES --out INDEX` makes one "
            '(`helios ask FOLDER "…"` makes its own)'
        )
    from helios.engine import Engine

    given = given_context(context, source, file_of_sources, augment)
    with Engine.open(index, config=config, overrides=overrides or []) as engine:
        evidence = engine.search(question, k=k, where=where, explain=explain, context=given)
    if as_json:
        typer.echo(printable(json.dumps(evidence.to_dict(), indent=2, ensure_ascii=False)))
    else:
        print_evidence(evidence, filtered=where is not None)


def print_evidence(evidence: Evidence, *, filtered: bool = False) -> None:
    """Ranked evidence with the words that matched, if they were asked for, and the notes of the search."""
    console = Console(highlight=False)
    if not evidence.edges:
        console.print(f"no evidence found: {'nothing passes the filter' if filtered else 'the index is empty'}")
    for edge in evidence.edges:
        print_edge(console, edge)
        for match in edge.matches:
            console.print(
                f"        [dim]{escape(match.query_token)} → {escape(match.word)}  {match.similarity:.2f}  "
                f"{_place(edge, match.where)}[/dim]"
            )
        for told in edge.context:
            word = f" → {escape(told.word)}" if told.word else ""
            console.print(
                f"        [dim]through {escape(_short(told.text))}{word}  ({escape(told.column)})[/dim]", soft_wrap=True
            )
    for note in evidence.notes:
        console.print(f"[yellow]{escape(note)}[/yellow]")
    if evidence.timings_ms:
        total = sum(evidence.timings_ms.values())
        count = "1 edge" if len(evidence.edges) == 1 else f"{len(evidence.edges)} edges"
        console.print(f"[dim]{count} in {total:.0f} ms[/dim]")


def print_edge(console: Console, edge: EvidenceEdge) -> None:
    """One piece of evidence: its rank, how likely it is evidence, the row and the passage."""
    console.print(f"[bold]{edge.rank:>2}[/bold]  [dim]{edge.probability:4.0%}  {_kind(edge)}[/dim]")
    for line in _lines(edge):
        console.print(line, soft_wrap=True)


def _kind(edge: EvidenceEdge) -> str:
    """How the edge was found, or that it is one node without a partner."""
    if edge.segment is None:
        return "text alone"
    return "row alone" if edge.passage is None else edge.origin.value


def _lines(edge: EvidenceEdge) -> list[Text]:
    lines = []
    if edge.segment is not None:
        segment = edge.segment
        title = printable(f"{segment.title} · {segment.section}" if segment.section else segment.title)
        lines.append(Text.assemble("    ", (title, "cyan"), (f"  row {segment.segment_id.row}", "dim")))
        cells = zip(segment.header, segment.cells, strict=True)
        lines.append(Text("    " + printable(" | ".join(f"{name}: {cell}" for name, cell in cells if cell))))
    if edge.passage is not None:
        cell = _linked_cell(edge)
        via = printable(f"  ← {cell}") if cell else ""
        lines.append(Text.assemble("    ", (printable(edge.passage.title), "green"), (via, "dim")))
        lines.append(Text("    " + printable(edge.passage.text)))
    return lines


def _linked_cell(edge: EvidenceEdge) -> str:
    """The words of the row that point to the passage."""
    if edge.segment is None or not edge.links:
        return ""
    link = edge.links[0]
    return f"{edge.segment.header[link.column]}: {edge.segment.cells[link.column][link.start : link.end]}"


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def _place(edge: EvidenceEdge, where: str) -> str:
    """`cell:2` as the column's name, other places as they are."""
    kind, _, number = where.partition(":")
    if kind in ("cell", "header") and edge.segment is not None:
        return f"{kind} {edge.segment.header[int(number)]}"
    return where.replace(":", " ")

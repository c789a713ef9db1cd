"""`helios demo augment`: the same question of two customers, and two answers, since a database knows who asks."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from helios.terminal import printable

if TYPE_CHECKING:
    from helios.augment.context import Context
    from helios.types import Evidence

SHOWN = ("products.name", "tickets.title")
"""Columns of a context that are printed."""


def demo_augment(out: Path, *, as_json: bool) -> None:
    """Write the help desk, index its articles, and ask its questions without and with their context."""
    from helios.augment.augmenter import open_augmenter
    from helios.augment.helpdesk import ANSWERS, ASKED, SOURCE, question_of, write_helpdesk
    from helios.engine import Engine
    from helios.sources.registry import Registry
    from indexing.pipeline import build_index
    from indexing.progress import default_progress

    console = Console(highlight=False, quiet=as_json)
    console.print("Writing a help desk (customers, products, tickets, replies) and indexing its articles ...")
    sources, articles = write_helpdesk(out)
    index = out / "index"
    build_index(articles, index, workers=1, progress=default_progress())
    found: list[dict[str, Any]] = []
    with Engine.open(index) as engine, Registry.open(sources) as registry:
        augmenter = open_augmenter(registry, SOURCE)
        for tickets in ASKED:
            title, _ = question_of(sources, tickets[0])
            plain = engine.search(title, k=3)
            console.print(Text.assemble("\n", (printable(title), "bold")), soft_wrap=True)
            console.print(Text.assemble("  nobody knows who asks    ", (_best(plain), "green")), soft_wrap=True)
            for ticket in tickets:
                _, name = question_of(sources, ticket)
                context = augmenter.of_row("tickets", ticket)
                evidence = engine.search(title, k=3, context=context)
                found.append(_result(ticket, title, name, plain, evidence, ANSWERS[ticket]))
                _print_asked(console, ticket, name, context, evidence)
    if as_json:
        typer.echo(printable(json.dumps({"asked": found, "index": str(index), "sources": str(sources)}, indent=2)))
        return
    right = sum(one["found"] == one["expected"] for one in found)
    console.print(f"\n{right} of {len(found)} tickets found the article that answers them.")
    console.print(f"\nSee what a ticket is given: helios augment show tickets 21 --source {SOURCE} --sources {sources}")
    console.print(
        f'Ask with it: helios search "{question_of(sources, 21)[0]}" --index {index} --context tickets:21 '
        f"--source {SOURCE} --sources {sources}",
        soft_wrap=True,
    )


def _result(
    ticket: int, title: str, name: str, plain: "Evidence", evidence: "Evidence", expected: str
) -> dict[str, Any]:
    passage, before = evidence.edges[0].passage, plain.edges[0].passage
    return {
        "ticket": ticket, "question": title, "customer": name, "expected": expected,
        "found": passage.passage_id if passage else None, "without_context": before.passage_id if before else None,
        "through": [match.text for match in evidence.edges[0].context],
    }  # fmt: skip


def _print_asked(console: Console, ticket: int, name: str, context: "Context", evidence: "Evidence") -> None:
    known = [text for column in context.columns if column.name in SHOWN and column.path for text in column.texts()]
    through = " and ".join(f"“{match.text}”" for match in evidence.edges[0].context[:2])
    console.print(
        Text.assemble(f"  ticket {ticket} of {printable(name)}".ljust(27), (_best(evidence), "green")), soft_wrap=True
    )
    console.print(Text(f"      known: {printable('; '.join(known))}", "dim"), soft_wrap=True)
    console.print(Text(f"      through {printable(through)}", "dim"), soft_wrap=True)


def _best(evidence: "Evidence") -> str:
    passage = evidence.edges[0].passage
    return "" if passage is None else printable(passage.title)

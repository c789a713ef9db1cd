"""`helios ask --sources`: an answer from registered sources with its rows and queries, for people and as JSON."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from helios.executors.base import NativeQuery
from helios.executors.values import plain
from helios.routing.evidence import EvidenceItem, MadeBy, OmniAnswer, SourceAnswer
from helios.terminal import escape, printable

SHOWN = 10
"""Pieces of evidence that are printed; `--json` has all."""


def ask_sources(
    question: str, registry: Path, *, k: int | None, config: Path | None, overrides: Sequence[str], as_json: bool
) -> None:
    """Ask the sources of a file and print what comes of it."""
    from helios.config import load_config
    from helios.routing.omni import OmniEngine

    with OmniEngine.open(registry, config=load_config(config, overrides)) as omni:
        answer = omni.ask(question, k=k)
        if as_json:
            typer.echo(printable(json.dumps(omni_json(answer), indent=2, ensure_ascii=False)))
        else:
            print_answer(answer, Console(highlight=False))
        sys.stdout.flush()  # a source that is late may hold up what follows


def omni_json(answer: OmniAnswer) -> dict[str, Any]:
    """An answer as plain JSON data."""
    return {
        "question": answer.question,
        "answer": None if answer.answer is None else _answer_json(answer.answer),
        "parts": [_answer_json(part) for part in answer.parts],
        "sentence": answer.sentence,
        "declined": answer.declined,
        "conflicts": [[_answer_json(one) for one in conflict.answers] for conflict in answer.conflicts],
        "evidence": [{"rank": rank} | _item_json(item) for rank, item in enumerate(answer.evidence, 1)],
        "left_out": [_item_json(item) for item in answer.left_out],
        "selection": {
            "made_by": answer.selection.made_by,
            "sources": [
                {"name": ranked.name, "probability": round(ranked.probability, 4), "reasons": list(ranked.reasons)}
                for ranked in answer.selection.sources
            ],
        },
        "sources": [
            {
                "name": reply.source, "language": str(reply.language), "milliseconds": round(reply.milliseconds, 1),
                "degraded": reply.degraded, "notes": list(reply.notes),
                "attempts": [
                    _query_json(attempt.query)
                    | {"made_by": str(attempt.made_by), "outcome": attempt.outcome or "rows",
                       "milliseconds": round(attempt.milliseconds, 1)}
                    for attempt in reply.attempts
                ],
            }
            for reply in answer.replies
        ],
        "notes": list(answer.notes), "degraded": answer.degraded,
        "calls": answer.calls,
        "tokens": answer.tokens,
        "timings_ms": {stage: round(spent, 1) for stage, spent in answer.timings_ms.items()},
    }  # fmt: skip


def print_answer(answer: OmniAnswer, console: Console) -> None:
    """For people: the answer with its query, conflicts, evidence, notes."""
    if answer.answer is None:
        console.print("[yellow]no answer[/yellow]" + ("; evidence:" if answer.evidence else ""))
    else:
        if answer.sentence:
            console.print(f"[bold]{escape(answer.sentence)}[/bold]", soft_wrap=True)
        for part in answer.parts:
            style = "" if answer.sentence else "bold"
            console.print(escape(part.text), style=style, soft_wrap=True)
            for line in (_cited(part), *part.citations):
                console.print(f"    [cyan]{escape(line)}[/cyan]", soft_wrap=True)
            if part.made_by is not MadeBy.READER:
                console.print(f"    [dim]{escape(_one_line(part.query.text))}[/dim]", soft_wrap=True)
    for conflict in answer.conflicts:
        console.print(f"    [yellow]{escape(str(conflict))}[/yellow]", soft_wrap=True)
    for rank, item in enumerate(answer.evidence[:SHOWN], 1):
        how = "keyword evidence" if item.made_by is MadeBy.KEYWORD else str(item.made_by)
        console.print(
            f"[bold]{rank:>2}[/bold]  [cyan]{escape(item.source)}[/cyan] [dim]{_rows(item)}, {how}, "
            f"{item.score:.2f}[/dim]  {escape(item.text[:300])}", soft_wrap=True,
        )  # fmt: skip
    for note in answer.notes:
        colour = "yellow" if answer.degraded else "dim"
        console.print(f"    [{colour}]{escape(note)}[/{colour}]", soft_wrap=True)


def _cited(answer: SourceAnswer) -> str:
    if answer.made_by is MadeBy.READER:
        return f"{answer.source}, by the reader ({answer.confidence:.0%})"
    match answer.rows:
        case ():
            rows = "no row"
        case (row,):
            rows = f"row {row}"
        case (first, *_, last):
            rows = f"rows {first}–{last}"
    also = f"; the same from {', '.join(answer.also)}" if answer.also else ""
    return f"{answer.source}, {rows} of the query by the {answer.made_by} ({answer.confidence:.0%}){also}"


def _rows(item: EvidenceItem) -> str:
    """Which rows of its query a piece of evidence is."""
    if not item.rows:
        return "no row"
    most = "at least " if item.truncated else ""
    return f"row {item.first_row}" if len(item.rows) == 1 else f"{most}{len(item.rows)} rows"


def _answer_json(answer: SourceAnswer) -> dict[str, Any]:
    return {
        "source": answer.source, "text": answer.text, "values": [plain(value) for value in answer.values],
        "rows": list(answer.rows), "made_by": str(answer.made_by), "confidence": round(answer.confidence, 4),
        "citations": list(answer.citations), "also": list(answer.also),
    } | _query_json(answer.query)  # fmt: skip


def _item_json(item: EvidenceItem) -> dict[str, Any]:
    return {
        "source": item.source, "text": item.text, "score": round(item.score, 4),
        "parts": {name: round(part, 4) for name, part in item.parts.items()}, "made_by": str(item.made_by),
        "columns": list(item.columns), "rows": [[plain(value) for value in row] for row in item.rows],
        "first_row": item.first_row, "row_count": item.row_count, "truncated": item.truncated,
        "also": [{"source": source} | _query_json(query) for source, query in item.also],
        "milliseconds": round(item.milliseconds, 1),
    } | _query_json(item.query)  # fmt: skip


def _query_json(query: NativeQuery) -> dict[str, Any]:
    shown: dict[str, Any] = {"language": str(query.language), "query": query.text}
    if query.parameters:
        shown["parameters"] = {name: plain(value) for name, value in query.parameters.items()}
    return shown


def _one_line(text: str) -> str:
    return " ".join(text.split())

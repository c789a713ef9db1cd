"""Measuring a linker against a corpus's own hyperlinks: recall at so many predicted edges per gold edge."""

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from helios.corpus import CorpusStore
from helios.errors import EvaluationError
from helios.models.linker.linker import TableLinker

BUDGETS = (1.0, 1.5, 2.0)
FLOOR = 0.001
"""Links below this score are not looked at."""

Edge = tuple[int, int, int]
"""Table, row, passage."""


@dataclass(frozen=True, slots=True)
class LinkingScores:
    """Quality of links on some tables. Unit: distinct (row, passage) edges unless said otherwise."""

    tables: int
    gold_edges: int
    predicted_edges: int
    edges_per_gold: float
    recall: float
    precision: float
    cell_recall: float
    """Recall of (row, column, passage) at the threshold."""
    recall_at: dict[str, float]
    """Recall when the best edges are kept, so many per gold edge."""
    threshold_at: dict[str, float]
    """The threshold that does that."""
    threshold: float
    question_edges: int = 0
    question_recall: float = 0.0
    """Share of the questions' gold edges that are predicted at the threshold."""
    question_recall_at: dict[str, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def evaluate_linker(
    store: CorpusStore,
    linker: TableLinker,
    table_ids: Sequence[str],
    *,
    questions: Path | None = None,
    threshold: float | None = None,
    advance: Callable[[int], None] = lambda tables: None,
) -> LinkingScores:
    """Link the tables with every passage of the store as candidate, and compare with their hyperlinks."""
    used = linker.linker.settings.threshold if threshold is None else threshold
    numbers = sorted(number for name in table_ids if (number := store.tables.find(name)) is not None)
    passages = {name: number for number, name in enumerate(store.passages.ids())}
    edges: dict[Edge, float] = {}
    gold: set[Edge] = set()
    gold_cells: set[tuple[int, int, int, int]] = set()
    found_cells = 0
    for number in numbers:
        table = store.tables[number]
        links = linker.link(table, threshold=min(FLOOR, used))
        cells = {
            (number, hyperlink.row, hyperlink.column, passages[hyperlink.passage_id])
            for hyperlink in table.hyperlinks
            if hyperlink.passage_id in passages
        }
        gold_cells |= cells
        gold.update((table_number, row, passage) for table_number, row, _, passage in cells)
        for row, column, passage, score in zip(
            links.rows.tolist(),
            links.columns.tolist(),
            links.passages.tolist(),
            links.scores.tolist(),
            strict=True,
        ):
            found_cells += score >= used and (number, row, column, passage) in cells
            edge = (number, row, passage)
            edges[edge] = max(score, edges.get(edge, 0.0))
        advance(1)
    if not gold:
        raise EvaluationError("the tables have no hyperlinks to known passages, so links cannot be measured")
    recall_at, threshold_at = _curve(edges, gold)
    kept = [edge for edge, score in edges.items() if score >= used]
    hits = sum(edge in gold for edge in kept)
    asked = _question_edges(store, passages, questions) if questions else []
    return LinkingScores(
        tables=len(numbers),
        gold_edges=len(gold),
        predicted_edges=len(kept),
        edges_per_gold=len(kept) / len(gold),
        recall=hits / len(gold),
        precision=hits / max(len(kept), 1),
        cell_recall=found_cells / len(gold_cells),
        recall_at=recall_at,
        threshold_at=threshold_at,
        threshold=used,
        question_edges=len(asked),
        question_recall=_share(asked, edges, used),
        question_recall_at={name: _share(asked, edges, least) for name, least in threshold_at.items()}
        if asked
        else None,
    )


def _curve(edges: dict[Edge, float], gold: set[Edge]) -> tuple[dict[str, float], dict[str, float]]:
    ranked = sorted(((score, edge in gold) for edge, score in edges.items()), reverse=True)
    recall_at, threshold_at = {}, {}
    for budget in BUDGETS:
        kept = ranked[: int(budget * len(gold))]
        recall_at[str(budget)] = sum(hit for _, hit in kept) / len(gold)
        threshold_at[str(budget)] = kept[-1][0] if kept else 1.0
    return recall_at, threshold_at


def _share(asked: list[Edge], edges: dict[Edge, float], least: float) -> float:
    return sum(edges.get(edge, -1.0) >= least for edge in asked) / len(asked) if asked else 0.0


def _question_edges(store: CorpusStore, passages: dict[str, int], path: Path) -> list[Edge]:
    """One entry per question and gold edge with a passage."""
    edges = []
    for question in _lines(path):
        table = store.tables.find(question["table"])
        for entry in question["gold"]:
            passage = passages.get(entry.get("passage") or "")
            if table is not None and passage is not None:
                edges.append((table, int(entry["cell"][0]), passage))
    return edges


def _lines(path: Path) -> Iterable[dict[str, Any]]:
    read = gzip.open if path.suffix == ".gz" else open
    with read(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)

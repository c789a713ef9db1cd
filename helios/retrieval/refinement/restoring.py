"""The whole tables behind the best stars, with what the subgraph knows of their rows (HELIOS 4.3, the mapping M)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from helios.graph import Subgraph
from helios.index.reader import IndexReader
from helios.once import once
from helios.retrieval.refinement.columns import FACT_SPAN, Kind, TypedColumn, fact_columns, typed_columns
from helios.retrieval.refinement.wording import stem, words_of
from helios.types import Table

MOST_ROWS = 2000
"""Rows of a larger table are left alone: reading its passages would take longer than the question may."""


class RestoredTable:
    """One table of the subgraph: its cells, typed columns, passages, and the scores of its rows."""

    def __init__(self, index: IndexReader, number: int, rank: int, scores: NDArray[np.float64]) -> None:
        self.number = number
        self.rank = rank
        self.scores = scores
        """Best edge score of each row (rows), NaN for rows that were not retrieved."""
        self.first_segment = int(index.corpus.segment_offsets[number])
        self._index = index

    @once
    def table(self) -> Table:
        """The table itself."""
        return self._index.corpus.tables[self.number]

    @once
    def columns(self) -> tuple[TypedColumn, ...]:
        """Typed readings of its own columns."""
        return typed_columns(self.table)

    @once
    def links(self) -> tuple[tuple[int, int, int], ...]:
        """(row, column, passage) of every link, the best of a cell first."""
        graph, size = self._index.graph, len(self.table.rows)
        rows = graph.segment_offsets[self.first_segment : self.first_segment + size + 1]
        edges = slice(int(rows[0]), int(rows[-1]))
        starts = graph.link_offsets[edges.start : edges.stop + 1]
        links = slice(int(starts[0]), int(starts[-1]))
        counts = np.diff(starts)
        row = np.repeat(np.repeat(np.arange(size), np.diff(rows)), counts).tolist()
        passage = np.repeat(graph.edge_passages[edges], counts).tolist()
        score = (-graph.link_scores[links].astype(np.float64)).tolist()
        found = sorted(zip(row, graph.link_columns[links].tolist(), score, passage, strict=True))
        return tuple((row, column, passage) for row, column, _, passage in found)

    @once
    def openings(self) -> dict[int, str]:
        """The first characters of every linked passage, by its number."""
        return {p: self._index.corpus.passages[p].text[:FACT_SPAN] for p in sorted({link[2] for link in self.links})}

    def facts(self, kinds: tuple[Kind, ...]) -> tuple[TypedColumn, ...]:
        """Columns of facts that the linked passages state."""
        linked = ((row, column, self.openings[passage]) for row, column, passage in self.links)
        return fact_columns(self.table, linked, kinds)

    @once
    def cell_words(self) -> list[frozenset[str]]:
        """Stems in the cells of every row."""
        return [frozenset(stem(word) for cell in row for word in words_of(cell)) for row in self.table.rows]

    @once
    def row_words(self) -> list[frozenset[str]]:
        """Stems in the cells and in the linked passages of every row."""
        texts = {passage: frozenset(map(stem, set(words_of(text)))) for passage, text in self.openings.items()}
        linked: list[set[str]] = [set(words) for words in self.cell_words]
        for row, _, passage in self.links:
            linked[row] |= texts[passage]
        return [frozenset(words) for words in linked]

    @once
    def title_words(self) -> frozenset[str]:
        """Stems in the titles and the header."""
        table = self.table
        return frozenset(stem(w) for text in (table.title, table.section, *table.header) for w in words_of(text))


def restore(index: IndexReader, subgraph: Subgraph, *, count: int) -> Iterator[RestoredTable]:
    """The first `count` tables in the order of their best edge."""
    corpus = index.corpus
    found: dict[int, dict[int, float]] = {}
    for scored in subgraph.edges:
        if scored.edge.segment is None:
            continue
        table = corpus.table_of(scored.edge.segment)
        if table in found or len(found) < count:
            row = scored.edge.segment - int(corpus.segment_offsets[table])
            found.setdefault(table, {}).setdefault(row, scored.score)
    for rank, (table, rows) in enumerate(found.items()):
        size = int(corpus.segment_offsets[table + 1] - corpus.segment_offsets[table])
        if size <= MOST_ROWS:
            scores = np.full(size, np.nan)
            scores[list(rows)] = list(rows.values())
            yield RestoredTable(index, table, rank, scores)

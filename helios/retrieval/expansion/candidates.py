"""Pairs of rows and passages that the data graph lacks: which ones to look at, and what the pair model sees of them.

Rows are the best of the subgraph and all rows of its best tables. A row's candidates are the passages whose titles
its cells hold best, helped by the question, the table's titles and header, and titles that the table's other rows are
linked to; and the best passages of the subgraph.

What is near to a row is found by words and not by encoding [q; Γ(u)] (HELIOS 4.2): of 158 gold passages that the graph
did not link to a row of a good table, 77 were among the first 20 passages by BM25 of [q; Γ(u)], 109 with the words of
titles counted too, and 20 by the MaxSim that question and row reach together (train questions).

Shape legend: C pairs, R rows, U nodes, Q question tokens, T question terms, P passages, V title terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.graph import Subgraph
from helios.index.languages import Analysis
from helios.index.lexical import term_hash
from helios.index.products import weighted_sums
from helios.index.reader import IndexReader
from helios.index.titles import TitleTerms
from helios.retrieval.expansion.kernels import (
    CONTEXT,
    KNOWN_WEIGHT,
    QUESTION,
    SIBLING,
    TITLE_FEATURES,
    RowWords,
    Scratch,
    Titles,
    WordPassages,
    best_of_linked,
    describe_titles,
    near_passages,
)
from helios.retrieval.expansion.seeds import Seeds, looked_up
from helios.retrieval.state import SearchState

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
PAIR_FEATURES = (
    # the seeds
    "row_score", "row_rank", "table_score", "table_rank", "passage_score", "passage_rank", "row_below_table",
    # the passage's title against row, question and table
    *TITLE_FEATURES, "column_from_start",
    # the graph around
    "siblings", "sibling_share", "passage_degree", "row_degree", "links_of_cell", "column_linked", "table_rows",
    # MaxSim from centroids
    "maxsim", "row_maxsim", "passage_maxsim", "gain", "over_linked", "maxsim_rank",
    # question terms
    "terms_in_row", "terms_in_passage", "terms_added", "terms_over_linked",
    # BM25 of row and question against the passage
    "near", "near_below_row", "near_rank", "lexical_row", "lexical_question",
)  # fmt: skip
COMMON = 0.02
"""Words that a larger share of all nodes holds say nothing about a link."""
MIN_COMMON = 100
KEPT_ROWS = 400
"""Rows of a table up to which its words are kept for the next question."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePairs:
    """Candidate pairs with their features: rows and passages (C), features (C, len(PAIR_FEATURES))."""

    rows: IntArray
    passages: IntArray
    features: FloatArray

    @classmethod
    def none(cls) -> "CandidatePairs":
        """No pair."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, len(PAIR_FEATURES)), np.float32))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far candidates are looked for."""

    rows: int = 16
    """Best rows of the subgraph."""
    tables: int = 6
    """Best tables of the subgraph, all of whose rows are begun from."""
    within: float = 3.0
    """Log-odds below the best row up to which rows and tables are begun from."""
    table_rows: int = 60
    """Rows of a table at most, those that hold most of the question's words."""
    passages: int = 10
    """Best passages of the subgraph, candidates of its best rows."""
    near: int = 50
    """Passages nearest to a row and the question together."""


def find_pairs(state: SearchState, seeds: Seeds, reach: Reach) -> CandidatePairs:
    """Pairs from the seeds that are not in the state's subgraph, with features; none for seeds without rows."""
    return _Finder(state, seeds, reach).find()


@dataclass(frozen=True, slots=True, eq=False)
class TableCells:
    """Distinct words of every cell of some rows: where each row's begin (R + 1), their hashes and columns (W)."""

    starts: IntArray
    hashes: NDArray[np.uint64]
    columns: IntArray


def table_cells(index: IndexReader, table: int, rows: IntArray) -> TableCells:
    """The words of some rows of a table; those of a table that is not large are kept for the next question."""
    first, last = (int(n) for n in index.corpus.segment_offsets[table : table + 2])
    analysis = index.postings.analysis
    if last - first > KEPT_ROWS:
        return _read_cells([index.corpus.segment(row).cells for row in rows.tolist()], analysis)
    whole = index.remembered("table cells", table, lambda: _read_cells(index.corpus.tables[table].rows, analysis))
    begins, ends = whole.starts[rows - first], whole.starts[rows - first + 1]
    sizes = ends - begins
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    picked = np.repeat(begins - starts[:-1], sizes) + np.arange(starts[-1])
    return TableCells(starts, whole.hashes[picked], whole.columns[picked])


def _read_cells(rows: Sequence[Sequence[str]], analysis: Analysis) -> TableCells:
    hashes: list[int] = []
    columns: list[int] = []
    starts = [0]
    for row in rows:
        for column, cell in enumerate(row):
            own = dict.fromkeys(analysis.terms(cell))
            hashes.extend(map(term_hash, own))
            columns.extend([column] * len(own))
        starts.append(len(hashes))
    return TableCells(np.array(starts, np.int64), np.array(hashes, np.uint64), np.array(columns, np.int64))


class _Finder:
    """The search for pairs of one question."""

    def __init__(self, state: SearchState, seeds: Seeds, reach: Reach) -> None:
        self.state, self.seeds, self.reach = state, seeds, reach
        self.index, self.query = state.index, state.query
        self.titles: TitleTerms = self.index.titles
        self.common = int(COMMON * self.index.statistics.node_count) + MIN_COMMON
        fusion = state.search.fusion
        self.k1 = np.float32(fusion.k1)
        self.norms_P = self.index.postings.passage_norms(fusion.k1, fusion.b)
        self.analysis = self.index.postings.analysis
        asked = dict.fromkeys(self.analysis.terms(state.question))
        self.asked_hashes = np.array([term_hash(term) for term in asked], np.uint64)
        numbers = self.titles.numbers_of(self.asked_hashes)
        self.asked_numbers = np.sort(numbers[numbers >= 0])
        self.lexical_P = self.index.postings.passage_bm25(self.query.terms, k1=fusion.k1, b=fusion.b, most=self.common)
        base_P = self.lexical_P + np.float32(KNOWN_WEIGHT) * self.titles.cover(self.asked_numbers)
        self.best = np.array(list(seeds.passages)[: reach.passages], np.int64)
        self.least = max(seeds.rows.values(), default=0.0) - reach.within
        near = [row for row, score in seeds.rows.items() if score >= self.least]
        self.leading = np.array(near[: reach.rows], np.int64)
        self.scratch = Scratch.of(base_P, self.titles.term_count)
        self.titles_of = Titles(
            self.titles.starts, self.titles.terms, self.titles.shares, self.titles.numeric, self.titles.offsets,
            self.titles.holders, self.titles.holder_shares,
        )  # fmt: skip

    def find(self) -> CandidatePairs:
        found = [self._of_table(table, rows) for table, rows in self._rows().items()]
        if not found:
            return CandidatePairs.none()
        rows, passages, near, beside = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        fresh = self._fresh(rows, passages)
        rows, passages, near, beside = rows[fresh], passages[fresh], near[fresh], beside[fresh]
        if not len(rows):
            return CandidatePairs.none()
        columns = [
            *self._seed_features(rows, passages), beside, *self._match_features(rows, passages),
            near[:, 0], near[:, 1], near[:, 2], near[:, 3], self.lexical_P[passages],
        ]  # fmt: skip
        return CandidatePairs(rows, passages, np.column_stack(columns).astype(np.float32))

    def _rows(self) -> dict[int, IntArray]:
        """The rows to begin from, by table, each ascending."""
        offsets, reach = self.index.corpus.segment_offsets, self.reach
        rows: dict[int, set[int]] = {}
        for row in self.leading.tolist():
            rows.setdefault(self.index.corpus.table_of(row), set()).add(row)
        for table in [table for table, score in self.seeds.tables.items() if score >= self.least][: reach.tables]:
            members = np.arange(offsets[table], offsets[table + 1])
            if len(members) > reach.table_rows:
                held = weighted_sums(self.index.postings.counts(self.query.terms, members) > 0, self.query.terms.idf_T)
                members = members[np.argsort(-held, kind="stable")[: reach.table_rows]]
            rows.setdefault(table, set()).update(members.tolist())
        return {table: np.array(sorted(chosen), np.int64) for table, chosen in rows.items()}

    def _of_table(self, table: int, rows: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Candidates of some rows of a table, how near they are, and what titles and graph say of them."""
        graph = self.index.graph
        first, last = (int(n) for n in self.index.corpus.segment_offsets[table : table + 2])
        linked = graph.edge_passages[graph.segment_offsets[first] : graph.segment_offsets[last]]
        siblings, sibling_counts = np.unique(linked, return_counts=True)
        context = self._context(table, siblings)
        words, passages_of = self._words(table_cells(self.index, table, rows))
        leading = np.isin(rows, self.leading)
        at, passages, ranks, scores, lexical = near_passages(
            words, passages_of, self.titles_of, self.scratch, context, self.norms_P, self.k1, self.reach.near, leading,
            self.best,
        )  # fmt: skip
        described = np.empty((len(at), len(TITLE_FEATURES)), np.float32)
        columns = np.empty(len(at), np.int64)
        describe_titles(at, passages, words, self.titles_of, self.scratch, described, columns)
        self.scratch.known_V[context] = 0
        self.scratch.known_V[self.asked_numbers] = 0
        around = self._around(first, last, rows[at], passages, columns, siblings, sibling_counts)
        best = np.full(len(rows), -np.inf, np.float32)
        np.maximum.at(best, at, scores)
        near = np.column_stack([scores, scores - best[at], ranks, lexical]).astype(np.float32)
        return rows[at], passages, near, np.column_stack([described, *around]).astype(np.float32)

    def _context(self, table: int, siblings: NDArray[np.int32]) -> NDArray[np.int32]:
        """Mark where each title term is known from; returns those known from the table and not from the question."""
        titles, known_V = self.titles, self.scratch.known_V
        record = self.index.corpus.tables[table]
        text = f"{record.title} {record.section} {' '.join(record.header)}"
        named = titles.numbers(dict.fromkeys(self.analysis.terms(text)))
        named = named[named >= 0]
        starts, ends = titles.starts[siblings], titles.starts[siblings + 1]
        sizes = ends - starts
        places = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        repeated, counts = np.unique(titles.terms[places], return_counts=True)
        repeated = repeated[counts > 1]
        known_V[repeated] |= SIBLING
        known_V[named] |= CONTEXT
        beside = np.setdiff1d(np.union1d(repeated, named), self.asked_numbers)
        known_V[self.asked_numbers] |= QUESTION
        return beside.astype(np.int32)

    def _words(self, cells: TableCells) -> tuple[RowWords, WordPassages]:
        """Words of rows by numbers, and where the passages are that hold each distinct one (X)."""
        distinct, numbers = np.unique(cells.hashes, return_inverse=True)
        spans = self.index.postings.passages_with(distinct, most=self.common)
        last = np.where(np.isin(distinct, self.asked_hashes), spans.first, spans.last)
        titles = self.titles.numbers_of(distinct)[numbers]
        words = RowWords(cells.starts, titles, numbers.astype(np.int64), cells.columns)
        idf = self.index.statistics.idf(distinct)
        return words, WordPassages(spans.first, last, idf, spans.passages, spans.counts, np.int64(spans.shift))

    def _fresh(self, rows: IntArray, passages: IntArray) -> NDArray[np.bool_]:
        """Which pairs are neither linked nor in the subgraph."""
        graph, subgraph = self.index.graph, self.state.subgraph
        count = np.int64(graph.passage_count)
        linked = [row * count + graph.passages_of(row).astype(np.int64) for row in np.unique(rows).tolist()]
        return ~np.isin(rows * count + passages, np.concatenate([*linked, _held(subgraph, int(count))]))

    def _around(
        self, first: int, last: int, rows: IntArray, passages: IntArray, columns: IntArray,
        siblings: NDArray[np.int32], sibling_counts: IntArray,
    ) -> list[NDArray[np.generic]]:  # fmt: skip
        """What the links of the table and of the passage say."""
        graph = self.index.graph
        places = np.minimum(np.searchsorted(siblings, passages), max(len(siblings) - 1, 0))
        is_sibling = siblings[places] == passages if len(siblings) else np.zeros(len(passages), bool)
        shared = np.where(is_sibling, sibling_counts[places] if len(siblings) else 0, 0)
        edges = slice(int(graph.segment_offsets[first]), int(graph.segment_offsets[last]))
        links = graph.link_offsets[edges.start : edges.stop + 1]
        owners = np.repeat(graph.edge_segments[edges], np.diff(links)) - first
        cells = np.zeros((last - first, 65), np.int64)
        np.add.at(cells, (owners, np.minimum(graph.link_columns[links[0] : links[-1]], 64)), 1)
        filled = (cells > 0).mean(axis=0)
        return [
            columns, shared, shared / (last - first),
            graph.passage_offsets[passages + 1] - graph.passage_offsets[passages],
            graph.segment_offsets[rows + 1] - graph.segment_offsets[rows],
            np.where(columns >= 0, cells[rows - first, columns], -1), np.where(columns >= 0, filled[columns], -1.0),
            np.full(len(rows), last - first),
        ]  # fmt: skip

    def _seed_features(self, rows: IntArray, passages: IntArray) -> list[NDArray[np.generic]]:
        tables = np.searchsorted(self.index.corpus.segment_offsets, rows, side="right") - 1
        row_score, row_rank = looked_up(rows, self.seeds.rows)
        table_score, table_rank = looked_up(tables, self.seeds.tables)
        return [row_score, row_rank, table_score, table_rank, *looked_up(passages, self.seeds.passages),
                row_score - table_score]  # fmt: skip

    def _match_features(self, rows: IntArray, passages: IntArray) -> list[NDArray[np.generic]]:
        """MaxSim and question terms of row, passage and both, and what they add to the row's linked passages."""
        graph, segments = self.index.graph, self.index.segment_count
        found, terms = self.state.found.bounds, self.query.terms
        distinct, row_places = np.unique(rows, return_inverse=True)
        linked = [graph.passages_of(row).astype(np.int64) + segments for row in distinct.tolist()]
        nodes = np.unique(np.concatenate([distinct, passages + segments, *linked]))
        left, right = np.searchsorted(nodes, rows), np.searchsorted(nodes, passages + segments)
        bounds_UQ, step = found.bounds_NQ[nodes], found.step
        held_UT = self.index.postings.counts(terms, nodes) > 0
        idf_T = terms.idf_T / max(float(terms.idf_T.sum()), 1e-6)
        alone = bounds_UQ.sum(axis=1, dtype=np.int32) * step
        both = np.maximum(bounds_UQ[left], bounds_UQ[right]).sum(axis=1, dtype=np.int32) * step
        terms_alone, terms_both = weighted_sums(held_UT, idf_T), weighted_sums(held_UT[left] | held_UT[right], idf_T)
        starts = np.cumsum([0, *map(len, linked)])
        members = np.searchsorted(nodes, np.concatenate(linked)) if linked else np.zeros(0, np.int64)
        best_linked, terms_linked = best_of_linked(
            np.searchsorted(nodes, distinct), starts, members, bounds_UQ, held_UT, idf_T.astype(np.float64)
        )
        best_linked *= step
        return [
            both - both.max(), alone[left] - alone[left].max(), alone[right] - alone[right].max(), both - alone[left],
            both - best_linked[row_places], np.argsort(np.argsort(-both, kind="stable")),
            terms_alone[left], terms_alone[right], terms_both - terms_alone[left],
            terms_both - terms_linked[row_places],
        ]  # fmt: skip


def _held(subgraph: Subgraph, passages: int) -> IntArray:
    """The linked pairs of a subgraph as single numbers."""
    whole = (scored.edge for scored in subgraph.edges)
    return np.array(
        [
            edge.segment * passages + edge.passage
            for edge in whole
            if edge.segment is not None and edge.passage is not None
        ],
        np.int64,
    )

"""Pairs of rows and passages that the data graph lacks: which ones to look at, and what the pair model sees of them.

Rows are the best of the subgraph and all rows of its best tables. A row's candidates are the passages whose titles
its cells hold best, helped by the question, the table's titles and header, and titles that the table's other rows are
linked to; and the best passages of the subgraph.

Shape legend: C pairs, R rows, U nodes, Q question tokens, T question terms, P passages, V title terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.graph import Subgraph
from helios.index.lexical import terms_of
from helios.index.search import Query
from helios.retrieval.pairing import (
    CONTEXT,
    KNOWN_WEIGHT,
    QUESTION,
    SIBLING,
    TITLE_FEATURES,
    describe_titles,
    near_passages,
)
from helios.retrieval.part import SearchPart

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
UNSEEN = -12.0
"""Log-odds of a node that the subgraph does not have."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidate pairs with their features: rows and passages (C), features (C, len(PAIR_FEATURES))."""

    rows: IntArray
    passages: IntArray
    features: FloatArray

    @classmethod
    def none(cls) -> "Pairs":
        """No pair."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, len(PAIR_FEATURES)), np.float32))


@dataclass(frozen=True, slots=True)
class Seeds:
    """What expansion begins from: scores of rows, tables and passages, best first."""

    rows: dict[int, float]
    tables: dict[int, float]
    passages: dict[int, float]

    @classmethod
    def of(cls, part: SearchPart, nodes: IntArray, scores: FloatArray) -> "Seeds":
        """Nodes by their scores; a table is as good as its best row."""
        segments = part.graph.segment_count
        rows: dict[int, float] = {}
        tables: dict[int, float] = {}
        passages: dict[int, float] = {}
        for n in np.lexsort((nodes, -scores)).tolist():
            node, score = int(nodes[n]), float(scores[n])
            if node < segments:
                rows[node] = score
                tables.setdefault(part.corpus.table_of(node), score)
            else:
                passages[node - segments] = score
        return cls(rows, tables, passages)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far candidates are looked for."""

    rows: int = 16
    """Best rows of the subgraph."""
    tables: int = 6
    """Best tables of the subgraph, all of whose rows are begun from."""
    table_rows: int = 60
    """Rows of a table at most, those that hold most of the question's words."""
    passages: int = 10
    """Best passages of the subgraph, candidates of its best rows."""
    near: int = 50
    """Passages nearest to a row and the question together."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the question says: its terms, their numbers among the terms of titles, BM25 of every passage (P), and
    that with the share of titles that the question holds (P).
    """

    terms: frozenset[str]
    numbers: NDArray[np.int32]
    lexical_P: FloatArray
    base_P: FloatArray
    best: IntArray
    """The subgraph's best passages."""


@dataclass(frozen=True, slots=True)
class _Words:
    """Words of the cells of some rows: where each row's begin (R + 1), and of each word its number among the terms of
    titles (-1: in none), its number among the distinct words X, and its column (W); postings and rarity (X).
    """

    starts: IntArray
    titles: NDArray[np.int32]
    numbers: IntArray
    cells: IntArray
    first: IntArray
    last: IntArray
    idf: FloatArray


class PairFinder:
    """Candidate pairs of one part; holds no state of a question, so threads may share it."""

    def __init__(self, part: SearchPart, reach: Reach) -> None:
        self.part = part
        self.titles = part.titles
        self.reach = reach
        postings, search, segments = part.postings, part.search, part.graph.segment_count
        self._common = int(COMMON * part.tokens.node_count) + MIN_COMMON
        lengths = np.asarray(postings.lengths[segments:], np.float32)
        mean = max(1.0, float(lengths.mean()) if len(lengths) else 1.0)
        self._norm_P = np.asarray(search.k1 * (1.0 - search.b + search.b * lengths / mean), np.float32)

    def find(self, query: Query, seeds: Seeds, subgraph: Subgraph) -> Pairs:
        """Pairs from the seeds that are not in the subgraph, with features; none for seeds without rows."""
        asked = self._asked(query, seeds)
        found = [self._of_table(table, rows, asked, seeds) for table, rows in self._rows(query, seeds).items()]
        if not found:
            return Pairs.none()
        rows, passages, near, beside = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        fresh = self._fresh(rows, passages, subgraph)
        rows, passages, near, beside = rows[fresh], passages[fresh], near[fresh], beside[fresh]
        if not len(rows):
            return Pairs.none()
        columns = [
            *self._seed_features(rows, passages, seeds), beside, *self._match_features(query, rows, passages),
            near[:, 0], near[:, 1], near[:, 2], near[:, 3], asked.lexical_P[passages],
        ]  # fmt: skip
        return Pairs(rows, passages, np.column_stack(columns).astype(np.float32))

    def _asked(self, query: Query, seeds: Seeds) -> _Asked:
        terms = frozenset(terms_of(query.text))
        numbers = self.titles.numbers(terms)
        numbers = np.sort(numbers[numbers >= 0])
        postings, search, segments = self.part.postings, self.part.search, self.part.graph.segment_count
        lexical = postings.node_scores(
            sorted(terms), segments, self.part.tokens.node_count, k1=search.k1, b=search.b, common=self._common
        )
        base = lexical + np.float32(KNOWN_WEIGHT) * self.titles.cover(numbers)
        best = np.array(list(seeds.passages)[: self.reach.passages], np.int64)
        return _Asked(terms, numbers, lexical, base, best)

    def _rows(self, query: Query, seeds: Seeds) -> dict[int, IntArray]:
        """The rows to begin from, by table, each ascending."""
        offsets, reach = self.part.corpus.segment_offsets, self.reach
        rows: dict[int, set[int]] = {}
        for row in list(seeds.rows)[: reach.rows]:
            rows.setdefault(self.part.corpus.table_of(row), set()).add(row)
        for table in list(seeds.tables)[: reach.tables]:
            members = np.arange(offsets[table], offsets[table + 1])
            if len(members) > reach.table_rows:
                found = self.part.postings.term_counts(query.text, members)
                held = (found.counts_UT > 0) @ found.idf_T
                members = members[np.argsort(-held, kind="stable")[: reach.table_rows]]
            rows.setdefault(table, set()).update(members.tolist())
        return {table: np.array(sorted(chosen), np.int64) for table, chosen in rows.items()}

    def _of_table(
        self, table: int, rows: IntArray, asked: _Asked, seeds: Seeds
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Candidates of some rows of a table, how near they are, and what titles and graph say of them."""
        graph, titles, postings = self.part.graph, self.titles, self.part.postings
        first, last = (int(n) for n in self.part.corpus.segment_offsets[table : table + 2])
        record = self.part.corpus.tables[table]
        linked = graph.edge_passages[graph.segment_offsets[first] : graph.segment_offsets[last]]
        siblings, sibling_counts = np.unique(linked, return_counts=True)
        known_V, base_P = self._context(f"{record.title} {record.section} {' '.join(record.header)}", siblings, asked)
        words = self._words([record.rows[row - first] for row in rows], asked)
        leading = np.isin(rows, list(seeds.rows)[: self.reach.rows])
        at, passages, ranks, scores, lexical = near_passages(
            words.starts, words.titles, words.numbers, titles.offsets, titles.holders, titles.holder_shares, known_V,
            words.first, words.last, words.idf, postings.nodes, postings.counts, self._norm_P, graph.segment_count,
            base_P, np.float32(self.part.search.k1), self.reach.near, leading, asked.best,
        )  # fmt: skip
        described = np.empty((len(at), len(TITLE_FEATURES)), np.float32)
        columns = np.empty(len(at), np.int64)
        describe_titles(
            at, passages, words.starts, words.titles, words.cells, titles.starts, titles.terms, titles.shares,
            titles.numeric, known_V, described, columns,
        )  # fmt: skip
        around = self._around(first, last, rows[at], passages, columns, siblings, sibling_counts)
        best = np.full(len(rows), -np.inf, np.float32)
        np.maximum.at(best, at, scores)
        near = np.column_stack([scores, scores - best[at], ranks, lexical]).astype(np.float32)
        return rows[at], passages, near, np.column_stack([described, *around]).astype(np.float32)

    def _context(self, text: str, siblings: NDArray[np.int32], asked: _Asked) -> tuple[NDArray[np.uint8], FloatArray]:
        """Where each title term is known from (V), and what speaks for each passage whatever the row (P)."""
        titles = self.titles
        known_V = np.zeros(titles.term_count, np.uint8)
        context = titles.numbers(dict.fromkeys(terms_of(text)))
        spans = [titles.terms[titles.starts[p] : titles.starts[p + 1]] for p in siblings]
        repeated, counts = np.unique(np.concatenate(spans) if spans else np.zeros(0, np.int32), return_counts=True)
        known_V[repeated[counts > 1]] |= SIBLING
        known_V[context[context >= 0]] |= CONTEXT
        beside = known_V > 0
        beside[asked.numbers] = False
        known_V[asked.numbers] |= QUESTION
        return known_V, asked.base_P + np.float32(KNOWN_WEIGHT) * titles.cover(np.flatnonzero(beside).astype(np.int32))

    def _words(self, rows: Sequence[Sequence[str]], asked: _Asked) -> "_Words":
        """Distinct words of every cell of every row, and where the passages that hold them are."""
        words: list[str] = []
        cells: list[int] = []
        starts = [0]
        for row in rows:
            for column, cell in enumerate(row):
                own = dict.fromkeys(terms_of(cell))
                words.extend(own)
                cells.extend([column] * len(own))
            starts.append(len(words))
        distinct = {word: number for number, word in enumerate(dict.fromkeys(words))}
        numbers = np.array([distinct[word] for word in words], np.int64)
        first, last, idf = self.part.postings.spans(
            list(distinct), self.part.graph.segment_count, self.part.tokens.node_count
        )
        silent = (last - first > self._common) | np.array([word in asked.terms for word in distinct], bool)
        last = np.where(silent, first, last)
        titles = self.titles.numbers(distinct)[numbers] if distinct else np.zeros(0, np.int32)
        return _Words(np.array(starts, np.int64), titles, numbers, np.array(cells, np.int64), first, last, idf)

    def _fresh(self, rows: IntArray, passages: IntArray, subgraph: Subgraph) -> NDArray[np.bool_]:
        """Which pairs are neither linked nor in the subgraph nor of a deleted node."""
        graph, deleted = self.part.graph, self.part.deleted
        count = np.int64(graph.passage_count)
        linked = [
            row * count + graph.edge_passages[graph.segment_offsets[row] : graph.segment_offsets[row + 1]]
            for row in np.unique(rows)
        ]
        held = [
            scored.edge.segment * graph.passage_count + scored.edge.passage
            for scored in subgraph.edges
            if scored.edge.segment is not None and scored.edge.passage is not None
        ]
        known = np.isin(rows * count + passages, np.concatenate([*linked, np.array(held, np.int64)]))
        return ~known & ~np.isin(rows, deleted) & ~np.isin(passages + graph.segment_count, deleted)

    def _around(
        self, first: int, last: int, rows: IntArray, passages: IntArray, columns: IntArray,
        siblings: NDArray[np.int32], sibling_counts: IntArray,
    ) -> list[NDArray[np.generic]]:  # fmt: skip
        """What the links of the table and of the passage say."""
        graph = self.part.graph
        places = np.minimum(np.searchsorted(siblings, passages), max(len(siblings) - 1, 0))
        is_sibling = siblings[places] == passages if len(siblings) else np.zeros(len(passages), bool)
        shared = np.where(is_sibling, sibling_counts[places] if len(siblings) else 0, 0)
        edges = slice(int(graph.segment_offsets[first]), int(graph.segment_offsets[last]))
        links = graph.link_offsets[edges.start : edges.stop + 1]
        owners = np.repeat(graph.edge_segments[edges], np.diff(links)) - first
        cells = np.zeros((last - first, 65), np.int64)
        np.add.at(cells, (owners, np.minimum(graph.link_columns[links[0] : links[-1]], 64)), 1)
        filled = (cells > 0).mean(axis=0)
        degrees = np.diff(graph.passage_offsets)
        return [
            columns, shared, shared / (last - first), degrees[passages],
            graph.segment_offsets[rows + 1] - graph.segment_offsets[rows],
            np.where(columns >= 0, cells[rows - first, columns], -1), np.where(columns >= 0, filled[columns], -1.0),
            np.full(len(rows), last - first),
        ]  # fmt: skip

    def _seed_features(self, rows: IntArray, passages: IntArray, seeds: Seeds) -> list[NDArray[np.generic]]:
        tables = np.searchsorted(self.part.corpus.segment_offsets, rows, side="right") - 1
        row_score, row_rank = _looked_up(rows, seeds.rows)
        table_score, table_rank = _looked_up(tables, seeds.tables)
        return [row_score, row_rank, table_score, table_rank, *_looked_up(passages, seeds.passages),
                row_score - table_score]  # fmt: skip

    def _match_features(self, query: Query, rows: IntArray, passages: IntArray) -> list[NDArray[np.generic]]:
        """MaxSim and question terms of row, passage and both, and what they add to the row's linked passages."""
        graph, segments = self.part.graph, self.part.graph.segment_count
        distinct, row_places = np.unique(rows, return_inverse=True)
        linked = [graph.edge_passages[graph.segment_offsets[r] : graph.segment_offsets[r + 1]] for r in distinct]
        nodes = np.unique(np.concatenate([distinct, passages + segments, *[one + segments for one in linked]]))
        left, right = np.searchsorted(nodes, rows), np.searchsorted(nodes, passages + segments)
        bounds_UQ, step = self.part.search.bounds_of(query, nodes)
        found = self.part.postings.term_counts(query.text, nodes)
        held_UT, idf_T = found.counts_UT > 0, found.idf_T / max(float(found.idf_T.sum()), 1e-6)
        alone = bounds_UQ.sum(axis=1, dtype=np.int32) * step
        both = np.maximum(bounds_UQ[left], bounds_UQ[right]).sum(axis=1, dtype=np.int32) * step
        terms = (held_UT[left] | held_UT[right]) @ idf_T
        best_linked, terms_linked = np.zeros(len(distinct)), np.zeros(len(distinct))
        for i, (row, own) in enumerate(zip(np.searchsorted(nodes, distinct), linked, strict=True)):
            at = np.append(np.searchsorted(nodes, own + segments), row)
            best_linked[i] = np.maximum(bounds_UQ[at], bounds_UQ[row]).sum(axis=1, dtype=np.int32).max() * step
            terms_linked[i] = ((held_UT[at] | held_UT[row]) @ idf_T).max()
        return [
            both - both.max(), alone[left] - alone[left].max(), alone[right] - alone[right].max(), both - alone[left],
            both - best_linked[row_places], np.argsort(np.argsort(-both, kind="stable")),
            held_UT[left] @ idf_T, held_UT[right] @ idf_T, terms - held_UT[left] @ idf_T,
            terms - terms_linked[row_places],
        ]  # fmt: skip


def _looked_up(numbers: IntArray, scores: dict[int, float]) -> tuple[FloatArray, IntArray]:
    """The score and the rank of each node, those of unknown ones below all others."""
    ranks = {number: rank for rank, number in enumerate(scores)}
    distinct, places = np.unique(numbers, return_inverse=True)
    found = np.array([scores.get(int(n), UNSEEN) for n in distinct], np.float32)
    order = np.array([ranks.get(int(n), 2 * len(ranks)) for n in distinct], np.int64)
    return found[places], order[places]

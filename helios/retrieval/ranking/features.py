"""What the learned ranking sees of an edge: its scores beside those of its rivals, words matched, place in its table.

Everything comes from what the search already holds (vectors, postings, graph) and from the texts of the edges that
are ranked. Most features compare an edge with the other edges of its question, its table, its row or its passage, so
that they mean the same on another corpus.

Shape legend: C edges of one question, U their distinct nodes, Q question tokens, T question terms.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from helios.errors import IndexFormatError
from helios.index.products import weighted_sums
from helios.index.reader import IndexReader
from helios.index.search import NodeMaxima, Pairs, PairScores, places_in
from helios.index.visible import Query
from helios.retrieval.ranking.words import Asked, PassageWords, RowWords, passage_words, row_words

FloatArray = NDArray[np.float32]
Numbers = NDArray[np.int64]
FEATURES = (
    # scores, as distances to the best of the question
    "maxsim", "segment", "star", "lexical", "fused", "maxsim_over_segment", "star_over_maxsim", "rank",
    # against rivals
    "below_table", "table_below_best", "below_row", "row_below_table", "below_passage",
    "edges_of_table", "edges_of_row", "edges_of_passage", "segment_below_table", "star_below_table",
    "maxsim_below_row", "lexical_below_table",
    # the graph
    "row_degree", "passage_degree", "link_score", "link_count", "link_column", "row_alone", "passage_alone",
    # question terms, weighted by rarity
    "terms_in_row", "terms_in_passage", "terms_in_edge", "rarest_missing", "numbers_in_row", "numbers_in_passage",
    "terms_below_table", "passage_adds_terms", "terms_in_star", "star_terms_below_table", "star_adds_terms",
    # question tokens
    "tokens_in_row", "tokens_in_passage", "tokens_in_edge", "weakest_token",
    # wording
    "cells_in_question", "longest_cell_in_question", "linked_cell_in_question", "title_in_question", "title_overlap",
    "table_title_overlap",
    # place
    "row_from_start", "row_from_end", "table_rows", "superlative", "question_terms", "question_kind",
    "dates_in_passage", "numbers_of_passage", "passage_is_person", "passage_is_place",
    "asked_in_passage", "asked_in_linked_header", "asked_in_header",
)  # fmt: skip
GRAPH = 7
"""So many of them are the graph's."""
MATCHED = 0.7
"""Cosine above which a question token counts as found."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """What features need of nodes (U, ascending): how often each question term stands in them, and of rows (R,
    ascending) which terms stand anywhere in their stars.
    """

    asked: Asked
    nodes: Numbers
    counts_UT: NDArray[np.uint8]
    rows: Numbers
    stars_RT: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"NodeFacts({len(self.nodes)} nodes, {len(self.rows)} rows)"

    @classmethod
    def of(cls, query: Query) -> "NodeFacts":
        """Those of no node."""
        terms = len(query.terms.terms)
        none = np.zeros(0, np.int64)
        return cls(Asked.of(query.text), none, np.zeros((0, terms), np.uint8), none, np.zeros((0, terms), bool))

    def including(self, index: IndexReader, query: Query, pairs: Pairs) -> "NodeFacts":
        """With those of the nodes of some pairs; what is known is not looked up again."""
        nodes = pairs.nodes(index.node_count)
        missing = nodes[places_in(self.nodes, nodes) < 0]
        if not len(missing):
            return self
        known, order = _merged(self.nodes, missing)
        counts = np.concatenate([self.counts_UT, index.postings.counts(query.terms, missing)])[order]
        new_rows = missing[missing < index.segment_count]
        rows, row_order = _merged(self.rows, new_rows)
        stars = np.concatenate([self.stars_RT, _terms_of_stars(index, query, new_rows)])[row_order]
        return replace(self, nodes=known, counts_UT=counts, rows=rows, stars_RT=stars)


def edge_features(
    index: IndexReader, query: Query, facts: NodeFacts, maxima: NodeMaxima, pairs: Pairs, scores: PairScores,
    own: NDArray[np.float64],
) -> FloatArray:  # fmt: skip
    """Features (C, len(FEATURES)) of pairs among each other, of whose nodes facts and maxima are known.

    `own` is what `own_features` gives for them.
    """
    if len(pairs) == 0:
        return np.zeros((0, len(FEATURES)), np.float32)
    tables = tables_of(index, pairs.left)
    places = maxima.places(pairs.left), maxima.places(pairs.right)
    columns = [
        *_score_features(tables, pairs, scores),
        *own.T[:GRAPH],
        *_term_features(query, facts, pairs, tables, index.segment_count),
        *token_features(maxima.values_UQ, *places, query.weights_Q),
        *own.T[GRAPH:],
    ]
    matrix = np.column_stack(columns).astype(np.float32)
    assert matrix.shape[1] == len(FEATURES)
    return matrix


def own_features(index: IndexReader, asked: Asked, pairs: Pairs) -> NDArray[np.float64]:
    """What pairs have whatever their rivals are, the graph's features first: (C, features); they take the most time."""
    links = _Links.of(index, pairs)
    return np.column_stack([*_graph_features(index, links, pairs), *_wording(index, asked, links, pairs)])


def _merged(known: Numbers, more: Numbers) -> tuple[Numbers, Numbers]:
    """Both together, ascending, and where each of them was in their concatenation."""
    joined = np.concatenate([known, more])
    order = np.argsort(joined, kind="stable")
    return joined[order], order


def _terms_of_stars(index: IndexReader, query: Query, rows: Numbers) -> NDArray[np.bool_]:
    """For each row the question terms held by it or any passage linked to it: (R, T)."""
    graph, segments = index.graph, index.segment_count
    if len(rows) == 0:
        return np.zeros((0, len(query.terms.terms)), bool)
    members = [np.append(graph.passages_of(row).astype(np.int64) + segments, row) for row in rows.tolist()]
    nodes, places = np.unique(np.concatenate(members), return_inverse=True)
    held = index.postings.counts(query.terms, nodes)[places] > 0
    starts = np.cumsum([0, *map(len, members[:-1])])
    return np.logical_or.reduceat(held, starts, axis=0)


def _score_features(tables: Numbers, pairs: Pairs, scores: PairScores) -> list[NDArray[np.generic]]:
    fused, left, right = scores.fused, pairs.left, pairs.right
    best_of_table, best_of_row = group_best(tables, fused), group_best(left, fused)
    own = [values - values.max() for values in (scores.maxsim, scores.segment, scores.star, scores.lexical, fused)]
    return [
        *own, scores.maxsim - scores.segment, scores.star - scores.maxsim,
        np.argsort(np.argsort(-fused, kind="stable")),
        fused - best_of_table, best_of_table - fused.max(), fused - best_of_row, best_of_row - best_of_table,
        fused - group_best(right, fused), _group_size(tables), _group_size(left), _group_size(right),
        scores.segment - group_best(tables, scores.segment), scores.star - group_best(tables, scores.star),
        scores.maxsim - group_best(left, scores.maxsim), scores.lexical - group_best(tables, scores.lexical),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Links:
    """Of each pair (C) how many links it has, the best one's score, and the columns that they are in, in order."""

    counts: Numbers
    scores: FloatArray
    columns: list[list[int]]

    @classmethod
    def of(cls, index: IndexReader, pairs: Pairs) -> "_Links":
        graph, segments, count = index.graph, index.segment_count, index.node_count
        counts, scores = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.float32)
        columns: list[list[int]] = []
        for n, (row, passage) in enumerate(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)):
            whole = row < segments <= passage < count
            number = graph.edge_number(row, passage - segments) if whole else None
            if number is None:
                columns.append([])
                continue
            first, last = graph.link_offsets[number : number + 2].tolist()
            counts[n], scores[n] = last - first, graph.link_scores[first:last].max()
            columns.append(graph.link_columns[first:last].tolist())
        return cls(counts, scores, columns)


def _graph_features(index: IndexReader, links: _Links, pairs: Pairs) -> list[NDArray[np.generic]]:
    graph, count = index.graph, index.node_count
    first = np.array([columns[0] if columns else -1 for columns in links.columns])
    return [
        _degrees(graph.segment_offsets, pairs.left), _degrees(graph.passage_offsets, pairs.right - index.segment_count),
        links.scores, links.counts, first, pairs.right == count, pairs.left == count,
    ]  # fmt: skip


def _degrees(offsets: Numbers, nodes: Numbers) -> Numbers:
    """Edges of each node of one side, 0 for one that is not of that side."""
    there = (nodes >= 0) & (nodes < len(offsets) - 1)
    places = np.where(there, nodes, 0)
    return np.where(there, offsets[np.minimum(places + 1, len(offsets) - 1)] - offsets[places], 0)


def _term_features(
    query: Query, facts: NodeFacts, pairs: Pairs, tables: Numbers, segments: int
) -> list[NDArray[np.generic]]:
    """Shares of the question's terms, by weight, that stand in the row, the passage and the two together."""
    idf_T = query.terms.idf_T
    held_UT = np.concatenate([facts.counts_UT > 0, np.zeros((1, len(idf_T)), bool)])
    row, passage = (held_UT[places_in(facts.nodes, side)] for side in (pairs.left, pairs.right))
    stars_RT = np.concatenate([facts.stars_RT, np.zeros((1, len(idf_T)), bool)])
    in_star = stars_RT[np.where(pairs.left < segments, places_in(facts.rows, pairs.left), -1)]
    edge = row | passage
    total = max(float(idf_T.sum()), 1e-6)
    numbers = idf_T * query.terms.is_number_T
    number_total = max(float(numbers.sum()), 1e-6)
    share, star, of_row, of_passage, new = (
        weighted_sums(held, idf_T) / total for held in (edge, in_star, row, passage, passage & ~row)
    )
    return [
        of_row, of_passage, share, (~edge * idf_T).max(axis=1, initial=0.0),
        weighted_sums(row, numbers) / number_total, weighted_sums(passage, numbers) / number_total,
        share - group_best(tables, share), new, star, star - group_best(tables, star), star - share,
    ]  # fmt: skip


def token_features(
    maxima_UQ: FloatArray, left: NDArray[np.int64], right: NDArray[np.int64], weights_Q: FloatArray
) -> list[NDArray[np.generic]]:
    """Shares of the question's tokens, by weight, that have a near match in the row, the passage and the two, and the
    worst match of a token that counts; `left` and `right` (C) are rows of the maxima, -1 for no node.
    """
    total = max(float(weights_Q.sum()), 1e-6)
    maxima_UQ = np.concatenate([maxima_UQ, np.zeros((1, len(weights_Q)), np.float32)])
    row, passage = maxima_UQ[left], maxima_UQ[right]
    edge = np.maximum(row, passage)
    shares = [weighted_sums(side > MATCHED, weights_Q) / total for side in (row, passage, edge)]
    return [*shares, np.where(weights_Q > 1.0, edge, 1.0).min(axis=1)]


def _wording(index: IndexReader, asked: Asked, links: _Links, pairs: Pairs) -> list[NDArray[np.generic]]:
    """What needs the texts: cells and titles that the question names, the row's place, what kind of answer is asked."""
    segments, count = index.segment_count, index.node_count
    rows = {row: _row_features(index, asked, row) for row in set(pairs.left.tolist()) if row < segments}
    passages = {
        node: _passage_features(asked, passage_words(index, node - segments))
        for node in {*pairs.left.tolist(), *pairs.right.tolist()}
        if segments <= node < count
    }
    question = (asked.superlative, asked.term_count, asked.kind)
    table = np.zeros((len(pairs), 19))
    for i, (left, right) in enumerate(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)):
        row, passage = rows.get(left, _NO_ROW), passages.get(right, _NO_PASSAGE)
        columns = links.columns[i] if row.cells else []
        if columns and max(columns) >= len(row.cells):
            raise IndexFormatError(f"{index.layers[0].directory}/link_columns.npy: damaged: a column that no row has")
        table[i] = (
            sum(cell > 0 for cell in row.cells), max(row.cells, default=0),
            max((row.cells[column] for column in columns), default=0), *passage[:2], row.title_overlap, *row.place,
            *question, *passage[2:], max((row.headers[column] for column in columns), default=0),
            max(row.headers, default=0),
        )  # fmt: skip
    return list(table.T)


@dataclass(frozen=True, slots=True)
class _Row:
    """Of each cell how many letters of it the question names, of each header how many asked-for words it has; the row's
    distance to the first and to the last row of its table, and how many rows that has.
    """

    cells: tuple[int, ...]
    headers: tuple[int, ...]
    title_overlap: float
    place: tuple[int, int, int]


_NO_ROW = _Row((), (), 0.0, (0, 0, 0))
_NO_PASSAGE = (0, 0.0, 0, 0, False, False, 0)


def _row_features(index: IndexReader, asked: Asked, row: int) -> _Row:
    words: RowWords = row_words(index, row)
    offsets, table = index.corpus.segment_offsets, index.corpus.table_of(row)
    first, last = int(offsets[table]), int(offsets[table + 1])
    return _Row(
        tuple(map(asked.names, words.cells)), tuple(map(asked.asks_for, words.headers)), asked.overlap(words.titles),
        (row - first, last - 1 - row, last - first),
    )  # fmt: skip


def _passage_features(asked: Asked, words: PassageWords) -> tuple[float, ...]:
    return (
        asked.names(words.title), asked.overlap(words.title), words.dates, words.numbers, words.is_person,
        words.is_place, asked.asks_for(words.opening),
    )  # fmt: skip


def tables_of(index: IndexReader, left: Numbers) -> Numbers:
    """The table of each row; every passage alone is a table of its own, below zero."""
    found = np.searchsorted(index.corpus.segment_offsets, left, side="right") - 1
    return np.where(left < index.segment_count, found, -1 - np.arange(len(left)))


def group_best(keys: NDArray[np.int64], values: NDArray[np.floating]) -> NDArray[np.floating]:
    """For each value the largest one with the same key."""
    _, group = np.unique(keys, return_inverse=True)
    best = np.full(int(group.max()) + 1, -np.inf, values.dtype)
    np.maximum.at(best, group, values)
    return best[group]


def _group_size(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    _, group, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    return sizes[group]

"""What the learned ranking sees of an edge: its scores beside those of its rivals, words matched, place in its table.

Everything comes from what the search already holds (vectors, postings, graph) and from the texts of the edges that
are ranked. Most features compare an edge with the other edges of its question, its table, its row or its passage, so
that they mean the same on another corpus.

Shape legend: C edges of one question, U their distinct nodes, Q question tokens, T question terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.index.search import Candidates, FloatArray, Query
from helios.retrieval.part import SearchPart
from helios.retrieval.wording import NO_PASSAGE, Asked, RowWording, passage_wording, row_wording
from helios.types import Link

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
MATCHED = 0.7
"""Cosine above which a question token counts as found."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Node features of a question's edges: `place` of a node in the rows of the arrays, -1 for no node."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    maxima_UQ: FloatArray
    counts_UT: NDArray[np.uint8]
    idf_T: FloatArray
    is_number_T: NDArray[np.bool_]
    star_CT: NDArray[np.bool_]
    """Which terms stand anywhere in the star of each edge's row."""


def edge_features(
    part: SearchPart, query: Query, left: NDArray[np.int64], right: NDArray[np.int64], scores: Candidates,
    fused: FloatArray,
) -> FloatArray:  # fmt: skip
    """Features (C, len(FEATURES)) of pairs of node numbers, best first by `fused`.

    `left` and `right` are a unit's sides: the node count of the part stands for no node.
    """
    if len(left) == 0:
        return np.zeros((0, len(FEATURES)), np.float32)
    nodes = _nodes(part, query, left, right)
    tables = tables_of(part, left)
    links = _links(part, left, right)
    columns = [
        *_score_features(tables, left, right, scores, fused),
        *_graph_features(part, links, left, right),
        *_term_features(nodes, tables),
        *token_features(nodes.maxima_UQ, nodes.left, nodes.right, query.weights_Q),
        *_wording(part, query.text, links, left, right),
    ]
    matrix = np.column_stack(columns).astype(np.float32)
    assert matrix.shape[1] == len(FEATURES)
    return matrix


def _nodes(part: SearchPart, query: Query, left: NDArray[np.int64], right: NDArray[np.int64]) -> _Nodes:
    count = part.tokens.node_count
    nodes = np.unique(np.concatenate([left, right]))
    nodes = nodes[nodes < count].astype(np.int64)
    found = part.postings.term_counts(query.text, nodes)
    places = [np.where(side < count, np.searchsorted(nodes, side), -1) for side in (left, right)]
    is_number = np.array([any(c.isdigit() for c in term) for term in found.terms], bool)
    return _Nodes(
        places[0],
        places[1],
        part.search.node_maxima(query, nodes),
        found.counts_UT,
        found.idf_T,
        is_number,
        _terms_of_stars(part, query.text, left, len(found.terms)),
    )


def _terms_of_stars(part: SearchPart, question: str, left: NDArray[np.int64], terms: int) -> NDArray[np.bool_]:
    """For each edge the question terms held by its row or any passage linked to it; none for a passage alone."""
    graph, segments = part.graph, part.graph.segment_count
    rows = np.unique(left[left < segments])
    if len(rows) == 0:
        return np.zeros((len(left), terms), bool)
    members = [
        np.append(graph.edge_passages[graph.segment_offsets[row] : graph.segment_offsets[row + 1]] + segments, row)
        for row in rows
    ]
    nodes, places = np.unique(np.concatenate(members), return_inverse=True)
    held = part.postings.term_counts(question, nodes.astype(np.int64)).counts_UT[places] > 0
    starts = np.cumsum([0, *map(len, members[:-1])])
    of_row = np.logical_or.reduceat(held, starts, axis=0)
    of_edge = of_row[np.minimum(np.searchsorted(rows, left), len(rows) - 1)]
    return np.asarray(of_edge & (left < segments)[:, None])


def _score_features(
    tables: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64], scores: Candidates, fused: FloatArray
) -> list[NDArray[np.generic]]:
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


def _links(part: SearchPart, left: NDArray[np.int64], right: NDArray[np.int64]) -> list[tuple[Link, ...]]:
    """The links of each edge; none for a pair that the graph lacks."""
    graph, segments, count = part.graph, part.graph.segment_count, part.tokens.node_count
    found = []
    for row, passage in zip(left.tolist(), right.tolist(), strict=True):
        whole = row < segments <= passage < count
        number = graph.edge_number(row, passage - segments) if whole else None
        found.append(() if number is None else graph.links(number))
    return found


def _graph_features(
    part: SearchPart, links: Sequence[tuple[Link, ...]], left: NDArray[np.int64], right: NDArray[np.int64]
) -> list[NDArray[np.generic]]:
    segments, count = part.graph.segment_count, part.tokens.node_count
    scores = [max((link.score for link in found), default=0.0) for found in links]
    columns = [found[0].column if found else -1 for found in links]
    return [
        _degrees(part.graph.segment_offsets, left), _degrees(part.graph.passage_offsets, right - segments),
        np.array(scores), np.array([len(found) for found in links]), np.array(columns), right == count, left == count,
    ]  # fmt: skip


def _degrees(offsets: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Edges of each node of one side, 0 for one that is not of that side."""
    there = (nodes >= 0) & (nodes < len(offsets) - 1)
    places = np.where(there, nodes, 0)
    return np.where(there, offsets[np.minimum(places + 1, len(offsets) - 1)] - offsets[places], 0)


def _term_features(nodes: _Nodes, tables: NDArray[np.int64]) -> list[NDArray[np.generic]]:
    """Shares of the question's terms, by weight, that stand in the row, the passage and the two together."""
    held_UT = np.concatenate([nodes.counts_UT > 0, np.zeros((1, len(nodes.idf_T)), bool)])
    row, passage = held_UT[nodes.left], held_UT[nodes.right]
    edge = row | passage
    total = max(float(nodes.idf_T.sum()), 1e-6)
    numbers = nodes.idf_T * nodes.is_number_T
    number_total = max(float(numbers.sum()), 1e-6)
    share = edge @ nodes.idf_T / total
    star = nodes.star_CT @ nodes.idf_T / total
    return [
        row @ nodes.idf_T / total, passage @ nodes.idf_T / total, share, (~edge * nodes.idf_T).max(axis=1, initial=0.0),
        row @ numbers / number_total, passage @ numbers / number_total, share - group_best(tables, share),
        (passage & ~row) @ nodes.idf_T / total, star, star - group_best(tables, star), star - share,
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
    shares = [(side > MATCHED) @ weights_Q / total for side in (row, passage, edge)]
    return [*shares, np.where(weights_Q > 1.0, edge, 1.0).min(axis=1)]


def _wording(
    part: SearchPart, question: str, links: Sequence[tuple[Link, ...]], left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> list[NDArray[np.generic]]:  # fmt: skip
    """What needs the texts: cells and titles that the question names, the row's place, what kind of answer is asked."""
    asked = Asked.of(question)
    segments, count = part.graph.segment_count, part.tokens.node_count
    rows = {node: row_wording(part.corpus, asked, node) for node in set(left.tolist()) if node < segments}
    nothing = RowWording((), (), 0.0, 0, 0, 0)
    passages = {
        node: passage_wording(part.corpus, asked, node - segments)
        for node in {*left.tolist(), *right.tolist()}
        if segments <= node < count
    }
    table = np.zeros((len(left), 19))
    for i, (left_node, right_node) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        row, passage = rows.get(left_node, nothing), passages.get(right_node, NO_PASSAGE)
        columns = [link.column for link in links[i]] if row.cells else []
        table[i] = (
            sum(cell > 0 for cell in row.cells), max(row.cells, default=0),
            max((row.cells[column] for column in columns), default=0), passage.named, passage.overlap,
            row.title_overlap, row.from_start, row.from_end, row.table_rows, asked.superlative, asked.term_count,
            asked.kind, passage.dates, passage.numbers, passage.is_person, passage.is_place, passage.asked,
            max((row.headers[column] for column in columns), default=0), max(row.headers, default=0),
        )  # fmt: skip
    return list(table.T)


def tables_of(part: SearchPart, left: NDArray[np.int64]) -> NDArray[np.int64]:
    """The table of each row; every passage alone is a table of its own, below zero."""
    segments = part.graph.segment_count
    found = np.searchsorted(part.corpus.segment_offsets, left, side="right") - 1
    return np.where(left < segments, found, -1 - np.arange(len(left)))


def group_best(keys: NDArray[np.int64], values: NDArray[np.floating]) -> NDArray[np.floating]:
    """For each value the largest one with the same key."""
    _, group = np.unique(keys, return_inverse=True)
    best = np.full(int(group.max()) + 1, -np.inf, values.dtype)
    np.maximum.at(best, group, values)
    return best[group]


def _group_size(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    _, group, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    return sizes[group]

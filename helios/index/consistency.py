"""What checksums cannot judge: whether the files of a component say the same. Kernels follow these numbers unchecked.

Each check reads its component through and yields (file, problem); opening the component has checked kinds, lengths and
offsets before.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from helios.corpus import CorpusStore, layout
from helios.graph.data import DataGraph
from helios.index.lexical import Postings
from helios.index.titles import TitleTerms
from helios.index.tokens import TokenStore
from helios.index.tombstones import Tombstones

Numbers = NDArray[np.int64]
Problems = Iterator[tuple[str, str]]
COUNTED = 255
"""The largest count of a term that postings hold."""


def corpus_problems(store: CorpusStore) -> Problems:
    """Every record can be read, is found by its id, and has the rows that the segments say."""
    rows = np.diff(store.segment_offsets)
    for number, table in enumerate(store.tables):
        if len(table.rows) != rows[number]:
            yield layout.SEGMENTS, f"table {table.table_id!r} has {len(table.rows)} rows, not {rows[number]}"
            return
    for records, kind in ((store.tables, layout.TABLES), (store.passages, layout.PASSAGES)):
        for number in range(len(records)):
            record_id = records.id(number)
            if records.find(record_id) != number:
                yield layout.record_files(kind)[2], f"{record_id!r} is not found by its id"
                break
    for _ in store.passages:
        pass


def token_problems(store: TokenStore, *, passages: int, deleted: Tombstones) -> Problems:
    """Mean vectors for all passages, and no token that more nodes hold than there are, or fewer than are deleted."""
    if store.pooled is not None and len(store.pooled) != passages:
        yield "pooled.npy", f"holds {len(store.pooled)} mean vectors, not {passages}"
    frequencies = store.frequencies
    if len(frequencies) and not (frequencies.min() >= 0 and frequencies.max() <= store.node_count):
        yield "frequencies.npy", f"must count from 0 to {store.node_count} nodes"
    known = deleted.tokens < len(frequencies)
    if np.any(deleted.counts[known] > frequencies[deleted.tokens[known]]):
        yield "frequencies.npy", "has fewer nodes of a token than are deleted"


def posting_problems(postings: Postings) -> Problems:
    """Terms in order, the nodes of a term ascending, and lengths that are the sums of the counts."""
    terms, offsets, nodes = postings.terms, postings.offsets, postings.nodes
    if np.any(terms[1:] <= terms[:-1]):
        yield "terms.npy", "terms must be unique and sorted"
    if len(nodes) and (nodes.min() < 0 or nodes.max() >= postings.node_count):
        yield "nodes.npy", f"node numbers must be below {postings.node_count}"
        return
    starts = offsets[:-1][np.diff(offsets) > 0]
    falls = np.flatnonzero(np.diff(nodes) <= 0) + 1
    if not np.isin(falls, starts).all():
        yield "nodes.npy", "the nodes of a term must ascend"
    if np.any(postings.counts == 0):
        yield "counts.npy", "a term that stands nowhere in its node"
    sums = np.bincount(nodes, weights=postings.counts, minlength=postings.node_count).astype(np.int64)
    capped = np.zeros(postings.node_count, bool)
    capped[nodes[postings.counts == COUNTED]] = True
    if np.any(np.where(capped, sums > postings.lengths, sums != postings.lengths)):
        yield "lengths.npy", "differs from the counts of terms"


def title_problems(titles: TitleTerms) -> Problems:
    """Both directions, titles to terms and terms to titles, hold the same pairs."""
    if np.any(titles.hashes[1:] <= titles.hashes[:-1]):
        yield "title-hashes.npy", "terms must be unique and sorted"
    owners = np.repeat(np.arange(titles.passage_count), np.diff(titles.starts))
    held = np.repeat(np.arange(titles.term_count), np.diff(titles.offsets))
    forward = np.lexsort((owners, titles.terms))
    backward = np.lexsort((titles.holders, held))
    same = len(owners) == len(held) and all(
        np.array_equal(one[forward], other[backward])
        for one, other in ((owners, titles.holders), (titles.terms, held), (titles.shares, titles.holder_shares))
    )
    if not same:
        yield "title-holders.npy", "differs from title-terms.npy"


def link_problems(graph: DataGraph, segments: Numbers, stores: Sequence[CorpusStore]) -> Problems:
    """Every link stands in a cell of its row. `segments` are the rows of the graph by their numbers in all stores."""
    before = np.concatenate([[0], np.cumsum([store.segment_count for store in stores])]).astype(np.int64)
    rows = np.repeat(segments[graph.edge_segments], np.diff(graph.link_offsets))
    for start in range(0, len(rows), 1000):
        block = slice(start, start + 1000)
        columns, starts, ends = graph.link_columns[block], graph.link_starts[block], graph.link_ends[block]
        cells: dict[int, tuple[str, ...]] = {}
        for row, column, first, last in zip(rows[block].tolist(), columns, starts, ends, strict=True):
            if row not in cells:
                part = int(np.searchsorted(before, row, side="right")) - 1
                cells[row] = stores[part].segment(row - int(before[part])).cells
            if not (0 <= column < len(cells[row]) and 0 <= first <= last <= len(cells[row][column])):
                yield "link_columns.npy", f"a link stands at {first}-{last} of column {column}, which row {row} lacks"
                return

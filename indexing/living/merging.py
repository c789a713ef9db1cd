"""Neighbouring parts as one, without what is deleted: texts, vectors and postings are copied, nothing is encoded.

Numbers of the nodes that stay ascend as before, so that all parts of an index together keep their numbering, and a
search gives the same to the last bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from helios.corpus import CorpusStore, CorpusWriter
from helios.index.lexical import Postings, join_postings
from helios.index.reader import PartFiles
from helios.index.titles import TitleTerms
from helios.index.tokens import write_tokens
from helios.index.tombstones import Tombstones
from helios.models.encoder import MiniLMEncoder
from indexing.encoding import as_read, held_by, node_texts, token_frequencies
from indexing.living.draft import Numbers
from indexing.progress import Meter
from indexing.stage import Arrays

NODES = 8000
"""Nodes whose vectors are copied at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """What became of one part's nodes: the number of each in the merged part, -1 where it was left out.

    A row that is deleted stays where other rows of its table do; `kept` has the tokens of those.
    """

    files: PartFiles
    numbers: Numbers
    kept: Numbers
    """How many deleted nodes that stay have each token of the vocabulary."""

    def deleted_now(self, deleted: Tombstones) -> tuple[Numbers, Numbers]:
        """Of a later snapshot's tombstones those that the merged part needs: nodes by their new numbers, tokens."""
        numbers = self.numbers[deleted.nodes]
        vocabulary, before = len(self.kept), self.files.view.deleted
        frequencies = deleted.frequencies(vocabulary) - before.frequencies(vocabulary) + self.kept
        return numbers[numbers >= 0], frequencies


def merge_corpus(parts: Sequence[PartFiles], folder: Path, encoder: MiniLMEncoder, meter: Meter) -> list[Moved]:
    """Write what is left of the parts as one store; a table of which a row is left stays whole."""
    rows, passages = [_rows_left(part) for part in parts], [_passages_left(part) for part in parts]
    segment_count, passage_count = sum(len(own) for own in rows), sum(len(own) for own in passages)
    meter.start(segment_count + passage_count, "nodes")
    with CorpusWriter(folder) as writer:
        for part, own in zip(parts, rows, strict=True):
            _copy_tables(part.corpus, own, writer)
            meter.advance(len(own))
        for part, own in zip(parts, passages, strict=True):
            for number in own.tolist():
                writer.add(part.corpus.passages[number])
            meter.advance(len(own))
    moved, first, first_passage = [], 0, segment_count
    for part, own, own_passages in zip(parts, rows, passages, strict=True):
        segments = part.view.part.counts.segments
        numbers = np.full(segments + part.view.part.counts.passages, -1, np.int64)
        numbers[own] = first + np.arange(len(own))
        numbers[segments + own_passages] = first_passage + np.arange(len(own_passages))
        first, first_passage = first + len(own), first_passage + len(own_passages)
        staying = part.view.deleted.nodes[numbers[part.view.deleted.nodes] >= 0].tolist()
        texts = [text for node in staying for text in node_texts(part.corpus, node, node + 1)]
        kept = held_by(part, token_frequencies(texts, as_read(encoder, part)))
        moved.append(Moved(part, numbers, kept))
    return moved


def merge_tokens(moved: Sequence[Moved], folder: Path, scratch: Path, meter: Meter) -> int:
    """Copy the vectors of what is left; returns the tokens."""
    quantiser, encoder = moved[0].files.tokens.quantiser, moved[0].files.tokens.encoder
    meter.start(sum(int((one.numbers >= 0).sum()) for one in moved), "nodes")
    chunks: list[Path] = []
    for arrays in _token_chunks(moved):
        chunks.append(scratch / f"merged-{len(chunks):06d}.npz")
        np.savez(chunks[-1], allow_pickle=False, **arrays)
        meter.advance(len(arrays["counts"]))
    tokens = write_tokens(chunks, quantiser, folder, encoder=encoder)
    for path in chunks:
        path.unlink()
    return tokens


def merge_postings(moved: Sequence[Moved], store: CorpusStore, folder: Path) -> None:
    """Copy the postings of what is left, and the terms of titles."""
    nodes = store.segment_count + len(store.passages)
    join_postings(
        [(one.files.postings, one.numbers) for one in moved], folder, segment_count=store.segment_count,
        node_count=nodes,
    )  # fmt: skip
    titles = [(one.files.titles, _kept_passages(one)) for one in moved]
    TitleTerms.joined(titles, Postings(folder).idf).write(folder)


def _rows_left(part: PartFiles) -> Numbers:
    """The rows of all tables of which a row is left."""
    offsets, alive = part.corpus.segment_offsets, _alive(part)[: part.view.part.counts.segments]
    left = np.append(0, np.cumsum(alive))[offsets]
    return np.flatnonzero(np.repeat(np.diff(left) > 0, np.diff(offsets)))


def _passages_left(part: PartFiles) -> Numbers:
    return np.flatnonzero(_alive(part)[part.view.part.counts.segments :])


def _alive(part: PartFiles) -> "np.ndarray":
    counts = part.view.part.counts
    alive = np.ones(counts.segments + counts.passages, bool)
    alive[part.view.deleted.nodes] = False
    return alive


def _kept_passages(moved: Moved) -> Numbers:
    return np.flatnonzero(moved.numbers[moved.files.view.part.counts.segments :] >= 0)


def _copy_tables(store: CorpusStore, rows: Numbers, writer: CorpusWriter) -> None:
    """Add the tables that some rows belong to, large ones in pieces."""
    blocks = store.blocks()
    wanted = np.unique(np.searchsorted(store.segment_offsets, rows, side="right") - 1)
    links: list = []
    for number, start, stop in blocks[np.isin(blocks[:, 0], wanted)].tolist():
        table = store.tables.block(number, start, stop)
        whole = int(store.segment_offsets[number + 1] - store.segment_offsets[number])
        if start == 0:
            links = []
        links += [replace(link, row=link.row + start) for link in table.hyperlinks]
        more = stop < whole
        writer.add(replace(table, hyperlinks=() if more else tuple(links)), more=more)


def _token_chunks(moved: Sequence[Moved]) -> Iterator[Arrays]:
    """Chunks of a token store: segments of all parts, then their passages; the first has all counts of tokens."""
    dimension = moved[0].files.tokens.quantiser.dimension
    vocabulary = len(moved[0].kept)
    frequencies = np.zeros(vocabulary, np.int64)
    for one in moved:
        if one.files.tokens.node_count:
            dropped = one.files.view.deleted.frequencies(vocabulary) - one.kept
            frequencies += one.files.tokens.frequencies - dropped
    frequencies = np.minimum(frequencies, sum(int((one.numbers >= 0).sum()) for one in moved))  # see `held_by`
    pooled = all(one.files.tokens.pooled is not None for one in moved)
    yield _gathered(moved[0], np.zeros(0, np.int64), frequencies.astype(np.int32), pooled=pooled, dimension=dimension)
    nothing = np.zeros(vocabulary, np.int32)
    for is_segment in (True, False):
        for one in moved:
            segments = one.files.view.part.counts.segments
            kept = np.flatnonzero((one.numbers >= 0) & ((np.arange(len(one.numbers)) < segments) == is_segment))
            for start in range(0, len(kept), NODES):
                yield _gathered(one, kept[start : start + NODES], nothing, pooled=pooled, dimension=dimension)


def _gathered(moved: Moved, nodes: Numbers, frequencies: "np.ndarray", *, pooled: bool, dimension: int) -> Arrays:
    """What is stored of some nodes of a part, either all segments or all passages."""
    store, segments = moved.files.tokens, moved.files.view.part.counts.segments
    counts = store.offsets[nodes + 1] - store.offsets[nodes]
    starts = store.offsets[nodes] - np.append(0, np.cumsum(counts))[:-1]
    places = np.repeat(starts, counts) + np.arange(counts.sum())
    arrays = {
        "counts": counts, "frequencies": frequencies, "codes": store.codes[places], "scales": store.scales[places],
        "residuals": store.residuals[places],
    }  # fmt: skip
    if pooled:
        passages = nodes[nodes >= segments] - segments
        held = store.pooled if store.pooled is not None else np.zeros((0, dimension), np.int8)
        arrays["pooled"] = held[passages]
    return arrays

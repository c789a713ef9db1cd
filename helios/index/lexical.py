"""BM25 over nodes and edges from one set of node postings.

An edge's term count is the sum of its two nodes' counts and its length the sum of their lengths, so exact BM25
over edges needs no edge index: postings are kept per node, and a query adds them up along the edges.

Files (V terms, M postings, N nodes): `terms` uint64 (V) sorted hashes of the terms, `offsets` int64 (V + 1),
`nodes` int32 (M) ascending within a term, `counts` uint8 (M), `lengths` int32 (N), `statistics.json`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from helios.errors import IndexFormatError
from helios.index.arrays import check_below, check_offsets, map_array
from helios.index.durable import read_record
from helios.index.languages import Analysis

CHUNK_NODES = 20_000
"""Nodes whose postings are sorted in memory at once while writing."""
MAX_TERMS = 256
"""Distinct terms of a question that count; the rarest are kept."""
ENGLISH = Analysis()
FloatArray = NDArray[np.float32]


def terms_of(text: str) -> list[str]:
    """The terms of a text where no index says how: as of an English one."""
    return ENGLISH.terms(text)


@lru_cache(maxsize=1 << 20)
def term_hash(term: str) -> int:
    """The 64-bit name of a term on disk."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little")


def write_postings(
    texts: Iterable[str],
    directory: Path,
    *,
    segment_count: int,
    analysis: Analysis = ENGLISH,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write the postings of the nodes' texts, given in node order (segments, then passages); returns the terms.

    Memory: one chunk of nodes plus 24 bytes a distinct term; postings go through files in `directory`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lengths: list[NDArray[np.int32]] = []
    chunks: list[Path] = []
    first_node = 0
    for number, batch in enumerate(_batched(texts, CHUNK_NODES)):
        hashes, nodes, counts, chunk_lengths = _invert(batch, first_node, analysis)
        chunk = directory / f"chunk-{number:05d}.npz"
        with chunk.open("wb") as handle:
            np.savez(handle, hashes=hashes, nodes=nodes, counts=counts)
        chunks.append(chunk)
        lengths.append(chunk_lengths)
        first_node += len(batch)
        if progress is not None:
            progress(len(batch))
    node_lengths = np.concatenate(lengths) if lengths else np.zeros(0, np.int32)
    return _finish(chunks, node_lengths, directory, segment_count=segment_count, analysis=analysis)


def join_postings(
    parts: "Sequence[tuple[Postings, NDArray[np.int64]]]", directory: Path, *, segment_count: int, node_count: int
) -> int:
    """Write the postings of some nodes of several parts as those of one; returns the terms.

    For each part its postings and the number that each of its nodes has in the new part, -1 for none; numbers ascend
    over the segments of all parts, then over their passages. What is written is what `write_postings` writes of the
    nodes' texts.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lengths = np.zeros(node_count, np.int32)
    chunks: list[Path] = []
    for is_segment in (True, False):
        for postings, numbers in parts:
            kept = (numbers >= 0) & ((np.arange(len(numbers)) < postings.segment_count) == is_segment)
            lengths[numbers[kept]] = postings.lengths[kept]
            of_kept = kept[postings.nodes]
            chunks.append(directory / f"chunk-{len(chunks):05d}.npz")
            with chunks[-1].open("wb") as handle:
                np.savez(
                    handle, hashes=np.repeat(postings.terms, np.diff(postings.offsets))[of_kept],
                    nodes=numbers[postings.nodes[of_kept]].astype(np.int32), counts=postings.counts[of_kept],
                )  # fmt: skip
    return _finish(chunks, lengths, directory, segment_count=segment_count, analysis=parts[0][0].analysis)


def _finish(
    chunks: Sequence[Path], lengths: NDArray[np.int32], directory: Path, *, segment_count: int, analysis: Analysis
) -> int:
    """Join the chunks, and write how long nodes are; the chunks are removed."""
    terms = _merge(chunks, directory)
    np.save(directory / "lengths.npy", lengths)
    statistics = {
        "nodes": len(lengths),
        "segments": segment_count,
        "analysis": analysis.record(),
        "mean_segment_length": float(lengths[:segment_count].mean()) if segment_count else 0.0,
        "mean_passage_length": float(lengths[segment_count:].mean()) if len(lengths) > segment_count else 0.0,
    }
    (directory / "statistics.json").write_text(json.dumps(statistics, indent=2) + "\n")
    for chunk in chunks:
        chunk.unlink()
    return terms


def _invert(
    texts: Sequence[str], first_node: int, analysis: Analysis
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]:
    hashes: list[int] = []
    nodes: list[int] = []
    counts: list[int] = []
    lengths = np.zeros(len(texts), np.int32)
    for i, text in enumerate(texts):
        frequency = Counter(analysis.terms(text))
        hashes.extend(map(term_hash, frequency))
        counts.extend(frequency.values())
        nodes.extend([first_node + i] * len(frequency))
        lengths[i] = frequency.total()
    hash_array = np.array(hashes, np.uint64)
    order = np.argsort(hash_array, kind="stable")
    return (
        hash_array[order],
        np.array(nodes, np.int32)[order],
        np.minimum(np.array(counts, np.int64)[order], 255).astype(np.uint8),
        lengths,
    )


def _merge(chunks: Sequence[Path], directory: Path) -> int:
    """Second pass: count each term, then let every chunk, in node order, append to its terms' postings."""
    terms = np.zeros(0, np.uint64)
    frequencies = np.zeros(0, np.int64)
    for chunk in chunks:
        with np.load(chunk) as arrays:
            unique, counts = np.unique(arrays["hashes"], return_counts=True)
        merged, inverse = np.unique(np.concatenate([terms, unique]), return_inverse=True)
        total = np.zeros(len(merged), np.int64)
        np.add.at(total, inverse, np.concatenate([frequencies, counts]))
        terms, frequencies = merged, total
    offsets = np.zeros(len(terms) + 1, np.int64)
    np.cumsum(frequencies, out=offsets[1:])
    if len(terms) == 0:
        for name, kind in (("terms", np.uint64), ("nodes", np.int32), ("counts", np.uint8)):
            np.save(directory / f"{name}.npy", np.zeros(0, kind))
        np.save(directory / "offsets.npy", offsets)
        return 0
    posting_nodes = np.lib.format.open_memmap(directory / "nodes.npy", "w+", np.int32, (int(offsets[-1]),))
    posting_counts = np.lib.format.open_memmap(directory / "counts.npy", "w+", np.uint8, (int(offsets[-1]),))
    cursor = offsets[:-1].copy()
    for chunk in chunks:
        with np.load(chunk) as arrays:
            hashes, nodes, counts8 = arrays["hashes"], arrays["nodes"], arrays["counts"]
        unique, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        numbers = np.searchsorted(terms, unique)
        positions = np.repeat(cursor[numbers] - first, counts) + np.arange(len(hashes))
        posting_nodes[positions] = nodes
        posting_counts[positions] = counts8
        cursor[numbers] += counts
    posting_nodes.flush()
    posting_counts.flush()
    np.save(directory / "terms.npy", terms)
    np.save(directory / "offsets.npy", offsets)
    return len(terms)


def _batched(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class Postings:
    """Memory-mapped node postings of one part."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.terms: NDArray[np.uint64] = map_array(directory / "terms.npy", np.uint64)
        self.offsets: NDArray[np.int64] = map_array(directory / "offsets.npy", np.int64, len(self.terms) + 1)
        self.nodes: NDArray[np.int32] = map_array(directory / "nodes.npy", np.int32)
        self.counts: NDArray[np.uint8] = map_array(directory / "counts.npy", np.uint8, len(self.nodes))
        self.lengths: NDArray[np.int32] = map_array(directory / "lengths.npy", np.int32)
        check_offsets(directory / "offsets.npy", self.offsets, len(self.nodes))
        check_below(directory / "lengths.npy", self.lengths, np.iinfo(np.int32).max)
        statistics = read_record(directory / "statistics.json")
        self.analysis = _analysis(directory / "statistics.json", statistics.get("analysis"))
        found = statistics.get("segments")
        if type(found) is not int or not 0 <= found <= len(self.lengths):
            raise IndexFormatError(
                f"{directory / 'statistics.json'}: damaged: {found!r} segments of {len(self.lengths)} nodes; "
                "build the index again"
            )
        self.segment_count = found

    @property
    def node_count(self) -> int:
        return len(self.lengths)

    def numbers(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The numbers of terms by their hashes, -1 for one that no node has."""
        if not len(self.terms):
            return np.full(len(hashes), -1, np.int64)
        places = np.minimum(np.searchsorted(self.terms, hashes), len(self.terms) - 1)
        return np.where(self.terms[places] == hashes, places, -1)

    def check_spans(self, first: NDArray[np.int64], last: NDArray[np.int64], *, least: int = 0) -> None:
        """IndexFormatError unless the postings [first, last) are of nodes from `least` on: kernels follow them."""
        if not spans_within(self.nodes, first, last, least, self.node_count):
            raise IndexFormatError(
                f"{self.directory / 'nodes.npy'}: damaged: nodes must be from {least} to {self.node_count - 1}; "
                "restore it or build the index again (`helios index fsck` finds all that is damaged)"
            )

    def idf(self, hashes: NDArray[np.uint64]) -> FloatArray:
        """How rare terms are among the nodes of this part, by their hashes."""
        return Statistics.of([VisibleNodes.all(self)]).idf(hashes)


def _analysis(path: Path, record: object) -> Analysis:
    """How the terms were made; IndexFormatError for a record that says no such thing."""
    try:
        return Analysis.of_record(record)
    except IndexFormatError as error:
        raise IndexFormatError(f"{path}: damaged: {error}; build the index again") from None


@dataclass(frozen=True, slots=True, eq=False)
class VisibleNodes:
    """Postings of one part and which of its nodes are visible, segments and passages apart, ascending."""

    postings: Postings
    segments: NDArray[np.int64]
    passages: NDArray[np.int64]
    """Counted from 0, as nodes of the part they follow after its segments."""
    whole: bool

    @classmethod
    def all(cls, postings: Postings) -> "VisibleNodes":
        """Every node."""
        passages = postings.node_count - postings.segment_count
        return cls(postings, np.arange(postings.segment_count), np.arange(passages), True)

    @property
    def nodes(self) -> NDArray[np.int64]:
        """Both as nodes of the part, ascending."""
        return np.concatenate([self.segments, self.passages + self.postings.segment_count])


class Statistics:
    """How many visible nodes hold a term, and how long nodes are, over several parts."""

    def __init__(self, parts: Sequence[VisibleNodes]) -> None:
        self._parts = tuple(parts)
        self._hidden = tuple(_hidden_postings(part) for part in parts)
        lengths = [part.postings.lengths for part in parts]
        segments = [int(own[part.segments].sum(dtype=np.int64)) for own, part in zip(lengths, parts, strict=True)]
        passages = [
            int(own[part.passages + part.postings.segment_count].sum(dtype=np.int64))
            for own, part in zip(lengths, parts, strict=True)
        ]
        self.segment_count = sum(len(part.segments) for part in parts)
        self.passage_count = sum(len(part.passages) for part in parts)
        self.mean_passage_length = sum(passages) / self.passage_count if self.passage_count else 0.0
        mean_segment = sum(segments) / self.segment_count if self.segment_count else 0.0
        self.mean_edge_length = max(1.0, mean_segment + self.mean_passage_length)

    @classmethod
    def of(cls, parts: Sequence[VisibleNodes]) -> "Statistics":
        """Statistics of these nodes."""
        return cls(parts)

    @property
    def node_count(self) -> int:
        """Visible nodes."""
        return self.segment_count + self.passage_count

    def holders(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many nodes hold each term, by its hash."""
        found = np.zeros(len(hashes), np.int64)
        for part, hidden in zip(self._parts, self._hidden, strict=True):
            numbers = part.postings.numbers(hashes)
            known = numbers >= 0
            first, last = part.postings.offsets[numbers[known]], part.postings.offsets[numbers[known] + 1]
            gone = np.searchsorted(hidden, last) - np.searchsorted(hidden, first)
            found[known] += last - first - gone
        return found

    def idf(self, hashes: NDArray[np.uint64]) -> FloatArray:
        """How rare terms are, by their hashes; one that no node has counts as if one had it."""
        return self.rarity(np.maximum(self.holders(hashes), 1))

    def rarity(self, holders: NDArray[np.int64]) -> FloatArray:
        """How rare terms are that so many nodes hold."""
        return np.log1p((self.node_count - holders + 0.5) / (holders + 0.5)).astype(np.float32)


def _hidden_postings(part: VisibleNodes) -> NDArray[np.int64]:
    """Places of the postings of hidden nodes, ascending."""
    if part.whole:
        return np.zeros(0, np.int64)
    part.postings.check_spans(part.postings.offsets[:1], part.postings.offsets[-1:])
    hidden = np.ones(part.postings.node_count, bool)
    hidden[part.nodes] = False
    return np.flatnonzero(hidden[part.postings.nodes])


@njit(nogil=True, cache=True, boundscheck=False)
def spans_within(numbers: np.ndarray, first: np.ndarray, last: np.ndarray, least: int, limit: int) -> bool:
    """Whether numbers[first[i] : last[i]] are all from `least` to below `limit`; the spans lie inside of the array."""
    low, high = np.int64(least), np.int64(limit - 1)
    for i in range(first.shape[0]):
        if first[i] >= last[i]:
            continue
        small, large = low, low
        for at in range(first[i], last[i]):
            small, large = min(small, np.int64(numbers[at])), max(large, np.int64(numbers[at]))
        if small < low or large > high:
            return False
    return True


@njit(nogil=True, cache=True, boundscheck=False)
def lower_bounds(nodes: np.ndarray, begins: np.ndarray, ends: np.ndarray, node: int) -> np.ndarray:
    """Of each ascending span nodes[begin:end] the place of its first member that is `node` or more, its end if none."""
    places = begins.copy()
    for i in range(begins.shape[0]):
        low, high = begins[i], ends[i]
        while low < high:
            middle = (low + high) // 2
            if nodes[middle] < node:
                low = middle + 1
            else:
                high = middle
        places[i] = low
    return places


@njit(nogil=True, cache=True, boundscheck=False)
def count_terms(
    wanted: np.ndarray, rows: np.ndarray, first_T: np.ndarray, last_T: np.ndarray, nodes: np.ndarray,
    counts: np.ndarray, out_UT: np.ndarray,
) -> None:  # fmt: skip
    """out[rows[n], t] = the count of the node wanted[n] among the postings [first[t], last[t]), 0 if it is not there.

    Both the wanted nodes and those of each span ascend; steps double until the next wanted one is passed.
    """
    for t in range(first_T.shape[0]):
        at, end = first_T[t], last_T[t]
        for n in range(wanted.shape[0]):
            if at >= end:
                break
            node = wanted[n]
            if nodes[at] < node:
                step = 1
                while at + step < end and nodes[at + step] < node:
                    at += step
                    step *= 2
                low, high = at + 1, min(at + step, end)
                while low < high:
                    middle = (low + high) // 2
                    if nodes[middle] < node:
                        low = middle + 1
                    else:
                        high = middle
                at = low
            if at < end and nodes[at] == node:
                out_UT[rows[n], t] = counts[at]


@njit(nogil=True, cache=True, boundscheck=False)
def pair_bm25(
    left: np.ndarray, right: np.ndarray, lengths: np.ndarray, counts_UT: np.ndarray, idf_T: np.ndarray,
    k1: np.float32, b: np.float32, mean_length: np.float32, out: np.ndarray,
) -> None:  # fmt: skip
    """out[e] = BM25 of the two nodes of a pair taken as one document; a side of -1 is no node."""
    one = np.float32(1.0)
    for e in range(left.shape[0]):
        x, y = left[e], right[e]
        length = np.float32(0.0)
        if x >= 0:
            length += np.float32(lengths[x])
        if y >= 0:
            length += np.float32(lengths[y])
        norm = max(k1 * (one - b + b * length / mean_length), np.float32(1e-6))  # 0 / 0 is no score
        total = np.float32(0.0)
        for t in range(counts_UT.shape[1]):
            count = np.float32(0.0)
            if x >= 0:
                count += np.float32(counts_UT[x, t])
            if y >= 0:
                count += np.float32(counts_UT[y, t])
            total += idf_T[t] * count * (k1 + one) / (count + norm)
        out[e] = total


@njit(nogil=True, cache=True, boundscheck=False)
def add_visible_bm25(
    nodes: np.ndarray, counts: np.ndarray, numbers: np.ndarray, norms_N: np.ndarray, idf: np.float32, k1: np.float32,
    out_N: np.ndarray,
) -> None:  # fmt: skip
    """out[numbers[node]] += the BM25 of one term that stands in these nodes so often; a number of -1 is hidden."""
    scaled = idf * (k1 + np.float32(1.0))
    for i in range(nodes.shape[0]):
        place = numbers[nodes[i]]
        if place >= 0:
            count = np.float32(counts[i])
            out_N[place] += scaled * count / (count + norms_N[place])


@njit(nogil=True, cache=True, boundscheck=False)
def add_bm25(
    passages: np.ndarray, counts: np.ndarray, shift: int, norms_P: np.ndarray, idf: np.float32, k1: np.float32,
    out_P: np.ndarray,
) -> None:  # fmt: skip
    """out[passage - shift] += the BM25 of one term that stands in these passages so often."""
    for i in range(passages.shape[0]):
        place = passages[i] - shift
        count = np.float32(counts[i])
        out_P[place] += idf * count * (k1 + np.float32(1.0)) / (count + norms_P[place])

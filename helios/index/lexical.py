"""BM25 over nodes and edges from one set of node postings.

An edge's term count is the sum of its two nodes' counts and its length the sum of their lengths, so exact BM25
over edges needs no edge index: postings are kept per node, and a query adds them up along the edges.

Files (V terms, M postings, N nodes): `terms` uint64 (V) sorted hashes of the terms, `offsets` int64 (V + 1),
`nodes` int32 (M) ascending within a term, `counts` uint8 (M), `lengths` int32 (N), `statistics.json`.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from helios.errors import IndexFormatError
from helios.index.arrays import map_array

CHUNK_NODES = 20_000
"""Nodes whose postings are sorted in memory at once while writing."""
MAX_TERMS = 64
"""Distinct query terms that count; the rarest are kept."""
WORD = re.compile(r"\w+")


def terms_of(text: str) -> list[str]:
    """Lower-cased words without accents, English plural endings taken off; what is after an apostrophe is a word."""
    folded = text.lower()
    if not folded.isascii():
        folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return [_stem(word) for word in WORD.findall(folded)]


def _stem(word: str) -> str:
    """Harman's S-stemmer: the mildest, so that names stay themselves."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "us":
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] in "aeo":
        return word
    return word[:-1]


@lru_cache(maxsize=1 << 20)
def term_hash(term: str) -> int:
    """The 64-bit name of a term on disk."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little")


def write_postings(
    texts: Iterable[str],
    directory: Path,
    *,
    segment_count: int,
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
        hashes, nodes, counts, chunk_lengths = _invert(batch, first_node)
        chunk = directory / f"chunk-{number:05d}.npz"
        with chunk.open("wb") as handle:
            np.savez(handle, hashes=hashes, nodes=nodes, counts=counts)
        chunks.append(chunk)
        lengths.append(chunk_lengths)
        first_node += len(batch)
        if progress is not None:
            progress(len(batch))
    node_lengths = np.concatenate(lengths) if lengths else np.zeros(0, np.int32)
    terms = _merge(chunks, directory)
    np.save(directory / "lengths.npy", node_lengths)
    statistics = {
        "nodes": int(first_node),
        "segments": segment_count,
        "mean_segment_length": float(node_lengths[:segment_count].mean()) if segment_count else 0.0,
        "mean_passage_length": float(node_lengths[segment_count:].mean()) if first_node > segment_count else 0.0,
    }
    (directory / "statistics.json").write_text(json.dumps(statistics, indent=2) + "\n")
    for chunk in chunks:
        chunk.unlink()
    return terms


def _invert(
    texts: Sequence[str], first_node: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]:
    hashes: list[int] = []
    nodes: list[int] = []
    counts: list[int] = []
    lengths = np.zeros(len(texts), np.int32)
    for i, text in enumerate(texts):
        frequency = Counter(terms_of(text))
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


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A question against one set of postings: counts (N + 1, Q) uint8 a node and term, and idf (Q) float32.

    Row N is all zeros: it stands for 'no such node'.
    """

    counts_NQ: NDArray[np.uint8]
    idf_Q: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often each known term of a question stands in each of some nodes: counts (U, T) uint8, idf (T) float32."""

    terms: tuple[str, ...]
    counts_UT: NDArray[np.uint8]
    idf_T: NDArray[np.float32]


class Postings:
    """Memory-mapped node postings of one part."""

    def __init__(self, directory: Path) -> None:
        try:
            self.terms: NDArray[np.uint64] = map_array(directory / "terms.npy")
            self.offsets: NDArray[np.int64] = map_array(directory / "offsets.npy")
            self.nodes: NDArray[np.int32] = map_array(directory / "nodes.npy")
            self.counts: NDArray[np.uint8] = map_array(directory / "counts.npy")
            self.lengths: NDArray[np.int32] = map_array(directory / "lengths.npy")
            statistics = json.loads((directory / "statistics.json").read_text())
        except (OSError, ValueError) as error:
            raise IndexFormatError(f"{directory}: no readable lexical index ({error}); rebuild it") from error
        self.segment_count = int(statistics["segments"])
        self.mean_edge_length = max(1.0, statistics["mean_segment_length"] + statistics["mean_passage_length"])

    @property
    def node_count(self) -> int:
        return len(self.lengths)

    def term_counts(self, question: str, nodes: NDArray[np.int64]) -> TermCounts:
        """Counts of the question's known terms in the given nodes, which ascend."""
        terms, columns, idf = [], [], []
        for term in dict.fromkeys(terms_of(question)):
            number = int(np.searchsorted(self.terms, np.uint64(term_hash(term))))
            if number == len(self.terms) or int(self.terms[number]) != term_hash(term):
                continue
            span = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
            holders = self.nodes[span]
            places = np.minimum(np.searchsorted(holders, nodes), len(holders) - 1)
            columns.append(np.where(holders[places] == nodes, self.counts[span][places], 0).astype(np.uint8))
            idf.append(np.log1p((self.node_count - len(holders) + 0.5) / (len(holders) + 0.5)))
            terms.append(term)
        counts = np.stack(columns, axis=1) if columns else np.zeros((len(nodes), 0), np.uint8)
        return TermCounts(tuple(terms), counts, np.array(idf, np.float32))

    def query(self, question: str) -> LexicalQuery:
        """Look up the question's terms; unknown terms are left out, the rarest `MAX_TERMS` kept."""
        found: dict[int, float] = {}
        for term in dict.fromkeys(terms_of(question)):
            number = int(np.searchsorted(self.terms, np.uint64(term_hash(term))))
            if number < len(self.terms) and int(self.terms[number]) == term_hash(term):
                frequency = int(self.offsets[number + 1] - self.offsets[number])
                found[number] = float(np.log1p((self.node_count - frequency + 0.5) / (frequency + 0.5)))
        kept = sorted(found, key=lambda number: -found[number])[:MAX_TERMS]
        counts = np.zeros((self.node_count + 1, max(1, len(kept))), np.uint8)
        for column, number in enumerate(kept):
            span = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
            counts[self.nodes[span], column] = self.counts[span]
        return LexicalQuery(counts, np.array([found[number] for number in kept] or [0.0], np.float32))

    def idf(self, hashes: NDArray[np.uint64]) -> NDArray[np.float32]:
        """How rare terms are among the nodes, by their hashes; an unknown term is as rare as one node's."""
        frequencies = np.ones(len(hashes), np.int64)
        if len(self.terms):
            numbers = np.minimum(np.searchsorted(self.terms, hashes), len(self.terms) - 1)
            known = self.terms[numbers] == hashes
            frequencies[known] = (self.offsets[numbers + 1] - self.offsets[numbers])[known]
        return np.log1p((self.node_count - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)

    def nodes_with(self, term: str, first: int, last: int) -> slice:
        """Where the postings of a term's nodes in [first, last) are; an empty slice for an unknown term."""
        hashed = np.uint64(term_hash(term))
        number = int(np.searchsorted(self.terms, hashed))
        if number == len(self.terms) or self.terms[number] != hashed:
            return slice(0, 0)
        start, stop = int(self.offsets[number]), int(self.offsets[number + 1])
        bounds = np.searchsorted(self.nodes[start:stop], [first, last])
        return slice(start + int(bounds[0]), start + int(bounds[1]))

    def spans(self, terms: Sequence[str], first: int, last: int) -> tuple[Any, Any, NDArray[np.float32]]:
        """Of each term where the postings of its nodes in [first, last) begin and end, and how rare it is."""
        hashes = np.array([term_hash(term) for term in terms], np.uint64)
        if not len(self.terms):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64), self.idf(hashes)
        numbers = np.minimum(np.searchsorted(self.terms, hashes), len(self.terms) - 1)
        begins = self.offsets[numbers]
        ends = np.where(self.terms[numbers] == hashes, self.offsets[numbers + 1], begins)
        bounds = [lower_bounds(self.nodes, begins, ends, node) for node in (first, last)]
        return bounds[0], bounds[1], self.idf(hashes)

    def node_scores(
        self, terms: Iterable[str], first: int, last: int, *, k1: float, b: float, common: int
    ) -> NDArray[np.float32]:
        """BM25 of the nodes [first, last) on their own, terms held by more than `common` of them left out."""
        scores = np.zeros(last - first, np.float32)
        mean = np.float32(max(1.0, float(self.lengths[first:last].mean()) if last > first else 1.0))
        for term in dict.fromkeys(terms):
            span = self.nodes_with(term, first, last)
            if 0 < span.stop - span.start <= common:
                idf = np.float32(self.idf(np.array([term_hash(term)], np.uint64))[0])
                nodes, counts = self.nodes[span], self.counts[span]
                add_bm25(nodes, counts, self.lengths, idf, np.float32(k1), np.float32(b), mean, first, scores)
        return scores


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


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def edge_bm25(
    left: np.ndarray, right: np.ndarray, lengths: np.ndarray, counts_NQ: np.ndarray, idf_Q: np.ndarray,
    k1: float, b: float, mean_length: float, out_E: np.ndarray, start: int, stop: int,
) -> None:  # fmt: skip
    """out[e] = BM25 of the edge's two nodes taken as one document; node N (no such node) has length 0."""
    terms = counts_NQ.shape[1]
    nodes = lengths.shape[0]
    for e in range(start, stop):
        x = left[e]
        y = right[e]
        length = np.float32(0.0)
        if x < nodes:
            length += lengths[x]
        if y < nodes:
            length += lengths[y]
        norm = max(np.float32(k1 * (1.0 - b + b * length / mean_length)), np.float32(1e-6))  # 0 / 0 is no score
        total = np.float32(0.0)
        for q in range(terms):
            count = np.float32(counts_NQ[x, q]) + np.float32(counts_NQ[y, q])
            total += idf_Q[q] * count * np.float32(k1 + 1.0) / (count + norm)
        out_E[e] = total


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def add_bm25(
    nodes: np.ndarray, counts: np.ndarray, lengths: np.ndarray, idf: np.float32, k1: np.float32, b: np.float32,
    mean_length: np.float32, first: int, out_N: np.ndarray,
) -> None:  # fmt: skip
    """out[node - first] += the BM25 of one term whose postings are given."""
    for i in range(nodes.shape[0]):
        node = nodes[i]
        count = np.float32(counts[i])
        norm = k1 * (np.float32(1.0) - b + b * np.float32(lengths[node]) / mean_length)
        out_N[node - first] += idf * count * (k1 + np.float32(1.0)) / (count + norm)

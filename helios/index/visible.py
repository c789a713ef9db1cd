"""Token vectors and term counts of the visible nodes of several parts, and a question in their terms.

A node has one number in all parts together: segments of all parts first, in the order of the parts, then passages.

Shape legend: N nodes, U some of them, V token numbers of the encoder, Q query tokens (padded lanes), T terms of the
question, D dimensions, K centroids.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.index.function_words import LIGHT, count_missing, function_spans, telling_terms
from helios.index.languages import Analysis
from helios.index.lexical import (
    ENGLISH,
    MAX_TERMS,
    Postings,
    Statistics,
    add_bm25,
    add_visible_bm25,
    count_terms,
    lower_bounds,
    term_hash,
)
from helios.index.maxsim import QueryTables, node_bounds, node_maxima
from helios.index.products import code_cosines, padded, products
from helios.index.quantiser import Quantiser
from helios.index.tokens import TokenStore
from helios.models.encoder import TokenVectors

FloatArray = NDArray[np.float32]
Numbers = NDArray[np.int64]
MIN_WEIGHT = 0.1
"""What a token that every node holds still counts."""
SHARED_OUT = 4096
"""Pieces of work from which on threads share them."""
CODE_RANGE = 16383
"""The largest value of a question's mean vector as whole numbers: its products with int8 add up within an int32."""
PATTERN_RANGE = 127
"""The largest product with a residual pattern, as an int8: hundreds of them add up within an int16."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """Which nodes of each part are visible, and which numbers they have in all parts together."""

    segments: tuple[Numbers, ...]
    """For each part its visible segments, ascending."""
    passages: tuple[Numbers, ...]
    """For each part its visible passages, counted from 0."""
    segments_before: Numbers
    passages_before: Numbers
    part_segments: tuple[int, ...]
    """All segments of each part: as its nodes, passages follow after them."""
    part_nodes: tuple[int, ...]
    """All nodes of each part."""
    whole: bool
    """Whether no node of any part is hidden."""
    _numbers: dict[int, NDArray[np.int32]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Numbering(segments={self.segment_count}, passages={self.passage_count}, parts={len(self.segments)})"

    @classmethod
    def of(
        cls, segments: Sequence[Numbers], passages: Sequence[Numbers], part_segments: Sequence[int],
        part_nodes: Sequence[int], *, whole: bool,
    ) -> "Numbering":  # fmt: skip
        """Part by part."""
        before = [
            np.concatenate([[0], np.cumsum([len(own) for own in side], dtype=np.int64)]).astype(np.int64)
            for side in (segments, passages)
        ]
        return cls(
            tuple(segments), tuple(passages), before[0], before[1], tuple(part_segments), tuple(part_nodes), whole
        )

    @property
    def segment_count(self) -> int:
        """Visible segments."""
        return int(self.segments_before[-1])

    @property
    def passage_count(self) -> int:
        """Visible passages."""
        return int(self.passages_before[-1])

    @property
    def node_count(self) -> int:
        """Visible nodes."""
        return self.segment_count + self.passage_count

    def spans(self, part: int) -> tuple[tuple[Numbers, int], tuple[Numbers, int]]:
        """The part's visible segments and passages as its own nodes, each with the number of the first of them."""
        return (
            (self.segments[part], int(self.segments_before[part])),
            (self.passages[part] + self.part_segments[part], self.segment_count + int(self.passages_before[part])),
        )

    def by_part(self, nodes: Numbers) -> list[tuple[int, Numbers, Numbers]]:
        """For each part that holds some of the nodes: its number, places in `nodes`, and its own numbers of them."""
        if len(self.segments) == 1:
            return [(0, np.arange(len(nodes)), self._of_part(0, nodes))]
        is_segment = nodes < self.segment_count
        passages = nodes - self.segment_count
        part_of = np.where(
            is_segment,
            np.searchsorted(self.segments_before, nodes, side="right"),
            np.searchsorted(self.passages_before, passages, side="right"),
        ) - 1  # fmt: skip
        found = []
        for part in np.unique(part_of).tolist():
            places = np.flatnonzero(part_of == part)
            found.append((part, places, self._of_part(part, nodes[places])))
        return found

    def _of_part(self, part: int, nodes: Numbers) -> Numbers:
        """Own numbers of nodes that a part holds."""
        if self.whole and len(self.segments) == 1:
            return np.asarray(nodes, np.int64)
        is_segment = nodes < self.segment_count
        own = np.empty(len(nodes), np.int64)
        own[is_segment] = self.segments[part][nodes[is_segment] - self.segments_before[part]]
        passages = nodes[~is_segment] - self.segment_count - self.passages_before[part]
        own[~is_segment] = self.passages[part][passages] + self.part_segments[part]
        return own

    def node_numbers(self, part: int) -> NDArray[np.int32]:
        """For each node of a part its number among all visible ones, -1 if hidden."""
        if part not in self._numbers:
            segments, passages = self.numbers_of(part)
            size = self.part_segments[part]
            numbers = np.full(self.part_nodes[part], -1, np.int32)
            numbers[: len(segments)] = segments
            shown = np.where(passages >= 0, passages + self.segment_count, -1)
            numbers[size : size + len(shown)] = shown
            self._numbers[part] = numbers
        return self._numbers[part]

    def numbers_of(self, part: int) -> tuple[Numbers, Numbers]:
        """For each segment and each passage of a part its number among all visible ones of its side, -1 if hidden.

        The arrays end with the last visible one.
        """
        found = []
        sides = ((self.segments, self.segments_before), (self.passages, self.passages_before))
        for own, before in ((of_side[part], counts[part]) for of_side, counts in sides):
            numbers = np.full(int(own[-1]) + 1 if len(own) else 0, -1, np.int64)
            numbers[own] = before + np.arange(len(own))
            found.append(numbers)
        return found[0], found[1]


@dataclass(frozen=True, slots=True, eq=False)
class NodeBounds:
    """m_q(X) of every node against centroids alone, times the token's weight: uint8 (N + 1, Q) in steps of a score.

    Row N is zero: it stands for 'no such node'.
    """

    bounds_NQ: NDArray[np.uint8]
    step: np.float32


@dataclass(frozen=True, slots=True, eq=False)
class QueryTerms:
    """A question's distinct known terms in its order, with what they are worth (T), and the hashes of them."""

    terms: tuple[str, ...]
    hashes: NDArray[np.uint64]
    idf_T: FloatArray
    missing: int = 0
    """Distinct terms of the question that no node has, of those that nodes of this language would have."""

    @property
    def is_number_T(self) -> NDArray[np.bool_]:
        """Which terms have a digit."""
        return np.array([any(map(str.isdigit, term)) for term in self.terms], bool)


@dataclass(frozen=True, slots=True, eq=False)
class PassageSpans:
    """Where the passages that hold each of some terms (X) are: places [first, last) of `passages` and of `counts`."""

    first: Numbers
    last: Numbers
    passages: NDArray[np.int32]
    """Numbers of passages, plus `shift`."""
    counts: NDArray[np.uint8]
    shift: int


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A question as kernels read it: weights of its tokens (Q), tables for each codebook, its terms for BM25."""

    text: str
    tokens: TokenVectors
    weights_Q: FloatArray
    tables: tuple[QueryTables, ...]
    step: np.float32
    """Of the bounds, the same for all codebooks."""
    terms: QueryTerms

    def __repr__(self) -> str:
        return f"Query({self.text!r}, {len(self.tokens.ids)} tokens, {len(self.terms.terms)} terms)"


class VisibleTokens:
    """Token vectors of the visible nodes; threads may share it."""

    def __init__(
        self, stores: Sequence[TokenStore], numbering: Numbering, frequencies: Numbers, *, counted: int
    ) -> None:
        """`frequencies` (V) are of `counted` nodes: those of the whole index, also where a filter hides some."""
        self.stores = tuple(stores)
        self.numbering = numbering
        self.frequencies = frequencies
        self.counted = counted
        self.codecs, self._codec_of = _distinct([store.quantiser for store in stores])

    @property
    def node_count(self) -> int:
        """Visible nodes."""
        return self.numbering.node_count

    def token_weights(self, ids: NDArray[np.int32]) -> FloatArray:
        """Weights of question tokens: inverse document frequency over nodes, with mean 1; rare tokens decide."""
        if self.counted == 0:
            return np.ones(len(ids), np.float32)
        rarity = np.log((self.counted + 1) / (self.frequencies[ids] + 1.0)) + MIN_WEIGHT
        return np.asarray(rarity / rarity.mean(), np.float32)

    def tables(self, vectors_QD: FloatArray, weights_Q: FloatArray) -> tuple[tuple[QueryTables, ...], np.float32]:
        """For each codebook what question tokens (Q, D, padded) reach with its centroids and residuals; the step."""
        rotated = [products(vectors_QD, codec.rotation_DD) for codec in self.codecs]
        cosines = [products(codec.centroids_KD, own) for codec, own in zip(self.codecs, rotated, strict=True)]
        weighted = [np.maximum(own * weights_Q, 0.0) for own in cosines]
        step = np.float32(max(1e-6, *(float(own.max(initial=0.0)) for own in weighted)) / 255.0)
        tables = []
        for codec, own, cosine, share in zip(self.codecs, rotated, cosines, weighted, strict=True):
            patterns, pattern_step = _whole_patterns(codec.residual_table(own))
            tables.append(QueryTables(cosine, np.rint(share / step).astype(np.uint8), patterns, pattern_step))
        return tuple(tables), step

    def bounds(self, query: Query, threads: "Threads") -> NodeBounds:
        """MaxSim of every query token against every node, from centroids alone."""
        bounds = np.zeros((self.node_count + 1, len(query.weights_Q)), np.uint8)
        for part, store in enumerate(self.stores):
            steps = query.tables[self._codec_of[part]].steps_KQ
            for nodes, first in self.numbering.spans(part):
                threads.split(len(nodes), node_bounds, nodes, store.stored, steps, first, bounds)
        return NodeBounds(bounds, query.step)

    def maxima(self, query: Query, nodes: Numbers, threads: "Threads") -> FloatArray:
        """m_q(X) of the given nodes from their stored vectors: (U, Q), unweighted."""
        out = np.empty((len(nodes), len(query.weights_Q)), np.float32)
        for part, places, own in self.numbering.by_part(nodes):
            tables = query.tables[self._codec_of[part]]
            threads.split(len(own), node_maxima, own, places, self.stores[part].stored, tables, out)
        return out

    @property
    def has_pooled(self) -> bool:
        """Whether every part holds pooled vectors of its passages."""
        return all(store.pooled is not None for store in self.stores)

    def pooled_cosines(self, vector_D: FloatArray, passages: Numbers) -> FloatArray:
        """Cosines of a vector with the mean token vectors of some passages, counted from 0: (passages).

        ValueError where a part has no pooled vectors (`has_pooled`).
        """
        codes = np.rint(CODE_RANGE * vector_D / max(float(np.abs(vector_D).max()), 1e-9)).astype(np.int16)
        out = np.empty(len(passages), np.float32)
        for pooled, places, own in self._pooled_parts(passages):
            code_cosines(pooled, own, codes, places, out)
        return out

    def pooled_vectors(self, passages: Numbers) -> FloatArray:
        """The directions of the mean token vectors of some passages, counted from 0: (passages, D), of length 1.

        ValueError where a part has no pooled vectors (`has_pooled`).
        """
        out = np.empty((len(passages), self.codecs[0].dimension), np.float32)
        for pooled, places, own in self._pooled_parts(passages):
            out[places] = pooled[own]
        return np.asarray(out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9), np.float32)

    def _pooled_parts(self, passages: Numbers) -> Iterator[tuple[NDArray[np.int8], Numbers, Numbers]]:
        """Of every part its pooled vectors, and which of the passages stand where in them."""
        for part, places, own in self.numbering.by_part(passages + self.numbering.segment_count):
            pooled = self.stores[part].pooled
            if pooled is None:
                raise ValueError(f"part {part} was built without pooled vectors")
            yield pooled, places, own - self.numbering.part_segments[part]

    def lengths_of(self, nodes: Numbers) -> Numbers:
        """How many tokens each of some nodes has: (U)."""
        lengths = np.empty(len(nodes), np.int64)
        for part, places, own in self.numbering.by_part(nodes):
            offsets = self.stores[part].offsets
            lengths[places] = offsets[own + 1] - offsets[own]
        return lengths

    def vectors(self, node: int) -> FloatArray:
        """The stored approximation of a node's token vectors: (tokens, D)."""
        ((part, _, own),) = self.numbering.by_part(np.array([node]))
        return self.stores[part].vectors(int(own[0]))

    def similarities(self, vectors_AD: FloatArray, nodes: Numbers) -> FloatArray:
        """Of each of some nodes the largest product of its stored vectors with each vector: (U, A).

        For many vectors and few nodes: no tables are made. Vectors are rotated as the stored ones are, not these back.
        """
        out = np.full((len(nodes), len(vectors_AD)), -1.0, np.float32)
        for part, places, own in self.numbering.by_part(nodes):
            store = self.stores[part]
            rotated_DA = np.ascontiguousarray((vectors_AD @ store.quantiser.rotation_DD.T).T)
            for place, node in zip(places.tolist(), own.tolist(), strict=True):
                stored = store.quantised(int(store.offsets[node]), int(store.offsets[node + 1]))
                found = store.quantiser.decode_rotated(stored) @ rotated_DA
                out[place] = found.max(axis=0, initial=-1.0)
        return out


class VisiblePostings:
    """Term counts of the visible nodes; threads may share it."""

    def __init__(self, postings: Sequence[Postings], numbering: Numbering, statistics: Statistics) -> None:
        self.postings = tuple(postings)
        self.numbering = numbering
        self.statistics = statistics
        self._norms: dict[tuple[str, float, float], FloatArray] = {}

    @property
    def analysis(self) -> Analysis:
        """How the texts of all parts became terms."""
        return self.postings[0].analysis if self.postings else ENGLISH

    def terms(self, question: str) -> QueryTerms:
        """The question's terms that some node has, and how rare they are; a compound may be there in two parts."""
        terms = telling_terms(question, self.analysis)
        holders = self.statistics.holders(_hashes(terms))
        compounds = self._compounds([term for term, count in zip(terms, holders, strict=True) if not count])
        if compounds:
            terms = list(dict.fromkeys(part for term in terms for part in compounds.get(term, (term,))))
            holders = self.statistics.holders(_hashes(terms))
        known = np.flatnonzero(holders)
        if len(known) > MAX_TERMS:
            known = np.sort(known[np.argsort(holders[known], kind="stable")[:MAX_TERMS]])
        kept = tuple(terms[n] for n in known.tolist())
        missing = count_missing(question, {*kept, *compounds}, self.analysis)
        return QueryTerms(kept, _hashes(kept), self.statistics.rarity(holders[known]), missing)

    def _compounds(self, unknown: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Of words that no node has, the two parts that nodes have: restaurierungsauftrag, restaurierung auftrag."""
        found: dict[str, tuple[str, ...]] = {}
        for term in unknown:
            splits = self.analysis.splits(term)
            if splits:
                holders = self.statistics.holders(_hashes([part for split in splits for part in split])).reshape(-1, 2)
                both = np.minimum(holders[:, 0], holders[:, 1])
                if both.any():
                    found[term] = splits[int(np.argmax(both > 0))]
        return found

    def counts(self, terms: QueryTerms, nodes: Numbers) -> NDArray[np.uint8]:
        """How often each term stands in each of the nodes, which ascend: (U, T)."""
        counts = np.zeros((len(nodes), len(terms.terms)), np.uint8)
        for part, places, own in self.numbering.by_part(nodes):
            postings = self.postings[part]
            numbers = postings.numbers(terms.hashes)
            known = numbers >= 0
            first = np.where(known, postings.offsets[numbers], 0)
            last = np.where(known, postings.offsets[numbers + 1], 0)
            count_terms(own, places, first, last, postings.nodes, postings.counts, counts)
        return counts

    def node_bm25(self, terms: QueryTerms, *, k1: float, b: float) -> FloatArray:
        """BM25 of every visible node as if the other node of its edges held none of the terms: (N + 1), last 0."""
        scores = np.zeros(self.numbering.node_count + 1, np.float32)
        norms = self._edge_norms(k1, b)
        for part, postings in enumerate(self.postings):
            numbers = self.numbering.node_numbers(part)
            for t, number in enumerate(postings.numbers(terms.hashes).tolist()):
                if number >= 0:
                    postings.check_spans(
                        postings.offsets[number : number + 1], postings.offsets[number + 1 : number + 2]
                    )
                    span = slice(int(postings.offsets[number]), int(postings.offsets[number + 1]))
                    add_visible_bm25(
                        postings.nodes[span], postings.counts[span], numbers, norms, terms.idf_T[t], np.float32(k1),
                        scores,
                    )  # fmt: skip
        return scores

    def _edge_norms(self, k1: float, b: float) -> FloatArray:
        """What divides the count of a term in an edge of each visible node with a partner of mean length: (N)."""
        key = ("edge", k1, b)
        if key not in self._norms:
            statistics, own = self.statistics, self.numbering
            lengths = self.lengths(np.arange(own.node_count)).astype(np.float32)
            partner = np.where(
                np.arange(own.node_count) < own.segment_count, statistics.mean_passage_length,
                statistics.mean_edge_length - statistics.mean_passage_length,
            )  # fmt: skip
            norms = k1 * (1.0 - b + b * (lengths + partner) / statistics.mean_edge_length)
            self._norms[key] = np.asarray(np.maximum(norms, 1e-6), np.float32)
        return self._norms[key]

    def passages_with(self, hashes: NDArray[np.uint64], *, most: int) -> PassageSpans:
        """The visible passages that hold each term, by its hash; none for a term that more than `most` hold."""
        spans = [_passage_spans(postings, hashes) for postings in self.postings]
        rare = sum(last - first for first, last in spans) <= most
        spans = [(first, np.where(rare, last, first)) for first, last in spans]
        for postings, (first, last) in zip(self.postings, spans, strict=True):
            postings.check_spans(first, last, least=postings.segment_count)
        if len(self.postings) == 1 and self.numbering.whole:
            ((first, last),) = spans
            postings = self.postings[0]
            return PassageSpans(first, last, postings.nodes, postings.counts, postings.segment_count)
        found = [self._visible_passages(part, *span) for part, span in enumerate(spans)]
        terms, passages, counts = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.lexsort((passages, terms))
        ends = np.cumsum(np.bincount(terms, minlength=len(hashes)))
        first = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        return PassageSpans(first, ends.astype(np.int64), passages[order].astype(np.int32), counts[order], 0)

    def _visible_passages(self, part: int, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers, NDArray[np.uint8]]:
        """Terms, numbers and counts of the visible passages in spans of one part's postings."""
        postings, (_, numbers) = self.postings[part], self.numbering.numbers_of(part)
        sizes = last - first
        places = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        own = postings.nodes[places] - postings.segment_count
        shown = (
            np.where(own < len(numbers), numbers[np.minimum(own, max(len(numbers) - 1, 0))], -1)
            if len(numbers)
            else np.full(len(own), -1)
        )
        kept = shown >= 0
        return np.repeat(np.arange(len(first)), sizes)[kept], shown[kept], postings.counts[places][kept]

    def passage_bm25(self, terms: QueryTerms, *, k1: float, b: float, most: int) -> FloatArray:
        """BM25 of every visible passage on its own, terms left out that more than `most` passages hold: (P)."""
        spans = self.passages_with(terms.hashes, most=most)
        scores = np.zeros(self.numbering.passage_count, np.float32)
        norms = self.passage_norms(k1, b)
        for t in range(len(terms.terms)):
            span = slice(int(spans.first[t]), int(spans.last[t]))
            add_bm25(
                spans.passages[span], spans.counts[span], spans.shift, norms, terms.idf_T[t], np.float32(k1), scores
            )
        return scores

    def passage_norms(self, k1: float, b: float) -> FloatArray:
        """What divides the count of a term in each visible passage, by its length: (P)."""
        key = ("passage", k1, b)
        if key not in self._norms:
            own, segments = self.numbering, self.numbering.segment_count
            lengths = self.lengths(np.arange(segments, segments + own.passage_count)).astype(np.float32)
            mean = np.float32(max(1.0, self.statistics.mean_passage_length))
            self._norms[key] = np.asarray(k1 * (1.0 - b + b * lengths / mean), np.float32)
        return self._norms[key]

    def lengths(self, nodes: Numbers) -> NDArray[np.int32]:
        """Words of each of the nodes: (U)."""
        lengths = np.empty(len(nodes), np.int32)
        for part, places, own in self.numbering.by_part(nodes):
            lengths[places] = self.postings[part].lengths[own]
        return lengths


class Threads:
    """Runs kernels over ranges, on several threads where there are; a closed one raises RuntimeError."""

    def __init__(self, count: int = 1) -> None:
        self._count = max(1, count)
        self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="search") if self._count > 1 else None
        self._closed = False

    def split(self, count: int, kernel: Callable[..., None], *arguments: Any) -> None:
        """Run a kernel over [0, count), in as many ranges as there are threads."""
        if self._closed:
            raise RuntimeError("the engine is closed")
        if self._pool is None or count < SHARED_OUT:
            kernel(*arguments, 0, count)
            return
        edges = np.linspace(0, count, 4 * self._count + 1).astype(np.int64)
        spans = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        for future in [self._pool.submit(kernel, *arguments, start, stop) for start, stop in spans]:
            future.result()

    def close(self) -> None:
        """End the threads, when what they are doing is done."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown()


def query_of(text: str, tokens: TokenVectors, vectors: VisibleTokens, postings: VisiblePostings) -> Query:
    """A question in the terms of an index; padding has weight 0."""
    lanes = padded(len(tokens.vectors))
    padded_QD = np.zeros((lanes, tokens.vectors.shape[1]), np.float32)
    padded_QD[: len(tokens.vectors)] = tokens.vectors
    weights = np.zeros(lanes, np.float32)
    weights[: len(tokens.ids)] = _lightened(vectors.token_weights(tokens.ids), text, tokens)
    tables, step = vectors.tables(padded_QD, weights)
    return Query(text, tokens, weights, tables, step, postings.terms(text))


def _lightened(weights: FloatArray, text: str, tokens: TokenVectors) -> FloatArray:
    """Weights with mean 1 of which function words have little, however rare they are in the corpus."""
    for start, end in function_spans(text):
        inside = (tokens.spans[:, 0] >= start) & (tokens.spans[:, 1] <= end)
        weights = np.where(inside, np.minimum(weights, np.float32(LIGHT)), weights)
    return np.asarray(weights / max(float(weights.mean()), 1e-6), np.float32) if len(weights) else weights


def _passage_spans(postings: Postings, hashes: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Where the postings of each term's passages begin and end; empty for an unknown term."""
    numbers = postings.numbers(hashes)
    known = numbers >= 0
    last = np.where(known, postings.offsets[numbers + 1], 0)
    first = lower_bounds(postings.nodes, np.where(known, postings.offsets[numbers], 0), last, postings.segment_count)
    return first, last


def _distinct(codecs: Sequence[Quantiser]) -> tuple[tuple[Quantiser, ...], tuple[int, ...]]:
    """Codebooks that differ, and for each of the given ones which of them it is."""
    found: list[Quantiser] = []
    numbers = []
    for codec in codecs:
        number = next((n for n, other in enumerate(found) if other is codec), len(found))
        if number == len(found):
            found.append(codec)
        numbers.append(number)
    return tuple(found), tuple(numbers)


def _whole_patterns(table_GPQ: FloatArray) -> tuple[NDArray[np.int8], np.float32]:
    """Products with residual patterns as whole numbers, and their step."""
    groups = table_GPQ.shape[0]
    most = min(PATTERN_RANGE, 32767 // max(groups, 1))
    step = np.float32(max(float(np.abs(table_GPQ).max(initial=0.0)), 1e-6) / most)
    return np.rint(table_GPQ / step).astype(np.int8), step


def _hashes(terms: Sequence[str]) -> NDArray[np.uint64]:
    return np.array([term_hash(term) for term in terms], np.uint64)

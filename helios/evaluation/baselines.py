"""Retrievers to compare with: BM25 and dense single vectors over nodes, stars and edges.

Both hold everything in memory and rebuild it from the corpus: they are yardsticks, not the engine.
Shapes: S segments, P passages, U retrieval units, D vector dimensions.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import ConfigError, EvaluationError
from helios.evaluation.edges import Corpus, RankedEdge, with_texts
from helios.evaluation.linearise import linearise_passage, linearise_segment
from helios.evaluation.units import RetrievalUnit, edge_pairs, edges_of_ranking, lone_passages
from helios.extras import installation
from helios.graph import DataGraph
from helios.types import Edge, ScoredEdge

K1, B = 0.9, 0.4

_WORD = re.compile(r"\w+")


class Bm25Baseline:
    """BM25 (bm25s) over one kind of retrieval unit; every unit's text is its nodes' texts."""

    def __init__(self, corpus: Corpus, graph: DataGraph, *, unit: RetrievalUnit, k1: float = K1, b: float = B) -> None:
        """Tokenise the corpus and index it; minutes and gigabytes for a large corpus."""
        _check_sizes(graph, corpus.segment_count, len(corpus.passages))
        self.corpus, self.graph, self.unit = corpus, graph, unit
        self._terms = terms = _Terms()
        segments = [terms.learn(linearise_segment(segment)) for segment in corpus.segments()]
        passages = [terms.learn(linearise_passage(passage)) for passage in corpus.passages]
        self._pairs = edge_pairs(graph)
        self._lone = lone_passages(graph)
        if unit is not RetrievalUnit.EDGE:
            self._passages = _index(_Bags((p,) for p in passages), len(terms), k1=k1, b=b)
        if unit is RetrievalUnit.NODE:
            bags = _Bags((s,) for s in segments)
        elif unit is RetrievalUnit.STAR:
            stars = [(s, *(passages[p] for p in graph.passages_of(n))) for n, s in enumerate(segments)]
            bags = _Bags([*stars, *((passages[p],) for p in self._lone)])
        else:
            bags = _Bags(
                tuple(side[n] for side, n in zip((segments, passages), pair, strict=True) if n >= 0)
                for pair in self._pairs.tolist()
            )
        self._units = _index(bags, len(terms), k1=k1, b=b)

    def search(self, question: str, *, k: int = 50) -> tuple[RankedEdge, ...]:
        """The k best edges; fewer where fewer share a word with the question."""
        tokens = self._terms.find(question)
        if not tokens:
            return ()
        scores = self._units.get_scores_from_ids(tokens)
        if self.unit is RetrievalUnit.EDGE:
            edges = _best_pairs(self._pairs, scores, k=k)
        else:
            passage_scores = self._passages.get_scores_from_ids(tokens)
            edges = _rank_segments(self.graph, self.unit, self._lone, scores, passage_scores, k=k)
        return with_texts(edges, self.corpus)


class DenseBaseline:
    """Cosine between the question's vector and one vector per unit, by brute force.

    A unit's vector is the sum of its nodes' unit vectors, so only nodes need encoding.
    """

    def __init__(
        self,
        corpus: Corpus,
        graph: DataGraph,
        segment_vectors: NDArray[np.float32],
        passage_vectors: NDArray[np.float32],
        encode: Callable[[str], NDArray[np.float32]],
        *,
        unit: RetrievalUnit = RetrievalUnit.EDGE,
    ) -> None:
        """Vectors are float32[S, D] and float32[P, D] of any length; `encode` gives float32[D]."""
        _check_sizes(graph, len(segment_vectors), len(passage_vectors))
        if segment_vectors.shape[1:] != passage_vectors.shape[1:]:
            raise EvaluationError("segment and passage vectors differ in dimension")
        self.corpus, self.graph, self.unit, self._encode = corpus, graph, unit, encode
        self._segments, self._passages = _unit_vectors(segment_vectors), _unit_vectors(passage_vectors)
        self._pairs = edge_pairs(graph)
        self._lone = lone_passages(graph)
        if unit is RetrievalUnit.STAR:
            self._norms = self._star_norms()
        elif unit is RetrievalUnit.EDGE:
            self._norms = self._edge_norms()

    def search(self, question: str, *, k: int = 50) -> tuple[RankedEdge, ...]:
        """The k best edges."""
        query = _unit_vectors(self._encode(question)[None])[0]
        segments, passages = self._segments @ query, self._passages @ query
        if self.unit is RetrievalUnit.EDGE:
            scores = (_side(segments, self._pairs[:, 0]) + _side(passages, self._pairs[:, 1])) / self._norms
            edges = _best_pairs(self._pairs, scores, k=k, floor=-np.inf)
        else:
            if self.unit is RetrievalUnit.STAR:
                sums = np.bincount(
                    self.graph.edge_segments, passages[self.graph.edge_passages], minlength=len(segments)
                )
                segments = np.concatenate([(segments + sums) / self._norms, passages[self._lone]])
            edges = _rank_segments(self.graph, self.unit, self._lone, segments, passages, k=k, floor=-np.inf)
        return with_texts(edges, self.corpus)

    def _edge_norms(self, *, batch: int = 65536) -> NDArray[np.float32]:
        """float32[U]: |s + p| of every pair, 1 for a lone node."""
        norms = np.ones(len(self._pairs), dtype=np.float32)
        for start in range(0, self.graph.edge_count, batch):
            rows = slice(start, min(start + batch, self.graph.edge_count))
            pairs = self._pairs[rows]
            norms[rows] = np.linalg.norm(self._segments[pairs[:, 0]] + self._passages[pairs[:, 1]], axis=1)
        return np.maximum(norms, 1e-6)

    def _star_norms(self) -> NDArray[np.float32]:
        """float32[S]: |s + sum of its passages|."""
        norms = np.empty(len(self._segments), dtype=np.float32)
        for segment, vector in enumerate(self._segments):
            norms[segment] = np.linalg.norm(vector + self._passages[self.graph.passages_of(segment)].sum(axis=0))
        return np.maximum(norms, 1e-6)


class Bm25Texts:
    """BM25 (bm25s) over plain texts, and what single texts are worth for a question by the same statistics."""

    def __init__(self, texts: Sequence[str], *, k1: float = K1, b: float = B) -> None:
        self.k1 = k1
        self._terms = terms = _Terms()
        bags = [terms.learn(text) for text in texts]
        self._index = _index(_Bags((bag,) for bag in bags), len(terms), k1=k1, b=b)
        holding = np.zeros(len(terms), np.int64)
        for bag in bags:
            holding[np.unique(bag)] += 1
        self._idf = np.log1p((len(bags) - holding + 0.5) / (holding + 0.5))

    def scores(self, question: str) -> NDArray[np.float32]:
        """A score for every text; 0 where it shares no word with the question."""
        terms = self._terms.find(question)
        found = self._index.get_scores_from_ids(terms) if terms else np.zeros(len(self))
        return np.asarray(found, np.float32)

    def worth(self, question: str, text: str) -> float:
        """BM25 of a text that need not be one of the indexed ones, its length left aside."""
        held = Counter(self._terms.find(text))
        wanted = (term for term in set(self._terms.find(question)) if term in held)
        return float(sum(self._idf[term] * held[term] / (held[term] + self.k1) for term in wanted))

    def __len__(self) -> int:
        return int(self._index.scores["num_docs"])


class _Terms:
    """Words to the numbers of their stems: lower case, English stop words dropped, Snowball stems."""

    def __init__(self) -> None:
        bm25s, stemmer = _libraries()
        self._stem: Callable[[str], str] = stemmer.Stemmer("english").stemWord
        self._words: dict[str, int | None] = dict.fromkeys(bm25s.stopwords.STOPWORDS_EN)
        self._stems: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._stems)

    def learn(self, text: str) -> NDArray[np.int32]:
        """Term numbers int32[n] of a document; new stems get the next numbers."""
        words = _WORD.findall(text.casefold())
        for word in words:
            if word not in self._words:
                self._words[word] = self._stems.setdefault(self._stem(word), len(self._stems))
        terms = (self._words[word] for word in words)
        return np.array([term for term in terms if term is not None], dtype=np.int32)

    def find(self, text: str) -> list[int]:
        """Term numbers of a question's words, those of no document left out."""
        words = (word for word in _WORD.findall(text.casefold()) if self._words.get(word, 0) is not None)
        return [self._stems[stem] for stem in map(self._stem, words) if stem in self._stems]


class _Bags:
    """Units as token lists made when asked for: `ids` and `vocab` are what bm25s reads."""

    def __init__(self, units: Iterable[tuple[NDArray[np.int32], ...]]) -> None:
        self._units = list(units)
        self.ids = self
        self.vocab: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._units)

    def __iter__(self) -> Iterator[list[int]]:
        for parts in self._units:
            yield np.concatenate(parts).tolist()


def _libraries() -> tuple[Any, Any]:
    """bm25s and PyStemmer; ConfigError says what to install."""
    try:
        import bm25s
        import Stemmer
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the BM25 baselines need {error.name}, which is not installed: {installation('bm25s')}"
        ) from None
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for DEBUG when it is imported
    return bm25s, Stemmer


def _index(bags: _Bags, term_count: int, *, k1: float, b: float) -> Any:
    """A bm25s index of the bags."""
    if not len(bags) or not term_count:
        raise EvaluationError("the corpus has no text to index")
    bags.vocab = {str(term): term for term in range(term_count)}
    index = _libraries()[0].BM25(k1=k1, b=b, backend="numba")
    index.index(bags, show_progress=False, create_empty_token=False)
    return index


def _rank_segments(
    graph: DataGraph,
    unit: RetrievalUnit,
    lone: NDArray[np.int64],
    scores: NDArray[np.floating],
    passage_scores: NDArray[np.floating],
    *,
    k: int,
    floor: float = 0.0,
) -> list[ScoredEdge]:
    """Edges of the best segments.

    Stars (scores of S segments, then of the lone passages) compete by score. Nodes are ranked apart: a
    lone passage comes after as many segments as there are better passages.
    """
    count = graph.segment_count
    segments = [(Edge(int(n), None), float(scores[n])) for n in _best(scores[:count], k, floor)]
    if unit is RetrievalUnit.STAR:
        alone = [(Edge(None, int(lone[n])), float(scores[count + n])) for n in _best(scores[count:], k, floor)]
        ranking = sorted(segments + alone, key=lambda item: -item[1])
    else:
        is_lone = np.isin(best := _best(passage_scores, k, floor), lone)
        places = [(rank, 1, Edge(None, int(p)), float(passage_scores[p])) for rank, p in enumerate(best)]
        places = [place for place, keep in zip(places, is_lone, strict=True) if keep]
        places += [(rank, 0, edge, score) for rank, (edge, score) in enumerate(segments)]
        ranking = [(edge, score) for _, _, edge, score in sorted(places, key=lambda place: place[:2])]
    return edges_of_ranking(graph, ranking, passage_scores, k=k)


def _best_pairs(
    pairs: NDArray[np.int32], scores: NDArray[np.floating], *, k: int, floor: float = 0.0
) -> list[ScoredEdge]:
    """The k best pairs."""
    return [
        ScoredEdge(Edge(*(None if n < 0 else int(n) for n in pairs[u])), float(scores[u]))
        for u in _best(scores, k, floor)
    ]


def _best(scores: NDArray[np.floating], k: int, floor: float) -> NDArray[np.int64]:
    """Numbers of the k highest scores above the floor, best first; ties by lower number."""
    if k < len(scores):
        cut = np.partition(scores, len(scores) - k)[len(scores) - k]
        candidates = np.flatnonzero((scores >= cut) & (scores > floor))
    else:
        candidates = np.flatnonzero(scores > floor)
    order = np.argsort(-scores[candidates], kind="stable")
    best: NDArray[np.int64] = candidates[order][:k]
    return best


def _side(scores: NDArray[np.floating], numbers: NDArray[np.int32]) -> NDArray[np.floating]:
    """Scores of one side of the pairs, 0 where the side is missing."""
    if not len(scores):
        return np.zeros(len(numbers), dtype=np.float32)
    return np.where(numbers < 0, 0, scores[numbers])


def _unit_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1; a zero row stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32)


def _check_sizes(graph: DataGraph, segment_count: int, passage_count: int) -> None:
    if (graph.segment_count, graph.passage_count) != (segment_count, passage_count):
        raise EvaluationError(
            f"the graph has {graph.segment_count} segments and {graph.passage_count} passages, "
            f"the corpus {segment_count} and {passage_count}: they are not of the same index"
        )

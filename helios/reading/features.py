"""What the ranker of answers sees of a candidate: where it stands, what stands around it, and what is asked for.

Everything is computed for all candidates of a node at once.
Shape legend: N candidates, W words and L tokens of a node, Q tokens and T terms of the question, F features.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.index.lexical import terms_of
from helios.models.encoder import TokenVectors
from helios.models.text import Piece
from helios.reading.question import STOP, Asked, Kind
from helios.reading.ranges import RangeMax, running
from helios.reading.spans import MONTHS, NUMBER_WORDS, ReadNode, Shape, Span, place_number, tokens_of
from helios.types import Evidence

if TYPE_CHECKING:
    from helios.reading.passages import ReadPassages

FloatArray = NDArray[np.float32]

FEATURES = (
    # the edge
    "rank", "edges", "is_segment", "segment_order", "table_share", "relative_score", "edge_similarity",
    "edge_similarity_gap", "node_similarity", "node_coverage", "partner_coverage", "edge_coverage",
    # the span
    "shape", "words", "characters", "digits", "year", "number_first", "capitals", "in_question", "all_in_question",
    "sentence", "position", "word_in_sentence", "linked_cell", "copies", "cell_copies", "in_title", "brackets",
    "before", "after", "month",
    # the question
    "kind", "asking", "question_words", "focus_words",
    # both
    "header_focus", "header_question", "header_focus_similarity", "header_similarity", "focus_in_span",
    "focus_in_sentence", "focus_distance", "left_distance", "right_distance", "near_coverage", "far_coverage",
    "sentence_coverage", "sentence_rest", "focus_similarity", "asking_similarity", "own_similarity",
    "near_similarity", "sentence_similarity", "rest_similarity", "left_focus_similarity",
    # the reader of passages: how far behind its best candidate, how likely, and whether the text answers; not a number
    # for what it has not read
    "read_gap", "read_chance", "read_answers",
)  # fmt: skip
READ_FEATURES = FEATURES[-3:]
KINDS = tuple(Kind)
SHAPES = tuple(Shape)
ASKING = ("", "what", "which", "who", "whom", "whose", "when", "where", "how", "why")
NEIGHBOURS = (
    ("",), ("in",), ("on",), ("at",), ("by",), ("from", "since", "until"), ("of",), ("the", "a", "an"),
    ("(", "[", "-", "–"),
    (")", "]"), (",",), (".", ";"), ("is", "was", "are", "were"), ("as",), ("to", "into"), ("and", "&", "or"),
    ("named", "called", "known", "nicknamed", "titled"), ("for", "with"), ("born",), ("'", "'s", "\"", "``", "''"),
)  # fmt: skip
NEIGHBOUR = {word: code for code, words in enumerate(NEIGHBOURS) for word in words}
NEAR, FAR = 4, 10
"""Words to each side of a candidate."""
FAR_AWAY = 99.0
COMPARED = 20
"""Best edges whose scores an edge's score is compared with."""
MATCHED = 0.6
"""A question token with a greater similarity to some token of a node is matched there."""


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """A question with the vectors (Q, D) of its tokens and what each token is."""

    asked: Asked
    vectors: FloatArray
    content: NDArray[np.bool_]
    focus: NDArray[np.bool_]
    asking: NDArray[np.bool_]
    weights: dict[str, float]
    """How telling each term is."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The distinct terms, in the order of `weights`."""
        return tuple(self.weights)

    @property
    def total(self) -> float:
        """The weight of all terms."""
        return sum(self.weights.values()) or 1.0


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node's words, and their similarities to the question's tokens: what its candidates share."""

    node: ReadNode
    words: tuple[str, ...]
    """Lower-cased words and marks."""
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    terms: tuple[str, ...]
    """The term of every word; empty for marks and stop words."""
    token_starts: NDArray[np.int32]
    token_ends: NDArray[np.int32]
    similarity: FloatArray
    """(L, Q)"""
    coverage: frozenset[str]
    """The question's terms that the node holds."""

    @property
    def id(self) -> object:
        """The id of the segment or the passage."""
        if self.node.segment is not None:
            return self.node.segment.segment_id
        return self.node.passage.passage_id if self.node.passage is not None else None


def question_facts(asked: Asked, tokens: TokenVectors, nodes: Sequence[ReadNode]) -> QuestionFacts:
    """Mark the question's tokens (content words, focus, asking word); terms that few nodes hold weigh more."""
    starts, ends = tokens.spans[:, 0], tokens.spans[:, 1]
    first, last = asked.focus_span
    words = [asked.text[start:end].lower() for start, end in tokens.spans.tolist()]
    content = np.array([word not in STOP for word in words], bool)
    if not content.any():
        content[:] = True
    inside = (starts >= first) & (ends <= last)
    asking = inside & (starts < first + len(asked.word))
    texts = [frozenset(terms_of(node.text.text)) for node in nodes]
    counts = Counter(term for text in texts for term in set(asked.terms) & text)
    weights = {term: math.log(1 + len(texts) / (0.5 + counts[term])) for term in asked.terms}
    return QuestionFacts(asked, tokens.vectors, content, inside & ~asking & content, asking, weights)


def node_facts(question: QuestionFacts, node: ReadNode, tokens: TokenVectors) -> NodeFacts:
    """Words, matches and similarities of one node."""
    found = tokens_of(node.text.text)
    return NodeFacts(
        node,
        tuple(token.lower for token in found),
        np.array([token.start for token in found], np.int32),
        np.array([token.end for token in found], np.int32),
        tuple(_term(token.lower) for token in found),
        tokens.spans[:, 0],
        tokens.spans[:, 1],
        tokens.vectors @ question.vectors.T,
        frozenset(terms_of(node.text.text)) & frozenset(question.terms),
    )


def features_of(
    question: QuestionFacts, evidence: Evidence, facts: Sequence[NodeFacts], spans: Sequence[Span]
) -> FloatArray:
    """float32 (N, F): one row a candidate, in the order of FEATURES; spans are grouped by node."""
    rows = np.zeros((len(spans), len(FEATURES)), np.float32)
    asked = question.asked
    shared = [KINDS.index(asked.kind), ASKING.index(asked.word), len(asked.terms), len(asked.focus)]
    nodes = np.array([span.node for span in spans], np.int64)
    edges = _edge_facts(question, evidence, facts)
    for number, fact in enumerate(facts):
        here = np.flatnonzero(nodes == number)
        if len(here):
            table = _NodeTable(question, fact, edges[number], [spans[at] for at in here.tolist()])
            own, both = table.own(), table.both()
            rows[here, : len(FEATURES) - len(READ_FEATURES)] = np.column_stack(
                [np.tile(edges[number].values, (len(here), 1)), own, np.tile(shared, (len(here), 1)), both]
            )
    rows[:, -len(READ_FEATURES) :] = np.nan
    for name, column in zip(("copies", "cell_copies"), _copies(facts, spans), strict=True):
        rows[:, FEATURES.index(name)] = column
    return rows


def add_read_features(features: FloatArray, spans: Sequence[Span], passages: "ReadPassages") -> None:
    """Fill in the last columns of `features`, in place: the likeliest of the windows that a candidate is in."""
    best = np.full((len(spans), 2), np.nan, np.float32)
    nodes, starts, ends = np.array([(span.node, span.start, span.end) for span in spans], np.int64).reshape(-1, 3).T
    for window, read in zip(passages.windows, passages.read, strict=True):
        for node, offset, _ in window.nodes:
            here = np.flatnonzero(nodes == node)
            chances = read.chances_of(starts[here] + offset, ends[here] + offset)
            likelier = ~np.isnan(chances) & ~(chances <= best[here, 0])
            best[here[likelier], 0], best[here[likelier], 1] = chances[likelier], read.answers
    known = best[~np.isnan(best[:, 0]), 0]
    if len(known):
        features[:, -3] = best[:, 0] - known.max()
        features[:, -2:] = best


def span_key(text: str) -> str:
    """Spans with the same key are the same answer."""
    return " ".join(terms_of(text)) or text.strip().lower()


def _term(word: str) -> str:
    if word in STOP or not word[0].isalnum():
        return ""
    terms = terms_of(word)
    return terms[0] if terms else ""


def _copies(facts: Sequence[NodeFacts], spans: Sequence[Span]) -> tuple[list[float], list[float]]:
    """For every span: how many nodes hold the same words as a candidate, and how many rows as a whole cell."""
    keys = [facts[span.node].node.text.text[span.start : span.end].lower() for span in spans]
    nodes: dict[str, set[int]] = {}
    cells: dict[str, set[int]] = {}
    for key, span in zip(keys, spans, strict=True):
        nodes.setdefault(key, set()).add(span.node)
        if span.shape == Shape.CELL:
            cells.setdefault(key, set()).add(span.node)
    return [float(len(nodes[key])) for key in keys], [float(len(cells.get(key, ()))) for key in keys]


@dataclass(frozen=True, slots=True)
class _EdgeFacts:
    """A node's best edge: its features, the columns that link, and what the other node says of the question."""

    values: FloatArray
    linked: frozenset[int]
    partner_coverage: frozenset[str]
    rest: NDArray[np.bool_]
    """bool (Q): content tokens of the question that the other node does not match."""


def _edge_facts(question: QuestionFacts, evidence: Evidence, facts: Sequence[NodeFacts]) -> list[_EdgeFacts]:
    scores = np.array([edge.score for edge in evidence.edges[:COMPARED]] or [0.0])
    relative = (scores - scores.min()) / (float(np.ptp(scores)) or 1.0)
    by_id = {fact.id: fact for fact in facts}
    order: dict[object, int] = {}
    for scored in evidence.edges:
        if scored.segment is not None:
            order.setdefault(scored.segment.segment_id, len(order))
    tables = Counter(edge.segment.segment_id.table_id for edge in evidence.edges[:10] if edge.segment is not None)
    found = []
    for fact in facts:
        edge = evidence.edges[fact.node.ranks[0] - 1]
        segment_id = edge.segment.segment_id if edge.segment is not None else None
        passage_id = edge.passage.passage_id if edge.passage is not None else None
        partner = by_id.get(passage_id if fact.node.segment is not None else segment_id)
        own = fact.similarity.max(axis=0)
        theirs = partner.similarity.max(axis=0) if partner is not None else np.zeros_like(own)
        covered = partner.coverage if partner is not None else frozenset[str]()
        weigh = [sum(question.weights[t] for t in terms) for terms in (fact.coverage, covered, fact.coverage | covered)]
        values = [
            edge.rank, len(fact.node.ranks), fact.node.segment is not None, order.get(segment_id, 99),
            tables[segment_id.table_id] if segment_id is not None else 0, relative[min(edge.rank, COMPARED) - 1],
            np.maximum(own, theirs)[question.content].mean(), 0.0, own[question.content].mean(),
            *(weight / question.total for weight in weigh),
        ]  # fmt: skip
        columns = frozenset(link.column for rank in fact.node.ranks for link in evidence.edges[rank - 1].links)
        rest = question.content & (theirs < MATCHED)
        found.append(_EdgeFacts(np.array(values, np.float32), columns, covered, rest))
    best = max((edge.values[6] for edge in found), default=0.0)
    for one in found:
        one.values[7] = best - one.values[6]
    return found


class _NodeTable:
    """Features of one node's candidates: arrays over its words, read at the bounds of every candidate."""

    def __init__(self, question: QuestionFacts, fact: NodeFacts, edge: _EdgeFacts, spans: Sequence[Span]) -> None:
        self.question, self.fact, self.edge, self.spans = question, fact, edge, spans
        self.pieces = np.array([span.piece for span in spans])
        pieces = fact.node.text.pieces
        bounds = np.array([(span.start, span.end) for span in spans])
        places = np.array([(piece.start, piece.end) for piece in pieces])[self.pieces]
        self.characters = bounds
        self.first, self.last = self._words(bounds)
        self.begin, self.end = self._words(places)
        self.near = np.maximum(self.begin, self.first - NEAR), np.minimum(self.end, self.last + NEAR)
        self.far = np.maximum(self.begin, self.first - FAR), np.minimum(self.end, self.last + FAR)
        self.length = np.maximum(1, self.last - self.first)

    def own(self) -> FloatArray:
        """The candidates alone and where they stand: float32 (N, 20)."""
        fact, words, node = self.fact, self.fact.words, self.fact.node
        text, title = node.text.text, set(terms_of(node.title))
        strings = [text[span.start : span.end] for span in self.spans]
        termed = self._count([bool(term) for term in fact.terms])
        known = self._count([term in self.question.weights for term in fact.terms])
        titled = self._count([term in title for term in fact.terms])
        capitals = self._count([text[start].isupper() for start in fact.starts.tolist()])
        months = self._count([word in MONTHS for word in words])
        numbers = np.array([-1 if (n := place_number(piece)) is None else n for piece in node.text.pieces])[self.pieces]
        before = [words[at - 1] if at > low else "" for at, low in zip(self.first, self.begin, strict=True)]
        after = [words[at] if at < high else "" for at, high in zip(self.last, self.end, strict=True)]
        linked = [node.segment is not None and number in self.edge.linked for number in numbers.tolist()]
        none = np.zeros(len(strings))
        return np.column_stack(
            [
                [SHAPES.index(span.shape) for span in self.spans], self.last - self.first, [len(s) for s in strings],
                [sum(map(str.isdigit, s)) for s in strings], [len(s) == 4 and s.isdigit() for s in strings],
                [s[0].isdigit() or s.split()[0].lower() in NUMBER_WORDS for s in strings], capitals / self.length,
                known / np.maximum(1, termed), (termed > 0) & (known == termed), numbers,
                self.first / max(1, len(words)), self.first - self.begin, linked, none, none,
                titled / np.maximum(1, termed), [word in ("(", "[") for word in before],
                [NEIGHBOUR.get(word, len(NEIGHBOURS)) for word in before],
                [NEIGHBOUR.get(word, len(NEIGHBOURS)) for word in after], months > 0,
            ]
        ).astype(np.float32)  # fmt: skip

    def both(self) -> FloatArray:
        """How the candidates' surroundings agree with the question: float32 (N, 20)."""
        focus = self._nearest([term in self.question.asked.focus for term in self.fact.terms])
        matches = self._nearest([term in self.question.weights for term in self.fact.terms])
        in_focus = [term in self.question.asked.focus for term in self.fact.terms]
        total = running(np.array(in_focus, np.float32))
        distance = np.where(focus[0] <= focus[1], focus[0], -focus[1])
        return np.column_stack(
            [
                *self._header(), total[self.last] - total[self.first], total[self.end] - total[self.begin],
                np.where(np.minimum(*focus) >= FAR_AWAY, FAR_AWAY, distance), *matches,
                *self._coverages(), *self._similarities(),
            ]
        ).astype(np.float32)  # fmt: skip

    def _words(self, bounds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers [first, last) of the words inside characters [start, end)."""
        first = np.searchsorted(self.fact.ends, bounds[:, 0], side="right")
        return first, np.maximum(first, np.searchsorted(self.fact.starts, bounds[:, 1], side="left"))

    def _tokens(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = np.searchsorted(self.fact.token_ends, start, side="right")
        return first, np.maximum(first, np.searchsorted(self.fact.token_starts, end, side="left"))

    def _count(self, flags: Sequence[bool]) -> FloatArray:
        """How many words of each candidate have a flag."""
        total = running(np.array(flags, np.float32))
        counts: FloatArray = total[self.last] - total[self.first]
        return counts

    def _nearest(self, flags: Sequence[bool]) -> tuple[FloatArray, FloatArray]:
        """Words from each candidate to the nearest flagged one on its left and right, within its piece."""
        at = np.flatnonzero(np.array(flags, bool))
        padded = np.concatenate([[-10_000], at, [10_000]])
        left = padded[np.searchsorted(at, self.first, side="left")]
        right = padded[np.searchsorted(at, self.last, side="left") + 1]
        return (
            np.where(left >= self.begin, self.first - left, FAR_AWAY).astype(np.float32),
            np.where(right < self.end, right - self.last + 1, FAR_AWAY).astype(np.float32),
        )

    def _header(self) -> list[FloatArray]:
        """Agreement of the names of the columns; -1 in passages."""
        pieces = self.fact.node.text.pieces
        values = np.full((len(pieces), 4), -1.0, np.float32)
        if self.fact.node.segment is not None:
            headers = {piece.where: piece for piece in pieces if piece.where.startswith("header:")}
            for number, piece in enumerate(pieces):
                if piece.where.startswith("cell:"):
                    header = headers.get(f"header:{place_number(piece)}")
                    values[number] = self._header_values(header) if header is not None else 0.0
        return list(values[self.pieces].T)

    def _header_values(self, header: Piece) -> list[float]:
        terms = [t for t in terms_of(self.fact.node.text.text[header.start : header.end]) if t not in STOP]
        first, last = (int(x[0]) for x in self._tokens(np.array([header.start]), np.array([header.end])))
        block = self.fact.similarity[first:last]
        focus, content = self.question.focus, self.question.content
        return [
            sum(term in self.question.asked.focus for term in terms) / max(1, len(terms)),
            sum(term in self.question.weights for term in terms) / max(1, len(terms)),
            float(block[:, focus].max()) if len(block) and focus.any() else 0.0,
            float(block[:, content].max()) if len(block) else 0.0,
        ]

    def _coverages(self) -> list[FloatArray]:
        """Weight of the question's terms near, farther and in the piece, outside the candidate itself."""
        terms = self.question.terms
        numbers = {term: number for number, term in enumerate(terms)}
        marks = np.zeros((len(self.fact.words), len(terms)), np.float32)
        for at, term in enumerate(self.fact.terms):
            if term in numbers:
                marks[at, numbers[term]] = 1
        total = running(marks)
        weights = np.array([self.question.weights[term] for term in terms], np.float32) / self.question.total
        rest = weights * np.array([term not in self.edge.partner_coverage for term in terms], np.float32)
        own = total[self.last] - total[self.first]
        piece = (self.begin, self.end)
        ranges = ((self.near, weights), (self.far, weights), (piece, weights), (piece, rest))
        with np.errstate(invalid="ignore"):  # products of short rows set the flag on some processors; all are finite
            return [((total[high] - total[low] - own) > 0) @ share for (low, high), share in ranges]

    def _similarities(self) -> list[FloatArray]:
        question, starts, ends = self.question, self.fact.starts, self.fact.ends
        similarity = self.fact.similarity
        first, last = self._tokens(self.characters[:, 0], self.characters[:, 1])
        total = running(similarity)
        mean = (total[last] - total[first]) / np.maximum(1, last - first)[:, None]
        ends_before = np.concatenate([[0], ends])
        padded_starts = np.concatenate([starts, ends[-1:] if len(ends) else [0]])
        near = self._tokens(padded_starts[self.near[0]], ends_before[self.near[1]])
        piece = self._tokens(padded_starts[self.begin], ends_before[self.end])
        left = self._tokens(padded_starts[self.near[0]], self.characters[:, 0])
        maxima = RangeMax(similarity)
        window, sentence = maxima(*near), maxima(*piece)
        none = np.zeros(len(self.spans), np.float32)
        rest, focus = self.edge.rest, question.focus
        return [
            mean[:, focus].max(axis=1) if focus.any() else none,
            mean[:, question.asking].max(axis=1) if question.asking.any() else none,
            mean[:, question.content].max(axis=1),
            window[:, question.content].mean(axis=1),
            sentence[:, question.content].mean(axis=1),
            window[:, rest].mean(axis=1) if rest.any() else none,
            maxima(*left)[:, focus].max(axis=1) if focus.any() else none,
        ]

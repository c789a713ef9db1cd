"""The extractive reader: the best candidate of the best edges, and the place where it stands."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.extras import import_library
from helios.index.languages import recognise
from helios.models.encoder import TokenVectors
from helios.reading.base import Answer, Citation, ComputedAnswer
from helios.reading.features import add_span_features, features_of, node_facts, question_facts, span_key
from helios.reading.question import ask_in_any_language
from helios.reading.ranker import SPANS, WEIGHTS, AnswerRanker
from helios.reading.spans import ReadNode, Span, candidate_spans, citation_of, read_nodes
from helios.reading.vectors import NodeVectors
from helios.reading.windows import windows_of
from helios.types import Evidence, EvidenceEdge

if TYPE_CHECKING:
    from helios.reading.spanmodel import SpanReader
    from helios.reading.tables.reader import TableAnswer, TableReader

FloatArray = NDArray[np.float32]
ALTERNATIVES = 4
ELSEWHERE = 0.4
"""Least confidence of a span where the question is not English: the trees learned from English questions alone."""
SURE = 0.85
"""Least confidence of a value that was computed, where the best evidence has a text."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """All candidates of one question with their features (N, F)."""

    nodes: list[ReadNode]
    spans: list[Span]
    features: FloatArray

    def text(self, number: int) -> str:
        """The words of a candidate."""
        span = self.spans[number]
        return self.nodes[span.node].text.text[span.start : span.end]


class ExtractiveReader:
    """Answers are spans of the evidence, or what a program gives that reads whole tables; the likelier one."""

    name = "extractive"

    def __init__(
        self, ranker: AnswerRanker, vectors: NodeVectors, *, spans: "SpanReader | None" = None,
        tables: "TableReader | None" = None, edges: int = 10, least: float = 0.0, present: float = 0.0,
    ) -> None:  # fmt: skip
        """It abstains below the confidence `least`, and says no span where `Evidence.present` is below `present`."""
        self.ranker = ranker
        self.spans = spans
        self.tables = tables
        self.vectors = vectors
        self.edges = edges
        self.least = least
        self.present = present

    def __repr__(self) -> str:
        return f"ExtractiveReader(edges={self.edges}, least={self.least}, present={self.present})"

    @classmethod
    def load(
        cls, vectors: NodeVectors, folder: Path | None = None, *, tables: "TableReader | None" = None, edges: int = 10,
        least: float = 0.0, present: float = 0.0, encoder: str | None = None,
    ) -> "ExtractiveReader":  # fmt: skip
        """A reader with the packaged weights, or those of a folder; ModelError if they cannot be used.

        `encoder` is the fingerprint of the one that the vectors are of.
        """
        ranker = AnswerRanker.load(folder, encoder=encoder)
        spans = None
        if ranker.reads_spans:
            import_library("torch", needed_by="a reader of spans")
            from helios.reading.spanmodel import SpanReader

            spans = SpanReader.load((folder or WEIGHTS) / SPANS)
        return cls(ranker, vectors, spans=spans, tables=tables, edges=edges, least=least, present=present)

    def read(self, question: str, evidence: Evidence, *, computed: ComputedAnswer | None = None) -> Answer:
        """The likeliest answer, or an abstention."""
        if not evidence.edges:
            return Answer.abstain(question, "no evidence was found", reader=self.name)
        vectors = self.vectors.question(question)
        said = self._said(question, vectors, evidence)
        read = self.tables.read(question, vectors, evidence) if self.tables is not None else []
        paired = evidence.edges[0].segment is not None and evidence.edges[0].passage is not None
        return self._likelier(said, read, paired=paired) if read else said

    def _likelier(self, said: Answer, read: "list[TableAnswer]", *, paired: bool) -> Answer:
        """The answer of a table instead of the span, where it is likelier.

        Where the best evidence is a row with a text, most answers stand in the text: only what is computed, and sure,
        is taken from a table there. Look-ups cost EM on OTT-QA.
        """
        chances = [(answer.text, answer.confidence) for answer in read[:ALTERNATIVES]]
        span = said.alternatives[:1] if said.abstained else ((said.text, said.confidence),)
        if self.tables is None:
            return said
        needed = max(self.tables.least, said.confidence)
        if paired:
            needed = max(SURE, needed) if read[0].is_computed else math.inf
        if read[0].confidence < needed:
            return replace(said, alternatives=_others(said.text, (*said.alternatives, *chances)))
        best = read[0]
        return Answer(
            said.question, best.text, best.citations(), best.confidence, reader="tables", reason=str(best.program),
            alternatives=_others(best.text, (*span, *chances[1:])),
        )  # fmt: skip

    def _said(self, question: str, vectors: TokenVectors, evidence: Evidence) -> Answer:
        """The most likely span, or an abstention."""
        candidates = candidates_of(question, evidence, self.vectors, edges=self.edges, spans=self.spans, said=vectors)
        if not candidates.spans:
            return Answer.abstain(question, "the evidence has no text", reader=self.name)
        return self._choose(question, evidence, candidates)

    def _choose(self, question: str, evidence: Evidence, candidates: Candidates) -> Answer:
        scores = self.ranker.score(candidates.features)
        ranked = rank_answers(candidates, self.ranker.shares(scores))
        chances = [(candidates.text(best), self.ranker.confidence(share)) for best, share in ranked]
        text, confidence = chances[0]
        others = tuple(chances[1 : 1 + ALTERNATIVES])
        if reason := self._doubt(question, evidence, text, confidence):
            return replace(Answer.abstain(question, reason, reader=self.name), alternatives=(chances[0], *others))
        span = candidates.spans[ranked[0][0]]
        node = candidates.nodes[span.node]
        citations = (citation_of(node, span), *_way(evidence.edges[node.ranks[0] - 1], node))
        return Answer(question, text, citations, confidence, reader=self.name, alternatives=others)

    def _doubt(self, question: str, evidence: Evidence, text: str, confidence: float) -> str:
        """Why not to give the best answer; empty where nothing speaks against it."""
        if evidence.present < self.present:
            return f"the corpus does not seem to contain the answer ({evidence.present:.0%} likely that it does)"
        least = self.least if recognise(question) in ("en", "") else max(self.least, ELSEWHERE)
        if confidence < least:
            return f"nothing in the evidence is likely enough: the best is {text!r} at {confidence:.0%}"
        return ""


def _others(text: str, chances: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """The likeliest answers that are not this text, each once."""
    best: dict[str, tuple[str, float]] = {}
    for other, chance in sorted(chances, key=lambda one: -one[1]):
        if other.casefold() != text.casefold():
            best.setdefault(other.casefold(), (other, chance))
    return tuple(best.values())[:ALTERNATIVES]


def candidates_of(
    question: str, evidence: Evidence, vectors: NodeVectors, *, edges: int, spans: "SpanReader | None" = None,
    said: TokenVectors | None = None,
) -> Candidates:  # fmt: skip
    """Every candidate of the best edges with its features; `said` are the question's vectors where they are known."""
    nodes = read_nodes(evidence, edges=edges)
    found = candidate_spans(nodes)
    said = vectors.question(question) if said is None else said
    asked = question_facts(ask_in_any_language(question), said, nodes)
    pairs = zip(nodes, vectors.nodes(nodes), strict=True)
    facts = [node_facts(asked, node, tokens) for node, tokens in pairs]
    features = features_of(asked, evidence, facts, found)
    if spans is not None:
        windows = windows_of(evidence, nodes)
        add_span_features(features, found, windows, spans.logits(question, [window.text for window in windows]))
    return Candidates(nodes, found, features)


def rank_answers(candidates: Candidates, shares: FloatArray) -> list[tuple[int, float]]:
    """Answers best first, as the number of their best candidate and the sum of the shares of all with these words."""
    order = np.argsort(-shares, kind="stable")
    best: dict[str, int] = {}
    sums: dict[str, float] = {}
    for number in order.tolist():
        key = span_key(candidates.text(number))
        best.setdefault(key, number)
        sums[key] = sums.get(key, 0.0) + float(shares[number])
    return sorted(((best[key], share) for key, share in sums.items()), key=lambda item: -item[1])


def _way(edge: EvidenceEdge, node: ReadNode) -> tuple[Citation, ...]:
    """The linked words of the row that led to a passage."""
    if node.passage is None or edge.segment is None or not edge.links:
        return ()
    link = edge.links[0]
    text = edge.segment.cells[link.column][link.start : link.end]
    return (Citation(text, edge.segment.segment_id, link.column, start=link.start, end=link.end),) if text else ()

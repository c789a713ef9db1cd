"""The extractive reader: the best candidate of the best edges, and the place where it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.models.encoder import TokenVectors
from helios.reading.base import Answer, Citation, ComputedAnswer, Node, nothing_found
from helios.reading.choice import Choice, Reading, Said, candidates_of
from helios.reading.citations import parts_of
from helios.reading.features import add_read_features, features_of, node_facts, question_facts, span_key
from helios.reading.question import ask_in_any_language
from helios.reading.ranker import AnswerRanker
from helios.reading.rivals import SHOWN, Rival
from helios.reading.spans import ReadNode, Span, candidate_spans, citation_of, place_number, read_nodes
from helios.reading.vectors import NodeVectors
from helios.types import Evidence, EvidenceEdge

if TYPE_CHECKING:
    from helios.reading.passages import PassageAnswer, PassageReader, ReadPassages
    from helios.reading.queries.reader import QueryAnswer, QueryReader
    from helios.reading.tables.reader import Sheets, TableAnswer, TableReader
    from helios.reading.whether import WhetherAnswer, WhetherReader

FloatArray = NDArray[np.float32]
ALTERNATIVES = 4
ANSWERS = 8
"""Answers of a reader that are weighed against those of others."""
NAMING = 3
"""Cells that tell the row of a span."""
CITED = (1.0, 0.5)
"""How much the chance of an answer counts for the first row or text that it cites, and for the second."""
LIKELY = 12
"""Rows and texts of likely answers that may come among the first of the evidence."""
SURELY_LINKED = 0.5
"""Score of the best row's link to its text from which rows are taken to be linked to pages about them: what is asked
then stands in texts more often than in tables. Tables are not asked in SQL, for a query reads none, and spans are given
from a lower confidence on."""


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
    """Answers are spans of the evidence, what a program gives that reads whole tables, words of a passage that was read
    beside the question, what a query over the tables gives, or yes and no: the likeliest."""

    name = "extractive"

    def __init__(
        self, ranker: AnswerRanker, vectors: NodeVectors, *, tables: "TableReader | None" = None,
        passages: "PassageReader | None" = None, queries: "QueryReader | None" = None,
        whether: "WhetherReader | None" = None, choice: Choice | None = None,
        edges: int = 10, least: float = 0.0, least_read: float = 0.0, present: float = 0.0,
    ) -> None:  # fmt: skip
        """It abstains below the confidence `least` for spans where the best row is surely linked to its text, below
        `least_read` for everything else; it says no span where `Evidence.present` is below `present`.

        Without a choice the readers' own confidences are compared as they are.
        """
        self.ranker = ranker
        self.tables = tables
        self.passages = passages
        self.queries = queries
        self.whether = whether
        self.choice = choice
        self.vectors = vectors
        self.edges = edges
        self.least = least
        self.least_read = max(least, least_read)
        self.present = present

    def __repr__(self) -> str:
        return f"ExtractiveReader(edges={self.edges}, least={self.least}, present={self.present})"

    @classmethod
    def load(
        cls, vectors: NodeVectors, folder: Path | None = None, *, tables: "TableReader | None" = None,
        passages: "PassageReader | None" = None, queries: "QueryReader | None" = None,
        whether: "WhetherReader | None" = None, choice: Choice | None = None,
        edges: int = 10, least: float = 0.0, least_read: float = 0.0, present: float = 0.0, encoder: str | None = None,
    ) -> "ExtractiveReader":  # fmt: skip
        """A reader with the packaged weights, or those of a folder; ModelError if they cannot be used.

        `encoder` is the fingerprint of the one that the vectors are of.
        """
        ranker = AnswerRanker.load(folder, encoder=encoder)
        return cls(
            ranker, vectors, tables=tables, passages=passages, queries=queries, whether=whether, choice=choice,
            edges=edges, least=least, least_read=least_read, present=present,
        )  # fmt: skip

    def over(self, vectors: NodeVectors, sheets: "Sheets") -> "ExtractiveReader":
        """The same models over other vectors and tables."""
        tables = None if self.tables is None else self.tables.over(sheets)
        queries = None if self.queries is None else self.queries.over(sheets)
        return ExtractiveReader(
            self.ranker, vectors, tables=tables, passages=self.passages, queries=queries,
            whether=self.whether, choice=self.choice, edges=self.edges, least=self.least, least_read=self.least_read,
            present=self.present,
        )  # fmt: skip

    def read(self, question: str, evidence: Evidence, *, computed: ComputedAnswer | None = None) -> Answer:
        """The likeliest answer, or an abstention."""
        if not any(map(str.isalnum, question)):
            return Answer.abstain(question, "the question has no words", reader=self.name)
        if not evidence.edges:
            return Answer.abstain(question, nothing_found(evidence), reader=self.name)
        found = self.readings(question, evidence)
        if not found:
            return Answer.abstain(question, "the evidence has no text", reader=self.name)
        weighed = self._weighed(question, evidence, found)
        best = max(weighed, key=lambda answer: answer.confidence)
        best = replace(best, likely=_likely(weighed))
        others = _others(best, weighed)
        if reason := self._doubt(evidence, best):
            kept = ((best.text, best.confidence), *others)[: ALTERNATIVES + 1]
            return replace(Answer.abstain(question, reason, reader=self.name), alternatives=kept, likely=best.likely)
        return replace(best, alternatives=others)

    def _weighed(self, question: str, evidence: Evidence, found: Mapping[Reading, Sequence[Said]]) -> list[Answer]:
        """All answers, each with the chance that it is right; with a reader's own where there is no choice."""
        if self.choice is None:
            return [said.answer for answers in found.values() for said in answers]
        candidates = candidates_of(found)
        chances = self.choice.chances(question, evidence, candidates)
        pairs = zip(candidates, chances, strict=True)
        return [replace(one.said(question), confidence=chance) for one, chance in pairs]

    def readings(self, question: str, evidence: Evidence) -> dict[Reading, list[Said]]:
        """The answers of each reader that finds any, likeliest first, with its own confidence; nothing is left out."""
        vectors = self.vectors.question(question)
        reader = self.passages
        passages = None if reader is None else reader.passages(question, evidence, edges=self.edges)
        found = {Reading.SPAN: self._spans_of(question, vectors, evidence, passages)}
        if self.tables is not None:
            read = self.tables.read(question, vectors, evidence)[:ANSWERS]
            found[Reading.TABLE] = [_of_table(question, one) for one in read]
        if reader is not None and passages is not None:
            told = reader.read(question, evidence, passages)[:ANSWERS]
            found[Reading.PASSAGE] = [_of_passage(question, one) for one in told]
        if self.queries is not None and _link(evidence) < SURELY_LINKED:
            found[Reading.QUERY] = [_of_query(question, one) for one in self.queries.read(question, evidence)]
        if self.whether is not None:
            verdicts = self.whether.read(question, vectors, evidence, self.vectors)
            found[Reading.WHETHER] = [_of_whether(question, one) for one in verdicts]
        kept = {one: [said for said in answers if span_key(said.answer.text)] for one, answers in found.items()}
        return {one: answers[:ANSWERS] for one, answers in kept.items() if answers}

    def _spans_of(
        self, question: str, vectors: TokenVectors, evidence: Evidence, passages: "ReadPassages | None"
    ) -> list[Said]:
        read = passages if self.ranker.reads_passages else None
        candidates = answer_spans(question, evidence, self.vectors, edges=self.edges, passages=read, said=vectors)
        if not candidates.spans:
            return []
        shares = self.ranker.shares(self.ranker.score(candidates.features))
        found = []
        for number, share in rank_answers(candidates, shares)[:ANSWERS]:
            span = candidates.spans[number]
            node = candidates.nodes[span.node]
            citations = (citation_of(node, span), *_way(evidence.edges[node.ranks[0] - 1], node))
            chance = self.ranker.confidence(share)
            answer = Answer(question, candidates.text(number), citations, chance, reader=self.name)
            found.append(Said(answer, _beside(node, span)))
        return found

    def _doubt(self, evidence: Evidence, best: Answer) -> str:
        """Why not to give the best answer; empty where nothing speaks against it."""
        least = self.least if best.reader == self.name and _link(evidence) >= SURELY_LINKED else self.least_read
        if best.confidence < least:
            nearest = f"the best is {best.text.strip()!r} at {best.confidence:.0%}, and an answer needs {least:.0%}"
            return f"nothing in the evidence is likely enough: {nearest}"
        if best.reader == self.name and evidence.present < self.present:
            return f"the corpus does not seem to contain the answer ({evidence.present:.0%} likely that it does)"
        return ""


def _link(evidence: Evidence) -> float:
    """How sure the link of the best row to its text is; 0 without one."""
    best = evidence.edges[0]
    return max((link.score for link in best.links), default=0.0) if best.passage is not None else 0.0


def _of_table(question: str, found: "TableAnswer") -> Said:
    reason = str(found.program)
    answer = Answer(question, found.text, found.citations(), found.confidence, reader="tables", reason=reason)
    text, cited = found.named()
    named = replace(answer, text=text, citations=(*answer.citations, *cited)) if text else None
    return Said(answer, found.rival, found.is_computed, reference=found.program.reference, named=named)


def _of_passage(question: str, found: "PassageAnswer") -> Said:
    answer = Answer(question, found.text, (found.citation(),), found.confidence, reader="passages")
    return Said(answer, _beside(found.node, found.span))


def _of_query(question: str, found: "QueryAnswer") -> Said:
    reason = f"{found.query} (read as {found.explanation})"
    answer = Answer(question, found.text, found.citations, found.confidence, reader="queries", reason=reason)
    read, _, left = found.explanation.partition("; not read: ")
    return Said(answer, Rival(found.text[: 3 * SHOWN], "query", read, ""), unread=len(left.split(", ")) if left else 0)


def _of_whether(question: str, found: "WhetherAnswer") -> Said:
    answer = Answer(question, found.text, found.citations, found.confidence, reader="whether")
    return Said(answer, replace(_beside(found.node, found.span), answer=found.text))


def _beside(node: ReadNode, span: Span) -> Rival:
    """A span as it is read beside other answers: with the words around it, or with its row."""
    piece, text = node.text.pieces[span.piece], node.text.text
    column = place_number(piece)
    if node.segment is None or column is None:
        said = text[piece.start : piece.end]
        return Rival.in_text(said, span.start - piece.start, span.end - piece.start, title=node.title)
    cells = [
        f"{header} {cell[:SHOWN]}"
        for header, cell in zip(node.segment.header, node.segment.cells, strict=True)
        if cell.strip()
    ]
    header, where = node.segment.header[column], " , ".join(cells[:NAMING])
    return Rival(text[span.start : span.end][: 3 * SHOWN], header, where, node.title)


def _likely(answers: Sequence[Answer]) -> tuple[tuple[Node, float], ...]:
    """The first rows and texts that each answer cites, the likeliest first: with its chance, a later one with less."""
    found: dict[Node, float] = {}
    for answer in answers:
        nodes = dict.fromkeys(node for one in answer.citations if (node := one.segment_id or one.passage_id))
        for node, share in zip(nodes, CITED, strict=False):
            found[node] = found.get(node, 0.0) + share * answer.confidence
    return tuple(sorted(found.items(), key=lambda one: -one[1])[:LIKELY])


def _others(best: Answer, others: Sequence[Answer]) -> tuple[tuple[str, float], ...]:
    """The likeliest answers that are not the best one, each once; together no likelier than that it is wrong."""
    found: dict[str, tuple[str, float]] = {}
    said = _keys(best.text)
    for other in sorted(others, key=lambda one: -one.confidence):
        if said.isdisjoint(_keys(other.text)):
            found.setdefault(span_key(other.text), (other.text, other.confidence))
    kept = tuple(found.values())[:ALTERNATIVES]
    share = min(1.0, (1.0 - best.confidence) / max(sum(chance for _, chance in kept), 1e-9))
    return tuple((text, share * chance) for text, chance in kept)


def _keys(answer: str) -> set[str]:
    """What an answer is the same by: its words, and name and code where it gives both."""
    return {span_key(answer), *map(span_key, parts_of(answer))}


def answer_spans(
    question: str, evidence: Evidence, vectors: NodeVectors, *, edges: int, passages: "ReadPassages | None" = None,
    said: TokenVectors | None = None,
) -> Candidates:  # fmt: skip
    """Every candidate of the best edges with its features.

    `passages` are those of as many edges where a model has read them, `said` the question's vectors where known.
    """
    nodes = read_nodes(evidence, edges=edges)
    found = candidate_spans(nodes)
    said = vectors.question(question) if said is None else said
    asked = question_facts(ask_in_any_language(question), said, nodes)
    pairs = zip(nodes, vectors.nodes(nodes), strict=True)
    facts = [node_facts(asked, node, tokens) for node, tokens in pairs]
    features = features_of(asked, evidence, facts, found)
    if passages is not None:
        add_read_features(features, found, passages)
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

"""What all sources gave, brought together: results, the choice among them, and one ranking of evidence (2.4).

    results = results_of(selection, replies)          what queries of the question's meaning gave, twins merged
    choice = choose(question, results)                which of them answer
    evidence = Consolidator(likeness).rank(...)       these results, documents and rows that hold the words

A result is one piece of evidence, with its rows in their order: rows are not ranked out of it. Evidence is ranked by

    score = match · log(late interaction) + source · log P(source) + confidence · log(confidence of the query)

A log-linear sum whose parts stay with every item. A language model, where there is one, chooses (`llm_choice`).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from helios.executors.base import Language
from helios.executors.values import GraphNode, GraphRelationship, Value
from helios.routing.answering import answer_of, in_all, labelled, same_answer, same_rows
from helios.routing.documents import documents_of
from helios.routing.evidence import (
    FROM_MEANING,
    Conflict,
    EvidenceItem,
    Execution,
    MadeBy,
    SourceAnswer,
    SourceReply,
)
from helios.routing.interrogation import has_answer
from helios.routing.likeness import Likeness
from helios.routing.phrases import terms
from helios.routing.selection import Selection
from helios.routing.verbalisation import node_name, row_text, value_text
from helios.sources.relevance import name_words, relevance

IRI = re.compile(r"\s*(?:is )?<[^<>\s]*>")
MATCH_WEIGHT = 4.0
SOURCE_WEIGHT = 1.0
CONFIDENCE_WEIGHT = 1.0
LEAST = 1e-3
"""Below this, probabilities and matches count as this: a logarithm of nothing would decide alone."""
MOST_ROWS = 50
"""Rows of a result that are compared with the question; the best one's match is the result's."""
ROWS_IN_WORDS = 10
"""Rows that the words of a result have; the item itself has all."""
NOTHING = "no row"


@dataclass(frozen=True, slots=True)
class Result:
    """What one query of the question's meaning gave, and what speaks for it."""

    execution: Execution
    language: Language
    confidence: float
    """How sure it is that the query asks what the question asks: its writer says so, until something knows better."""
    probability: float
    """Of the source being the one that has the answer, by its selection."""
    also: tuple[Execution, ...] = ()
    """Queries of other sources that gave the same values."""

    @property
    def key(self) -> tuple[str, str]:
        """The source and the query's text."""
        return (self.execution.source, self.execution.query.text)

    def answer(self) -> SourceAnswer:
        """The short answer that the rows give."""
        also = tuple(other.source for other in self.also)
        return replace(answer_of(self.execution), confidence=self.confidence, also=also)


@dataclass(frozen=True, slots=True)
class Choice:
    """The results that answer a question, the most important first: several for its several parts, or none."""

    results: tuple[Result, ...]
    sentence: str = ""
    """The answer in words, where something wrote one."""


def results_of(selection: Selection, replies: Sequence[SourceReply]) -> tuple[Result, ...]:
    """The results of all queries of the question's meaning, by confidence · P(source); equal ones are merged."""
    probability = {ranked.name: ranked.probability for ranked in selection.sources}
    found = [
        Result(execution, reply.language, execution.confidence, probability.get(execution.source, LEAST))
        for reply in replies
        for execution in reply.executions
        if execution.made_by in FROM_MEANING
    ]
    found.sort(key=lambda result: -(result.confidence * result.probability))
    merged: list[Result] = []
    for result in found:
        twin = next((i for i, other in enumerate(merged) if _twins(result.execution, other.execution)), None)
        if twin is None:
            merged.append(result)
        else:
            merged[twin] = replace(merged[twin], also=(*merged[twin].also, result.execution))
    return tuple(merged)


def choose(question: str, results: Sequence[Result]) -> Choice:
    """Which results answer, without a language model: the first in their order that has a row."""
    with_rows = [result for result in results if has_answer(result.execution.result)]
    return Choice(tuple((with_rows or results)[:1]))


def conflicts_of(results: Sequence[Result]) -> tuple[Conflict, ...]:
    """One conflict with the first answer of each source, where they are not all the same."""
    first: dict[str, SourceAnswer] = {}
    for result in results:
        if has_answer(result.execution.result):
            first.setdefault(result.execution.source, result.answer())
    kept: list[SourceAnswer] = []
    for answer in first.values():
        if not any(same_answer(answer.values, other.values) for other in kept):
            kept.append(answer)
    return (Conflict(tuple(kept)),) if len(kept) > 1 else ()


class Consolidator:
    """Ranks with the token encoder, or by words where there is none."""

    def __init__(self, likeness: Likeness | None) -> None:
        self.likeness = likeness

    def rank(
        self, question: str, selection: Selection, replies: Sequence[SourceReply], results: Sequence[Result], *,
        k: int, predicates: Mapping[str, str] | None = None,
    ) -> tuple[EvidenceItem, ...]:  # fmt: skip
        """All `results`, and the best documents and rows beside them, `k` pieces where there are so many.

        `predicates` are labels of IRIs, for triples.
        """
        made: list[tuple[EvidenceItem, list[str], float, bool]] = [
            (*item_of(result), result.confidence, True) for result in results
        ]
        for reply in replies:
            for execution in reply.executions:
                if execution.made_by not in FROM_MEANING:
                    items = items_of(execution, reply.language, predicates or {})
                    made += [(item, [item.text], execution.confidence, False) for item in items]
        probability = {ranked.name: ranked.probability for ranked in selection.sources}
        matches = iter(self._matches(question, [text for _, texts, _, _ in made for text in texts]))
        scored = []
        for item, texts, confidence, whole in made:
            match = max((next(matches) for _ in texts), default=0.0)
            scored.append((_scored(item, match, probability.get(item.source, LEAST), confidence), whole))
        scored.sort(key=lambda pair: -pair[0].score)
        others = distinct([item for item, whole in scored if not whole])[: max(0, k - len(results))]
        kept = {id(item) for item in others} | {id(item) for item, whole in scored if whole}
        return tuple(item for item, _ in scored if id(item) in kept)

    def _matches(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text matches the question, from 0 to 1."""
        if self.likeness is not None:
            return self.likeness.scores(question, texts)
        words = max(1, len(terms(question)))
        return [min(1.0, score / words) for score in relevance(question, [(text, "") for text in texts])]


def item_of(result: Result) -> tuple[EvidenceItem, list[str]]:
    """A result as one piece of evidence, and its first rows each in words."""
    execution = result.execution
    found = execution.result
    about = IRI.sub("", execution.explanation)
    rows = labelled(execution)
    texts = [row_text(found.columns, row) for row in rows[:MOST_ROWS]]
    shown = "; ".join(text for text in texts[:ROWS_IN_WORDS] if text) or NOTHING
    if len(rows) > ROWS_IN_WORDS or (rows and found.truncated):
        shown = f"{shown}; … ({in_all(f'{len(rows)} rows', found.truncated)})"
    item = EvidenceItem(
        execution.source, result.language, f"{about}: {shown}" if about else shown, found.columns, found.rows, 0,
        len(found), found.truncated, execution.query, execution.made_by, found.milliseconds,
        tuple((other.source, other.query) for other in result.also),
    )  # fmt: skip
    return item, [f"{about}: {text}" if about else text for text in texts] or [item.text]


def items_of(execution: Execution, language: Language, predicates: Mapping[str, str]) -> list[EvidenceItem]:
    """One item a document, or a row that holds words of the question."""
    result = execution.result
    if language is Language.TEXT:
        texts = [f"{d.title}: {d.text}" if d.title else d.text for d in documents_of(result)]
    else:
        texts = [_verbalised(execution, row, predicates) for row in result.rows]
    return [
        EvidenceItem(
            execution.source, language, text, result.columns, (row,), number, len(result), result.truncated,
            execution.query, execution.made_by, result.milliseconds,
        )
        for number, (text, row) in enumerate(zip(texts, result.rows, strict=True))
        if text
    ][:MOST_ROWS]  # fmt: skip


def distinct(items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """The first of items that say the same in the same source."""
    seen: dict[tuple[str, str], EvidenceItem] = {}
    for item in items:
        seen.setdefault((item.source, item.text), item)
    return list(seen.values())


def _twins(left: Execution, right: Execution) -> bool:
    """Whether queries of two sources gave the same rows, and any."""
    return (
        left.source != right.source
        and has_answer(left.result)
        and left.result.truncated == right.result.truncated
        and same_rows(labelled(left), labelled(right))
    )


def _scored(item: EvidenceItem, match: float, probability: float, confidence: float) -> EvidenceItem:
    parts = {
        "match": MATCH_WEIGHT * math.log(max(LEAST, match)),
        "source": SOURCE_WEIGHT * math.log(max(LEAST, probability)),
        "confidence": CONFIDENCE_WEIGHT * math.log(max(LEAST, confidence)),
    }
    return replace(item, score=sum(parts.values()), parts=parts)


def _verbalised(execution: Execution, row: tuple[Value, ...], predicates: Mapping[str, str]) -> str:
    columns = execution.result.columns
    if columns == ("subject", "subject_label", "predicate", "object", "object_label"):
        return _triple(row, predicates)
    if len(row) == 3 and isinstance(row[0], GraphNode) and isinstance(row[1], GraphRelationship):
        return _step(row)
    about = "" if execution.made_by is MadeBy.KEYWORD else IRI.sub("", execution.explanation)
    return row_text(columns, row, about=about)


def _triple(row: tuple[Value, ...], predicates: Mapping[str, str]) -> str:
    subject, subject_label, predicate, object_, object_label = row
    relation = predicates.get(str(predicate)) or value_text(predicate)
    ends = [
        value_text(label if label is not None else end)
        for end, label in ((subject, subject_label), (object_, object_label))
    ]
    return f"{ends[0]} {' '.join(name_words(relation))} {ends[1]}"


def _step(row: tuple[Value, ...]) -> str:
    """Two nodes and the relationship between them, in its direction."""
    node, relationship, other = row
    assert isinstance(node, GraphNode) and isinstance(relationship, GraphRelationship)
    first, second = (node, other) if relationship.start == node.node_id else (other, node)
    words = " ".join(name_words(relationship.type))
    ends = [
        f"{' '.join(end.labels)} {node_name(end)}" if isinstance(end, GraphNode) else value_text(end)
        for end in (first, second)
    ]
    return f"{ends[0]} {words} {ends[1]}; {value_text(node)}"

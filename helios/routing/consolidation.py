"""Evidence of all sources ranked together (OmniRetrieval 2.4), with conflicts between them shown.

    score = match · log(late interaction) + source · log P(source) + confidence · log(confidence of the query)

A log-linear sum whose parts stay with every item. A language model, where there is one, picks among the best.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from helios.executors.base import Language
from helios.executors.values import GraphNode, GraphRelationship, Value
from helios.routing.answering import answers_of, same_answer
from helios.routing.documents import documents_of
from helios.routing.evidence import Conflict, EvidenceItem, Execution, MadeBy, SourceAnswer, SourceReply
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
"""Rows of one query that become evidence."""


@dataclass(frozen=True, slots=True)
class Consolidated:
    """Ranked evidence, the answers of single queries, and where they differ."""

    evidence: tuple[EvidenceItem, ...]
    answers: tuple[SourceAnswer, ...]
    conflicts: tuple[Conflict, ...]


class Consolidator:
    """Ranks with the token encoder, or by words where there is none."""

    def __init__(self, likeness: Likeness | None) -> None:
        self.likeness = likeness

    def consolidate(
        self, question: str, selection: Selection, replies: Sequence[SourceReply], *, k: int,
        predicates: Mapping[str, str] | None = None,
    ) -> Consolidated:  # fmt: skip
        """The `k` best pieces of evidence of all replies; `predicates` are labels of IRIs, for triples."""
        probability = {ranked.name: ranked.probability for ranked in selection.sources}
        items, confidences = [], []
        for reply in replies:
            for execution in reply.executions:
                made = items_of(execution, reply.language, predicates or {})
                items += made
                confidences += [execution.confidence] * len(made)
        matches = self._matches(question, [item.text for item in items])
        scored = [
            _scored(item, match, probability.get(item.source, LEAST), confidence)
            for item, match, confidence in zip(items, matches, confidences, strict=True)
        ]
        ranked = sorted(scored, key=lambda item: -item.score)
        answers = sorted(
            (answer for reply in replies for answer in answers_of(reply)),
            key=lambda answer: -(answer.confidence * probability.get(answer.source, LEAST)),
        )
        return Consolidated(tuple(distinct(ranked)[:k]), tuple(answers), conflicts_of(answers))

    def _matches(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text matches the question, from 0 to 1."""
        if self.likeness is not None:
            return self.likeness.scores(question, texts)
        words = max(1, len(terms(question)))
        return [min(1.0, score / words) for score in relevance(question, [(text, "") for text in texts])]


def items_of(execution: Execution, language: Language, predicates: Mapping[str, str]) -> list[EvidenceItem]:
    """One item a row, in words."""
    result = execution.result
    if language is Language.TEXT:
        texts = [f"{d.title}: {d.text}" if d.title else d.text for d in documents_of(result)]
    else:
        about = "" if execution.made_by is MadeBy.KEYWORD else IRI.sub("", execution.explanation)
        texts = [_verbalised(execution, row, predicates, about) for row in result.rows]
    return [
        EvidenceItem(
            execution.source, language, text, result.columns, row, number, execution.query, execution.made_by,
            result.milliseconds,
        )
        for number, (text, row) in enumerate(zip(texts, result.rows, strict=True))
        if text
    ][:MOST_ROWS]  # fmt: skip


def conflicts_of(answers: Sequence[SourceAnswer]) -> tuple[Conflict, ...]:
    """One conflict with the first answer of each source, where they are not all the same."""
    first: dict[str, SourceAnswer] = {}
    for answer in answers:
        first.setdefault(answer.source, answer)
    kept: list[SourceAnswer] = []
    for answer in first.values():
        if not any(same_answer(answer.values, other.values) for other in kept):
            kept.append(answer)
    return (Conflict(tuple(kept)),) if len(kept) > 1 else ()


def distinct(items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """The first of items that say the same in the same source."""
    seen: dict[tuple[str, str], EvidenceItem] = {}
    for item in items:
        seen.setdefault((item.source, item.text), item)
    return list(seen.values())


def _scored(item: EvidenceItem, match: float, probability: float, confidence: float) -> EvidenceItem:
    parts = {
        "match": MATCH_WEIGHT * math.log(max(LEAST, match)),
        "source": SOURCE_WEIGHT * math.log(max(LEAST, probability)),
        "confidence": CONFIDENCE_WEIGHT * math.log(max(LEAST, confidence)),
    }
    return replace(item, score=sum(parts.values()), parts=parts)


def _verbalised(execution: Execution, row: tuple[Value, ...], predicates: Mapping[str, str], about: str) -> str:
    columns = execution.result.columns
    if columns == ("subject", "subject_label", "predicate", "object", "object_label"):
        return _triple(row, predicates)
    if len(row) == 3 and isinstance(row[0], GraphNode) and isinstance(row[1], GraphRelationship):
        return _step(row)
    labelled = tuple(execution.labels.get(str(value), value) if value is not None else None for value in row)
    return row_text(columns, labelled, about=about)


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

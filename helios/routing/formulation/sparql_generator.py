"""One-hop questions into SPARQL without a language model.

link entities → the predicates each really has → how well predicate and answer fit the other words → query

A reading is a (link, predicate, direction); its score adds up parts that can be read in the explanation, and the
confidence grows with the best reading's score and with its margin over the next one that asks something else.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from helios.executors.base import Language, NativeQuery
from helios.models.encoder import TokenEncoder
from helios.routing.formulation.asking import asks_nothing
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.entity_linking import FUNCTION_WORDS, EntityLink, folded, link_entities
from helios.routing.formulation.properties import LABELS, Fact, described, facts_about, predicates_of
from helios.routing.formulation.table_sparql import TableSparqlGenerator
from helios.routing.formulation.word_forms import same_verb
from helios.sources.base import Source
from helios.sources.descriptor import RdfSchema, RdfTerm

Pool = Callable[[str], NDArray[np.float32]]
"""A text's unit vector."""
EXAMINED = 5
"""Readings that are compared with an example of their answers."""
CLEAR = 0.4
"""A lead in the score that an example would not undo."""
KEPT = 8192
"""Texts whose vectors are kept."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand the question, and what speaks for it."""

    link: EntityLink
    fact: Fact
    predicate: RdfTerm
    meant: float
    """Similarity of the question's other words with the predicate."""
    worded: float
    """Share of the predicate's words that the question has."""
    described: float
    """Share of the question's other words that the entity's own description has."""
    answered: float = 0.0
    """Similarity with the predicate and one of its values; 0 where it was not compared."""

    @property
    def linked(self) -> float:
        return self.link.weight

    @property
    def score(self) -> float:
        return 1.2 * self.linked + self.meant + 0.5 * self.answered + 0.25 * self.worded + 0.3 * self.described


class SparqlGenerator:
    """Formulates one-hop questions over a graph whose entities have labels, and plans over one built like tables."""

    def __init__(self, pool: Pool, *, limit: int = 3, links: int = 6) -> None:
        self.pool = pool
        self.limit = limit
        self.links = links
        self.over_tables = TableSparqlGenerator()

    @classmethod
    def of_encoder(cls, encoder: TokenEncoder) -> "SparqlGenerator":
        """With the mean of an encoder's token vectors; vectors of texts are kept."""
        return cls(pooled(encoder))

    def formulate(self, question: str, source: Source) -> Sequence[Candidate]:
        if source.language is not Language.SPARQL or asks_nothing(question):
            return []
        planned = self.over_tables.formulate(question, source)
        if self.over_tables.tables(source)[0] is not None and not predicates_of(source).keys() & set(LABELS):
            return planned
        readings = self.readings(question, source)
        hops = [
            Candidate(_query(reading), confidence(readings, i), _explained(reading))
            for i, reading in enumerate(readings[: self.limit])
        ]
        surest = max(hops[:1] + planned[:1], key=lambda candidate: candidate.confidence, default=None)
        return [*planned, *hops] if planned and surest is planned[0] else [*hops, *planned]

    def readings(self, question: str, source: Source) -> list[Reading]:
        """All readings, best first; only the best few are compared with an example of their answers."""
        schema = source.descriptor().schema
        if not isinstance(schema, RdfSchema):
            return []
        by_entity = {link.entity: link for link in link_entities(question, source, limit=self.links)}
        facts = facts_about(source, list(by_entity))
        predicates = described(schema, {fact.predicate for fact in facts})
        readings = [
            self._reading(question, by_entity[fact.entity], fact, predicates[fact.predicate])
            for fact in facts
            if fact.predicate in predicates
        ]
        readings.sort(key=_order)
        close = [reading for reading in readings[:EXAMINED] if reading.score > readings[0].score - CLEAR]
        if len(close) > 1:
            close = [replace(reading, answered=self._answered(question, reading)) for reading in close]
        return sorted(close, key=_order) + readings[len(close) :]

    def _reading(self, question: str, link: EntityLink, fact: Fact, predicate: RdfTerm) -> Reading:
        rest = _rest(question, link)
        asked, other = self.pool(rest), folded(rest)
        meant = max(float(asked @ self.pool(predicate.label)), 0.9 * float(asked @ self.pool(_long(predicate))))
        described = _shared_words(other, fact.about) if fact.about else 0.0
        return Reading(link, fact, predicate, meant, _shared_words(predicate.label, other), described)

    def _answered(self, question: str, reading: Reading) -> float:
        text = f"{reading.predicate.label}: {reading.fact.example_text}"
        return float(self.pool(_rest(question, reading.link)) @ self.pool(text))


def pooled(encoder: TokenEncoder) -> Pool:
    """Unit vectors of texts, the last few thousand of them kept."""

    @lru_cache(KEPT)
    def pool(text: str) -> NDArray[np.float32]:
        mean: NDArray[np.float32] = encoder.encode_question(text).vectors.mean(axis=0)
        return mean / max(float(np.linalg.norm(mean)), 1e-9)

    return pool


def confidence(readings: Sequence[Reading], i: int) -> float:
    """About how often a reading like the i-th is right: a logistic curve over link, meaning and margin.

    The margin is to the best reading that asks something else: below 0 for all but the best.
    """
    reading = readings[i]
    others = [other.score for j, other in enumerate(readings) if j != i]
    margin = min(1.0, reading.score - max(others)) if others else 1.0
    return 1.0 / (1.0 + math.exp(-(9.0 * reading.linked + 7.0 * max(0.0, reading.meant) + 3.0 * margin - 7.0)))


def _order(reading: Reading) -> tuple[float, str, str, bool]:
    return -reading.score, reading.fact.entity, reading.fact.predicate, reading.fact.inverse


def _rest(question: str, link: EntityLink) -> str:
    return f"{question[: link.start]}_{question[link.end :]}"


def _long(predicate: RdfTerm) -> str:
    return f"{predicate.label}: {_first_clause(predicate.comment)}" if predicate.comment else predicate.label


def _first_clause(text: str) -> str:
    return re.split(r"[;.(\[]", text)[0][:120]


def _shared_words(wanted: str, text: str) -> float:
    """The share of the wanted content words of which the text has a form."""
    words = [word for word in folded(wanted).split() if word not in FUNCTION_WORDS]
    present = folded(text).split()
    return sum(any(same_verb(word, other) for other in present) for word in words) / len(words) if words else 0.0


def _query(reading: Reading) -> NativeQuery:
    entity, predicate = f"<{reading.fact.entity}>", f"<{reading.fact.predicate}>"
    triple = f"?answer {predicate} {entity}" if reading.fact.inverse else f"{entity} {predicate} ?answer"
    return NativeQuery(Language.SPARQL, f"SELECT DISTINCT ?answer WHERE {{ {triple} }}")


def _explained(reading: Reading) -> str:
    way = "of which it is the" if reading.fact.inverse else "its"
    return (
        f"“{reading.link.label}” is <{reading.fact.entity}>, asked for {way} “{reading.predicate.label}” "
        f"(link {reading.linked:.2f}, meaning {reading.meant:.2f}, values {reading.answered:.2f})"
    )

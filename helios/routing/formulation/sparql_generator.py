"""One-hop questions into SPARQL without a language model.

link entities → the predicates each really has → how well predicate and answer fit the other words → query

A reading is a (link, predicate, direction); its score adds up parts that can be read in the explanation, and the
confidence grows with the best reading's score and with its margin over the next one that asks something else.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.executors.base import Language, NativeQuery
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.entity_linking import EntityLink, folded, link_entities
from helios.routing.formulation.properties import Fact, facts_about, predicates_of
from helios.sources.base import Source
from helios.sources.descriptor import RdfTerm

Pool = Callable[[str], NDArray[np.float32]]
"""A text's unit vector."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand the question, and what speaks for it."""

    link: EntityLink
    fact: Fact
    predicate: RdfTerm
    linked: float
    meant: float
    """Similarity of the question's other words with the predicate."""
    answered: float
    """Similarity with the predicate and one of its values."""
    worded: float
    """Share of the predicate's words that the question has."""
    described: float
    """Share of the question's other words that the entity's own description has."""
    direction: float

    @property
    def score(self) -> float:
        return (
            1.2 * self.linked + 1.0 * self.meant + 0.5 * self.answered + 0.25 * self.worded + 0.3 * self.described
            + 0.2 * self.direction
        )  # fmt: skip


class SparqlGenerator:
    """Formulates one-hop questions over an RDF graph whose entities have labels."""

    def __init__(self, pool: Pool, *, limit: int = 3) -> None:
        self.pool = pool
        self.limit = limit

    def formulate(self, question: str, source: Source) -> Sequence[Candidate]:
        readings = self.readings(question, source)
        candidates = []
        for i, reading in enumerate(readings[: self.limit]):
            candidates.append(Candidate(_query(reading), _confidence(readings, i), _explained(reading)))
        return candidates

    def readings(self, question: str, source: Source) -> list[Reading]:
        """All readings, best first."""
        links = link_entities(question, source)
        predicates = predicates_of(source)
        by_entity = {link.entity: link for link in links}
        facts = [fact for fact in facts_about(source, list(by_entity)) if fact.predicate in predicates]
        readings = [
            self._reading(question, by_entity[fact.entity], fact, predicates[fact.predicate]) for fact in facts
        ]
        return sorted(readings, key=lambda reading: (-reading.score, reading.fact.predicate, reading.fact.inverse))

    def _reading(self, question: str, link: EntityLink, fact: Fact, predicate: RdfTerm) -> Reading:
        rest = f"{question[: link.start]}_{question[link.end :]}"
        asked = self.pool(rest)
        other = folded(rest)
        return Reading(
            link, fact, predicate,
            linked=link.weight,
            meant=max(float(asked @ self.pool(predicate.label)), 0.9 * float(asked @ self.pool(_long(predicate)))),
            answered=float(asked @ self.pool(f"{predicate.label}: {fact.example_text}")),
            worded=_shared_words(predicate.label, other),
            described=_shared_words(other, fact.about) if fact.about else 0.0,
            direction=_direction(question, link, fact),
        )  # fmt: skip


def _direction(question: str, link: EntityLink, fact: Fact) -> float:
    return 0.0


def _long(predicate: RdfTerm) -> str:
    return f"{predicate.label}: {_first_clause(predicate.comment)}" if predicate.comment else predicate.label


def _first_clause(text: str) -> str:
    return re.split(r"[;.(\[]", text)[0][:120]


def _shared_words(wanted: str, text: str) -> float:
    """The share of the wanted content words of which the text has a form."""
    from helios.routing.formulation.entity_linking import FUNCTION_WORDS

    words = [word for word in folded(wanted).split() if word not in FUNCTION_WORDS]
    present = folded(text).split()
    return sum(any(same_stem(word, other) for other in present) for word in words) / len(words) if words else 0.0


def same_stem(left: str, right: str) -> bool:
    """Whether two words look like forms of one: a common beginning of most of the shorter one."""
    short = min(len(left), len(right))
    common = next((i for i in range(short) if left[i] != right[i]), short)
    return common >= max(3, math.ceil(0.7 * short)) and max(len(left), len(right)) - common <= 4


def _query(reading: Reading) -> NativeQuery:
    entity, predicate = f"<{reading.fact.entity}>", f"<{reading.fact.predicate}>"
    triple = f"?answer {predicate} {entity}" if reading.fact.inverse else f"{entity} {predicate} ?answer"
    return NativeQuery(Language.SPARQL, f"SELECT DISTINCT ?answer WHERE {{ {triple} }}")


def _confidence(readings: Sequence[Reading], i: int) -> float:
    return 0.5


def _explained(reading: Reading) -> str:
    return ""

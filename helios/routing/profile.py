"""What selection knows of a source before a question comes: the words of its schema and their token vectors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

import numpy as np

from helios.index.lexical import terms_of
from helios.routing.likeness import FloatArray, Likeness
from helios.sources.base import Source
from helios.sources.descriptor import (
    CorpusSchema,
    Descriptor,
    GraphSchema,
    NodeLabel,
    RdfSchema,
    RdfTerm,
    RelationalSchema,
    RelationshipType,
)
from helios.sources.relevance import name_words

MOST_ELEMENTS = 400
"""Elements of a schema that are read; the larger ones come first where the schema counts them."""
SECONDARY = 0.8
"""What a word of a column or a property counts against one of a table, a class or a label."""
SAMPLE = 0.5
"""The same for a word of a sample value."""
TOPIC = 0.5
"""The same for a word of a corpus's topics."""
ASKED = 0.5
"""The same for a word of a question that the source was taught to answer."""
DERIVED = 0.7
"""What another form of a word counts."""
SHORTEST_STEM = 4
SHORTEST_ROOT = 3
SHORTEST_PREFIX = 5
SUFFIXES = ("ations", "ation", "ings", "ing", "ions", "ion", "ers", "ors", "er", "or", "ed", "ment", "al", "e")
STRUCTURAL = ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#")
"""Vocabulary that every graph has and that tells none from another."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Words of a source's schema with what each counts, and token vectors (T, D) of its elements."""

    words: dict[str, float]
    texts: tuple[str, ...]
    vectors_TD: FloatArray | None = None

    def match(self, stem: str) -> float:
        """How well the schema says a word, from 0 to 1: the word itself, a derived form, or the same beginning."""
        known = self.words.get(stem, 0.0)
        if known or len(stem) < SHORTEST_STEM:
            return known
        return max((DERIVED * weight for word, weight in self.words.items() if _alike(word, stem)), default=0.0)


@dataclass(slots=True)
class Profiles:
    """Profiles by source, made anew when a descriptor changes; threads may share them."""

    likeness: Likeness | None = None
    _made: dict[str, tuple[Descriptor, Profile]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, source: Source) -> Profile:
        """The profile of a source as it describes itself now; SourceError where it cannot."""
        descriptor = source.descriptor()
        with self._lock:
            made = self._made.get(source.name)
            if made is not None and (made[0] is descriptor or made[0] == descriptor):
                return made[1]
            profile = self._make(descriptor)
            self._made[source.name] = (descriptor, profile)
            return profile

    def _make(self, descriptor: Descriptor) -> Profile:
        words: dict[str, float] = {}
        texts = []
        for text, weight in elements(descriptor):
            texts.append(text)
            for word in terms_of(text):
                words[word] = max(words.get(word, 0.0), weight)
        vectors = None
        if self.likeness is not None and texts:
            vectors = np.concatenate(self.likeness.texts(list(dict.fromkeys(texts))))
        return Profile(words, tuple(texts), vectors)


def elements(descriptor: Descriptor) -> list[tuple[str, float]]:
    """Short texts of a descriptor's parts, and what a word of each counts."""
    found = [(descriptor.description, 1.0)] if descriptor.description else []
    found += [(f"{word} {meaning}", SECONDARY) for word, meaning in descriptor.glossary]
    found += [(question, ASKED) for question in descriptor.asked[:MOST_ELEMENTS]]
    return (found + list(_elements(descriptor)))[: 4 * MOST_ELEMENTS]


def _elements(descriptor: Descriptor) -> Iterator[tuple[str, float]]:
    match descriptor.schema:
        case RelationalSchema(tables=tables):
            for table in tables[:MOST_ELEMENTS]:
                yield _spoken(table.name, table.comment), 1.0
                yield " ".join(_spoken(column.name, column.comment) for column in table.columns), SECONDARY
        case RdfSchema(classes=classes, predicates=predicates):
            yield from ((_term(term), 1.0) for term in classes[:MOST_ELEMENTS])
            yield from ((_term(term), SECONDARY) for term in predicates[:MOST_ELEMENTS] if _says_something(term))
        case GraphSchema(labels=labels, relationships=relationships):
            parts: tuple[NodeLabel | RelationshipType, ...] = (*labels, *relationships)
            for element in parts:
                yield _spoken(element.name), 1.0
                if element.properties:
                    yield " ".join(_spoken(column.name, column.comment) for column in element.properties), SECONDARY
        case CorpusSchema(topics=topics, titles=titles, style=style):
            yield style, TOPIC
            yield from ((topic, TOPIC) for topic in topics[:MOST_ELEMENTS])
            yield from ((title, SAMPLE) for title in titles[:MOST_ELEMENTS])


def _term(term: RdfTerm) -> str:
    return _spoken(term.label or term.iri.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1], term.comment)


def _says_something(term: RdfTerm) -> bool:
    return not term.iri.startswith(STRUCTURAL)


def _spoken(name: str, comment: str = "") -> str:
    return f"{' '.join(name_words(name))} {comment}".strip()


def _alike(word: str, stem: str) -> bool:
    """Whether two words share their root or begin alike: `acted` and `actor`, `produced` and `producer`."""
    if len(word) < SHORTEST_STEM:
        return False
    if root(word) == root(stem):
        return True
    shared = max(SHORTEST_PREFIX, min(len(word), len(stem)) - 2)
    return min(len(word), len(stem)) >= shared and abs(len(word) - len(stem)) <= 4 and word[:shared] == stem[:shared]


@lru_cache(1 << 16)
def root(word: str) -> str:
    """A word without the commonest ending of a derived form."""
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= SHORTEST_ROOT:
            return word.removesuffix(suffix)
    return word

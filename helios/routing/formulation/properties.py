"""What a graph says around an entity: the predicates it really has, in both directions, with one example of each."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.values import Iri
from helios.sources.base import Source
from helios.sources.descriptor import RdfSchema, RdfTerm
from helios.sources.rdf_schema import local_words

LABELS = (
    "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name", "http://xmlns.com/foaf/0.1/name",
)  # fmt: skip
DESCRIPTIONS = ("http://schema.org/description", "http://www.w3.org/2000/01/rdf-schema#comment")
ANNOTATIONS = frozenset((*LABELS, *DESCRIPTIONS)) | {
    "http://www.w3.org/2004/02/skos/core#altLabel", "http://www.w3.org/2004/02/skos/core#hiddenLabel",
    "http://wikiba.se/ontology#directClaim", "http://www.w3.org/2002/07/owl#sameAs",
}  # fmt: skip
FORBIDDEN = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
ROWS = Limits(timeout=5.0, max_rows=2000)


@dataclass(frozen=True, slots=True)
class Fact:
    """A predicate of an entity in one direction, with how many values it has there and one of them."""

    entity: str
    predicate: str
    inverse: bool
    """True where the entity is the object, so that the subjects are the answer."""
    count: int
    example: str
    """The IRI or the literal of one value."""
    example_text: str = ""
    """Its label and description, as far as they are stored."""
    about: str = ""
    """The entity's own description."""


def facts_about(source: Source, entities: Sequence[str]) -> tuple[Fact, ...]:
    """Every predicate of the entities in both directions, annotations left out."""
    names = [entity for entity in entities if is_iri(entity)]
    if not names:
        return ()
    facts = [*_side(source, names, inverse=False), *_side(source, names, inverse=True)]
    texts = _texts(source, {*(fact.example for fact in facts if is_iri(fact.example)), *names})
    return tuple(
        Fact(
            fact.entity, fact.predicate, fact.inverse, fact.count, fact.example,
            " ".join(texts.get(fact.example, ())) if is_iri(fact.example) else fact.example,
            texts.get(fact.entity, ("", ""))[1],
        )
        for fact in facts
    )  # fmt: skip


def predicates_of(source: Source) -> dict[str, RdfTerm]:
    """The source's predicates by IRI; none where it is no RDF graph."""
    schema = source.descriptor().schema
    return {term.iri: term for term in schema.predicates} if isinstance(schema, RdfSchema) else {}


def described(schema: RdfSchema, used: Iterable[str]) -> dict[str, RdfTerm]:
    """What the schema says of the predicates that an entity uses.

    Those that it does not list are kept, by their names, where it does not list all: it was made of a part.
    """
    listed = {term.iri: term for term in schema.predicates}
    kept = (iri for iri in used if iri in listed or not schema.complete)
    return {iri: listed.get(iri) or RdfTerm(iri, local_words(iri), 0) for iri in kept}


def is_iri(text: str) -> bool:
    """Whether a text may stand between angle brackets in a query."""
    return ":" in text and not text.startswith("_:") and not FORBIDDEN.search(text)


def _side(source: Source, entities: Sequence[str], *, inverse: bool) -> list[Fact]:
    pattern = "?other ?p ?e" if inverse else "?e ?p ?other"
    result = _ask(
        source,
        f"SELECT ?e ?p (COUNT(?other) AS ?n) (SAMPLE(?other) AS ?one) "
        f"WHERE {{ VALUES ?e {{ {_terms(entities)} }} {pattern} }} GROUP BY ?e ?p",
    )
    return [
        Fact(str(entity), str(predicate), inverse, int(str(count)), str(one) if one is not None else "")
        for entity, predicate, count, one in result.rows
        if str(predicate) not in ANNOTATIONS and (isinstance(one, Iri) or not inverse)
    ]


def _texts(source: Source, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Label and description of each name, English ones before others."""
    predicates = _terms((*LABELS, *DESCRIPTIONS))
    result = _ask(
        source,
        f"SELECT ?e ?p ?text WHERE {{ VALUES ?e {{ {_terms(sorted(names))} }} VALUES ?p {{ {predicates} }} "
        'FILTER(LANG(?text) = "" || LANGMATCHES(LANG(?text), "en")) ?e ?p ?text }',
    )
    texts: dict[str, tuple[str, str]] = {}
    for entity, predicate, text in result.rows:
        label, description = texts.get(str(entity), ("", ""))
        if str(predicate) in DESCRIPTIONS:
            texts[str(entity)] = (label, description or str(text))
        else:
            texts[str(entity)] = (label or str(text), description)
    return texts


def _terms(iris: Iterable[str]) -> str:
    return " ".join(f"<{iri}>" for iri in iris)


def _ask(source: Source, text: str) -> ResultSet:
    return source.execute(NativeQuery(Language.SPARQL, text), ROWS)

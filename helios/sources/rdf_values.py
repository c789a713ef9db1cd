"""What the value lookup knows of an RDF graph: labels of entities first, the well-connected ones before the others."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence

from helios.errors import QueryFailed, QueryTimeout
from helios.executors.base import Limits
from helios.executors.sparql.terms import LANGUAGE_STRING, XSD, iri_text, term_text
from helios.executors.values import Iri, Literal, Value
from helios.sources.base import ValueHit
from helios.sources.lookup import MAX_VALUE_LENGTH, MAX_VALUES, StoredValue
from helios.sources.rdf_schema import COMMENTS, LABELS, LANGUAGES, Read, language_rank

log = logging.getLogger(__name__)

ALIASES = ("http://www.w3.org/2004/02/skos/core#altLabel", "https://schema.org/alternateName")
NAMES = (*LABELS, *ALIASES)
READ_LIMITS = Limits(timeout=20.0, max_rows=MAX_VALUES, max_bytes=2**26, max_memory=2**31)
ASK_LIMITS = Limits(timeout=10.0, max_rows=500, max_bytes=2**20)
MAX_PHRASES = 40
"""Phrases that are looked up at an endpoint in one call; the first ones."""


def stored_values(read: Read) -> Iterator[StoredValue]:
    """Labels and aliases of all entities, then all other short texts; see `helios.sources.lookup`."""
    names = _rows(read, f"SELECT ?s ?p ?o WHERE {{ VALUES ?p {{ {_terms(NAMES)} }} ?s ?p ?o FILTER(isLiteral(?o)) }}")
    if any(language_rank(text) < len(LANGUAGES) for _, _, text in names):
        names = [row for row in names if language_rank(row[2]) < len(LANGUAGES)]
    degrees = _degrees(read)
    order = {iri: i for i, iri in enumerate(NAMES)}
    names.sort(key=lambda row: (order[str(row[1])] >= len(LABELS), -degrees[str(row[0])], str(row[0])))
    for entity, predicate, text in names:
        yield StoredValue((str(predicate),), str(text), _entity(entity))
    others = _rows(
        read,
        "SELECT ?p ?o (SAMPLE(?s) AS ?entity) (COUNT(?s) AS ?n) WHERE { ?s ?p ?o "
        f"FILTER(DATATYPE(?o) IN (<{XSD}string>, <{LANGUAGE_STRING}>) && STRLEN(STR(?o)) <= {MAX_VALUE_LENGTH} "
        f"&& ?p NOT IN ({', '.join(map(iri_text, (*NAMES, *COMMENTS)))})) }} GROUP BY ?p ?o ORDER BY ?p DESC(?n)",
    )
    for predicate, text, entity, count in others:
        if language_rank(text) < len(LANGUAGES):
            yield StoredValue((str(predicate),), str(text), _entity(entity) if count == 1 else "")


def ask_for_values(read: Read, phrases: Sequence[str], *, limit: int) -> tuple[ValueHit, ...]:
    """Entities of a graph too large to index whose label is a phrase as it stands, or with other capitals."""
    spellings: dict[str, list[str]] = {}
    for phrase in dict.fromkeys(phrases[:MAX_PHRASES]):
        for spelling in _spellings(phrase):
            spellings.setdefault(spelling, []).append(phrase)
    if not spellings:
        return ()
    literals = [Literal(text, "", language) for text in spellings for language in LANGUAGES]
    rows = _rows(
        read,
        f"SELECT ?s ?p ?o WHERE {{ VALUES ?o {{ {_terms(literals)} }} VALUES ?p {{ {_terms(NAMES)} }} ?s ?p ?o }} "
        f"LIMIT {ASK_LIMITS.max_rows}",
        ASK_LIMITS,
    )
    hits: dict[str, list[ValueHit]] = {phrase: [] for phrase in phrases}
    for entity, predicate, text in sorted(rows, key=lambda row: NAMES.index(str(row[1]))):
        for phrase in spellings.get(str(text), ()):
            if len(hits[phrase]) < limit:
                hits[phrase].append(ValueHit(phrase, str(text), (str(predicate),), 1.0, _entity(entity)))
    return tuple(hit for found in hits.values() for hit in found)


def _degrees(read: Read) -> Counter[str]:
    """How many triples lead from and to each resource."""
    degrees: Counter[str] = Counter()
    for variable in ("?s", "?o"):
        statement = f"SELECT {variable} (COUNT(*) AS ?n) WHERE {{ ?s ?p ?o FILTER(isIRI(?o)) }} GROUP BY {variable}"
        for resource, count in _rows(read, statement):
            degrees[str(resource)] += int(str(count))
    return degrees


def _rows(read: Read, statement: str, limits: Limits = READ_LIMITS) -> list[tuple[Value, ...]]:
    """Rows of a statement; none where the graph is too large for it."""
    try:
        results = read(statement, limits)
    except (QueryTimeout, QueryFailed) as error:
        log.warning("the value lookup goes without a part of the graph: %s: %s", statement[:120], error)
        return []
    if results.truncated:
        log.info("the value lookup has a part of the graph alone (%s): %s", results.truncated, statement[:120])
    return list(results.rows)


def _spellings(phrase: str) -> dict[str, None]:
    phrase = phrase.strip()
    return dict.fromkeys(text for text in (phrase, phrase[:1].upper() + phrase[1:], phrase.title()) if text)


def _terms(values: Sequence[str | Literal]) -> str:
    return " ".join(iri_text(value) if isinstance(value, str) else term_text(value) for value in values)


def _entity(term: Value) -> str:
    return term.value if isinstance(term, Iri) and not term.value.startswith("_:") else ""

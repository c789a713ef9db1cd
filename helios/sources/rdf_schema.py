"""The schema of an RDF graph read with SPARQL: classes and predicates with counts, labels, samples, domain and range.

The statements are this module's own and every IRI in them is written by `iri_text`. Each has a deadline, and all
together have one: on a graph too large to be counted, counts and samples come from a part of it, or stay empty.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from urllib.parse import unquote

from helios.errors import QueryFailed, QueryRejected, QueryTimeout
from helios.executors.base import Limits, ResultSet
from helios.executors.sparql.terms import iri_text
from helios.executors.values import Iri, Literal, Value
from helios.sources.descriptor import RdfSchema, RdfTerm

log = logging.getLogger(__name__)

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
INSTANCE_OF = "http://www.wikidata.org/prop/direct/P31"
TYPES = (TYPE, INSTANCE_OF)
"""Predicates that give a resource its class."""
DIRECT_CLAIM = "http://wikiba.se/ontology#directClaim"
"""Wikibase labels a property's entity, which points to the predicate."""
LABELS = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/terms/title",
    "http://purl.org/dc/elements/1.1/title",
)
"""Best first."""
COMMENTS = (
    "http://www.w3.org/2000/01/rdf-schema#comment",
    "http://www.w3.org/2004/02/skos/core#definition",
    "http://schema.org/description",
    "https://schema.org/description",
    "http://purl.org/dc/terms/description",
)
LANGUAGES = ("en", "")
"""Languages of labels, best first; others are taken where there is none of these."""

MAX_CLASSES = 300
MAX_PREDICATES = 1000
SAMPLES = 5
SAMPLE_LENGTH = 60
SAMPLED = 5000
"""Triples of a predicate that samples, domain and range come from."""
PART = 100_000
"""Triples that are counted where all of them take too long."""
BATCH = 100
STATEMENT_SECONDS = 8.0
SCHEMA_SECONDS = 25.0
WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-\s]+")

Read = Callable[[str, Limits], ResultSet]
"""Runs a statement of this package; QueryTimeout, QueryFailed or SourceUnavailable."""


@dataclass(slots=True)
class SchemaReader:
    """Reads one graph's schema."""

    read: Read
    seconds: float = SCHEMA_SECONDS
    _until: float = field(default=0.0, init=False)
    _sampled: bool = field(default=False, init=False)
    """Whether a count took too long, so that the later ones are of a part at once."""

    def schema(self, prefixes: Mapping[str, str]) -> RdfSchema:
        """Classes and predicates, the frequent ones first; SourceUnavailable where the graph cannot be asked."""
        self._until = monotonic() + self.seconds
        counted = self._count("?p", "?s ?p ?o", MAX_PREDICATES)
        types = [iri for iri in TYPES if iri in counted]
        classes = self._count("?c", f"?s {_path(types)} ?c", MAX_CLASSES) if types else {}
        labels, comments = self._names([*counted, *classes], with_claims=DIRECT_CLAIM in counted)
        predicates = [
            self._detailed(RdfTerm(iri, labels[iri], count, comment=comments.get(iri, "")), types)
            for iri, count in counted.items()
        ]
        return RdfSchema(
            tuple(prefixes.items()),
            tuple(
                RdfTerm(iri, labels[iri], count, self._instances(iri, types), comment=comments.get(iri, ""))
                for iri, count in classes.items()
            ),
            tuple(self._with_labels(predicates)),
            self._triples(counted),
            self._sampled,
            not self._sampled and len(counted) < MAX_PREDICATES,
        )

    def _rows(self, statement: str, *, rows: int = 10_000) -> Sequence[tuple[Value, ...]]:
        """Rows of a statement; none where it fails or the time for all of them is over."""
        left = self._until - monotonic()
        if left <= 0:
            return ()
        limits = Limits(timeout=min(left, STATEMENT_SECONDS), max_rows=rows, max_bytes=2**24)
        try:
            return self.read(statement, limits).rows
        except (QueryTimeout, QueryFailed) as error:
            log.info("a part of the schema is left out: %s: %s", statement[:120], error)
            return ()

    def _triples(self, counted: Mapping[str, int]) -> int:
        least = sum(counted.values())
        if len(counted) < MAX_PREDICATES and not self._sampled:
            return least
        rows = self._rows("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }")
        return int(str(rows[0][0])) if rows else least

    def _count(self, variable: str, pattern: str, limit: int) -> dict[str, int]:
        """How often each IRI stands at a variable; of a part of the triples where all take too long."""
        part = f"{{ SELECT {variable} WHERE {{ {pattern} }} LIMIT {PART} }}"
        rows: Sequence[tuple[Value, ...]] = ()
        for counted in (part,) if self._sampled else (pattern, part):
            rows = self._rows(
                f"SELECT {variable} (COUNT(*) AS ?n) WHERE {{ {counted} }} "
                f"GROUP BY {variable} ORDER BY DESC(?n) {variable} LIMIT {limit}"
            )
            if rows:
                break
            self._sampled = True
        return {iri.value: int(str(n)) for iri, n in rows if isinstance(iri, Iri) and _usable(iri)}

    def _names(self, iris: Iterable[str], *, with_claims: bool) -> tuple[dict[str, str], dict[str, str]]:
        """Labels (from the IRI itself where the graph has none) and comments."""
        iris = list(dict.fromkeys(iris))
        labels = self.texts(iris, LABELS)
        comments = self.texts(iris, COMMENTS)
        if with_claims:
            for found, predicates in ((labels, LABELS), (comments, COMMENTS)):
                claimed = self.texts(iris, predicates, by=f"?e {iri_text(DIRECT_CLAIM)} ?t .", subject="?e")
                found.update({iri: text for iri, text in claimed.items() if iri not in found})
        return {iri: labels.get(iri) or local_words(iri) for iri in iris}, comments

    def texts(
        self, iris: Sequence[str], predicates: Sequence[str], *, by: str = "", subject: str = "?t"
    ) -> dict[str, str]:
        """The best text that the graph has for each IRI under the predicates."""
        found: dict[str, tuple[tuple[int, int], str]] = {}
        for start in range(0, len(iris), BATCH):
            terms = " ".join(iri_text(iri) for iri in iris[start : start + BATCH])
            rows = self._rows(
                f"SELECT ?t ?p ?text WHERE {{ VALUES ?t {{ {terms} }} {by} "
                f"VALUES ?p {{ {' '.join(map(iri_text, predicates))} }} {subject} ?p ?text }}"
            )
            for iri, predicate, text in rows:
                rank = (language_rank(text), predicates.index(str(predicate)))
                if str(iri) not in found or rank < found[str(iri)][0]:
                    found[str(iri)] = (rank, str(text))
        return {iri: text for iri, (_, text) in found.items()}

    def _detailed(self, term: RdfTerm, types: Sequence[str]) -> RdfTerm:
        """A predicate with its frequent objects (IRIs still without labels), domain and range."""
        triples = f"{{ SELECT ?s ?o WHERE {{ ?s {iri_text(term.iri)} ?o }} LIMIT {SAMPLED} }}"
        tail = f"ORDER BY DESC(?n) LIMIT {SAMPLES}"
        samples = self._rows(f"SELECT ?o (COUNT(*) AS ?n) WHERE {{ {triples} }} GROUP BY ?o {tail}")
        domain, ranges = [], []
        if types:
            domain = _iris(self._rows(_classes_of("?s", triples, types, tail)))
            ranges = _iris(self._rows(_classes_of("?o", triples, types, tail)))
        datatypes = self._rows(
            f"SELECT ?d (COUNT(*) AS ?n) WHERE {{ {triples} BIND(DATATYPE(?o) AS ?d) FILTER(BOUND(?d)) }} "
            f"GROUP BY ?d {tail}"
        )
        texts = tuple(f"<{row[0]}>" if isinstance(row[0], Iri) else str(row[0])[:SAMPLE_LENGTH] for row in samples)
        return replace(term, samples=texts, domain=tuple(domain), range=(*ranges, *_iris(datatypes)))

    def _instances(self, iri: str, types: Sequence[str]) -> tuple[str, ...]:
        """Labels of a few instances of a class."""
        rows = self._rows(f"SELECT ?s WHERE {{ ?s {_path(types)} {iri_text(iri)} }} LIMIT {SAMPLES}")
        iris = [str(s) for (s,) in rows if isinstance(s, Iri) and _usable(s)]
        labels = self.texts(iris, LABELS) if iris else {}
        return tuple((labels.get(iri) or local_words(iri))[:SAMPLE_LENGTH] for iri in iris)

    def _with_labels(self, terms: Sequence[RdfTerm]) -> Iterator[RdfTerm]:
        """Predicates whose sample objects are shown by their labels."""
        iris = [s[1:-1] for term in terms for s in term.samples if s.startswith("<") and _usable(Iri(s[1:-1]))]
        labels = self.texts(list(dict.fromkeys(iris)), LABELS)
        for term in terms:
            yield replace(
                term,
                samples=tuple(
                    (labels.get(s[1:-1]) or local_words(s[1:-1]))[:SAMPLE_LENGTH] if s.startswith("<") else s
                    for s in term.samples
                ),
            )


def local_words(iri: str) -> str:
    """The last part of an IRI as words: `.../vocab#birthDate` is `birth date`."""
    local = re.split(r"[#/:]", unquote(iri).rstrip("#/"))[-1]
    words = [word for word in WORD_BORDER.split(local) if word]
    return " ".join(word if word.isupper() else word[:1].lower() + word[1:] for word in words) or iri


def language_rank(text: Value, languages: Sequence[str] = LANGUAGES) -> int:
    """How good a label's language is, 0 the best."""
    language = text.language.partition("-")[0].lower() if isinstance(text, Literal) else ""
    return languages.index(language) if language in languages else len(languages)


def _classes_of(variable: str, triples: str, types: Sequence[str], tail: str) -> str:
    return f"SELECT ?c (COUNT(*) AS ?n) WHERE {{ {triples} {variable} {_path(types)} ?c }} GROUP BY ?c {tail}"


def _path(iris: Sequence[str]) -> str:
    return "|".join(map(iri_text, iris)) if len(iris) == 1 else f"({'|'.join(map(iri_text, iris))})"


def _iris(rows: Iterable[Sequence[Value]]) -> list[str]:
    return [row[0].value for row in rows if isinstance(row[0], Iri) and not row[0].value.startswith("_:")]


def _usable(iri: Iri) -> bool:
    """Whether a query can name a resource: not a blank node, and no IRI with characters that end it."""
    try:
        return not iri.value.startswith("_:") and bool(iri_text(iri.value))
    except QueryRejected:
        return False

"""Evidence without a query of the question's meaning: rows, triples and paths that hold its phrases.

The source's lookup says which stored values the question names; one guarded query a value fetches what stands
around it. Such evidence is said to be what it is: it holds the words, it need not hold the answer.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from helios.errors import QueryFailed, QueryRejected, QueryTimeout
from helios.executors.base import Language, NativeQuery
from helios.routing.evidence import Attempt, Execution, MadeBy
from helios.routing.phrases import phrases, terms
from helios.sources.base import Source, ValueHit
from helios.sources.descriptor import RelationalSchema

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
LEAST_SCORE = 0.75
"""Of a stored value that counts as named by the question."""
HITS = 6
"""Values whose surroundings are fetched."""
ROWS = 25
"""Rows, triples or paths that are fetched around one value."""
CONFIDENCE = 0.2
"""How often what stands around a value of the question is what was asked: seldom."""


@dataclass(frozen=True, slots=True)
class KeywordEvidence:
    """Executions around the values found, and the queries that failed."""

    executions: tuple[Execution, ...]
    attempts: tuple[Attempt, ...]


def keyword_evidence(question: str, source: Source) -> KeywordEvidence:
    """What stands around the stored values that a question names; SourceUnavailable if the source is gone."""
    write = QUERIES.get(source.language)
    executions: list[Execution] = []
    attempts: list[Attempt] = []
    if write is None:
        return KeywordEvidence((), ())
    for hit in named_values(question, source):
        query = write(hit, source)
        if query is None:
            continue
        try:
            result = source.execute(query)
        except (QueryRejected, QueryFailed, QueryTimeout) as error:
            attempts.append(Attempt(query, MadeBy.KEYWORD, str(error), 0.0))
            continue
        attempts.append(Attempt(query, MadeBy.KEYWORD, "" if len(result) else "no rows", result.milliseconds))
        if len(result):
            about = f"{hit.value!r} in {' '.join(hit.place)}"
            executions.append(
                Execution(source.name, query, MadeBy.KEYWORD, result, CONFIDENCE * hit.score, f"holds {about}")
            )
    return KeywordEvidence(tuple(executions), tuple(attempts))


def named_values(question: str, source: Source, *, limit: int = HITS) -> tuple[ValueHit, ...]:
    """The stored values that the question names, the telling ones first: long phrases before parts of them."""
    wanted = {phrase.text: phrase for phrase in phrases(question)}
    names = {(term.start, term.end) for term in terms(question) if term.name}
    hits = [hit for hit in source.find_values(list(wanted), limit=3) if hit.score >= LEAST_SCORE]

    def weight(hit: ValueHit) -> float:
        phrase = wanted[hit.phrase]
        named = phrase.quoted or any(phrase.start <= start and end <= phrase.end for start, end in names)
        return hit.score * math.sqrt(len(hit.phrase)) * (1.5 if named else 1.0)

    chosen: list[ValueHit] = []
    for hit in sorted(hits, key=lambda hit: (-weight(hit), hit.value, hit.place)):
        phrase = wanted[hit.phrase]
        inside = any(
            wanted[other.phrase].start <= phrase.start
            and phrase.end <= wanted[other.phrase].end
            and other.phrase != hit.phrase
            for other in chosen
        )
        again = any((other.value, other.place, other.entity) == (hit.value, hit.place, hit.entity) for other in chosen)
        if not inside and not again:
            chosen.append(hit)
    return tuple(chosen[:limit])


def _rows_around(hit: ValueHit, source: Source) -> NativeQuery | None:
    """The rows of the table that have the value."""
    schema = source.descriptor().schema
    if not isinstance(schema, RelationalSchema) or len(hit.place) != 2:
        return None
    from sqlglot import exp

    table, column = hit.place
    same = exp.EQ(this=exp.column(column, quoted=True), expression=exp.Literal.string(hit.value))
    named = exp.Table(this=exp.to_identifier(table, quoted=True))
    statement = exp.select("*").from_(named).where(same).limit(ROWS)
    return NativeQuery(Language.SQL, statement.sql(dialect=schema.dialect))


def _triples_around(hit: ValueHit, source: Source) -> NativeQuery | None:
    """The entity's triples in both directions, or those of the subjects that have the literal."""
    if _is_iri(hit.entity):
        ways = [f"{{ BIND(<{hit.entity}> AS {end}) ?subject ?predicate ?object }}" for end in ("?subject", "?object")]
        bound = " UNION ".join(ways)
    elif len(hit.place) == 1 and _is_iri(hit.place[0]):
        same = f"FILTER(STR(?value) = {_literal(hit.value)})"
        bound = f"?subject <{hit.place[0]}> ?value . {same} ?subject ?predicate ?object ."
    else:
        return None
    names = " ".join(f"OPTIONAL {{ {end} <{LABEL}> {end}_label }}" for end in ("?subject", "?object"))
    columns = "?subject ?subject_label ?predicate ?object ?object_label"
    return NativeQuery(Language.SPARQL, f"SELECT DISTINCT {columns} WHERE {{ {bound} {names} }} LIMIT {ROWS}")


def _paths_around(hit: ValueHit, source: Source) -> NativeQuery | None:
    """The node with the value and its neighbours."""
    if len(hit.place) != 2:
        return None
    label, key = (part.replace("`", "``") for part in hit.place)
    text = f"MATCH (n:`{label}`) WHERE n.`{key}` = $value OPTIONAL MATCH (n)-[r]-(m) RETURN n, r, m LIMIT {ROWS}"
    return NativeQuery(Language.CYPHER, text, {"value": hit.value})


def _is_iri(text: str) -> bool:
    """Whether a text can stand between angle brackets as it is."""
    return ":" in text and not text.startswith("_:") and not any(c in '<>"{}|^`\\' or c <= " " for c in text)


def _literal(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


QUERIES: dict[Language, Callable[[ValueHit, Source], NativeQuery | None]] = {
    Language.SQL: _rows_around,
    Language.SPARQL: _triples_around,
    Language.CYPHER: _paths_around,
}

"""A probe that shows the first guard of a source at work; what else stands there is said by its kind."""

from helios.errors import QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.sources.base import Source

PROBES = {
    Language.SQL: "DELETE FROM helios_probe",
    Language.SPARQL: "DELETE WHERE { ?s ?p ?o }",
    Language.CYPHER: "MATCH (n) DELETE n",
    Language.TEXT: "",
}
"""Queries that every guard must refuse; they are only checked, never run."""


def refuses_writes(source: Source) -> bool | None:
    """Whether the guard refuses the probe; None for a source that shows no guard."""
    query = NativeQuery(source.language, PROBES[source.language])
    check = getattr(getattr(source, "executor", None), "check", None)
    if check is None and source.language is not Language.TEXT:
        return None
    try:
        if check is None:
            source.execute(query)  # an empty question: refused before anything is searched
        else:
            check(query)
    except QueryRejected:
        return True
    return False


def role_in_words(source: Source) -> str | None:
    """What the role of a server may do; None for a source that has none, or cannot tell. SourceUnavailable."""
    problems = getattr(getattr(source, "executor", None), "problems", None)
    if problems is None:
        return None
    found = problems()
    if found is None:
        return None
    return f"may do more than read: {'; '.join(found)}" if found else "may only read"

"""What stands between a query and a source, in words, and a probe that shows the first guard at work."""

from helios.errors import QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.sources.base import Source, SourceKind

SQL_GUARD = "parser: one SELECT, listed functions alone"
WORKER = "worker process: killed at its deadline or memory cap, writes no file, no network where the system allows it"
ROWS = "caps on rows and bytes, said out loud"
GUARDS: dict[SourceKind, tuple[str, ...]] = {
    SourceKind.CORPUS: ("plain text: nothing to execute", ROWS),
    SourceKind.SQLITE: (SQL_GUARD, "SQLite: mode=ro, query_only, authorizer, limits", WORKER, ROWS),
    SourceKind.DUCKDB: (SQL_GUARD, "DuckDB: read-only, no access outside, settings locked", WORKER, ROWS),
    SourceKind.POSTGRESQL: (
        SQL_GUARD, "PostgreSQL: read-only transaction, statement_timeout", "deadline here: the connection is given up",
        ROWS,
    ),
    SourceKind.RDF: ("parser: queries alone, no SERVICE, no FROM", WORKER, ROWS),
    SourceKind.SPARQL: ("parser: queries alone, no SERVICE, no FROM", "deadline here and at the server", ROWS),
    SourceKind.PROPERTY_GRAPH: (
        "tokens and operators of the plan: reading ones alone", "ladybug: read-only", WORKER, ROWS,
    ),
    SourceKind.BOLT: (
        "tokens: reading clauses alone", "Bolt: read access mode", "deadline here and at the server", ROWS,
    ),
}  # fmt: skip
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

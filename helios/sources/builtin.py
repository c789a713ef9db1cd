"""The kinds of sources that come with HELIOS."""

from pathlib import Path

from helios.executors.address import BOLT_SCHEMES
from helios.executors.base import Language
from helios.sources import spec
from helios.sources.kinds import Kind
from helios.sources.sql import ENGINES, SqlSpec

SQL_GUARD = "parser: one SELECT, listed functions alone"
SPARQL_GUARD = "parser: queries alone, no SERVICE, no FROM"
WORKER = "worker process: killed at its deadline or memory cap, writes no file, no network where the system allows it"
ROWS = "caps on rows and bytes, said out loud"
INDEX_FILES = ("manifest.json", "corpus.jsonl", "corpus.jsonl.gz")


def _is_corpus(path: Path, start: bytes) -> bool:
    return path.is_dir() and any((path / name).is_file() for name in INDEX_FILES)


def _is_sqlite(path: Path, start: bytes) -> bool:
    return start.startswith(b"SQLite format 3\0")


def _is_duckdb(path: Path, start: bytes) -> bool:
    return start[8:12] == b"DUCK"


BUILT_IN = {
    kind.name: kind
    for kind in (
        Kind(
            "corpus", spec.CorpusSpec, Language.TEXT, "helios.sources.corpus:open_source",
            guards=("plain text: nothing to execute", ROWS),
            endings=(".jsonl", ".jsonl.gz"), looks_like=_is_corpus,
        ),
        Kind(
            "opensearch", spec.OpenSearchSpec, Language.TEXT, "helios.sources.opensearch:open_source",
            guards=(
                "plain text: words of a question, never a query of the server's", "one index, searched alone",
                "deadline here and at the server", ROWS,
            ),
            modules=("opensearchpy",),
        ),
        Kind(
            "sqlite", spec.SqliteSpec, Language.SQL, "helios.sources.sqlite:open_source",
            guards=(SQL_GUARD, "SQLite: mode=ro, query_only, authorizer, limits", WORKER, ROWS),
            modules=("sqlglot",), endings=(".sqlite", ".sqlite3", ".db3"), looks_like=_is_sqlite,
        ),
        Kind(
            "duckdb", spec.DuckDbSpec, Language.SQL, "helios.sources.duckdb:open_source",
            guards=(SQL_GUARD, "DuckDB: read-only, no access outside, settings locked", WORKER, ROWS),
            modules=("sqlglot",), endings=(".duckdb", ".parquet", ".csv", ".csv.gz", ".tsv"), looks_like=_is_duckdb,
        ),
        Kind(
            "postgresql", spec.PostgresqlSpec, Language.SQL, "helios.sources.postgresql:open_source",
            guards=(
                SQL_GUARD, "PostgreSQL: read-only transaction, statement_timeout",
                "deadline here: the connection is given up", ROWS,
            ),
            modules=("sqlglot", "psycopg"), schemes=("postgresql", "postgres"),
        ),
        Kind(
            "sql", SqlSpec, Language.SQL, "helios.sources.sql:open_source",
            guards=(
                SQL_GUARD, "the server's own means: read-only transaction and statement time (MariaDB, MySQL)",
                "worker process: killed at its deadline or memory cap", ROWS,
            ),
            modules=("sqlglot", "sqlalchemy"), schemes=tuple(ENGINES),
        ),
        Kind(
            "rdf", spec.RdfSpec, Language.SPARQL, "helios.sources.rdf:open_source",
            guards=(SPARQL_GUARD, WORKER, ROWS), modules=("rdflib", "pyoxigraph"),
            endings=(".nt", ".nt.gz", ".ttl", ".ttl.gz", ".nq", ".nq.gz", ".trig", ".rdf", ".owl"),
        ),
        Kind(
            "sparql", spec.SparqlSpec, Language.SPARQL, "helios.sources.sparql:open_source",
            guards=(SPARQL_GUARD, "deadline here and at the server", ROWS), modules=("rdflib",),
        ),
        Kind(
            "property_graph", spec.PropertyGraphSpec, Language.CYPHER, "helios.sources.property_graph:open_source",
            guards=("tokens and operators of the plan: reading ones alone", "ladybug: read-only", WORKER, ROWS),
            modules=("ladybug",), endings=(".lbug", ".lbdb", ".kuzu"),
        ),
        Kind(
            "bolt", spec.BoltSpec, Language.CYPHER, "helios.sources.bolt:open_source",
            guards=(
                "tokens: reading clauses alone", "Bolt: read access mode",
                "the server's EXPLAIN, where it tells what a query does", "deadline here and at the server", ROWS,
            ),
            modules=("neo4j",), schemes=BOLT_SCHEMES,
        ),
    )
}  # fmt: skip
"""By name; a kind of another package is no different, see `helios.sources.kinds`."""

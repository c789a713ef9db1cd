"""Questions over an RDF graph that is built like tables: the reading and the plans of SQL, written in SPARQL."""

from threading import Lock

from helios.executors.base import Language, Limits, NativeQuery
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.generator import read_question, tried
from helios.routing.formulation.rdf_tables import RdfTables
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.sparql import render_sparql
from helios.sources.base import Source
from helios.sources.descriptor import RdfSchema


class TableSparqlGenerator:
    """Schema-linked SPARQL for simple questions over classes with literals; threads may share it."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits
        self._read: dict[str, tuple[RdfSchema, RdfTables | None, SchemaView | None]] = {}
        self._lock = Lock()

    def formulate(self, question: str, source: Source) -> list[Candidate]:
        """Queries best first; none where the graph is not built like tables."""
        tables, view = self.tables(source)
        if tables is None or view is None:
            return []
        return tried(
            question,
            read_question(question, view, lambda phrases: tables.find_values(source, phrases)),
            lambda plan: NativeQuery(Language.SPARQL, render_sparql(plan, tables)),
            lambda query: source.execute(query, self.limits),
            sparql=True,
        )

    def tables(self, source: Source) -> tuple[RdfTables | None, SchemaView | None]:
        """The source's tables; read once, as long as its schema is the same."""
        schema = source.descriptor().schema
        if not isinstance(schema, RdfSchema):
            return None, None
        with self._lock:
            known = self._read.get(source.name)
            if known is None or (known[0] is not schema and known[0] != schema):
                tables = RdfTables.of(schema, source)
                known = (schema, tables, SchemaView.of(tables.schema) if tables is not None else None)
                self._read[source.name] = known
            return known[1], known[2]

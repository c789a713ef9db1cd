"""Questions over a property graph that is read as tables: the reading and the plans of SQL, written in Cypher."""

from threading import Lock

from helios.executors.base import Limits, NativeQuery
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.cypher import render_cypher
from helios.routing.formulation.generator import read_question, tried
from helios.routing.formulation.graph_tables import GraphTables
from helios.routing.formulation.plan import Plan
from helios.routing.formulation.schema import SchemaView
from helios.sources.base import Source
from helios.sources.descriptor import GraphSchema


class TableCypherGenerator:
    """Schema-linked Cypher for simple questions over labels and types with properties; threads may share it."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits
        self._read: dict[str, tuple[GraphSchema, GraphTables, SchemaView]] = {}
        self._lock = Lock()

    def formulate(self, question: str, source: Source) -> list[Candidate]:
        """Queries best first; none for a source that is no property graph with labels."""
        schema = source.descriptor().schema
        if not isinstance(schema, GraphSchema) or not schema.labels:
            return []
        tables, view = self.tables(source, schema)

        def write(plan: Plan) -> NativeQuery:
            return render_cypher(tables.named(plan, view), tables)

        return tried(
            question, read_question(question, view, lambda phrases: tables.find_values(source, phrases)), write,
            lambda query: source.execute(query, self.limits),
        )  # fmt: skip

    def tables(self, source: Source, schema: GraphSchema) -> tuple[GraphTables, SchemaView]:
        """The source's tables; read once, as long as its schema is the same."""
        with self._lock:
            known = self._read.get(source.name)
            if known is None or (known[0] is not schema and known[0] != schema):
                tables = GraphTables.of(schema)
                known = self._read[source.name] = (schema, tables, SchemaView.of(tables.schema))
            return known[1], known[2]

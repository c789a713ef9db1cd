"""Questions over a property graph into Cypher without a language model.

words → mentions of labels, relationships, properties and values → a plan → Cypher
"""

from collections.abc import Sequence
from dataclasses import replace

from helios.errors import SourceError
from helios.executors.base import Language, NativeQuery
from helios.executors.cypher.catalog import quoted
from helios.routing.formulation.asking import asks_nothing
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.confidence import shipped
from helios.routing.formulation.features import graph_features
from helios.routing.formulation.graph_plan import GraphPlan, write_cypher
from helios.routing.formulation.graph_reading import GraphReading
from helios.routing.formulation.graph_vocabulary import GraphVocabulary
from helios.routing.formulation.rephrasing import rephrased
from helios.routing.formulation.word_forms import name_words
from helios.sources.base import Source
from helios.sources.descriptor import GraphSchema

CASTS = {"bolt": "toFloat({})"}
"""How text becomes a number, where the engine is not the embedded one."""


class CypherGenerator:
    """Formulates lookups, filters, counts, orders and groups over one or a few hops."""

    def __init__(self) -> None:
        self._vocabularies: dict[str, GraphVocabulary] = {}

    def formulate(self, question: str, source: Source) -> Sequence[Candidate]:
        schema = source.descriptor().schema
        if not isinstance(schema, GraphSchema) or not schema.labels or asks_nothing(question):
            return []
        vocabulary = self.vocabulary(source, schema)
        reading = GraphReading(vocabulary.read(rephrased(question), source), vocabulary)
        plan = reading.read()
        if plan is None:
            return []
        cast = CASTS.get(source.kind, "CAST({} AS DOUBLE)")
        query, tie = write_cypher(plan, cast=cast), cuts_a_tie(plan, source, cast)
        try:
            result = source.execute(query)
        except SourceError:
            result = None
        seen = graph_features(question, reading, plan, result, tie=tie)
        explanation = f"{reading.shape}; other rows tie with the last one" if tie else reading.shape
        return [Candidate(query, shipped().graphs.of(seen), explanation, seen)]

    def vocabulary(self, source: Source, schema: GraphSchema) -> GraphVocabulary:
        """The names of a source; kept as long as its schema is the same object."""
        known = self._vocabularies.get(source.name)
        if known is None or known.schema is not schema:
            known = GraphVocabulary(schema, repeated=repeated_values(source, schema))
            self._vocabularies[source.name] = known
        return known


def repeated_values(source: Source, schema: GraphSchema) -> frozenset[tuple[str, str]]:
    """The naming properties of labels whose values are shared by a fifth of the nodes or more."""
    repeated = set()
    for label in schema.labels:
        for column in label.properties:
            if name_words(column.name)[-1] not in ("name", "title"):
                continue
            name = f"n.{quoted(column.name)}"
            text = f"MATCH (n:{quoted(label.name)}) RETURN count(DISTINCT {name}), count({name})"
            result = source.execute(NativeQuery(Language.CYPHER, text))
            distinct, stored = (int(str(count)) for count in result.rows[0])
            if distinct < 0.8 * stored:
                repeated.add((label.name, column.name))
    return frozenset(repeated)


def cuts_a_tie(plan: GraphPlan, source: Source, cast: str) -> bool:
    """Whether the limit leaves out a row that sorts like the last one: then the question has more than one answer."""
    if plan.limit is None or plan.order is None:
        return False
    select = plan.select if plan.order in plan.select else (*plan.select, plan.order)
    probe = write_cypher(replace(plan, select=select, limit=plan.limit + 1), cast=cast)
    try:
        rows = source.execute(probe).rows
    except SourceError:
        return False
    place = select.index(plan.order)
    return len(rows) > plan.limit and rows[plan.limit - 1][place] == rows[plan.limit][place]

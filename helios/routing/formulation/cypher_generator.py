"""Questions over a property graph into Cypher without a language model.

words → mentions of labels, relationships, properties and values → a plan → Cypher

The confidence is what the shape of the plan is worth, times the share of the question's telling words that it used,
times a penalty for every relationship that had to be guessed.
"""

from collections.abc import Sequence

from helios.routing.formulation.base import Candidate
from helios.routing.formulation.graph_plan import GraphPlan, write_cypher
from helios.routing.formulation.graph_reading import GraphReading
from helios.routing.formulation.graph_vocabulary import GraphVocabulary
from helios.sources.base import Source, SourceKind
from helios.sources.descriptor import GraphSchema

CASTS = {SourceKind.BOLT: "toFloat({})"}
"""How text becomes a number, where the engine is not the embedded one."""


class CypherGenerator:
    """Formulates lookups, filters, counts, orders and groups over one or a few hops."""

    def formulate(self, question: str, source: Source) -> Sequence[Candidate]:
        schema = source.descriptor().schema
        if not isinstance(schema, GraphSchema) or not schema.labels:
            return []
        vocabulary = GraphVocabulary(schema)
        reading = GraphReading(vocabulary.read(question, source), vocabulary)
        plan = reading.read()
        if plan is None:
            return []
        query = write_cypher(plan, cast=CASTS.get(source.kind, "CAST({} AS DOUBLE)"))
        return [Candidate(query, self.confidence(reading, plan), _explained(reading, plan))]

    def confidence(self, reading: GraphReading, plan: GraphPlan) -> float:
        """About how often plans like this one are right, 0 to 1."""
        return 0.5 * reading.coverage()


def _explained(reading: GraphReading, plan: GraphPlan) -> str:
    return reading.shape

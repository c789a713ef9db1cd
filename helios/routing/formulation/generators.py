"""The formulators that need no language model, one a language."""

from helios.executors.base import Language
from helios.routing.formulation.base import Formulator
from helios.routing.likeness import Likeness


def open_generators(likeness: Likeness) -> dict[Language, Formulator]:
    """Generators by language; their models are the token encoder."""
    from helios.routing.formulation.cypher_generator import CypherGenerator
    from helios.routing.formulation.generator import SqlGenerator
    from helios.routing.formulation.sparql_generator import SparqlGenerator

    return {
        Language.SQL: SqlGenerator(),
        Language.SPARQL: SparqlGenerator.of_encoder(likeness.encoder),
        Language.CYPHER: CypherGenerator(),
    }

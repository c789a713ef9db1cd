"""The formulators that need no language model, one a language."""

import numpy as np
from numpy.typing import NDArray

from helios.executors.base import Language
from helios.routing.formulation.base import Formulator
from helios.routing.likeness import Likeness


def open_generators(likeness: Likeness) -> dict[Language, Formulator]:
    """Generators by language; their models are the token encoder."""
    from helios.routing.formulation.cypher_generator import CypherGenerator
    from helios.routing.formulation.generator import SqlGenerator
    from helios.routing.formulation.sparql_generator import SparqlGenerator

    def pool(text: str) -> NDArray[np.float32]:
        mean_D = likeness.question(text).mean(axis=0)
        unit_D: NDArray[np.float32] = mean_D / np.float32(np.linalg.norm(mean_D))
        return unit_D

    return {
        Language.SQL: SqlGenerator(),
        Language.SPARQL: SparqlGenerator(pool),
        Language.CYPHER: CypherGenerator(),
    }

"""The formulators that need no language model, one a language."""

from importlib import import_module
from importlib.util import find_spec

from helios.executors.base import Language
from helios.routing.formulation.base import Formulator
from helios.routing.likeness import Likeness

PARSERS = (
    "sqlglot", "sqlglot.dialects.sqlite", "sqlglot.dialects.duckdb", "sqlglot.dialects.postgres", "sqlglot.optimizer",
    "rdflib", "rdflib.plugins.sparql",
)  # fmt: skip


def open_generators(likeness: Likeness, *, tables: bool = True) -> dict[Language, Formulator]:
    """Generators by language; their models are the token encoder, and with `tables` the reader of tables for databases
    and property graphs, where it knows the encoder.

    The parsers of the guards are imported here: threads that import their parts for the first time at the same moment
    would wait for each other.
    """
    for name in PARSERS:
        if find_spec(name.partition(".")[0]) is not None:
            import_module(name)
    from helios.routing.formulation.cypher_generator import CypherGenerator
    from helios.routing.formulation.generator import SqlGenerator
    from helios.routing.formulation.sparql_generator import SparqlGenerator
    from helios.routing.formulation.table_cypher import TableCypherGenerator
    from helios.routing.programs.formulator import ProgramFormulator, reads
    from helios.routing.programs.together import Together, of_graph_tables

    words: list[Formulator] = [SqlGenerator(), TableCypherGenerator()]
    if tables and reads(likeness.encoder):
        programs = ProgramFormulator(likeness.encoder)
        words = [Together(one, programs) for one in words]
    over_tables, graph_as_tables = words
    return {
        Language.SQL: over_tables,
        Language.SPARQL: SparqlGenerator.of_encoder(likeness.encoder),
        Language.CYPHER: Together(CypherGenerator(), graph_as_tables, trust=of_graph_tables, several=True),
    }

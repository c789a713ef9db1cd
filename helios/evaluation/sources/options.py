"""What the command line offers for sources, apart from the code that does it, so that `helios --help` stays light."""

from enum import StrEnum

CONFIDENCE = 0.5
"""From which a system's best query counts as an answer."""


class Layout(StrEnum):
    """How a question set is laid out; see the loader of each in `helios.evaluation.sources.loaders`."""

    PLAIN = "plain"
    SHARED = "shared"
    SPIDER = "spider"
    BIRD = "bird"
    SPIDER4SPARQL = "spider4sparql"
    SIMPLEQUESTIONS = "simplequestions"
    QALD = "qald"
    LCQUAD = "lcquad"
    TEXT2CYPHER = "text2cypher"
    BEIR = "beir"


class Method(StrEnum):
    """The systems that are compared."""

    LAYER = "layer"
    """The k likeliest sources, each asked in its own language, the surest result first."""
    KB_ROUTING = "kb-routing"
    """The likeliest source alone."""
    ORACLE = "oracle"
    """The layer on the gold source: an upper bound on what selection can bring."""
    GENERATORS = "generators"
    """The queries written for the gold source, also below the confidence from which the layer answers."""
    TEXT = "text"
    """The likeliest source of one paradigm alone, and so the next three."""
    SQL = "sql"
    SPARQL = "sparql"
    CYPHER = "cypher"

"""What a source says about itself: its schema with counts, comments and sample values (OmniRetrieval 2.2, A.1-A.4).

One dataclass a paradigm. `Descriptor.text` is how a person or a prompt reads it; routing and query generation read
the fields.
"""

from dataclasses import dataclass

from helios.executors.base import Language


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a property of a node label or a relationship type."""

    name: str
    type: str
    comment: str = ""
    samples: tuple[str, ...] = ()
    """A few values that occur, the frequent ones first."""
    primary_key: bool = False
    masked: bool = False
    """Whether its values are never shown, only tokens that can be counted and joined."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns of a table that refer to those of another, in the same order."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table or a view of a database."""

    name: str
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    row_count: int | None = None
    comment: str = ""
    view: bool = False


@dataclass(frozen=True, slots=True)
class RdfTerm:
    """A class or a predicate of an RDF graph."""

    iri: str
    label: str
    count: int
    """Instances of a class, triples of a predicate."""
    samples: tuple[str, ...] = ()
    """Labels of a few instances, or of a few objects."""
    domain: tuple[str, ...] = ()
    """Classes of a predicate's subjects (IRIs), the frequent ones first."""
    range: tuple[str, ...] = ()
    """Classes or datatypes of its objects."""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """A label of a property graph's nodes."""

    name: str
    properties: tuple[Column, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RelationshipType:
    """A type of relationships between nodes of two labels."""

    name: str
    start: str
    end: str
    properties: tuple[Column, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RelationalSchema:
    """Tables of a database."""

    dialect: str
    """The name that sqlglot has for it: sqlite, duckdb, postgres."""
    tables: tuple[TableSchema, ...]


@dataclass(frozen=True, slots=True)
class RdfSchema:
    """Classes and predicates of an RDF graph."""

    prefixes: tuple[tuple[str, str], ...]
    classes: tuple[RdfTerm, ...]
    predicates: tuple[RdfTerm, ...]
    triple_count: int
    """All of them; where the graph is `sampled`, at least."""
    sampled: bool = False
    """Whether counts are those of a part, since all take too long: there may be more predicates and classes."""
    complete: bool = True
    """Whether all predicates are listed; not those of a graph that was sampled, or has more than are kept."""


@dataclass(frozen=True, slots=True)
class GraphSchema:
    """Labels and relationship types of a property graph."""

    labels: tuple[NodeLabel, ...]
    relationships: tuple[RelationshipType, ...]
    sampled: bool = False
    """Whether a part was looked at, since all takes too long: counts are estimates, and there may be more types."""


@dataclass(frozen=True, slots=True)
class CorpusSchema:
    """Documents, or a HELIOS index of tables and passages."""

    document_count: int
    style: str
    """What the documents are: `abstracts of papers`, `tables and passages`."""
    topics: tuple[str, ...]
    """Words and phrases that tell this corpus from others, the telling ones first."""
    titles: tuple[str, ...] = ()
    """A sample of titles."""


Schema = RelationalSchema | RdfSchema | GraphSchema | CorpusSchema


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A source as routing and prompts see it."""

    source: str
    kind: str
    language: Language
    schema: Schema
    description: str = ""
    """What a person wrote at registration; may be empty."""
    glossary: tuple[tuple[str, str], ...] = ()
    """Words and metrics of people, and what they mean here."""
    asked: tuple[str, ...] = ()
    """Questions that the source was taught to answer."""

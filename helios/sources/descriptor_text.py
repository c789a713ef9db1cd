"""A descriptor as people and prompts read it (OmniRetrieval A.1-A.4).

    text(descriptor)                                         all of it
    text(descriptor, budget_tokens=1500, question=question)  cut to what the question is about

Tables are CREATE TABLE statements with counts, comments and samples as SQL comments; RDF graphs list prefixes, classes
and predicates; property graphs list labels, relationship types and the triples between labels; corpora their topics.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from helios.sources.descriptor import (
    Column,
    CorpusSchema,
    Descriptor,
    GraphSchema,
    NodeLabel,
    RdfSchema,
    RdfTerm,
    RelationalSchema,
    RelationshipType,
    Schema,
    TableSchema,
)
from helios.sources.linking import linked, local_name

CHARACTERS_PER_TOKEN = 3.6
"""What schema text takes of a language model's vocabulary, roughly; budgets are met on the safe side."""
SIZES = (80, 40, 20, 12, 8, 5, 3, 2, 1)
"""Elements that are tried, from many to few, where the whole does not fit."""
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KEYWORDS = """
all and any as asc between by case cast check column constraint create cross current_date current_time
current_timestamp default delete desc distinct do drop else end except exists false fetch for foreign from full
grant group having if in index inner insert intersect into is join key left like limit natural not null offset on
or order outer over primary references returning right select session set some table then to transaction trigger
true union unique update user using values view when where window with
"""
RESERVED = frozenset(KEYWORDS.split())
"""Words that a name must not be without quotes, in one dialect or another."""
SAMPLED = " (a sample: counts are those of a part, and there may be more than is shown)"
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false", re.IGNORECASE)
TEXT_TYPE = re.compile(r"char|text|string|clob", re.IGNORECASE)
XSD = "http://www.w3.org/2001/XMLSchema#"


def text(descriptor: Descriptor, *, budget_tokens: int | None = None, question: str = "") -> str:
    """The descriptor as text, in about `budget_tokens` tokens at most.

    What does not fit goes in this order: samples beyond two, all samples and comments, then the elements that resemble
    the question least (the last ones, where there is no question). What was left out is said at the end.
    """
    shown = ""
    for candidate in _versions(descriptor, question) if budget_tokens else (descriptor,):
        shown = _with_omissions(candidate, descriptor)
        if budget_tokens is None or estimated_tokens(shown) <= budget_tokens:
            return shown
    room = int((budget_tokens or 0) * CHARACTERS_PER_TOKEN)
    return shown[: max(0, room - 3)].rstrip() + " …"


def estimated_tokens(shown: str) -> int:
    """About how many tokens a language model reads a text as."""
    return int(len(shown) / CHARACTERS_PER_TOKEN) + 1


def identifier(name: str, dialect: str = "") -> str:
    """A name as SQL has it, in quotes where it needs them: in PostgreSQL a name without them means lower case."""
    folded = dialect == "postgres" and name != name.lower()
    if PLAIN.fullmatch(name) and name.lower() not in RESERVED and not folded:
        return name
    return '"' + name.replace('"', '""') + '"'


def _versions(descriptor: Descriptor, question: str) -> Iterator[Descriptor]:
    yield descriptor
    yield _fewer_samples(descriptor, 2, comments=True)
    yield _fewer_samples(descriptor, 0, comments=False)
    part = descriptor
    for size in SIZES:
        smaller = linked(part, question, limit=size)
        if smaller != part:
            part = smaller
            yield _fewer_samples(part, 2, comments=True)
            yield _fewer_samples(part, 0, comments=False)


def _fewer_samples(descriptor: Descriptor, count: int, *, comments: bool) -> Descriptor:
    def column(old: Column) -> Column:
        return replace(old, samples=old.samples[:count], comment=old.comment if comments else "")

    def term(old: RdfTerm) -> RdfTerm:
        return replace(old, samples=old.samples[:count], comment=old.comment if comments else "")

    def columns(old: Sequence[Column]) -> tuple[Column, ...]:
        return tuple(map(column, old))

    schema: Schema = descriptor.schema
    match schema:
        case RelationalSchema():
            tables = (replace(table, columns=columns(table.columns)) for table in schema.tables)
            schema = replace(schema, tables=tuple(tables))
        case RdfSchema():
            schema = replace(
                schema, classes=tuple(map(term, schema.classes)), predicates=tuple(map(term, schema.predicates))
            )
        case GraphSchema():
            labels = tuple(replace(label, properties=columns(label.properties)) for label in schema.labels)
            types = tuple(replace(kind, properties=columns(kind.properties)) for kind in schema.relationships)
            schema = replace(schema, labels=labels, relationships=types)
        case CorpusSchema():
            schema = replace(schema, topics=schema.topics[: 10 + 10 * count], titles=schema.titles[: 2 * count])
    return replace(descriptor, schema=schema)


def _with_omissions(shown: Descriptor, whole: Descriptor) -> str:
    schema, all_of_it = shown.schema, whole.schema
    lines = [f"-- {_one_line(shown.description)}"] if shown.description and isinstance(schema, RelationalSchema) else []
    if shown.description and not lines:
        lines = [f"# {_one_line(shown.description)}"]
    mark = "--" if isinstance(schema, RelationalSchema) else "#"
    lines += (f"{mark} {_one_line(word)}: {_one_line(meaning)}" for word, meaning in shown.glossary)
    left_out = 0
    match schema, all_of_it:
        case RelationalSchema(), RelationalSchema():
            lines += (_table(table, schema.dialect) for table in schema.tables)
            left_out = len(all_of_it.tables) - len(schema.tables)
            noun, mark = "tables", "--"
        case RdfSchema(), RdfSchema():
            lines += _rdf(schema)
            left_out = len(all_of_it.predicates) + len(all_of_it.classes) - len(schema.predicates) - len(schema.classes)
            noun, mark = "classes and predicates", "#"
        case GraphSchema(), GraphSchema():
            lines += _graph(schema)
            left_out = (
                len(all_of_it.labels) + len(all_of_it.relationships) - len(schema.labels) - len(schema.relationships)
            )
            noun, mark = "labels and relationship types", "#"
        case CorpusSchema(), _:
            lines += _corpus(schema)
            noun, mark = "", ""
    if left_out:
        lines.append(f"{mark} {left_out} more {noun} are not shown")
    return "\n".join(lines)


def _table(table: TableSchema, dialect: str) -> str:
    def named(*names: str) -> str:
        return ", ".join(identifier(name, dialect) for name in names)

    key = [column.name for column in table.columns if column.primary_key]
    parts = []
    for column in table.columns:
        alone = " PRIMARY KEY" if column.primary_key and len(key) == 1 else ""
        parts.append((f"{named(column.name)} {_one_line(column.type)}".rstrip() + alone, _notes(column)))
    if len(key) > 1:
        parts.append((f"PRIMARY KEY ({named(*key)})", ""))
    for foreign in table.foreign_keys:
        own, other = named(*foreign.columns), named(*foreign.referred)
        parts.append((f"FOREIGN KEY ({own}) REFERENCES {named(foreign.table)} ({other})", ""))
    notes = [_one_line(table.comment)] if table.comment else []
    if table.row_count is not None:
        notes.insert(0, f"{table.row_count:,} rows")
    lines = [f"CREATE TABLE {named(table.name)} (" + (f" -- {'; '.join(notes)}" if notes else "")]
    for number, (part, note) in enumerate(parts):
        comma = "," if number < len(parts) - 1 else ""
        lines.append(f"  {part}{comma}" + (f" -- {note}" if note else ""))
    return "\n".join([*lines, ");"])


def _notes(column: Column) -> str:
    notes = [_one_line(column.comment)] if column.comment else []
    if column.masked:
        notes.append("masked: to count and join, its values are not shown")
    if column.samples:
        notes.append("e.g. " + ", ".join(_literal(sample, column.type) for sample in column.samples))
    return "; ".join(notes)


def _literal(sample: str, kind: str) -> str:
    """A sample as a query would have it: texts in quotes; one that was cut is none and has no closing quote."""
    line = _one_line(sample)
    if NUMBER.fullmatch(line) and not TEXT_TYPE.search(kind):
        return line
    quoted = "'" + line.replace("'", "''")
    return quoted if line.endswith("…") else f"{quoted}'"


def _rdf(schema: RdfSchema) -> Iterator[str]:
    short = shortener(schema.prefixes)
    yield from (f"PREFIX {prefix}: <{iri}>" for prefix, iri in schema.prefixes)
    least, sample = ("at least ", SAMPLED) if schema.sampled else ("", "")
    yield f"# {least}{schema.triple_count:,} triples{sample}"
    if schema.classes:
        yield "# Classes"
    yield from (_term(term, short, "instances") for term in schema.classes)
    if schema.predicates:
        yield "# Predicates"
    yield from (_term(term, short, "triples") for term in schema.predicates)


def shortener(prefixes: Sequence[tuple[str, str]]) -> Callable[[str], str]:
    """A function that writes an IRI as SPARQL may have it: with a prefix where one fits, else in angle brackets."""
    longest = sorted(prefixes, key=lambda pair: -len(pair[1]))

    def short(iri: str) -> str:
        for prefix, start in longest:
            if iri.startswith(start) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", iri[len(start) :]):
                return f"{prefix}:{iri[len(start) :]}"
        return f"xsd:{iri.removeprefix(XSD)}" if iri.startswith(XSD) else f"<{iri}>"

    return short


def _term(term: RdfTerm, short: Callable[[str], str], noun: str) -> str:
    parts = [short(term.iri)]
    if term.label and term.label != local_name(term.iri):
        parts.append(f'"{_one_line(term.label)}"')
    if term.domain or term.range:
        ends = (" | ".join(map(short, end[:3])) or "?" for end in (term.domain, term.range))
        parts.append(" -> ".join(ends))
    notes = [f"{term.count:,} {noun}"]
    if term.comment:
        notes.append(_one_line(term.comment))
    if term.samples:
        notes.append("e.g. " + ", ".join(map(_one_line, term.samples)))
    return f"{'  '.join(parts)}  # {'; '.join(notes)}"


def _graph(schema: GraphSchema) -> Iterator[str]:
    yield "# Node labels" + (SAMPLED if schema.sampled else "")
    yield from (_labelled(label, f"(:{_name(label.name)})", "nodes") for label in schema.labels)
    yield "# Relationship types"
    yield from (
        _labelled(kind, f"(:{_name(kind.start)})-[:{_name(kind.name)}]->(:{_name(kind.end)})", "relationships")
        for kind in schema.relationships
    )


def _labelled(element: NodeLabel | RelationshipType, pattern: str, noun: str) -> str:
    properties = [
        f"{_name(column.name)}: {column.type}" + (f" ({notes})" if (notes := _notes(column)) else "")
        for column in element.properties
    ]
    inside = " {" + ", ".join(properties) + "}" if properties else ""
    return f"{pattern}{inside}  # {element.count:,} {noun}"


def _corpus(schema: CorpusSchema) -> Iterator[str]:
    yield f"{schema.document_count:,} documents: {schema.style}"
    if schema.topics:
        yield f"Topics: {', '.join(schema.topics)}"
    if schema.titles:
        yield "Titles such as: " + "; ".join(map(_one_line, schema.titles))


def _name(name: str) -> str:
    """A label, type or property as Cypher has it."""
    return name if PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _one_line(words: str) -> str:
    return " ".join(words.split())

"""The part of a large schema that a question is about (schema linking).

linked(descriptor, question, limit=20)      a Descriptor with 20 tables at most, of which wide ones are narrowed
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from helios.sources.base import ValueHit
from helios.sources.descriptor import (
    Column,
    CorpusSchema,
    Descriptor,
    GraphSchema,
    RdfSchema,
    RdfTerm,
    RelationalSchema,
    TableSchema,
)
from helios.sources.relevance import relevance

COLUMNS = 40
"""Columns that a table keeps; keys come on top."""
JOIN_STEPS = 3
"""Foreign keys between two tables that a join path may follow."""
NAME_BONUS = 2.0
"""What a table's own name counts against its columns' names."""
HIT_BONUS = 4.0
"""What a stored value that the question names counts for the table that holds it."""
CHILD = 0.5
"""What an element's best part (a column, a property) adds to the element."""


def linked(descriptor: Descriptor, question: str, *, limit: int = 20, hits: Sequence[ValueHit] = ()) -> Descriptor:
    """The elements that resemble a question most, `limit` of each sort at most, and what connects them.

    Tables come with those on the join paths between them (which count towards `limit`), relationship types with
    the labels at their ends. `hits` are values of the question that were found in the source. A schema that is small
    enough comes back whole, and so does a corpus.
    """
    schema = descriptor.schema
    match schema:
        case RelationalSchema():
            part: RelationalSchema | RdfSchema | GraphSchema | CorpusSchema = _linked_tables(
                schema, question, limit, hits
            )
        case RdfSchema():
            part = _linked_terms(schema, question, limit, hits)
        case GraphSchema():
            part = _linked_labels(schema, question, limit, hits)
        case CorpusSchema():
            part = schema
    return replace(descriptor, schema=part)


def _linked_tables(schema: RelationalSchema, question: str, limit: int, hits: Sequence[ValueHit]) -> RelationalSchema:
    chosen = schema.tables
    found = {(hit.place[0].lower(), hit.place[-1].lower()) for hit in hits if hit.place}
    if len(chosen) > limit:
        scores = table_scores(schema, question)
        best = {hit.place[0].lower(): hit.score for hit in sorted(hits, key=lambda hit: hit.score) if hit.place}
        for i, table in enumerate(schema.tables):
            scores[i] += HIT_BONUS * best.get(table.name.lower(), 0.0)
        names = _connected(schema, scores, limit)
        chosen = tuple(table for table in schema.tables if table.name.lower() in names)
    referred = {
        (key.table.lower(), name.lower()) for table in chosen for key in table.foreign_keys for name in key.referred
    }
    kept = {table.name.lower() for table in chosen}
    whole = len(chosen) == len(schema.tables)
    tables = []
    for table in chosen:
        needed = {name for owner, name in referred | found if owner == table.name.lower()}
        keys = tuple(key for key in table.foreign_keys if whole or key.table.lower() in kept)
        tables.append(_narrowed(replace(table, foreign_keys=keys), question, needed))
    return replace(schema, tables=tuple(tables))


def table_scores(schema: RelationalSchema, question: str) -> list[float]:
    """How much each table resembles a question: its name and comment, and its columns together."""
    names = relevance(question, [(table.name, table.comment) for table in schema.tables])
    columns = relevance(
        question,
        [
            (" ".join(column.name for column in table.columns), " ".join(map(_column_text, table.columns)))
            for table in schema.tables
        ],
    )
    return [NAME_BONUS * name + column for name, column in zip(names, columns, strict=True)]


def _connected(schema: RelationalSchema, scores: Sequence[float], limit: int) -> set[str]:
    """Names (lower case) of the best tables, each with the tables on the shortest path to those chosen before."""
    neighbours: dict[str, set[str]] = {table.name.lower(): set() for table in schema.tables}
    for table in schema.tables:
        for key in table.foreign_keys:
            if key.table.lower() in neighbours:
                neighbours[table.name.lower()].add(key.table.lower())
                neighbours[key.table.lower()].add(table.name.lower())
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    chosen: set[str] = set()
    for i in order:
        if len(chosen) >= limit or (chosen and scores[i] <= 0.0):
            break
        name = schema.tables[i].name.lower()
        path = _path(name, chosen, neighbours) - chosen
        chosen |= path if len(chosen) + len(path) <= limit else {name}
    return chosen


def _path(start: str, goals: set[str], neighbours: Mapping[str, set[str]]) -> set[str]:
    """The nodes of a shortest path to any goal, `start` alone where none is near."""
    came_from: dict[str, str | None] = {start: None}
    queue = deque([(start, 0)])
    while queue:
        here, steps = queue.popleft()
        if here in goals:
            path, step = {here}, came_from[here]
            while step is not None:
                path.add(step)
                step = came_from[step]
            return path
        for other in sorted(neighbours[here]) if steps < JOIN_STEPS else ():
            if other not in came_from:
                came_from[other] = here
                queue.append((other, steps + 1))
    return {start}


def _narrowed(table: TableSchema, question: str, needed: set[str]) -> TableSchema:
    """A wide table with its keys, the columns that are needed, and those that resemble the question."""
    if len(table.columns) <= COLUMNS:
        return table
    needed |= {name.lower() for key in table.foreign_keys for name in key.columns}
    scores = relevance(question, [(column.name, _column_text(column)) for column in table.columns])
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    keep = set(order[:COLUMNS])
    columns = (
        column
        for i, column in enumerate(table.columns)
        if i in keep or column.primary_key or column.name.lower() in needed
    )
    return replace(table, columns=tuple(columns))


def _linked_terms(schema: RdfSchema, question: str, limit: int, hits: Sequence[ValueHit]) -> RdfSchema:
    return replace(
        schema,
        classes=_best_terms(schema.classes, question, limit, hits),
        predicates=_best_terms(schema.predicates, question, limit, hits),
    )


def _best_terms(terms: Sequence[RdfTerm], question: str, limit: int, hits: Sequence[ValueHit]) -> tuple[RdfTerm, ...]:
    if len(terms) <= limit:
        return tuple(terms)
    scores = relevance(
        question,
        [(f"{term.label} {local_name(term.iri)}", f"{term.comment} {' '.join(term.samples)}") for term in terms],
    )
    found = {hit.place[-1]: hit.score for hit in sorted(hits, key=lambda hit: hit.score) if hit.place}
    ranked = sorted(
        range(len(terms)),
        key=lambda i: (-scores[i] - HIT_BONUS * found.get(terms[i].iri, 0.0), -terms[i].count, terms[i].iri),
    )
    keep = set(ranked[:limit])
    return tuple(term for i, term in enumerate(terms) if i in keep)


def _linked_labels(schema: GraphSchema, question: str, limit: int, hits: Sequence[ValueHit]) -> GraphSchema:
    if max(len(schema.labels), len(schema.relationships)) <= limit:
        return schema
    found = {hit.place[0]: hit.score for hit in sorted(hits, key=lambda hit: hit.score) if hit.place}
    own = relevance(question, [(label.name, _properties(label.properties)) for label in schema.labels])
    of_label = {
        label.name: score + HIT_BONUS * found.get(label.name, 0.0)
        for label, score in zip(schema.labels, own, strict=True)
    }
    types = schema.relationships
    of_type = relevance(question, [(kind.name, _properties(kind.properties)) for kind in types])
    for i, kind in enumerate(types):
        of_type[i] += CHILD * (of_label.get(kind.start, 0.0) + of_label.get(kind.end, 0.0))
    ranked = sorted(range(len(types)), key=lambda i: (-of_type[i], -types[i].count, i))[:limit]
    relationships = tuple(kind for i, kind in enumerate(types) if i in set(ranked))
    best = sorted(schema.labels, key=lambda label: (-of_label[label.name], -label.count))[:limit]
    names = {label.name for label in best} | {end for kind in relationships for end in (kind.start, kind.end)}
    return replace(
        schema, labels=tuple(label for label in schema.labels if label.name in names), relationships=relationships
    )


def local_name(iri: str) -> str:
    """What follows the last `#`, `/` or `:` of an IRI."""
    return iri.rstrip("#/:").replace("#", "/").replace(":", "/").rpartition("/")[2] or iri


def _column_text(column: Column) -> str:
    return f"{column.comment} {' '.join(column.samples)}"


def _properties(columns: Sequence[Column]) -> str:
    return " ".join(f"{column.name} {_column_text(column)}" for column in columns)

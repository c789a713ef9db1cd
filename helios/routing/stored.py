"""What a source stores where a query compares with a text: why it may have given no row, and whether it ever could.

compared(query, schema)              the texts that a query compares with, and the columns, as far as it says so
stored(query, source, question)      what is stored in these columns, and names that the source does not have
elsewhere(names, sources)            which of the names another source has
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from helios.errors import SourceError
from helios.executors.base import Language, NativeQuery
from helios.sources.base import Source, ValueHit
from helios.sources.deadline import Background
from helios.sources.descriptor import Column, GraphSchema, RelationalSchema, Schema

WHOLE = 0.97
"""Score of a stored value that is the phrase as a whole: its words, maybe in another order."""
NEAR = 0.6
"""Score below which a stored value does not resemble a name."""
TEXTS = 5
"""Texts of a query that are looked up."""
SHOWN = 4
"""Values of a column that are shown."""
ELSEWHERE_SECONDS = 5.0
QUOTED = re.compile(r"'((?:[^'\\]|\\.|'')+)'|\"((?:[^\"\\]|\\.)+)\"")
NAMED = re.compile(rf"(\w+)`?\s*(?::|=~?|<>|CONTAINS|STARTS WITH|ENDS WITH)\s*(?:{QUOTED.pattern})")
LETTERS = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, slots=True)
class Compared:
    """A text that a query compares with, and the table or label and the column of it; empty where it is not said."""

    text: str
    table: str = ""
    column: str = ""

    def stands_in(self, place: Sequence[str]) -> bool:
        """Whether a place of stored values is this column."""
        table, column = (place[0], place[-1]) if len(place) > 1 else ("", place[-1])
        same_table = not self.table or self.table.casefold() == table.casefold()
        return bool(self.column) and same_table and self.column.casefold() == column.casefold()


@dataclass(frozen=True, slots=True)
class Stored:
    """What a query's texts are in the source: hints for who repairs it, and names that are not there at all."""

    hints: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def stored(query: NativeQuery, source: Source, question: str) -> Stored:
    """For each text that the query compares with and its column does not hold: what it holds, or where the text is."""
    schema = source.descriptor().schema
    hints, missing = [], []
    for each in compared(query, schema)[:TEXTS]:
        hits = source.find_values([each.text], limit=SHOWN * 2)
        whole = [hit for hit in hits if hit.score >= WHOLE]
        if any(hit.value == each.text and (not each.column or each.stands_in(hit.place)) for hit in whole):
            continue
        hints.append(_hint(each, hits, whole, schema))
        if not any(hit.score >= NEAR for hit in hits) and each.text.casefold() in question.casefold():
            missing.append(each.text)
    return Stored(tuple(hints), tuple(missing))


def elsewhere(names: Sequence[str], sources: Sequence[Source]) -> str:
    """The first of the sources that stores one of the names as a whole; empty if none does, or none says so in time."""
    background = Background(max(1, len(sources)), name="elsewhere")
    until = monotonic() + ELSEWHERE_SECONDS
    futures = [(source, background.submit(partial(source.find_values, list(names), limit=1))) for source in sources]
    for source, future in futures:
        try:
            hits = future.result(max(0.0, until - monotonic()))
        except (SourceError, TimeoutError):
            continue
        if any(hit.score >= WHOLE for hit in hits):
            return source.name
    return ""


def compared(query: NativeQuery, schema: Schema) -> list[Compared]:
    """The texts with letters that a query compares with, each once."""
    found = _in_sql(query.text, schema) if isinstance(schema, RelationalSchema) else _in_graph(query)
    return list(dict.fromkeys(each for each in found if LETTERS.search(each.text)))


def _in_sql(text: str, schema: RelationalSchema) -> Iterator[Compared]:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(text, read=schema.dialect)
    except SqlglotError:
        return
    tables = {table.alias_or_name.casefold(): table.name for table in tree.find_all(exp.Table)}
    for part in tree.find_all(exp.EQ, exp.Like, exp.ILike, exp.In):
        columns = list(part.find_all(exp.Column))
        if len(columns) != 1:
            continue
        column = columns[0]
        table = tables.get(column.table.casefold(), "") if column.table else _owner(column.name, tables, schema)
        for literal in part.find_all(exp.Literal):
            if literal.is_string:
                yield Compared(str(literal.this).strip("%"), table, column.name)


def _owner(column: str, tables: dict[str, str], schema: RelationalSchema) -> str:
    """The only table of the query that has a column."""
    used = {name.casefold() for name in tables.values()}
    owners = [
        table.name
        for table in schema.tables
        if table.name.casefold() in used and any(each.name.casefold() == column.casefold() for each in table.columns)
    ]
    return owners[0] if len(owners) == 1 else ""


def _in_graph(query: NativeQuery) -> Iterator[Compared]:
    if query.language is Language.CYPHER:
        for column, single, double in NAMED.findall(query.text):
            yield Compared((single or double).replace("\\'", "'"), "", column)
        yield from (Compared(value) for value in query.parameters.values() if isinstance(value, str))
    elif query.language is Language.SPARQL:
        for single, double in QUOTED.findall(query.text):
            yield Compared(single or double)


def _hint(each: Compared, hits: Sequence[ValueHit], whole: Sequence[ValueHit], schema: Schema) -> str:
    place = ".".join(part for part in (each.table, each.column) if part) or "the source"
    there = [hit.value for hit in hits if each.stands_in(hit.place)]
    others = [hit for hit in whole if not each.stands_in(hit.place)] if each.column else list(whole)
    said = f"{place} holds no {each.text!r}"
    if there:
        said += f"; the nearest there: {_listed(there)}"
    elif samples := _samples(each, schema):
        said += f"; it holds values such as {_listed(samples)}"
    if others:
        said += "; stored elsewhere: " + ", ".join(f"{hit.value!r} in {'.'.join(hit.place)}" for hit in others[:SHOWN])
    return said


def _listed(values: Sequence[str]) -> str:
    return ", ".join(map(repr, list(dict.fromkeys(values))[:SHOWN]))


def _samples(each: Compared, schema: Schema) -> Sequence[str]:
    """Samples of the column."""
    owners: list[tuple[str, tuple[Column, ...]]] = []
    if isinstance(schema, RelationalSchema):
        owners = [(table.name, table.columns) for table in schema.tables]
    elif isinstance(schema, GraphSchema):
        owners = [(label.name, label.properties) for label in schema.labels]
    return [value for name, columns in owners for column in columns if each.stands_in((name, column.name))
            for value in column.samples]  # fmt: skip

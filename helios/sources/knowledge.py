"""What people know of a source and its schema does not say: a file a source, beside the file that registers it.

    helios-sources.knowledge/shop.yaml

    glossary: {big spender: a customer who bought for more than 100}
    metrics: {revenue: SUM(purchase.amount)}
    descriptions: {purchase: "what was sold, a line an item", purchase.amount: in euros}
    joins: [purchase.buyer = customer.email]
    examples:
    - {question: How many customers live in Oslo?, query: "SELECT count(*) FROM customer WHERE city = 'Oslo'"}

Examples are questions with queries that were run when they were taught. The file may be edited by hand.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, field_validator

from helios.config import Section
from helios.errors import ConfigError
from helios.executors.base import Language
from helios.index.durable import read_whole, write_atomically
from helios.sources.descriptor import (
    Column,
    CorpusSchema,
    Descriptor,
    ForeignKey,
    GraphSchema,
    RdfSchema,
    RelationalSchema,
    TableSchema,
)
from helios.sources.relevance import relevance

MAX_LENGTH = 2**20
MAX_EXAMPLES = 2_000
MAX_TEXT = 2_000
SHOWN = 4
"""Examples that a prompt shows."""
CHANGED_WORDS = 5
"""The most words that stand where a taught question has a literal."""
JOIN = re.compile(r"\s*([^.=\s][^.=]*?)\.([^.=]+?)\s*=\s*([^.=\s][^.=]*?)\.([^.=]+?)\s*")


class Example(Section):
    """A question and the query that answers it."""

    question: str = Field(min_length=1, max_length=MAX_TEXT)
    query: str = Field(min_length=1, max_length=4 * MAX_TEXT)


class Knowledge(Section):
    """What is known of one source."""

    glossary: dict[str, str] = {}
    """Words of people, and what they mean here."""
    metrics: dict[str, str] = {}
    """Numbers that people ask for by name, and how they are computed."""
    descriptions: dict[str, str] = {}
    """Of tables (`purchase`) and columns (`purchase.amount`); of classes, predicates, labels and their properties."""
    joins: tuple[str, ...] = ()
    """`table.column = table.column`, from the table that refers."""
    examples: tuple[Example, ...] = Field(default=(), max_length=MAX_EXAMPLES)

    @field_validator("joins")
    @classmethod
    def _readable(cls, joins: tuple[str, ...]) -> tuple[str, ...]:
        for join in joins:
            if not JOIN.fullmatch(join):
                raise ValueError(f"expected `table.column = table.column`, got {join[:100]!r}")
        return joins

    def similar(self, question: str, count: int = SHOWN) -> tuple[Example, ...]:
        """The taught examples whose questions share most with this one, best first; none that share no word."""
        scores = relevance(question, [(example.question, "") for example in self.examples])
        order = sorted(range(len(scores)), key=lambda i: -scores[i])[:count]
        return tuple(self.examples[i] for i in order if scores[i] > 0.0)

    def with_example(self, example: Example) -> "Knowledge":
        """With a question and its query; the query of the same question is replaced."""
        kept = [other for other in self.examples if plain(other.question) != plain(example.question)]
        return self.model_copy(update={"examples": (*kept, example)})

    def without_example(self, question: str) -> "Knowledge":
        """Without a question, however it is spelled; ConfigError where it was never taught."""
        kept = tuple(other for other in self.examples if plain(other.question) != plain(question))
        if len(kept) == len(self.examples):
            raise ConfigError(f"this question was not taught: {question[:200]!r}")
        return self.model_copy(update={"examples": kept})


def knowledge_path(sources: Path, name: str) -> Path:
    """Where the knowledge of a source stands, from the file of sources."""
    return sources.with_suffix(".knowledge") / f"{name}.yaml"


def read_knowledge(path: Path) -> Knowledge:
    """What a file holds, nothing where there is none; ConfigError names the file and the wrong key."""
    from helios.sources.registry_file import read_yaml

    try:
        text = read_whole(path, most=MAX_LENGTH).decode("utf-8")
    except FileNotFoundError:
        return Knowledge()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    document = read_yaml(text, where=str(path))
    if document is None:
        return Knowledge()
    try:
        return Knowledge.model_validate(document)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(map(str, problem["loc"])) or "the file"
        raise ConfigError(f"{path}: {key}: {problem['msg'].removeprefix('Value error, ')}") from None


def write_knowledge(path: Path, knowledge: Knowledge) -> None:
    """Replace the file in one step; it is for its owner alone, since queries hold values."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    document: dict[str, Any] = knowledge.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120) if document else ""
    write_atomically(path, text.encode(), mode=0o600)


def applied(descriptor: Descriptor, knowledge: Knowledge) -> Descriptor:
    """The descriptor with what people know: descriptions beside comments, joins as keys, words and metrics."""
    told = {name.casefold(): text for name, text in knowledge.descriptions.items()}
    schema = descriptor.schema

    def columns(owner: str, described: Sequence[Column]) -> tuple[Column, ...]:
        return tuple(
            replace(column, comment=_both(told.get(f"{owner}.{column.name}".casefold()), column.comment))
            for column in described
        )

    def said(*names: str) -> str | None:
        return next((told[name.casefold()] for name in names if name.casefold() in told), None)

    match schema:
        case RelationalSchema():
            tables = (
                replace(
                    table, columns=columns(table.name, table.columns),
                    comment=_both(told.get(table.name.casefold()), table.comment),
                )
                for table in schema.tables
            )  # fmt: skip
            schema = replace(schema, tables=_joined(tuple(tables), knowledge.joins))
        case RdfSchema():
            terms = {
                name: tuple(
                    replace(term, comment=_both(said(term.iri, term.label), term.comment))
                    for term in getattr(schema, name)
                )
                for name in ("classes", "predicates")
            }
            schema = replace(schema, classes=terms["classes"], predicates=terms["predicates"])
        case GraphSchema():
            labels = tuple(replace(one, properties=columns(one.name, one.properties)) for one in schema.labels)
            kinds = tuple(replace(one, properties=columns(one.name, one.properties)) for one in schema.relationships)
            schema = GraphSchema(labels, kinds)
        case CorpusSchema():
            pass
    words = (*knowledge.glossary.items(), *knowledge.metrics.items())
    asked = tuple(example.question for example in knowledge.examples)
    return replace(descriptor, schema=schema, glossary=words, asked=asked)


def _both(told: str | None, comment: str) -> str:
    return "; ".join(part for part in (told, comment) if part)


def _joined(tables: tuple[TableSchema, ...], joins: Sequence[str]) -> tuple[TableSchema, ...]:
    """Tables with the joins as foreign keys; one that names what is not there, or may not be seen, is left out."""
    names = {table.name.casefold(): table for table in tables}
    added: dict[str, list[ForeignKey]] = {}
    for join in joins:
        found = JOIN.fullmatch(join)
        assert found is not None
        own, column, other, referred = (part.strip() for part in found.groups())
        left, right = names.get(own.casefold()), names.get(other.casefold())
        if left is None or right is None:
            continue
        columns = {one.name.casefold(): one.name for one in left.columns}
        others = {one.name.casefold(): one.name for one in right.columns}
        if column.casefold() in columns and referred.casefold() in others:
            key = ForeignKey((columns[column.casefold()],), right.name, (others[referred.casefold()],))
            if key not in left.foreign_keys:
                added.setdefault(left.name, []).append(key)
    return tuple(replace(table, foreign_keys=(*table.foreign_keys, *added.get(table.name, ()))) for table in tables)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A taught query for a question that is asked again, with the question's own literals."""

    query: str
    example: Example


def recalled(
    question: str, knowledge: Knowledge, language: Language, stored: Callable[[str], str | None]
) -> Recalled | None:
    """The query of a taught question that this one is, up to the literals of the query; None where it is none.

    A literal that stands in the taught question may be another in this one: a number, or words that `stored` knows as a
    value of the source, in the value's own spelling.
    """
    asked = plain(question)
    for example in knowledge.examples:
        if plain(example.question) == asked:
            return Recalled(example.query, example)
    for example in knowledge.examples:
        query = _adapted(asked, example, language, stored)
        if query is not None:
            return Recalled(query, example)
    return None


def plain(question: str) -> str:
    """A question without capitals, marks at its end, and white space that makes no difference."""
    return " ".join(question.casefold().split()).rstrip("?!. ")


def _adapted(asked: str, example: Example, language: Language, stored: Callable[[str], str | None]) -> str | None:
    """The example's query with the literals of the question that was asked."""
    taught = plain(example.question)
    literals = [found for found in _literals(example.query, language) if _stands_in(found.text, taught)]
    distinct = list(dict.fromkeys(found.text.casefold() for found in literals))
    if not distinct:
        return None
    pattern = re.escape(taught)
    parts: dict[str, str] = {}
    for number, text in enumerate(sorted(distinct, key=len, reverse=True)):
        words = rf"\S+(?: \S+){{0,{CHANGED_WORDS - 1}}}"
        parts[chr(_FIRST_MARK + number)] = rf"(?P<v{number}>{_NUMBER.pattern if _NUMBER.fullmatch(text) else words})"
        spoken = rf"(?<!\w){re.escape(re.escape(text))}(?!\w)"
        if len(re.findall(spoken, pattern)) != 1:
            return None
        pattern = re.sub(spoken, chr(_FIRST_MARK + number), pattern)
    for mark, part in parts.items():
        pattern = pattern.replace(mark, part)
    found = re.fullmatch(pattern, asked)
    if found is None:
        return None
    values: dict[str, str] = {}
    for number, text in enumerate(sorted(distinct, key=len, reverse=True)):
        said = found[f"v{number}"]
        value = said if _NUMBER.fullmatch(text) or said == text else stored(said)
        if value is None:
            return None
        values[text] = value
    query = example.query
    for one in sorted(literals, key=lambda one: -one.start):
        said = values[one.text.casefold()]
        value = one.text if said == one.text.casefold() else said
        query = query[: one.start] + _escaped(value, one.quote, language) + query[one.end :]
    return query


_FIRST_MARK = 0xE000
"""Characters for private use, which stand for literals while a pattern is made."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_STRINGS = {
    Language.SQL: re.compile(r"(?P<quote>')(?P<text>(?:[^'\\]|'')*)'"),
    Language.SPARQL: re.compile(r"(?P<quote>['\"])(?P<text>[^'\"\\\n]*)(?P=quote)"),
    Language.CYPHER: re.compile(r"(?P<quote>['\"])(?P<text>[^'\"\\\n]*)(?P=quote)"),
}
_OTHER = re.compile(r"\"[^\"]*\"|`[^`]*`|<[^<>\s]*>|--[^\n]*|#[^\n]*|//[^\n]*|/\*.*?\*/|[^\W\d][\w.:]*", re.DOTALL)
"""What holds no literal: quoted names, IRIs, comments and words."""


@dataclass(frozen=True, slots=True)
class _Literal:
    """A literal of a query: its characters, without quotes and wildcards at its ends."""

    text: str
    start: int
    end: int
    quote: str = ""


def _literals(query: str, language: Language) -> list[_Literal]:
    """The strings and numbers of a query, from left to right."""
    strings = _STRINGS.get(language)
    found: list[_Literal] = []
    place = 0
    while strings is not None and place < len(query):
        if match := strings.match(query, place):
            text = match["text"].strip("%")
            if len(text) > 1:
                start = match.start("text") + match["text"].index(text)
                found.append(_Literal(text.replace("''", "'"), start, start + len(text), match["quote"]))
        elif (match := _NUMBER.match(query, place)) is not None:
            found.append(_Literal(match.group(), match.start(), match.end()))
        else:
            match = _OTHER.match(query, place)
        place = match.end() if match is not None and match.end() > place else place + 1
    return found


def _stands_in(text: str, question: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text.casefold())}(?!\w)", question) is not None


def _escaped(value: str, quote: str, language: Language) -> str:
    """A value as it stands within its quotes."""
    if not quote:
        return value
    if language is Language.SQL:
        return value.replace("'", "''")
    return value.replace("\\", "\\\\").replace(quote, f"\\{quote}")

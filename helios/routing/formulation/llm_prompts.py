"""What a language model is told when it writes a query, and the shapes of its replies (OmniRetrieval 2.3)."""

from collections.abc import Sequence
from datetime import date

from pydantic import BaseModel, ConfigDict, Field

from helios.executors.base import Language
from helios.executors.sql.functions import BY_DIALECT, PORTABLE
from helios.llm.quoting import CUT, RULE, block, one_line
from helios.llm.request import Message
from helios.routing.stored import WHOLE
from helios.sources.base import ValueHit

LONGEST_QUERY = 4000
HINT_CHARACTERS = 300
ERROR_CHARACTERS = 700

GROUND = (
    f"{RULE} Reply with one JSON object that fits the given schema, without any other text. Use only names that the "
    "description shows, spelled and quoted as they are there. Where stored values are listed, compare with them "
    "exactly as they are spelled. Return the columns that the question asks for, in its order, and no others: for a "
    "person or a thing its name where it has one, not its id and not the whole record; a number by which rows are "
    "ordered or filtered only where the question asks for it; different values once only where the question asks for "
    "different ones. Where the source does not hold what the question asks for, or does not know whom or what it "
    "names, give an empty query and say in the explanation what is missing: another source may have it."
)
INSTRUCTIONS: dict[Language, str] = {
    Language.SQL: (
        "You write one read-only SQL query (a SELECT, WITH allowed) that answers a question from the database that "
        "is described. Join along the foreign keys. Quote names that are no plain identifiers with double quotes and "
        "texts with single quotes. Count things with COUNT(*) or, for different ones, COUNT(DISTINCT ...); for the "
        "largest or the smallest order and limit. Add no LIMIT that the question does not ask for."
    ),
    Language.SPARQL: (
        "You write one SPARQL 1.1 query (SELECT or ASK, no SERVICE, no FROM, no updates) that answers a question from "
        "the RDF graph that is described. Declare every prefix that you use, or write IRIs in angle brackets. Entities "
        "of the question are listed with their IRIs where they were found: use those, not their labels. Mind the "
        "direction of each predicate; a property path may join several steps. Select the thing asked for, not its "
        "label."
    ),
    Language.CYPHER: (
        "You write one read-only Cypher query (MATCH, OPTIONAL MATCH, WHERE, WITH, RETURN, ORDER BY, LIMIT; no CALL, "
        "no LOAD, nothing that writes) that answers a question from the property graph that is described. Mind the "
        "direction of each relationship type. Return properties, not whole nodes, unless the question asks for the "
        "things themselves. Give every path of variable length an upper bound."
    ),
    Language.TEXT: (
        "You help a text search. Write the short passage, two to four sentences, that a document of the described "
        "corpus would hold if it answered the question, in the corpus's own style. Name the things of the question. "
        "Where you do not know a fact, write around it."
    ),
}
LANGUAGE_NAMES = {Language.SQL: "SQL", Language.SPARQL: "SPARQL", Language.CYPHER: "Cypher", Language.TEXT: "text"}
REPAIR = (
    "These queries were tried. Write another one that avoids what was wrong. One that gave no row may compare with a "
    "value that is spelled differently, or follow a relation the wrong way; if it is right and nothing matches, send "
    "it again as it is. If the source does not hold what the question names, give an empty query."
)
COMMON_FUNCTIONS = (
    "abs", "avg", "cast", "coalesce", "concat", "count", "current_date", "date", "date_diff", "date_format",
    "date_part", "date_trunc", "datediff", "datetime", "extract", "group_concat", "ifnull", "instr", "iif",
    "julianday", "length", "lower", "max", "min", "month", "now", "nullif", "position", "printf", "rank", "replace",
    "round", "row_number", "split_part", "strftime", "string_agg", "strpos", "substr", "substring", "sum",
    "timestampdiff", "to_char", "to_date", "total", "trim", "upper", "year",
)  # fmt: skip
"""Functions that questions want; a prompt names those that the source's guard knows."""


EXAMPLES = "Other questions about this source, with queries that people have checked; follow their conventions:"


class WrittenQuery(BaseModel):
    """A query and how the question was read."""

    model_config = ConfigDict(extra="forbid")
    explanation: str = Field(max_length=600)
    query: str = Field(max_length=LONGEST_QUERY)
    """Empty where the source does not hold what the question asks for."""


class WrittenPassage(BaseModel):
    """A passage as the corpus might have it (HyDE)."""

    model_config = ConfigDict(extra="forbid")
    passage: str = Field(min_length=1, max_length=LONGEST_QUERY)


def messages(
    language: Language,
    question: str,
    described: str,
    hints: Sequence[str],
    tried: Sequence[tuple[str, str]] = (),
    dialect: str = "",
    examples: Sequence[tuple[str, str]] = (),
) -> tuple[Message, ...]:
    """The request for a query; `tried` are queries with what became of them, `examples` verified ones with questions.

    What is the same for every question of a source comes first, so that a server that caches prefixes reads it once.
    """
    if language is Language.TEXT:
        system, parts = f"{INSTRUCTIONS[language]} {RULE}", [block(described)]
    else:
        system = " ".join([INSTRUCTIONS[language], *([_dialect(dialect)] if dialect else []), GROUND])
        parts = [block(described), f"Today is {date.today().isoformat()}."]
    if examples:
        shown = "\n".join(f"- {one_line(asked)}\n  {one_query(query)}" for asked, query in examples)
        parts.append(f"{EXAMPLES}\n{block(shown)}")
    if hints:
        parts.append("Found in the source:\n" + block("\n".join(f"- {hint}" for hint in hints)))
    if tried:
        shown = "\n".join(
            f"{i}. {one_query(query)}\n   {shortened(outcome, ERROR_CHARACTERS)}"
            for i, (query, outcome) in enumerate(tried, 1)
        )
        parts.append(f"{REPAIR}\n{block(shown)}")
    parts.append(f"Question: {one_line(question)}")
    return Message("system", system), Message("user", "\n\n".join(parts))


def _dialect(dialect: str) -> str:
    """The SQL dialect and which of the common functions a query may call there."""
    known = BY_DIALECT.get(dialect, PORTABLE)
    functions = ", ".join(function for function in COMMON_FUNCTIONS if function in known)
    return f"The SQL dialect is {dialect}; of its functions use these, and other usual ones if you must: {functions}."


def value_hints(hits: Sequence[ValueHit]) -> list[str]:
    """Stored values that the question names as a whole, with where they stand."""
    return [
        shortened(
            f"{hit.phrase!r} of the question is stored as {hit.value!r} in {'.'.join(hit.place)}", HINT_CHARACTERS
        )
        for hit in hits
        if hit.score >= WHOLE
    ]


def shortened(text: str, most: int) -> str:
    """A text on one line in at most `most` characters; unlike `clip` it keeps the brackets that IRIs stand in."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + CUT


def one_query(query: str) -> str:
    """A query on one line, as the model is shown it again."""
    return " ".join(query.split())[:LONGEST_QUERY]

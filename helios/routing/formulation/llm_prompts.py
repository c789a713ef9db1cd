"""What a language model is told when it writes a query, and the shapes of its replies (OmniRetrieval 2.3)."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from helios.executors.base import Language
from helios.llm.quoting import CUT, RULE, one_line
from helios.llm.request import Message
from helios.sources.base import ValueHit

LONGEST_QUERY = 4000
HINT_CHARACTERS = 300
ERROR_CHARACTERS = 500

GROUND = (
    f"{RULE} Reply with one JSON object that fits the given schema, without any other text. Use only names that the "
    "description shows, spelled as they are there. Where stored values are listed, compare with them exactly as they "
    "are spelled. Return the columns that the question asks for, in its order, and no others."
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
    "These queries were tried, and none of them gave an answer. Write another one that avoids what was wrong; never "
    "send one of them again. A query that gave no rows often compares with a value that is spelled differently, or "
    "follows a relation the wrong way."
)


class WrittenQuery(BaseModel):
    """A query and how the question was read."""

    model_config = ConfigDict(extra="forbid")
    explanation: str = Field(max_length=600)
    query: str = Field(min_length=1, max_length=LONGEST_QUERY)


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
) -> tuple[Message, ...]:
    """The request for a query; `tried` are queries with what became of them."""
    system = (
        f"{INSTRUCTIONS[language]} {GROUND}" if language is not Language.TEXT else f"{INSTRUCTIONS[language]} {RULE}"
    )
    parts = [fenced(described)]
    if dialect:
        parts.append(f"The SQL dialect is {dialect}.")
    if hints:
        parts.append("Found in the source:\n" + fenced("\n".join(f"- {hint}" for hint in hints)))
    if tried:
        shown = "\n".join(
            f"{i}. {one_query(query)}\n   {shortened(outcome, ERROR_CHARACTERS)}"
            for i, (query, outcome) in enumerate(tried, 1)
        )
        parts.append(f"{REPAIR}\n{fenced(shown)}")
    parts.append(f"Question: {one_line(question)}")
    return Message("system", system), Message("user", "\n\n".join(parts))


def value_hints(hits: Sequence[ValueHit]) -> list[str]:
    """Stored values that the question seems to name, with where they stand."""
    return [
        shortened(
            f"{hit.phrase!r} of the question is stored as {hit.value!r} in {'.'.join(hit.place)}", HINT_CHARACTERS
        )
        for hit in hits
    ]


def fenced(text: str) -> str:
    """Lines between the marks that `RULE` speaks of; the text keeps its angle brackets but cannot end the block."""
    safe = text.replace("<data", "‹data").replace("</data", "‹/data")
    return f"<data>\n{safe}\n</data>"


def shortened(text: str, most: int) -> str:
    """A text on one line in at most `most` characters; unlike `clip` it keeps the brackets that IRIs stand in."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + CUT


def one_query(query: str) -> str:
    """A query on one line, as the model is shown it again."""
    return " ".join(query.split())[:LONGEST_QUERY]

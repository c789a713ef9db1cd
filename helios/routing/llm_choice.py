"""A language model chooses among all that the sources gave, and says the answer in a sentence (OmniRetrieval 2.4).

It may choose one piece, several for a question of several parts, or none; what it chooses decides the answer. Its
sentence counts only where every number and every name of it stands in what it chose, in the question, or is the
number of rows: else the rows speak for themselves.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from helios.config import LanguageModelSettings
from helios.llm.budget import Budget
from helios.llm.client import LanguageModel
from helios.llm.outcome import Failure
from helios.llm.quoting import RULE, block, clip, one_line
from helios.llm.request import Message, Request
from helios.routing.consolidation import Choice, Result
from helios.routing.evidence import FROM_MEANING, EvidenceItem
from helios.routing.llm_selection import REPLY
from helios.routing.verbalisation import value_text

SHOWN = 30
"""Pieces that a model chooses from."""
ROWS_SHOWN = 20
"""Rows of a result that a model is shown, with the number of all."""
LEAST_BYTES = 240
MOST_BYTES = 2400
"""Of one piece in the prompt."""
BYTES_PER_TOKEN = 3
LONGEST_SENTENCE = 400
CHOOSE = (
    "Below are numbered pieces of evidence from different sources: results of queries, each with its query and its "
    "rows in their order, and passages and rows that resemble the question. Give the numbers of those that answer the "
    "question, the most important first. Mostly one does: of two that answer the same, give the one whose query asks "
    "exactly what the question asks. Give several where the question has several parts that different pieces answer, "
    "or where passages only together answer it. A result without rows answers a question if its query is right and "
    "nothing matches. Leave out what is merely about something similar, and what answers another question. If none "
    "answers, give none. Then write the answer as one short sentence in the question's language, with the values as "
    "they stand in the rows and nothing that does not stand there; of many rows name the first ones and the number of "
    "all. Leave it empty if you gave no number."
)
NUMBER = re.compile(r"(?<![\w.,])[-−]?\d[\d.,]*")
NAME = re.compile(r"(?<!^)(?<![.!?:] )\b[^\W\d_a-z][\w'’.-]*")
"""A capital letter inside a sentence."""
QUOTED_NAME = re.compile(r"[\"“«]([^\"”»]+)[\"”»]")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Evidence that a model chose and what it left out; `problem` says why it chose nothing, where it failed."""

    choice: Choice
    evidence: tuple[EvidenceItem, ...]
    left_out: tuple[EvidenceItem, ...] = ()
    problem: str = ""
    failed: bool = False


class EvidenceChooser:
    """Lets a language model choose; threads may share it."""

    def __init__(self, model: LanguageModel, settings: LanguageModelSettings) -> None:
        self.model = model
        self.settings = settings

    def choose(
        self, question: str, results: Sequence[Result], evidence: Sequence[EvidenceItem], *,
        budget: Budget | None = None,
    ) -> Chosen:  # fmt: skip
        """The chosen pieces of `evidence`, of which some are `results`, in the model's order."""
        shown = list(evidence[:SHOWN])
        if not shown:
            return Chosen(Choice(()), ())
        asked = (Message("system", f"{CHOOSE} {RULE} {REPLY}"), Message("user", self._prompt(question, shown)))
        request = Request(asked, _shape(len(shown)), self.settings.reply_tokens)
        (outcome,) = self.model.ask([request], budget=budget or self.model.budget())
        if isinstance(outcome, Failure):
            problem = f"the language model chose no evidence ({outcome}); the ranking stands"
            return Chosen(Choice(()), tuple(evidence), problem=problem, failed=True)
        numbers = list(dict.fromkeys(getattr(outcome.value, "numbers")))  # noqa: B009 (a field made at run time)
        chosen = tuple(
            replace(shown[number - 1], parts={**shown[number - 1].parts, "choice": float(place)})
            for place, number in enumerate(numbers, 1)
        )
        rest = tuple(item for number, item in enumerate(evidence, 1) if number not in numbers)
        by_key = {result.key: result for result in results}
        keys = [(item.source, item.query.text) for item in chosen if item.made_by in FROM_MEANING]
        said = " ".join(str(getattr(outcome.value, "sentence")).split())  # noqa: B009 (as above)
        problem = "" if chosen else "the language model holds that nothing that was found answers the question"
        if chosen and said and (strange := ungrounded(said, question, chosen)):
            problem = f"the language model's sentence was left out: {strange!r} does not stand in what it chose"
            said = ""
        choice = Choice(tuple(by_key[key] for key in keys if key in by_key), said if chosen else "")
        return Chosen(choice, chosen, rest, problem)

    def _prompt(self, question: str, shown: Sequence[EvidenceItem]) -> str:
        room = self.settings.evidence_tokens * BYTES_PER_TOKEN // len(shown)
        size = min(MOST_BYTES, max(LEAST_BYTES, room))
        lines = "\n".join(f"[{number}] {described(item, size)}" for number, item in enumerate(shown, 1))
        return f"{block(lines)}\n\nQuestion: {one_line(question)}"


def described(item: EvidenceItem, size: int) -> str:
    """A piece as a model reads it, in about `size` bytes: a result with its query, its first rows and their number."""
    head = f"({item.source}, {item.made_by}"
    if item.also:
        head += f"; the same from {', '.join(dict.fromkeys(source for source, _ in item.also))}"
    if item.made_by not in FROM_MEANING:
        return f"{head}) {clip(item.text, size)}"
    count = f"{'at least ' if item.truncated else ''}{item.row_count:,} row{'' if item.row_count == 1 else 's'}"
    lines = [f"{head}) query: {clip(item.query.text, size // 2)}"]
    left = size // 2
    texts = [clip(" | ".join(value_text(value) for value in row), left) for row in item.rows[:ROWS_SHOWN]]
    rows: list[str] = []
    for text in texts:
        left -= len(text.encode()) + 2
        if rows and left < 0:
            break
        rows.append(text)
    first = f", the first {len(rows)}" if len(rows) < item.row_count else ""
    lines.append(f"    {count}{first}; columns: {clip(' | '.join(item.columns), size // 4)}")
    return "\n".join([*lines, *(f"    - {row}" for row in rows)])


def ungrounded(sentence: str, question: str, chosen: Sequence[EvidenceItem]) -> str:
    """A number or a name of a sentence that stands neither in the evidence nor in the question; empty if none."""
    known = " ".join([question, *(_everything(item) for item in chosen)]).casefold()
    numbers = {_plain_number(number) for number in NUMBER.findall(known)}
    numbers |= {str(item.row_count) for item in chosen} | {str(len(chosen))}
    for number in NUMBER.findall(sentence):
        if _plain_number(number) not in numbers:
            return str(number).strip(".,")
    for name in (*NAME.findall(sentence), *QUOTED_NAME.findall(sentence)):
        if name.casefold().rstrip(".'’") not in known:
            return str(name)
    return ""


def _everything(item: EvidenceItem) -> str:
    """All words of a piece: its rows, its columns, its text, its source."""
    rows = " ".join(value_text(value) for row in item.rows for value in row)
    return f"{item.source} {' '.join(item.columns)} {item.text} {rows}"


def _plain_number(number: str) -> str:
    """A number without the marks between its thousands, and without zeros at its end."""
    text = number.replace("−", "-").strip(".,").replace(",", "")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _shape(most: int) -> type[BaseModel]:
    """A reply that can hold nothing but numbers from 1 to `most`, and a sentence."""
    number: Any = Annotated[int, Field(ge=1, le=most)]
    return create_model(
        "ChosenEvidence", __config__=ConfigDict(extra="forbid"),
        numbers=(Annotated[list[number], Field(max_length=most)], ...),
        sentence=(Annotated[str, Field(max_length=LONGEST_SENTENCE)], ...),
    )  # fmt: skip

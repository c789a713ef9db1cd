"""A language model as reader: labelled evidence in, an answer with quotes out, every quote traced to its place."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from helios.llm.budget import Budget, estimate_tokens
from helios.llm.client import LanguageModel
from helios.llm.outcome import Failure
from helios.llm.quoting import RULE, block, clip, one_line, quoted
from helios.llm.request import Message, Request, contradiction
from helios.models.text import sentences_of
from helios.reading.base import Answer, Citation, ComputedAnswer, Reader, nothing_found
from helios.reading.packing import PackedEvidence, pack_evidence
from helios.types import Computation, Evidence, Passage, Segment

_SHOWN_BYTES = 80
INSTRUCTIONS = f"""\
You answer questions from evidence. The evidence is rows of tables (R1, R2, ...) with their cells as "column: cell", \
and passages (P1, P2, ...) that rows link to; "[...]" marks what was left out. {RULE}

Often a row says which thing is meant, and a passage linked from it tells what is asked about that thing.
Rules:
- Use nothing but the evidence. If it does not tell the answer, set "abstain" to true and leave "answer" empty.
- "answer" is as short as it can be: a name, a date, a number with its unit, a short phrase, \
in the words of the evidence.
- "citations" name where you read it: the label of a row or passage, and a quote copied from it letter by letter. \
A quote stays inside one cell or one sentence. Cite the place that holds the answer first, then what led you there.
- "explanation" says in one or two sentences how the evidence leads to the answer, or what is missing, with the label \
of every place that it uses in square brackets, such as [P1]."""
SURE = 0.7
"""Chance from which on the model is told what was computed: where it is wrong, it misleads. Declared and not fitted."""


class Quote(BaseModel):
    """Words of a labelled row or passage."""

    model_config = ConfigDict(extra="forbid")
    source: str
    quote: str


class ReadReply(BaseModel):
    """What the model is asked to give."""

    model_config = ConfigDict(extra="forbid")
    explanation: str
    answer: str
    citations: list[Quote] = Field(max_length=8)
    abstain: bool

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.abstain and self.answer.strip():
            raise contradiction('"abstain" is true, yet "answer" holds an answer')
        if not self.abstain and not self.answer.strip():
            raise contradiction('"abstain" is false, yet "answer" is empty')
        return self


class LlmReader:
    """Reads with a language model; without a usable reply the `fallback` reads, and the answer says so."""

    name = "llm"

    def __init__(
        self,
        model: LanguageModel,
        *,
        evidence_tokens: int = 2500,
        reply_tokens: int = 512,
        fallback: Reader | None = None,
    ) -> None:
        """Evidence is packed into `evidence_tokens`; the instructions and the question come on top."""
        self.model = model
        self.evidence_tokens = evidence_tokens
        self.reply_tokens = reply_tokens
        self.fallback = fallback

    def falling_back(self, fallback: Reader) -> "LlmReader":
        """The same with another fallback."""
        limits = {"evidence_tokens": self.evidence_tokens, "reply_tokens": self.reply_tokens}
        return LlmReader(self.model, **limits, fallback=fallback)

    def __repr__(self) -> str:
        return f"LlmReader({self.model!r}, fallback={self.fallback!r})"

    def read(
        self,
        question: str,
        evidence: Evidence,
        *,
        computed: ComputedAnswer | None = None,
        budget: Budget | None = None,
    ) -> Answer:
        """Ask once; quotes that stand nowhere in their source are dropped and reported.

        `budget` is what is left for the question, a fresh one by default; where it is short, less evidence is shown.
        """
        if not evidence.edges:
            return Answer.abstain(question, nothing_found(evidence), reader=self.name)
        budget = budget or self.model.budget()
        room = budget.room(self.evidence_tokens, reply=self.reply_tokens) or self.evidence_tokens
        packed = pack_evidence(question, evidence, budget=room, count_tokens=estimate_tokens)
        if not packed.nodes:
            reason = f"no evidence fits into {room} tokens: raise advanced.llm.evidence_tokens"
            return Answer.abstain(question, reason, reader=self.name)
        messages = _messages(question, packed, computed, _chosen(packed, evidence.computed))
        (outcome,) = self.model.ask([Request(messages, ReadReply, max_tokens=self.reply_tokens)], budget=budget)
        if isinstance(outcome, Failure):
            return self._fall_back(question, evidence, computed, outcome)
        return self._answer(question, outcome.value, packed, computed)

    def _answer(
        self, question: str, reply: ReadReply, packed: PackedEvidence, computed: ComputedAnswer | None
    ) -> Answer:
        text = " ".join(reply.answer.split())
        found = [trace(quote, packed) for quote in reply.citations]
        dropped = tuple(problem for problem in found if isinstance(problem, str))
        if reply.abstain:
            reason = "the language model found no answer in the evidence"
            answer = Answer.abstain(question, reason, reader=self.name, dropped=dropped)
        else:
            citations = tuple(citation for citation in found if isinstance(citation, Citation))
            answer = Answer(question, text, citations, reader=self.name, dropped=dropped)
        return replace(answer, explanation=_explained(reply.explanation, packed), notes=_left_out(packed))

    def _fall_back(
        self, question: str, evidence: Evidence, computed: ComputedAnswer | None, failure: Failure
    ) -> Answer:
        """What the local reader says, marked as degraded."""
        why = f"reading: {failure}"
        if self.fallback is None:
            answer = Answer.abstain(question, f"the language model gave no answer ({failure})", reader=self.name)
            return replace(answer, degraded=True, notes=(why,))
        answer = self.fallback.read(question, evidence, computed=computed)
        notes = (f"{why}; read by the {self.fallback.name} reader", *answer.notes)
        return replace(answer, degraded=True, notes=notes)


def _left_out(packed: PackedEvidence) -> tuple[str, ...]:
    """What the model has not seen of the evidence."""
    parts = [
        f"{count} of the rows and passages found {how}"
        for count, how in ((packed.left_out, "did not fit into the prompt"), (packed.cut, "were shown in part"))
        if count
    ]
    return (f"reading: {', '.join(parts)}",) if parts else ()


def _explained(text: str, packed: PackedEvidence) -> str:
    """An explanation whose labels are the titles of their places; labels that nothing has are left out."""

    def places(found: re.Match[str]) -> str:
        nodes = (packed.nodes.get(label) for label in re.findall(r"\w+", found[1]))
        titles = dict.fromkeys(_title(node) for node in nodes if node is not None)
        return f" [{'; '.join(titles)}]" if titles else ""

    return " ".join(re.sub(r"\s*\[([RP]\d+(?:\W+[RP]\d+)*)\]", places, text).split())


def _title(node: Segment | Passage) -> str:
    return node.title if isinstance(node, Passage) else f"{node.title}, row {node.segment_id.row}"


def trace(quote: Quote, packed: PackedEvidence) -> Citation | str:
    """The place that a quote was copied from, or in words why there is none; case and white space may differ."""
    node = packed.nodes.get(quote.source.strip())
    if node is None:
        return f"{clip(quote.source, _SHOWN_BYTES)}: no evidence has this label"
    pattern = _pattern(quote.quote)
    if pattern is not None:
        for place, text in _places(node):
            found = pattern.search(quoted(text))
            if found:
                return _citation(node, place, text, *found.span())
    return f"{quote.source.strip()}: does not say {clip(quote.quote, _SHOWN_BYTES)!r}"


def _pattern(quote: str) -> re.Pattern[str] | None:
    """What matches a quote from the beginning of a word to the end of one; None for a quote without a word.

    Between two words there is white space, beside marks there may be: corpora set it before full stops, models do not.
    """
    parts = re.findall(r"\w+|[^\w\s]", quoted(quote))
    if not any(part[0].isalnum() for part in parts):
        return None
    pattern = re.escape(parts[0])
    for before, part in itertools.pairwise(parts):
        between = r"\s+" if _is_word(before) and _is_word(part) else r"\s*"
        pattern += between + re.escape(part)
    first, last = (r"\b" if _is_word(part) else "" for part in (parts[0], parts[-1]))
    return re.compile(f"{first}{pattern}{last}", re.IGNORECASE)


def _is_word(part: str) -> bool:
    return bool(re.match(r"\w", part))


def _chosen(packed: PackedEvidence, computed: Computation | None) -> str:
    """The labels of the rows that an aggregation chose, if it was sure."""
    if computed is None or computed.chance < SURE:
        return ""
    rows = {node.segment_id: label for label, node in packed.nodes.items() if isinstance(node, Segment)}
    return ", ".join(rows[row] for row in computed.rows if row in rows)


def _messages(
    question: str, packed: PackedEvidence, computed: ComputedAnswer | None, chosen: str
) -> tuple[Message, ...]:
    evidence = packed.text
    if computed is not None and computed.chance >= SURE:
        evidence += f"Computed over the whole table ({one_line(computed.operation)}): {one_line(computed.text)}\n"
    if chosen:
        evidence += f"All rows of the table were compared; the result: {chosen}\n"
    asked = f"{block(evidence)}\n\nQuestion: {one_line(question)}"
    return Message("system", INSTRUCTIONS), Message("user", asked)


def _places(node: Segment | Passage) -> Iterator[tuple[int | None, str]]:
    """Column and cell, or sentence and its text; a title last, without a number."""
    if isinstance(node, Segment):
        yield from enumerate(node.cells)
        return
    yield from sentences_of(node)
    yield None, node.title


def _citation(node: Segment | Passage, place: int | None, text: str, start: int, end: int) -> Citation:
    if isinstance(node, Segment):
        return Citation(text[start:end], segment_id=node.segment_id, column=place, start=start, end=end)
    return Citation(text[start:end], passage_id=node.passage_id, sentence=place, start=start, end=end)

"""A language model as reader: labelled evidence in, an answer with quotes out, every quote traced to its place."""

from collections.abc import Iterator
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from helios.llm.budget import estimate_tokens
from helios.llm.client import LanguageModel
from helios.llm.outcome import Failure
from helios.llm.request import Message, Request
from helios.reading.base import Answer, Citation, ComputedAnswer, Reader
from helios.reading.citations import sentences_of
from helios.reading.packing import PackedEvidence, pack_evidence
from helios.types import Evidence, Passage, Segment

INSTRUCTIONS = """\
You answer questions from evidence. The evidence is rows of tables (R1, R2, ...) with their cells as "column: cell", \
and passages (P1, P2, ...) that rows link to; "[...]" marks what was left out.

Often a row says which thing is meant, and a passage linked from it tells what is asked about that thing.
Rules:
- Use nothing but the evidence. If it does not tell the answer, set "abstain" to true and leave "answer" empty.
- "answer" is as short as it can be: a name, a date, a number with its unit, a short phrase, \
in the words of the evidence.
- "citations" name where you read it: the label of a row or passage, and a quote copied from it letter by letter. \
A quote stays inside one cell or one sentence. Cite the place that holds the answer first, then what led you there."""


class Quote(BaseModel):
    """Words of a labelled row or passage."""

    model_config = ConfigDict(extra="forbid")
    source: str
    quote: str


class ReadReply(BaseModel):
    """What the model is asked to give."""

    model_config = ConfigDict(extra="forbid")
    answer: str
    citations: list[Quote] = Field(max_length=8)
    abstain: bool


class LlmReader:
    """Reads with a language model; without a usable reply the `fallback` reads, and the answer says so."""

    name = "llm"

    def __init__(
        self,
        model: LanguageModel,
        *,
        prompt_tokens: int = 6000,
        reply_tokens: int = 512,
        fallback: Reader | None = None,
    ) -> None:
        """Evidence is packed into `prompt_tokens`; the instructions and the question come on top."""
        self.model = model
        self.prompt_tokens = prompt_tokens
        self.reply_tokens = reply_tokens
        self.fallback = fallback

    def read(self, question: str, evidence: Evidence, *, computed: ComputedAnswer | None = None) -> Answer:
        """Ask once; quotes that stand nowhere in their source are dropped and reported."""
        if not evidence.edges:
            return Answer.abstain(question, "no evidence was found", reader=self.name)
        packed = pack_evidence(question, evidence, budget=self.prompt_tokens, count_tokens=estimate_tokens)
        if not packed.nodes:
            reason = f"no evidence fits into {self.prompt_tokens} tokens: raise llm.prompt_tokens"
            return Answer.abstain(question, reason, reader=self.name)
        request = Request(_messages(question, packed, computed), ReadReply, max_tokens=self.reply_tokens)
        (outcome,) = self.model.ask([request], budget=self.model.budget())
        if isinstance(outcome, Failure):
            return self._fall_back(question, evidence, computed, f"the language model gave no answer ({outcome})")
        return self._answer(question, outcome.value, packed, computed)

    def _answer(
        self, question: str, reply: ReadReply, packed: PackedEvidence, computed: ComputedAnswer | None
    ) -> Answer:
        text = " ".join(reply.answer.split())
        found = [trace(quote, packed) for quote in reply.citations]
        dropped = tuple(problem for problem in found if isinstance(problem, str))
        if reply.abstain or not text:
            reason = "the language model found no answer in the evidence"
            return Answer.abstain(question, reason, reader=self.name, dropped=dropped)
        citations = tuple(citation for citation in found if isinstance(citation, Citation))
        note = f"{packed.left_out} of the nodes found did not fit into the prompt" if packed.left_out else ""
        return Answer(question, text, citations, reader=self.name, reason=note, dropped=dropped)

    def _fall_back(self, question: str, evidence: Evidence, computed: ComputedAnswer | None, reason: str) -> Answer:
        if self.fallback is None:
            return Answer.abstain(question, reason, reader=self.name)
        answer = self.fallback.read(question, evidence, computed=computed)
        why = f"{reason}; read by the {self.fallback.name} reader"
        return replace(answer, reason=f"{why}: {answer.reason}" if answer.reason else why)


def trace(quote: Quote, packed: PackedEvidence) -> Citation | str:
    """The place that a quote was copied from, or in words why there is none; white space may differ."""
    node = packed.nodes.get(quote.source.strip())
    if node is None:
        return f"{quote.source}: no evidence has this label"
    wanted = quote.quote.split()
    if wanted:
        for place, text in _places(node):
            at = _find(text, wanted)
            if at is not None:
                return _citation(node, place, text, *at)
    return f"{quote.source}: does not say {quote.quote!r}"


def _messages(question: str, packed: PackedEvidence, computed: ComputedAnswer | None) -> tuple[Message, ...]:
    parts = [f"Evidence:\n{packed.text}"]
    if computed is not None:
        parts.append(f"Computed over the whole table ({computed.operation}): {computed.text}\n")
    parts.append(f"Question: {question}")
    return Message("system", INSTRUCTIONS), Message("user", "\n".join(parts))


def _places(node: Segment | Passage) -> Iterator[tuple[int | None, str]]:
    """Column and cell, or sentence and its text; a title last, without a number."""
    if isinstance(node, Segment):
        yield from enumerate(node.cells)
        return
    yield from sentences_of(node)
    yield None, node.title


def _find(text: str, words: list[str]) -> tuple[int, int] | None:
    """Characters of a text that hold the words in order with only white space between; None if it has them not.

    A quote of a cell may begin with the column's name, which is not part of the cell.
    """
    spans: list[tuple[int, int]] = []
    position = 0
    for word in text.split():
        start = text.index(word, position)
        position = start + len(word)
        spans.append((start, position))
    joined = "".join(text[start:end] for start, end in spans)
    at = joined.lower().find("".join(words).lower())
    if at < 0:
        return None
    return _original(spans, at), _original(spans, at + len("".join(words)) - 1) + 1


def _original(spans: list[tuple[int, int]], place: int) -> int:
    """The character of the text that is number `place` when white space is not counted."""
    for start, end in spans:
        if place < end - start:
            return start + place
        place -= end - start
    raise ValueError("a place beyond the text")


def _citation(node: Segment | Passage, place: int | None, text: str, start: int, end: int) -> Citation:
    if isinstance(node, Segment):
        return Citation(text[start:end], segment_id=node.segment_id, column=place, start=start, end=end)
    return Citation(text[start:end], passage_id=node.passage_id, sentence=place, start=start, end=end)

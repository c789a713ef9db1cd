"""The LLM reader: quotes are traced, replies that are no answer are reported, the local reader takes over."""

import pytest

from helios.llm.budget import Budget
from helios.llm.outcome import Answer as Reply
from helios.llm.outcome import Failure, FailureKind
from helios.reading.base import Answer, ComputedAnswer
from helios.reading.llm import LlmReader, Quote, ReadReply, trace
from helios.reading.packing import pack_evidence
from helios.types import Evidence, EvidenceEdge, Origin, Passage, Segment, SegmentId

SEGMENT = Segment(SegmentId("rivers", 2), "Rivers", "", ("Name", "Length"), ("Aare", "288  km"))
PASSAGE = Passage("aare", "Aare", "The Aare is a river. Its source is the Aare Glacier.")
EVIDENCE = Evidence("Where is its source?", (EvidenceEdge(1, 1.0, Origin.LINKED, SEGMENT, PASSAGE),))
PACKED = pack_evidence("?", EVIDENCE, budget=1000, count_tokens=len)


class Scripted:
    """A language model that gives one outcome and keeps what it was asked."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.requests = []

    def budget(self, *, deadline=None):
        return Budget(calls=1, tokens=10_000, seconds=5, deadline=deadline)

    def ask(self, requests, *, budget):
        self.requests += requests
        return [self.outcome for _ in requests]


class Local:
    """A local reader of one answer."""

    name = "local"

    def read(self, question, evidence, *, computed=None):
        return Answer(question, "a glacier", reader=self.name)


def reply(answer: str, *quotes: tuple[str, str], abstain: bool = False):
    citations = [Quote(source=source, quote=quote) for source, quote in quotes]
    return Reply(ReadReply(answer=answer, citations=citations, abstain=abstain))


def test_quotes_become_citations_of_their_places():
    model = Scripted(reply("Aare  Glacier", ("P1", "the Aare Glacier"), ("R1", "288 km")))
    answer = LlmReader(model).read("Where is its source?", EVIDENCE)
    assert answer.text == "Aare Glacier"
    first, second = answer.citations
    assert (first.passage_id, first.sentence, first.text) == ("aare", 1, "the Aare Glacier")
    assert (second.segment_id, second.column, second.text) == (SEGMENT.segment_id, 1, "288  km")
    assert not answer.dropped


@pytest.mark.parametrize(
    ("source", "quote", "problem"),
    [
        ("P7", "the Aare Glacier", "P7: no evidence has this label"),
        ("P1", "the Rhone Glacier", "P1: does not say 'the Rhone Glacier'"),
        ("P1", "river. Its source", "P1: does not say"),
        ("R1", " ", "R1: does not say"),
    ],
)
def test_quotes_that_stand_nowhere_are_problems(source, quote, problem):
    found = trace(Quote(source=source, quote=quote), PACKED)
    assert isinstance(found, str)
    assert problem in found


def test_false_quotes_are_dropped_and_reported():
    answer = LlmReader(Scripted(reply("Bern", ("P1", "in Bern")))).read("?", EVIDENCE)
    assert not answer.citations
    assert answer.dropped == ("P1: does not say 'in Bern'",)


@pytest.mark.parametrize("outcome", [reply("", abstain=True), reply("Bern", abstain=True), reply("  ")])
def test_abstaining(outcome):
    answer = LlmReader(Scripted(outcome)).read("?", EVIDENCE)
    assert answer.abstained
    assert "no answer in the evidence" in answer.reason


@pytest.mark.parametrize("kind", list(FailureKind))
def test_failures_are_reported_and_never_an_answer(kind):
    model = Scripted(Failure(kind, "it broke"))
    alone = LlmReader(model).read("?", EVIDENCE)
    assert alone.abstained
    assert f"{kind}: it broke" in alone.reason
    local = LlmReader(model, fallback=Local()).read("?", EVIDENCE)
    assert (local.text, local.reader) == ("a glacier", "local")
    assert "it broke" in local.reason


def test_the_prompt_holds_labels_computed_values_and_the_question():
    model = Scripted(reply("3"))
    LlmReader(model).read("How many?", EVIDENCE, computed=ComputedAnswer("3", "count of rows"))
    (request,) = model.requests
    text = request.messages[-1].content
    assert all(part in text for part in ("R1  Rivers", "P1  Aare (linked from R1)", "count of rows): 3", "How many?"))
    assert request.schema()["additionalProperties"] is False


def test_no_evidence_and_no_room_need_no_call():
    model = Scripted(reply("x"))
    assert LlmReader(model).read("?", Evidence("?", ())).abstained
    assert "llm.prompt_tokens" in LlmReader(model, prompt_tokens=1).read("?", EVIDENCE).reason
    assert not model.requests

"""Many threads on one engine: what one thread gets, to the last bit, and each question's work done once."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.index.visible import VisiblePostings, VisibleTokens
from helios.models.encoder import TokenEncoder, TokenVectors
from helios.retrieval.reranking.late import NodeReading
from helios.retrieval.state import SearchState, Stage
from helios.types import Evidence

QUESTIONS = [question.text for question in read_questions(sample_path() / "questions.jsonl")]
THREADS = 16
ASKED = [QUESTIONS[at] for at in (0, 4, 7, 11, 16, 17)]
"""Some compare, some do not."""


@pytest.fixture(scope="module")
def alone(engine: Engine) -> dict[str, Evidence]:
    """What one thread gets."""
    return {question: engine.search(question, k=15, explain=True) for question in ASKED}


@pytest.fixture(scope="module")
def fresh(sample_index: Path) -> Iterator[Engine]:
    """An engine with models of its own that nobody has asked anything yet; two threads share a question."""
    with Engine.open(sample_index, threads=2) as fresh:
        yield fresh


def at_once(engines: Sequence[Engine], *, each: int) -> list[tuple[str, Evidence]]:
    """Sixteen threads begin at the same moment; thread n asks `each` questions of engine n, n + 1, ..."""
    start = Barrier(THREADS)

    def ask(thread: int) -> list[tuple[str, Evidence]]:
        start.wait()
        asked = [ASKED[(thread + number) % len(ASKED)] for number in range(each)]
        own = [engines[(thread + number) % len(engines)] for number in range(each)]
        return [(text, one.search(text, k=15, explain=True)) for text, one in zip(asked, own, strict=True)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [found for answers in pool.map(ask, range(THREADS)) for found in answers]


def assert_same(found: Evidence, expected: Evidence) -> None:
    """Everything but the time that it took."""
    assert replace(found, timings_ms={}) == replace(expected, timings_ms={})


@pytest.mark.slow
def test_threads_that_all_come_first_get_what_one_gets(fresh: Engine, alone):
    """Models are loaded, kernels compiled and files mapped while they ask."""
    for text, evidence in at_once([fresh], each=3):
        assert_same(evidence, alone[text])


def test_two_engines_in_one_process_do_not_meet(fresh: Engine, engine: Engine, reopen, alone):
    for text, evidence in at_once([fresh, engine, reopen()], each=2):
        assert_same(evidence, alone[text])


def test_threads_with_filters_of_their_own_get_what_one_gets(engine: Engine, reopen):
    """More filters than views that are kept: some are made again while others search."""
    filters = [None, "kind = 'passage'", "table.id = 'elements'", "not table.id = 'elements'"]
    asked = [(ASKED[n % 3], filters[n % 4]) for n in range(2 * THREADS)]
    alone = {(text, where): engine.search(text, k=10, where=where) for text, where in set(asked)}
    other = reopen("advanced.search.filters=2")
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda one: other.search(one[0], k=10, where=one[1]), asked))
    for one, evidence in zip(asked, found, strict=True):
        assert_same(evidence, alone[one])
    assert len({evidence.edges for evidence in alone.values()}) > 2 * 3  # filters change what is found


@pytest.mark.parametrize("workers", [1, THREADS])
def test_many_questions_together_get_what_each_gets(fresh: Engine, alone, workers: int):
    twice = [*ASKED, *ASKED[::-1]]
    for text, evidence in zip(twice, fresh.search_many(twice, k=15, workers=workers), strict=True):
        assert evidence.question == text
        assert_same(evidence, replace(alone[text], edges=tuple(replace(e, matches=()) for e in alone[text].edges)))
    assert fresh.search_many([], k=15) == []


class Count:
    """How often something was done for which question; threads may share it."""

    def __init__(self) -> None:
        self.done: Counter[tuple[str, str]] = Counter()
        self.nodes: Counter[tuple[str, int]] = Counter()
        self._lock = Lock()

    def note(self, what: str, question: str) -> None:
        with self._lock:
            self.done[what, question] += 1

    def note_nodes(self, question: str, nodes: Sequence[int]) -> None:
        with self._lock:
            self.nodes.update((question, node) for node in nodes)


class CountedStage:
    """A usual stage that asks for few edges, so that later stages have something to compute."""

    depth = 12

    def __init__(self, stage: Stage, count: Count) -> None:
        self.stage, self.count, self.name = stage, count, stage.name

    def run(self, state: SearchState) -> SearchState:
        self.count.note(self.name, state.question)
        return self.stage.run(state)


class CountedEncoder:
    """An encoder whose questions are counted, also those that it reads beside documents."""

    def __init__(self, encoder: TokenEncoder, count: Count, what: str) -> None:
        self.encoder, self.count, self.what = encoder, count, what

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def encode_question(self, question: str) -> TokenVectors:
        self.count.note(self.what, question)
        return self.encoder.encode_question(question)

    def encode_documents(self, texts: Sequence[str]) -> Iterator[TokenVectors]:
        for question in set(QUESTIONS).intersection(texts):
            self.count.note(self.what, question)
        return self.encoder.encode_documents(texts)


def counted(usual: Sequence[Stage], count: Count) -> Iterator[CountedStage]:
    for stage in usual:
        if stage.name == "retrieve":
            stage = replace(stage, candidates=30, exact=12)
        if stage.name == "rerank":
            encoder = CountedEncoder(stage.reading.encoder, count, "encode for reading")
            stage = replace(stage, reading=NodeReading(encoder, megabytes=64))
        yield CountedStage(stage, count)


def test_each_questions_work_is_done_once(reopen, monkeypatch: pytest.MonkeyPatch):
    """Sixteen threads, a question each: every stage, encoder and scan runs once for it, and no node is scored twice."""
    count = Count()
    other = reopen(stages=lambda usual: counted(usual, count))
    pipeline = other.pipeline
    encoder = CountedEncoder(pipeline.encoder, count, "encode")
    other.opened.__dict__["pipeline"] = replace(pipeline, encoder=encoder)
    bounds, maxima, words = VisibleTokens.bounds, VisibleTokens.maxima, VisiblePostings.node_bm25
    terms: dict[tuple[str, ...], str] = {}

    def counted_bounds(self, query, threads):
        count.note("bounds", query.text)
        terms[query.terms.terms] = query.text
        return bounds(self, query, threads)

    def counted_maxima(self, query, nodes, threads):
        count.note_nodes(query.text, nodes.tolist())
        return maxima(self, query, nodes, threads)

    def counted_words(self, terms_of_query, **bm25):
        count.note("BM25 of all nodes", terms[terms_of_query.terms])
        return words(self, terms_of_query, **bm25)

    monkeypatch.setattr(VisibleTokens, "bounds", counted_bounds)
    monkeypatch.setattr(VisibleTokens, "maxima", counted_maxima)
    monkeypatch.setattr(VisiblePostings, "node_bm25", counted_words)
    asked = QUESTIONS[:THREADS]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda text: other.search(text, k=8), asked))
    assert [evidence.question for evidence in found] == asked
    work = {"encode", "encode for reading", "bounds", "BM25 of all nodes", *(stage.name for stage in pipeline.stages)}
    assert {"retrieve", "rank", "rerank", "expand", "refine", "spread"} < work
    assert count.done == Counter({(what, text): 1 for what in work for text in asked})
    assert set(count.nodes.values()) == {1}
    assert all(sum(1 for text, _ in count.nodes if text == question) > 20 for question in asked)

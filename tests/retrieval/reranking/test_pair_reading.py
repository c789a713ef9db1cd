"""Reranking by pairs: scores that add up, what was not read, new edges, nodes, and settings."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from helios.config import AdvancedRerankSettings, RerankSettings, load_config
from helios.engine import Engine
from helios.errors import ConfigError, ModelError
from helios.graph import Subgraph
from helios.models.base import FILES, find_base_model
from helios.retrieval.expansion.seeds import BestEdges
from helios.retrieval.reranking.embedded import packaged
from helios.retrieval.reranking.pair_reading import (
    PairReranking,
    RerankedNodes,
    load_reranker,
    score_edges,
    score_nodes,
)
from helios.retrieval.reranking.reranker import Scores
from helios.retrieval.state import SearchState
from helios.types import Origin, ScoredEdge

QUESTION = "Who discovered the element that melts in a warm hand?"


class WordCount:
    """A reranker that likes texts with a word; reads `reach` of them before any deadline."""

    max_tokens = 400

    def __init__(self, word: str, *, reach: int = 1000) -> None:
        self.word, self.reach = word, reach
        self.seen: list[str] = []
        self.deadline: float | None = None

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def score(self, question: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        self.seen, self.deadline = list(texts), deadline
        values = np.array([4.0 * text.lower().count(self.word) for text in texts], np.float32)
        done = np.arange(len(texts)) < (self.reach if deadline else len(texts))
        return Scores(values * done, done)


@pytest.fixture
def state(state_after) -> SearchState:
    return state_after(QUESTION, "retrieve", "rank")


def reranking(reranker: WordCount, *, weight: float = 0.5, first: int = 20, ms: float | None = None) -> PairReranking:
    return PairReranking(reranker, weight, first, ms)


def gains(reranker: WordCount, seen: Sequence[str]) -> list[float]:
    values = reranker.score(QUESTION, seen).values
    return (values - values.mean()).tolist()


def scores_of(state: SearchState) -> dict:
    return {scored.edge: scored.score for scored in state.subgraph.edges}


def test_the_first_gain_a_share_of_the_logit_and_the_others_keep_their_score(state):
    reranker = WordCount("gallium")
    found = reranking(reranker, weight=0.3).run(state)
    assert len(reranker.seen) == 20
    read = [*gains(reranker, reranker.seen), *[0.0] * (len(state.subgraph) - 20)]
    assert max(read) > 0 > min(read)
    after = scores_of(found)
    for scored, value in zip(state.subgraph.edges, read, strict=True):
        assert after[scored.edge] == pytest.approx(scored.score + 0.3 * value, abs=1e-5)
    ranked = [scored.score for scored in found.subgraph.edges]
    assert ranked == sorted(ranked, reverse=True)
    assert found.left_out == ()


def test_without_weight_nothing_changes_and_with_a_large_one_the_reranker_decides(state):
    assert reranking(WordCount("gallium"), weight=0.0).run(state).subgraph == state.subgraph
    reranker = WordCount("gallium")
    found = reranking(reranker, weight=1e6, first=len(state.subgraph)).run(state)
    read = dict(zip([s.edge for s in state.subgraph.edges], gains(reranker, reranker.seen), strict=True))
    ranked = [read[scored.edge] for scored in found.subgraph.edges]
    assert ranked == sorted(ranked, reverse=True)
    assert ranked[0] > ranked[-1]


def test_what_its_time_left_out_keeps_its_score_and_a_note_says_how_much(state):
    late = WordCount("gallium", reach=5)
    found = reranking(late, ms=60_000.0).run(state)
    read = gains(WordCount("gallium"), late.seen[:5])
    after = scores_of(found)
    assert any(read)
    for scored, value in zip(state.subgraph.edges, [*read, *[0.0] * (len(state.subgraph) - 5)], strict=True):
        assert after[scored.edge] == pytest.approx(scored.score + 0.5 * value, abs=1e-5)
    assert found.left_out == ("no time left to read 15 of 20 edges again",)
    nothing = reranking(WordCount("gallium", reach=0), ms=60_000.0).run(state)
    assert nothing.subgraph == state.subgraph


def test_the_questions_deadline_counts_where_it_comes_first(state):
    reranker, now = WordCount("a"), time.monotonic()
    reranking(reranker, ms=3_600_000.0).run(replace(state, deadline=now + 1))
    assert reranker.deadline == now + 1
    reranking(reranker, ms=1000.0).run(replace(state, deadline=now + 3600))
    assert now + 1 <= reranker.deadline < now + 3600
    reranking(reranker).run(state)
    assert reranker.deadline is None


def test_origins_stay_and_nothing_to_read_is_nothing(state):
    expanded = state.with_edges(replace(scored, origin=Origin.EXPANDED) for scored in state.subgraph.edges[:3])
    found = reranking(WordCount("a")).run(expanded)
    assert {scored.origin for scored in found.subgraph.edges} == {Origin.EXPANDED}
    empty = replace(state, subgraph=Subgraph())
    assert reranking(WordCount("a")).run(empty) is empty


def test_edges_are_read_with_row_and_passage(engine: Engine, state):
    reranker = WordCount("x")
    edge = next(s.edge for s in state.subgraph.edges if s.edge.segment is not None and s.edge.passage is not None)
    score_edges(engine.index, reranker, QUESTION, [edge])
    (text,) = reranker.seen
    assert text.startswith(engine.corpus.segment(edge.segment).title)
    assert engine.corpus.passages[edge.passage].title in text


def test_new_edges_are_read_too_and_share_the_scale(state, stages):
    """What scores new edges gives them what they are worth unread, and what reading adds."""
    reranker = WordCount("gallium")
    edges = [scored.edge for scored in state.subgraph.edges[:12]]
    _, plain = stages["rank"].score(state, edges)
    _, read = reranking(reranker).over(stages["rank"]).score(state, edges)
    np.testing.assert_allclose(read - plain, 0.5 * np.array(gains(reranker, reranker.seen)), atol=1e-5)
    late = reranking(WordCount("gallium", reach=0), ms=60_000.0).over(stages["rank"])
    after, unread = late.score(state, edges)
    np.testing.assert_array_equal(unread, plain)
    assert after.left_out == ("no time left to read 12 of 12 edges again",)


@pytest.fixture
def nodes(state) -> np.ndarray:
    touched = state.subgraph.nodes()
    return np.array([*touched.segments, *(p + state.index.segment_count for p in touched.passages)], np.int64)


def test_the_best_nodes_are_read_once_and_gain_their_logit(state, nodes):
    retrieval, reranker = BestEdges(), WordCount("the")
    before = retrieval.score(state, nodes, state.subgraph)
    best = np.argsort(-before, kind="stable")[:5]
    read = score_nodes(state.index, WordCount("the"), QUESTION, nodes[best]).values
    read = read - read.mean()
    after = RerankedNodes(reranker, retrieval, weight=0.5, limit=5).score(state, nodes, state.subgraph)
    assert len(reranker.seen) == 5
    assert read.any()
    np.testing.assert_allclose((after - before)[best], 0.5 * read, atol=1e-5)
    assert np.array_equal(np.delete(after, best), np.delete(before, best))


def test_nodes_that_the_deadline_left_out_keep_their_score(state, nodes):
    retrieval = BestEdges()
    late = RerankedNodes(WordCount("a", reach=0), retrieval, weight=9.0, limit=5, milliseconds=1000.0)
    expected = retrieval.score(state, nodes, state.subgraph)
    assert np.array_equal(late.score(state, nodes, state.subgraph), expected)


def test_settings_choose_the_reranker(tmp_path):
    more = AdvancedRerankSettings()
    for backend in ("none", "late-interaction"):
        assert load_reranker("edge", RerankSettings(backend=backend), more) is None
    with pytest.raises(ModelError, match="rerank.backend=cross-encoder needs a model"):
        load_reranker("node", RerankSettings(backend="cross-encoder", model="g_e"), more)
    missing = RerankSettings(backend="embedded", model=str(tmp_path / "absent.safetensors"))
    with pytest.raises(ModelError, match="no such reranker"):
        load_reranker("edge", missing, more)
    assert load_config(overrides=["rerank.edges=7"]).rerank.edges == 7


@pytest.mark.parametrize(
    "settings",
    [
        ["advanced.rerank.weight=0.5"],
        ["rerank.backend=embedded", "advanced.rerank.cache_mb=5"],
        ["rerank.backend=cross-encoder", "rerank.model=x", "advanced.rerank.layer=3"],
        ["rerank.backend=none", "rerank.edges=5"],
    ],
)
def test_a_setting_that_the_backend_ignores_is_an_error(settings):
    with pytest.raises(ConfigError, match=r"ignores"):
        load_config(overrides=settings)


def test_the_packaged_reranker_is_for_its_own_base(tmp_path, caplog):
    base, more = find_base_model(), AdvancedRerankSettings()
    for name in FILES:
        (tmp_path / name).symlink_to(base.folder / name)
    settings = RerankSettings(backend="embedded")
    assert load_reranker("edge", settings, more, base=str(tmp_path)) is not None
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").write_bytes((base.folder / "model.safetensors").read_bytes() + b"\0")
    assert load_reranker("edge", settings, more, base=str(tmp_path)) is None
    assert "no reranking" in caplog.text
    named = RerankSettings(backend="embedded", model=str(packaged("edge")))
    reranker = load_reranker("edge", named, more, base=str(tmp_path))
    assert reranker is not None
    with pytest.raises(ModelError, match="was trained on a base with SHA-256 53aa51172d14"):
        reranker.score(QUESTION, ["a text"])


def test_ties_of_the_reranker_leave_the_order(state):
    nothing = reranking(WordCount("no text holds this")).run(state)
    assert nothing.subgraph.edges == tuple(ScoredEdge(s.edge, s.score) for s in state.subgraph.edges)

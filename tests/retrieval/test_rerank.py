"""The rerank stage: order, what was not read, both roles, and settings."""

import time
from collections.abc import Sequence

import numpy as np
import pytest

from helios.config import RerankSettings, SearchSettings, load_config
from helios.errors import ModelError
from helios.graph import Subgraph
from helios.index.search import Query
from helios.models.reranking import Scores
from helios.retrieval.edges import FactoredEdges
from helios.retrieval.expansion import BestEdges
from helios.retrieval.rerank import (
    Mix,
    MixedEdges,
    RerankedNodes,
    load_reranker,
    rerank_edges,
    score_edges,
    score_nodes,
)
from helios.types import Origin, ScoredEdge

QUESTION = "Who discovered the element that melts in a warm hand?"


class WordCount:
    """A reranker that likes texts with a word; reads `reach` of them before any deadline."""

    max_tokens = 400

    def __init__(self, word: str, *, reach: int = 1000) -> None:
        self.word, self.reach, self.seen = word, reach, []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def score(self, question: str, texts: Sequence[str], *, deadline: float | None = None) -> Scores:
        self.seen = list(texts)
        values = np.array([4.0 * text.lower().count(self.word) for text in texts], np.float32)
        done = np.arange(len(texts)) < (self.reach if deadline else len(texts))
        return Scores(values * done, done)


@pytest.fixture(scope="module")
def subgraph(engine) -> Subgraph:
    """Ranked by the fused score, which is no logit yet."""
    (edges,) = FactoredEdges(engine.parts, engine.encoder, SearchSettings()).retrieve(QUESTION, k=40)
    return Subgraph.from_edges(edges)


def rerank(engine, reranker, subgraph, *, k1=20, k2=30, weight=0.5, deadline=None) -> Subgraph:
    mix = Mix.of_fused(weight, subgraph.edges[0].score if len(subgraph) else 1.0)
    return rerank_edges(engine.part, reranker, QUESTION, subgraph, k1=k1, k2=k2, mix=mix, deadline=deadline)


def gains(reranker, seen) -> np.ndarray:
    values = reranker.score(QUESTION, seen).values
    return values - values.mean()


def test_the_best_k1_are_read_and_k2_are_kept(engine, subgraph):
    reranker = WordCount("gallium")
    found = rerank(engine, reranker, subgraph, k1=20)
    assert len(found) == 30
    assert len(reranker.seen) == 20
    scores = [scored.score for scored in found.edges]
    assert scores == sorted(scores, reverse=True)


def test_without_weight_the_order_stays_and_with_a_large_one_the_reranker_decides(engine, subgraph):
    assert [s.edge for s in rerank(engine, WordCount("gallium"), subgraph, weight=0.0).edges] == [
        s.edge for s in subgraph.edges[:30]
    ]
    reranker = WordCount("gallium")
    found = rerank(engine, reranker, subgraph, weight=1e6, k1=len(subgraph), k2=len(subgraph))
    read = gains(reranker, reranker.seen)
    values = dict(zip([s.edge for s in subgraph.edges], read, strict=True))
    ranked = [values[scored.edge] for scored in found.edges]
    assert ranked == sorted(ranked, reverse=True)
    assert ranked[0] > ranked[-1]


def test_scores_mix_two_logits_and_those_not_read_keep_theirs(engine, subgraph):
    reranker = WordCount("gallium")
    found = {s.edge: s.score for s in rerank(engine, reranker, subgraph, weight=0.3, k2=len(subgraph)).edges}
    read = [*gains(reranker, reranker.seen).tolist(), *[0.0] * (len(subgraph) - 20)]
    assert max(read) > 0
    for scored, value in zip(subgraph.edges, read, strict=True):
        wanted = 0.3 * value + 10 * scored.score / subgraph.edges[0].score ** 0.5
        assert found[scored.edge] == pytest.approx(wanted, rel=1e-5)
    assert Mix(0.3).of(2.0, 5.0) == pytest.approx(0.3 * 5 + 2)


def test_what_a_deadline_left_out_keeps_its_score(engine, subgraph):
    late = WordCount("gallium", reach=5)
    found = rerank(engine, late, subgraph, deadline=time.monotonic() + 1, k2=len(subgraph))
    scores = {s.edge: s.score for s in found.edges}
    read = gains(WordCount("gallium"), late.seen[:5])
    assert read.any()
    scale = 10 / subgraph.edges[0].score ** 0.5
    for scored, value in zip(subgraph.edges, [*read, *[0.0] * (len(subgraph) - 5)], strict=True):
        assert scores[scored.edge] == pytest.approx(0.5 * value + scale * scored.score, rel=1e-5)
    nothing = rerank(engine, WordCount("gallium", reach=0), subgraph, deadline=time.monotonic() + 1)
    assert [s.edge for s in nothing.edges] == [s.edge for s in subgraph.edges[:30]]


def test_origins_stay_and_an_empty_subgraph_is_returned(engine, subgraph):
    expanded = Subgraph.from_edges(ScoredEdge(s.edge, s.score, Origin.EXPANDED) for s in subgraph.edges[:3])
    assert {s.origin for s in rerank(engine, WordCount("a"), expanded).edges} == {Origin.EXPANDED}
    assert rerank(engine, WordCount("a"), Subgraph()) == Subgraph()


def test_edges_are_read_with_row_and_passage(engine, subgraph):
    reranker = WordCount("x")
    edge = next(s.edge for s in subgraph.edges if s.edge.segment is not None and s.edge.passage is not None)
    score_edges(engine.part, reranker, QUESTION, [edge])
    (text,) = reranker.seen
    assert text.startswith(engine.corpus.segment(edge.segment).title)
    assert engine.corpus.passages[edge.passage].title in text


def test_new_edges_get_scores_of_the_same_scale(engine, subgraph):
    query = Query.of(QUESTION, engine.encoder.encode_question(QUESTION), engine.part.tokens)
    retrieved = {scored.edge: scored.score for scored in subgraph.edges}

    class Retrieved:
        def score(self, query, edges):
            return np.array([retrieved[edge] for edge in edges], np.float32)

    mix = Mix.of_fused(0.5, subgraph.edges[0].score)
    edges = [scored.edge for scored in subgraph.edges[:20]]
    found = {scored.edge: scored.score for scored in rerank(engine, WordCount("gallium"), subgraph).edges}
    scores = MixedEdges(engine.part, WordCount("gallium"), Retrieved(), mix).score(query, edges)
    np.testing.assert_allclose(scores, [found[edge] for edge in edges], rtol=1e-4)
    late = MixedEdges(engine.part, WordCount("gallium", reach=0), Retrieved(), mix, deadline=time.monotonic() + 1)
    wanted = [mix.retrieval_logit(retrieved[edge]) for edge in edges]
    np.testing.assert_allclose(late.score(query, edges), wanted, rtol=1e-4)


@pytest.fixture
def nodes(engine, subgraph):
    touched = subgraph.nodes()
    return np.array([*touched.segments, *(p + engine.graph.segment_count for p in touched.passages)], np.int64)


def test_the_best_nodes_are_read_once_and_gain_their_logit(engine, subgraph, nodes):
    query = Query.of(QUESTION, engine.encoder.encode_question(QUESTION), engine.part.tokens)
    retrieval, reranker = BestEdges(engine.part), WordCount("the")
    before = retrieval.score(query, nodes, subgraph)
    best = np.argsort(-before, kind="stable")[:5]
    read = score_nodes(engine.part, WordCount("the"), QUESTION, nodes[best]).values
    read = read - read.mean()
    after = RerankedNodes(engine.part, reranker, retrieval, weight=0.5, limit=5).score(query, nodes, subgraph)
    assert len(reranker.seen) == 5
    assert read.any()
    np.testing.assert_allclose((after - before)[best], 0.5 * read, atol=1e-5)
    assert np.array_equal(np.delete(after, best), np.delete(before, best))


def test_nodes_that_the_deadline_left_out_keep_their_score(engine, subgraph, nodes):
    query = Query.of(QUESTION, engine.encoder.encode_question(QUESTION), engine.part.tokens)
    retrieval = BestEdges(engine.part)
    late = RerankedNodes(engine.part, WordCount("a", reach=0), retrieval, weight=9.0, limit=5, deadline_ms=1000.0)
    assert np.array_equal(late.score(query, nodes, subgraph), retrieval.score(query, nodes, subgraph))


def test_settings_choose_the_reranker(tmp_path):
    assert load_reranker("edge", RerankSettings(backend="none")) is None
    with pytest.raises(ModelError, match="rerank.backend=cross-encoder needs a model"):
        load_reranker("node", RerankSettings(backend="cross-encoder"))
    with pytest.raises(ModelError, match="no such reranker"):
        load_reranker("edge", RerankSettings(backend="embedded", edge_model=str(tmp_path / "absent.safetensors")))
    assert load_config(overrides=["rerank.k1=7"]).rerank.k1 == 7

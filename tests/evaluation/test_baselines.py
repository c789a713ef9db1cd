"""Baselines: what they rank first on a corpus of nine nodes."""

import numpy as np
import pytest

from helios.errors import EvaluationError
from helios.evaluation.baselines import Bm25Baseline, DenseBaseline
from helios.evaluation.runs import encode_edge_id
from helios.evaluation.units import RetrievalUnit, edge_pairs


def names(edges) -> list[str]:
    return [encode_edge_id(edge.edge_id) for edge in edges]


def test_pairs_are_edges_then_lone_nodes(graph):
    assert edge_pairs(graph).tolist() == [[0, 0], [1, 1], [3, 0], [3, 2], [2, -1], [4, -1], [-1, 3]]


@pytest.mark.parametrize("unit", RetrievalUnit)
class TestBm25:
    def test_the_matching_edge_comes_first(self, corpus, graph, unit):
        baseline = Bm25Baseline(corpus, graph, unit=unit)
        edges = baseline.search("Reuss lake Lucerne length")
        assert names(edges)[0] == "rivers#1|p/reuss"
        scores = [edge.score for edge in edges]
        assert scores == sorted(scores, reverse=True)

    def test_lone_nodes_are_found(self, corpus, graph, unit):
        baseline = Bm25Baseline(corpus, graph, unit=unit)
        assert names(baseline.search("Untertor 1490"))[0] == "bridges#1|*"
        assert names(baseline.search("satellite"))[0] == "*|p/moon"

    def test_k_and_no_shared_word(self, corpus, graph, unit):
        baseline = Bm25Baseline(corpus, graph, unit=unit)
        assert len(baseline.search("Aare Bern bridge river", k=2)) == 2
        assert baseline.search("zebra") == ()
        assert baseline.search("?!") == ()
        assert names(baseline.search("Aare", k=100)).count("rivers#0|p/aare") == 1


def test_words_meet_by_their_stems_and_stop_words_say_nothing(corpus, graph):
    baseline = Bm25Baseline(corpus, graph, unit=RetrievalUnit.EDGE)
    assert names(baseline.search("satellites"))[0] == "*|p/moon"
    assert baseline.search("the of and") == ()


def test_a_star_becomes_its_edges_best_passage_first(corpus, graph):
    for unit in (RetrievalUnit.STAR, RetrievalUnit.NODE):
        edges = Bm25Baseline(corpus, graph, unit=unit).search("Kirchenfeld iron bridge")
        assert names(edges)[:2] == ["bridges#0|p/kirchenfeld", "bridges#0|p/aare"]


def dense(corpus, graph, unit) -> DenseBaseline:
    """One dimension per node: segments 0 to 4, passages 5 to 8; the question is a list of dimensions."""
    vectors = np.eye(9, dtype=np.float32) * 3

    def encode(question: str) -> np.ndarray:
        return vectors[[int(number) for number in question.split()]].sum(axis=0)

    return DenseBaseline(corpus, graph, vectors[:5], vectors[5:], encode, unit=unit)


def test_dense_edges(corpus, graph):
    edges = dense(corpus, graph, RetrievalUnit.EDGE).search("3 7", k=3)
    assert names(edges) == ["bridges#0|p/kirchenfeld", "bridges#0|p/aare", "rivers#0|p/aare"]
    assert edges[0].score == pytest.approx(1.0)
    assert edges[1].score == pytest.approx(0.5)


def test_dense_lone_node_scores_its_own_cosine(corpus, graph):
    (edge,) = dense(corpus, graph, RetrievalUnit.EDGE).search("8", k=1)
    assert names([edge]) == ["*|p/moon"]
    assert edge.score == pytest.approx(1.0)


def test_dense_stars(corpus, graph):
    edges = dense(corpus, graph, RetrievalUnit.STAR).search("3 5 7", k=3)
    assert names(edges)[:2] == ["bridges#0|p/aare", "bridges#0|p/kirchenfeld"]
    assert edges[0].score == pytest.approx(1.0)


def test_dense_nodes(corpus, graph):
    edges = dense(corpus, graph, RetrievalUnit.NODE).search("1", k=1)
    assert names(edges) == ["rivers#1|p/reuss"]


def test_vectors_that_do_not_fit_are_refused(corpus, graph):
    vectors = np.eye(9, dtype=np.float32)
    with pytest.raises(EvaluationError, match="not of the same index"):
        DenseBaseline(corpus, graph, vectors[:4], vectors[5:], lambda question: vectors[0])
    with pytest.raises(EvaluationError, match="differ in dimension"):
        DenseBaseline(corpus, graph, vectors[:5], vectors[5:, :3], lambda question: vectors[0])
